//! The nesting of `.if`, `.elif`, `.else` and `.endif` (manual §2.4): which lines of a file are read.
//!
//! A slip (a second `.else`, an `.endif` too many) is reported by the caller and changes nothing here, so that the rest of the file
//! can still be read.

use crate::tree::Span;

/// Blocks inside each other; as many as HAProxy takes.
pub const MAX_NESTED_BLOCKS: usize = 99;

/// The open blocks of one file, the innermost last.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    open: Vec<Block>,
    /// Blocks opened beyond the limit; their lines are left out.
    beyond: usize,
}

#[derive(Debug)]
struct Block {
    /// Where its `.if` stands.
    start: Span,
    branch: Branch,
    after_else: bool,
}

/// The branch a block is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Branch {
    /// Its lines are read.
    Taken,
    /// Its lines are left out; a later branch may be taken.
    Waiting,
    /// No later branch is taken: one was, or the block stands in lines that are left out, or its condition has no answer.
    Done,
}

/// What `.elif` and `.else` may not do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misplaced {
    /// There is no `.if`.
    Lone,
    /// There was an `.else` before.
    AfterElse,
}

impl Blocks {
    /// Whether lines are read here.
    pub fn reading(&self) -> bool {
        self.beyond == 0
            && self
                .open
                .last()
                .is_none_or(|block| block.branch == Branch::Taken)
    }

    /// Opens a block at `start`. `condition` is asked only where lines are read; none means that it has no answer. False where
    /// the nesting is too deep.
    pub fn enter(&mut self, start: &Span, condition: impl FnOnce() -> Option<bool>) -> bool {
        if self.open.len() == MAX_NESTED_BLOCKS {
            self.beyond += 1;
            return false;
        }
        let branch = if self.reading() {
            Branch::of(condition())
        } else {
            Branch::Done
        };
        self.open.push(Block {
            start: start.clone(),
            branch,
            after_else: false,
        });
        true
    }

    /// `.elif`; `condition` is asked only if no branch before was taken.
    pub fn otherwise_if(
        &mut self,
        condition: impl FnOnce() -> Option<bool>,
    ) -> Result<(), Misplaced> {
        self.next_branch(condition, false)
    }

    /// `.else`
    pub fn otherwise(&mut self) -> Result<(), Misplaced> {
        self.next_branch(|| Some(true), true)
    }

    /// `.endif`
    pub fn leave(&mut self) -> Result<(), Misplaced> {
        if self.beyond > 0 {
            self.beyond -= 1;
            return Ok(());
        }
        self.open.pop().map(drop).ok_or(Misplaced::Lone)
    }

    /// Where the blocks that are still open begin.
    pub fn unclosed(&self) -> impl Iterator<Item = &Span> {
        self.open.iter().map(|block| &block.start)
    }

    fn next_branch(
        &mut self,
        condition: impl FnOnce() -> Option<bool>,
        is_else: bool,
    ) -> Result<(), Misplaced> {
        if self.beyond > 0 {
            return Ok(());
        }
        let block = self.open.last_mut().ok_or(Misplaced::Lone)?;
        if block.after_else {
            return Err(Misplaced::AfterElse);
        }
        block.after_else = is_else;
        block.branch = match block.branch {
            Branch::Waiting => Branch::of(condition()),
            Branch::Taken | Branch::Done => Branch::Done,
        };
        Ok(())
    }
}

impl Branch {
    fn of(condition: Option<bool>) -> Self {
        match condition {
            Some(true) => Branch::Taken,
            Some(false) => Branch::Waiting,
            None => Branch::Done,
        }
    }
}
