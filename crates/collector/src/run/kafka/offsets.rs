//! Records which messages of each partition are settled.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::time::Instant;

use crate::config::components::receivers::kafka::Marking;
use crate::run::storage::{Fate, Token};

/// The time during which received messages share a token.
const TOKEN_AGE: Duration = Duration::from_millis(500);
/// The most bytes of messages that share a token.
const TOKEN_BYTES_MAX: u64 = 16 << 20;
/// The most tokens that are not settled. At this limit all further messages share one token.
const TOKENS_MAX: usize = 1024;

/// A partition of a topic.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Partition {
    /// The topic.
    pub topic: Arc<str>,
    /// Its number.
    pub number: i32,
}

/// The unsettled messages of all partitions. The receiving thread and all tokens share it.
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

/// The messages of a partition that are received and not committed, in the order of offsets.
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
    /// The offset after the last of them.
    end: i64,
    bytes: u64,
    /// The worst result of messages that were marked singly.
    own: Fate,
    /// The result of all messages of the token; none until it is settled.
    fate: Option<Fate>,
}

impl Run {
    /// The result of its messages; none until the token is settled.
    fn outcome(&self) -> Option<Fate> {
        self.fate.map(|fate| fate.max(self.own))
    }
}

/// A partition whose first message that is not committed was not delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stuck {
    /// The partition.
    pub partition: Partition,
    /// The offset of that message.
    pub offset: i64,
    /// The result of that message.
    pub fate: Fate,
}

impl Offsets {
    /// Starts without messages.
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

    /// Records a received message, and returns the token that settles it.
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

    /// Records the result of a single message, which differs from that of its token.
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

    /// Starts a new token if the current one is too old or too large.
    pub fn rotate(&self, now: Instant) {
        let mut state = self.state();
        let is_full = state.alive >= TOKENS_MAX;
        let is_due = |open: &mut Open| {
            now.duration_since(open.since) >= TOKEN_AGE || open.bytes >= TOKEN_BYTES_MAX
        };
        let done = if is_full {
            None
        } else {
            state.open.take_if(is_due)
        };
        drop(state);
        // Dropping the token may settle it, which takes the lock.
        drop(done);
    }

    /// Ends the current token: no more messages are received.
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

    /// The partitions in which more messages are settled since the last call, each with the offset
    /// to commit.
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

    /// The partitions that are stopped by a message that was not delivered. Call [`Offsets::moved`]
    /// before.
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

    /// All partitions, with the bytes of their messages that are not settled.
    pub fn waiting(&self) -> Vec<(Partition, u64)> {
        let state = self.state();
        let waiting = state.partitions.iter();
        waiting
            .map(|(partition, runs)| (partition.clone(), runs.bytes))
            .collect()
    }

    /// Removes the messages of a partition, which has another owner now or is read again.
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
