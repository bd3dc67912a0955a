//! Which messages of each partition are settled.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::time::Instant;

use crate::config::components::receivers::kafka::Marking;
use crate::run::storage::{Fate, Token};

/// Messages that come within this time share a token.
const TOKEN_AGE: Duration = Duration::from_millis(500);
/// As long as they have no more bytes.
const TOKEN_BYTES_MAX: u64 = 16 << 20;
/// Tokens that are not settled, at most: then all further messages share one.
const TOKENS_MAX: usize = 1024;

/// A partition of a topic.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Partition {
    /// The topic.
    pub topic: Arc<str>,
    /// Its number.
    pub number: i32,
}

/// See the module. Shared by whoever receives, and by all tokens.
#[derive(Debug)]
pub struct Offsets {
    marking: Marking,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    partitions: HashMap<Partition, Runs>,
    open: Option<Open>,
    /// The number of the next token.
    next: u64,
    /// Tokens that are not settled.
    alive: usize,
}

/// The token of the messages that are received now.
#[derive(Debug)]
struct Open {
    number: u64,
    token: Token,
    since: Instant,
    bytes: u64,
}

/// What was received of a partition and is not committed, in the order of offsets.
#[derive(Debug, Default)]
struct Runs {
    all: VecDeque<Run>,
    bytes: u64,
}

/// Messages of a partition that share a token.
#[derive(Debug)]
struct Run {
    token: u64,
    /// The offset of the first of them.
    first: i64,
    /// The offset behind the last.
    end: i64,
    bytes: u64,
    /// What became of single messages, the worst.
    own: Fate,
    /// What became of all of the token's, once that is known.
    fate: Option<Fate>,
}

impl Run {
    /// What became of its messages, once that is known.
    fn outcome(&self) -> Option<Fate> {
        self.fate.map(|fate| fate.max(self.own))
    }
}

/// A partition whose first message that is not committed was not delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// It.
    pub partition: Partition,
    /// The message's offset.
    pub offset: i64,
    /// What became of it.
    pub fate: Fate,
}

impl Offsets {
    /// Nothing was received yet.
    #[must_use]
    pub fn new(marking: Marking) -> Arc<Offsets> {
        Arc::new(Offsets {
            marking,
            state: Mutex::default(),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A message was received; what it is settled by.
    pub fn take(
        self: &Arc<Offsets>,
        partition: &Partition,
        (offset, bytes): (i64, u64),
        now: Instant,
    ) -> Token {
        self.rotate(now);
        let mut state = self.state();
        let State {
            partitions,
            open: current,
            next,
            alive,
        } = &mut *state;
        let open = current.get_or_insert_with(|| {
            let number = *next;
            (*next, *alive) = (number + 1, *alive + 1);
            open(self, number, now)
        });
        open.bytes += bytes;
        let runs = match partitions.get_mut(partition) {
            Some(runs) => runs,
            None => partitions.entry(partition.clone()).or_default(),
        };
        runs.bytes += bytes;
        match runs.all.back_mut().filter(|run| run.token == open.number) {
            Some(run) => {
                run.end = offset + 1;
                run.bytes += bytes;
            }
            None => runs.all.push_back(Run {
                token: open.number,
                first: offset,
                end: offset + 1,
                bytes,
                own: Fate::Done,
                fate: None,
            }),
        }
        open.token.clone()
    }

    /// A message came to this end, and the others of its token did not.
    pub fn mark(&self, partition: &Partition, offset: i64, fate: Fate) {
        let mut state = self.state();
        let Some(runs) = state.partitions.get_mut(partition) else {
            return;
        };
        let behind = runs.all.partition_point(|run| run.first <= offset);
        if let Some(run) = behind
            .checked_sub(1)
            .and_then(|place| runs.all.get_mut(place))
        {
            run.own = run.own.max(fate);
        }
    }

    /// Messages to come get another token, where it is time; those before are settled without them.
    pub fn rotate(&self, now: Instant) {
        let mut state = self.state();
        let is_full = state.alive >= TOKENS_MAX;
        let is_due = |open: &mut Open| {
            now.duration_since(open.since) >= TOKEN_AGE || open.bytes >= TOKEN_BYTES_MAX
        };
        let done = match is_full {
            true => None,
            false => state.open.take_if(is_due),
        };
        drop(state);
        // It may be settled by that, which takes the lock.
        drop(done);
    }

    /// Nothing more is received.
    pub fn close(&self) {
        let done = self.state().open.take();
        drop(done);
    }

    fn settled(&self, token: u64, fate: Fate) {
        let mut state = self.state();
        state.alive = state.alive.saturating_sub(1);
        for runs in state.partitions.values_mut() {
            let place = runs.all.binary_search_by_key(&token, |run| run.token);
            if let Ok(place) = place {
                runs.all[place].fate = Some(fate);
            }
        }
    }

    /// Partitions with the offset from which on messages are not settled, as far as that has moved since the last time.
    pub fn moved(&self) -> Vec<(Partition, i64)> {
        let mut moved = Vec::new();
        for (partition, runs) in &mut self.state().partitions {
            let mut end = None;
            while let Some(run) = runs.all.pop_front_if(|run| self.is_done(run.outcome())) {
                runs.bytes -= run.bytes;
                end = Some(run.end);
            }
            moved.extend(end.map(|end| (partition.clone(), end)));
        }
        moved
    }

    fn is_done(&self, fate: Option<Fate>) -> bool {
        match fate {
            None | Some(Fate::Left) => false,
            Some(Fate::Done) => true,
            Some(Fate::Failed) => self.marking.failed,
            Some(Fate::Refused) => self.marking.refused,
        }
    }

    /// Partitions that do not go on by themselves. To be asked after [`Offsets::moved`].
    pub fn stuck(&self) -> Vec<Stuck> {
        let state = self.state();
        let stuck = state.partitions.iter().filter_map(|(partition, runs)| {
            let run = runs.all.front()?;
            let fate = run.outcome().filter(|fate| *fate != Fate::Left)?;
            (!self.is_done(Some(fate))).then(|| Stuck {
                partition: partition.clone(),
                offset: run.first,
                fate,
            })
        });
        stuck.collect()
    }

    /// Partitions with the bytes of their messages that are not settled.
    pub fn waiting(&self) -> Vec<(Partition, u64)> {
        let state = self.state();
        let waiting = state.partitions.iter();
        waiting
            .map(|(partition, runs)| (partition.clone(), runs.bytes))
            .collect()
    }

    /// What was received of a partition does not matter any more: others own it, or it is read again.
    pub fn forget(&self, partition: &Partition) {
        self.state().partitions.remove(partition);
    }
}

fn open(offsets: &Arc<Offsets>, number: u64, now: Instant) -> Open {
    let all: Weak<Offsets> = Arc::downgrade(offsets);
    Open {
        number,
        token: Token::new(move |fate| {
            if let Some(all) = all.upgrade() {
                all.settled(number, fate);
            }
        }),
        since: now,
        bytes: 0,
    }
}

#[cfg(test)]
mod tests;
