//! The waiting of one backend in one worker: who may have which server's next slot, oldest first.

use std::collections::VecDeque;

use crate::stream::StreamId;

/// A stream that waits. It may have left meanwhile, and its place been taken by another one: its number tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub stream: StreamId,
    pub number: u64,
}

/// Those that any server can serve, and those that are bound to one. Every operation takes time by the number of servers, not
/// of the waiting.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    any: VecDeque<Waiting>,
    bound: Vec<VecDeque<Waiting>>,
    len: usize,
}

/// Entries that may have left before the queue is swept.
const LEFT_MAX: usize = 64;

impl Queue {
    pub fn new(servers: usize) -> Self {
        Queue {
            bound: (0..servers).map(|_| VecDeque::new()).collect(),
            ..Queue::default()
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds one behind the others, for any server or for one. `live` is how many still wait in truth: when too many others
    /// have left, those are swept out first.
    pub fn push(
        &mut self,
        waiting: Waiting,
        server: Option<usize>,
        live: usize,
        waits: impl Fn(&Waiting) -> bool,
    ) {
        if self.len > 2 * live + LEFT_MAX {
            for queue in std::iter::once(&mut self.any).chain(&mut self.bound) {
                queue.retain(&waits);
            }
            self.len = self.any.len() + self.bound.iter().map(VecDeque::len).sum::<usize>();
        }
        match server {
            Some(server) => self.bound[server].push_back(waiting),
            None => self.any.push_back(waiting),
        }
        self.len += 1;
    }

    /// Takes out the oldest that still waits and that a server with a free slot may serve; those bound to one go first.
    pub fn pop(
        &mut self,
        free: impl Fn(usize) -> bool,
        waits: impl Fn(&Waiting) -> bool,
    ) -> Option<Waiting> {
        let mut some_free = false;
        for (server, queue) in self.bound.iter_mut().enumerate() {
            if free(server) {
                some_free = true;
                if let Some(found) = oldest(queue, &mut self.len, &waits) {
                    return Some(found);
                }
            }
        }
        if some_free {
            oldest(&mut self.any, &mut self.len, &waits)
        } else {
            None
        }
    }
}

fn oldest(
    queue: &mut VecDeque<Waiting>,
    len: &mut usize,
    waits: impl Fn(&Waiting) -> bool,
) -> Option<Waiting> {
    while let Some(waiting) = queue.pop_front() {
        *len -= 1;
        if waits(&waiting) {
            return Some(waiting);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(number: u64) -> Waiting {
        Waiting {
            stream: number as StreamId,
            number,
        }
    }

    #[test]
    fn the_bound_go_first_and_only_to_their_server() {
        let mut queue = Queue::new(2);
        queue.push(waiting(1), None, 0, |_| true);
        queue.push(waiting(2), Some(0), 1, |_| true);
        assert_eq!(queue.pop(|_| false, |_| true), None);
        assert_eq!(queue.pop(|server| server == 0, |_| true), Some(waiting(2)));
        assert_eq!(queue.pop(|server| server == 1, |_| true), Some(waiting(1)));
        assert!(queue.is_empty());
    }

    #[test]
    fn those_that_left_are_passed_over_and_swept() {
        let mut queue = Queue::new(1);
        for number in 0..10_000 {
            queue.push(waiting(number), None, 1, |waiting| {
                waiting.number + 1 >= number
            });
        }
        assert!(queue.any.len() <= LEFT_MAX + 4);
        assert_eq!(
            queue.pop(|_| true, |waiting| waiting.number == 9_999),
            Some(waiting(9_999))
        );
        assert!(queue.is_empty());
    }
}
