//! A queue in blocks, which never moves what it holds: a long one grows without a stall.

use std::collections::VecDeque;

/// Items of a block.
const BLOCK: usize = 1024;

/// Items, first in first out.
#[derive(Debug)]
pub struct Queue<T> {
    blocks: VecDeque<Vec<T>>,
    /// Items of the first block that are gone.
    gone: usize,
    /// An empty block for later.
    spare: Vec<T>,
}

impl<T> Default for Queue<T> {
    fn default() -> Queue<T> {
        Queue {
            blocks: VecDeque::new(),
            gone: 0,
            spare: Vec::new(),
        }
    }
}

impl<T: Copy> Queue<T> {
    /// Bytes of all blocks.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        let spare = usize::from(self.spare.capacity() > 0);
        ((self.blocks.len() + spare) * BLOCK * size_of::<T>()) as u64
    }

    /// Adds an item.
    pub fn push(&mut self, item: T) {
        match self.blocks.back_mut() {
            Some(block) if block.len() < BLOCK => block.push(item),
            _ => {
                let mut block = std::mem::take(&mut self.spare);
                block.reserve_exact(BLOCK);
                block.push(item);
                self.blocks.push_back(block);
            }
        }
    }

    /// The oldest item.
    #[must_use]
    pub fn first(&self) -> Option<T> {
        self.blocks.front()?.get(self.gone).copied()
    }

    /// Takes the oldest item out.
    pub fn pop(&mut self) -> Option<T> {
        let block = self.blocks.front()?;
        let item = block.get(self.gone).copied()?;
        self.gone += 1;
        if self.gone == block.len() {
            self.gone = 0;
            self.spare = self.blocks.pop_front()?;
            self.spare.clear();
        }
        Some(item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_in_first_out() {
        let (mut queue, mut plain) = (Queue::default(), VecDeque::new());
        let mut random = crate::tests::Random::new(3);
        for round in 0..20_000_u64 {
            // It grows, and later shrinks.
            if random.below(20_000) > round {
                queue.push(round);
                plain.push_back(round);
            } else {
                assert_eq!(queue.first(), plain.front().copied());
                assert_eq!(queue.pop(), plain.pop_front());
            }
        }
        while let Some(item) = plain.pop_front() {
            assert_eq!(queue.pop(), Some(item));
        }
        assert_eq!((queue.pop(), queue.first()), (None, None));
        assert_eq!(queue.held_bytes(), (BLOCK * size_of::<u64>()) as u64);
    }
}
