//! The waiting of one backend in one worker: who may have which server's next slot, by class, then by the time that they
//! came (manual §4.4 set-priority-class, set-priority-offset), then by their turn.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::stream::StreamId;

/// A stream that waits. It may have left meanwhile, and its place been taken by another one: its number tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub stream: StreamId,
    pub number: u64,
}

/// What decides who goes first: the lower one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank {
    pub class: i16,
    /// When it came, moved by its offset.
    pub time_ms: i64,
}

/// Those that any server can serve, and those that are bound to one. Every operation takes time by the number of servers and
/// the logarithm of that of the waiting.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    any: BinaryHeap<Entry>,
    bound: Vec<BinaryHeap<Entry>>,
    len: usize,
    /// Entries so far: among equals, who came first goes first.
    turns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    rank: Rank,
    turn: u64,
    waiting: Waiting,
}

/// Entries that may have left before the queue is swept.
const LEFT_MAX: usize = 64;

impl Queue {
    pub fn new(servers: usize) -> Self {
        Queue {
            bound: (0..servers).map(|_| BinaryHeap::new()).collect(),
            ..Queue::default()
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds one, for any server or for one. `live` is how many still wait in truth: when too many others have left, those are
    /// swept out first.
    pub fn push(
        &mut self,
        waiting: Waiting,
        rank: Rank,
        server: Option<usize>,
        live: usize,
        waits: impl Fn(&Waiting) -> bool,
    ) {
        if self.len > 2 * live + LEFT_MAX {
            for queue in std::iter::once(&mut self.any).chain(&mut self.bound) {
                queue.retain(|entry| waits(&entry.waiting));
            }
            self.len = self.any.len() + self.bound.iter().map(BinaryHeap::len).sum::<usize>();
        }
        let entry = Entry {
            rank,
            turn: self.turns,
            waiting,
        };
        self.turns += 1;
        match server {
            Some(server) => self.bound[server].push(entry),
            None => self.any.push(entry),
        }
        self.len += 1;
    }

    /// Takes out the first that still waits and that a server with a free slot may serve; among equals, those bound to one
    /// go first.
    pub fn pop(
        &mut self,
        free: impl Fn(usize) -> bool,
        waits: impl Fn(&Waiting) -> bool,
    ) -> Option<Waiting> {
        let mut some_free = false;
        let mut best: Option<(Rank, usize)> = None;
        for (server, queue) in self.bound.iter_mut().enumerate() {
            if free(server) {
                some_free = true;
                if let Some(rank) = first(queue, &mut self.len, &waits)
                    && best.is_none_or(|(other, _)| rank < other)
                {
                    best = Some((rank, server));
                }
            }
        }
        if !some_free {
            return None;
        }
        let any = first(&mut self.any, &mut self.len, &waits);
        let queue = match (best, any) {
            (Some((bound, _)), Some(any)) if any < bound => &mut self.any,
            (Some((_, server)), _) => &mut self.bound[server],
            (None, _) => &mut self.any,
        };
        let entry = queue.pop()?;
        self.len -= 1;
        Some(entry.waiting)
    }
}

/// The rank of the first that still waits; those before it are taken out.
fn first(
    queue: &mut BinaryHeap<Entry>,
    len: &mut usize,
    waits: impl Fn(&Waiting) -> bool,
) -> Option<Rank> {
    loop {
        let entry = queue.peek()?;
        if waits(&entry.waiting) {
            return Some(entry.rank);
        }
        queue.pop();
        *len -= 1;
    }
}

/// The greatest is the first to go.
impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.rank, other.turn).cmp(&(self.rank, self.turn))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
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
        queue.push(waiting(1), Rank::default(), None, 0, |_| true);
        queue.push(waiting(2), Rank::default(), Some(0), 1, |_| true);
        assert_eq!(queue.pop(|_| false, |_| true), None);
        assert_eq!(queue.pop(|server| server == 0, |_| true), Some(waiting(2)));
        assert_eq!(queue.pop(|server| server == 1, |_| true), Some(waiting(1)));
        assert!(queue.is_empty());
    }

    #[test]
    fn by_class_then_by_time_then_by_turn() {
        let mut queue = Queue::new(1);
        let ranked = [(0, 5), (0, 3), (1, 0), (-1, 9), (0, 3), (0, 4)];
        for (number, (class, time_ms)) in ranked.into_iter().enumerate() {
            // One of them is bound to the server.
            let server = (number == 5).then_some(0);
            queue.push(
                waiting(number as u64),
                Rank { class, time_ms },
                server,
                9,
                |_| true,
            );
        }
        let order: Vec<u64> =
            std::iter::from_fn(|| queue.pop(|_| true, |_| true).map(|found| found.number))
                .collect();
        assert_eq!(order, [3, 1, 4, 5, 0, 2]);
        assert!(queue.is_empty());
    }

    #[test]
    fn those_that_left_are_passed_over_and_swept() {
        let mut queue = Queue::new(1);
        for number in 0..10_000 {
            queue.push(waiting(number), Rank::default(), None, 1, |waiting| {
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
