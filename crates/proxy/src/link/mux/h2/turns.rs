//! The turns in which the streams of a connection send while it does not take everything.
//!
//! A stream that the connection refuses joins a queue. When the connection takes payload again, the
//! streams are woken in order. Streams that have most of their turn left come at least a round
//! before the others: the payload of some lies here and that of others in the kernel, so the order
//! of waking alone does not decide who sends first. A woken stream may send [`TURN_BYTES`] and then
//! queues again, unless no other stream waits.

use std::collections::VecDeque;

use crate::ids::ExchangeId;

/// How much payload a stream sends in its turn, bytes.
pub(crate) const TURN_BYTES: usize = 32 << 10;

/// The rest of a turn that a stream keeps, at least, bytes; a smaller rest is lost.
const REST_BYTES_MIN: usize = TURN_BYTES / 8;

/// The queue of a connection.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// Streams with the rest of their turns.
    unserved: VecDeque<(ExchangeId, usize)>,
    served: VecDeque<ExchangeId>,
    /// The stream that was woken last. If it alone queues again, it needs no turns.
    last: Option<ExchangeId>,
    /// The connection is in the worker's list of connections with waiting streams.
    pub is_listed: bool,
}

/// A stream's part in the turns of its connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Nothing limits it but the connection.
    #[default]
    Free,
    /// It waits in the queue.
    Waiting,
    /// It was woken and may send `left` of [`TURN_BYTES`].
    Woken { left: usize },
}

impl Turns {
    /// Adds a stream that cannot send now. One that was woken and has most of its turn left keeps
    /// its precedence and the rest of its turn: the connection took little, and the others wait
    /// their turns.
    pub fn queue(&mut self, id: ExchangeId, turn: Turn) {
        match turn {
            Turn::Woken { left } if left >= REST_BYTES_MIN => self.unserved.push_back((id, left)),
            Turn::Free | Turn::Woken { .. } => self.served.push_back(id),
            Turn::Waiting => {}
        }
    }

    /// The streams to wake in this round, and their turns: at most `most`.
    pub fn next_round(&mut self, most: usize) -> impl Iterator<Item = (ExchangeId, Turn)> + use<> {
        let woken: Vec<_> = if self.unserved.is_empty() {
            let count = most.min(self.served.len());
            let served = self.served.drain(..count);
            served.map(|id| (id, TURN_BYTES)).collect()
        } else {
            self.unserved
                .drain(..most.min(self.unserved.len()))
                .collect()
        };
        let first = woken.first().map(|(id, _)| *id);
        let is_alone = self.is_empty() && woken.len() == 1 && self.last == first;
        self.last = woken.last().map(|(id, _)| *id);
        woken.into_iter().map(move |(id, left)| {
            let turn = if is_alone {
                Turn::Free
            } else {
                Turn::Woken { left }
            };
            (id, turn)
        })
    }

    /// Removes a stream that ends.
    pub fn remove(&mut self, id: ExchangeId) {
        self.unserved.retain(|(waiting, _)| *waiting != id);
        self.served.retain(|waiting| *waiting != id);
    }

    pub fn is_empty(&self) -> bool {
        self.unserved.is_empty() && self.served.is_empty()
    }

    /// The streams that wait.
    pub fn waiting(&self) -> impl Iterator<Item = ExchangeId> + '_ {
        let unserved = self.unserved.iter().map(|(id, _)| *id);
        unserved.chain(self.served.iter().copied())
    }

    /// Frees memory that a connection without streams does not need.
    pub fn release_spare(&mut self) {
        if self.is_empty() {
            self.unserved.shrink_to(0);
            self.served.shrink_to(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::LinkId;

    fn id(slot: u32) -> ExchangeId {
        ExchangeId::of(LinkId {
            slot,
            generation: 0,
        })
    }

    fn round(turns: &mut Turns) -> Vec<u32> {
        let round = turns.next_round(8);
        round.map(|(id, _)| LinkId::from(id).slot).collect()
    }

    #[test]
    fn a_stream_that_sent_nothing_in_its_turn_precedes_those_that_did() {
        let mut turns = Turns::default();
        for slot in 0..3 {
            turns.queue(id(slot), Turn::Free);
        }
        assert_eq!(round(&mut turns), [0, 1, 2]);
        // The first stream uses what there is; the others are refused.
        turns.queue(id(0), Turn::Woken { left: 7 });
        turns.queue(id(1), Turn::Woken { left: TURN_BYTES });
        turns.queue(id(2), Turn::Woken { left: TURN_BYTES });
        assert_eq!(round(&mut turns), [1, 2]);
        assert_eq!(round(&mut turns), [0]);
    }

    #[test]
    fn a_stream_that_follows_itself_is_alone() {
        let mut turns = Turns::default();
        let mut turn = |before| {
            turns.queue(id(1), before);
            turns.next_round(8).next()
        };
        let woken = Turn::Woken { left: TURN_BYTES };
        assert_eq!(turn(Turn::Free), Some((id(1), woken)));
        assert_eq!(turn(Turn::Woken { left: 0 }), Some((id(1), Turn::Free)));
    }

    #[test]
    fn a_stream_that_could_send_little_keeps_the_rest_of_its_turn() {
        let mut turns = Turns::default();
        for slot in 0..2 {
            turns.queue(id(slot), Turn::Free);
        }
        assert_eq!(round(&mut turns), [0, 1]);
        let left = TURN_BYTES - 5;
        turns.queue(id(0), Turn::Woken { left: 0 });
        turns.queue(id(1), Turn::Woken { left });
        let next: Vec<_> = turns.next_round(8).collect();
        assert_eq!(next, [(id(1), Turn::Woken { left })]);
        assert_eq!(round(&mut turns), [0]);
    }

    #[test]
    fn a_stream_that_ends_leaves() {
        let mut turns = Turns::default();
        turns.queue(id(1), Turn::Free);
        turns.queue(id(2), Turn::Woken { left: TURN_BYTES });
        turns.remove(id(1));
        turns.remove(id(3));
        assert_eq!(round(&mut turns), [2]);
        assert!(turns.is_empty());
    }
}
