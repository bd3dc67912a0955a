//! Nesting of `.if`, `.elif`, `.else` and `.endif` (manual §2.4), which determines the lines that
//! are read.
//!
//! The caller reports a misplaced directive (a second `.else`, an extra `.endif`). It changes
//! nothing here, so that the rest of the file can still be read.

use crate::tree::Span;

/// Most nested blocks, as in HAProxy.
pub const MAX_NESTED_BLOCKS: usize = 99;

/// The open blocks of one file, the innermost last.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    open: Vec<Block>,
    /// The number of blocks opened beyond the limit; their lines are skipped.
    beyond: usize,
}

#[derive(Debug)]
struct Block {
    /// The place of its `.if`.
    start: Span,
    branch: Branch,
    after_else: bool,
}

/// The state of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Branch {
    /// Its lines are read.
    Taken,
    /// Its lines are skipped; a later branch may be taken.
    Waiting,
    /// No later branch is taken: one was, or the surrounding lines are skipped, or the condition
    /// could not be evaluated.
    Done,
}

/// Why `.elif` or `.else` is misplaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Misplaced {
    /// There is no `.if`.
    Lone,
    /// There was an `.else` before.
    AfterElse,
}

impl Blocks {
    /// Whether the current lines are read.
    pub fn reading(&self) -> bool {
        self.beyond == 0
            && self
                .open
                .last()
                .is_none_or(|block| block.branch == Branch::Taken)
    }

    /// Opens a block at `start`. `condition` is evaluated only if the current lines are read; None
    /// means that it could not be evaluated. False if the nesting is too deep.
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

    /// `.elif`; `condition` is evaluated only if no earlier branch was taken.
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

    /// The places of the blocks that are still open.
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
