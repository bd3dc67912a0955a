//! The partitions that are paused or read again, and why.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;

use tokio::time::Instant;

use crate::run::kafka::client::Voice;
use crate::run::kafka::offsets::{Partition, Stuck};
use crate::run::origin::Origin;
use crate::run::storage::{Fate, Hold};
use export::Delays;
use export::Retry;

/// A partition is paused when more bytes of its messages are not settled, until half of them are.
const UNSETTLED_BYTES_MAX: u64 = 1 << 30;

/// A request that the pipeline had no room for.
pub struct Held {
    /// The offset of its message.
    pub offset: i64,
    pub request: Bytes,
    pub hold: Hold,
    pub origin: Option<Arc<Origin>>,
}

/// See the module.
pub struct Holding {
    waiting: HashMap<Partition, Waiting>,
    /// Partitions whose messages were given up.
    given_up: HashMap<Partition, GivenUp>,
    paused: HashSet<Partition>,
    backoff: Option<Retry>,
}

/// Requests of a partition, in order, and when to try again.
struct Waiting {
    all: VecDeque<Held>,
    again: Instant,
}

/// When messages that were given up are read again.
struct GivenUp {
    waits: Delays,
    /// The time of that; none while they are being read again, or if they never are.
    again: Option<Instant>,
    /// They are never read again.
    is_over: bool,
}

impl Holding {
    pub fn new(backoff: Option<Retry>) -> Holding {
        Holding {
            waiting: HashMap::new(),
            given_up: HashMap::new(),
            paused: HashSet::new(),
            backoff,
        }
    }

    /// Keeps a request until a time.
    pub fn add(&mut self, partition: Partition, held: Held, again: Instant) {
        let waiting = self.waiting.entry(partition);
        let waiting = waiting.or_insert_with(|| Waiting {
            all: VecDeque::new(),
            again,
        });
        waiting.again = again;
        waiting.all.push_back(held);
    }

    /// The requests whose time is over.
    pub fn due(&mut self, now: Instant) -> Vec<(Partition, Held)> {
        let due = self.waiting.extract_if(|_, waiting| waiting.again <= now);
        due.flat_map(|(partition, waiting)| {
            let all = waiting.all.into_iter();
            all.map(move |held| (partition.clone(), held))
        })
        .collect()
    }

    /// Leaves the waiting requests to the next owner of their partitions, because the process ends.
    pub fn leave(&self) {
        for waiting in self.waiting.values() {
            waiting.all.iter().for_each(|held| held.hold.stay());
        }
    }

    /// Removes the state of a partition that was assigned or revoked.
    pub fn forget(&mut self, partition: &Partition) {
        self.forget_held(partition);
        self.given_up.remove(partition);
        self.paused.remove(partition);
    }

    /// Removes the waiting requests of a partition that is read again. Their tokens stay valid for
    /// other partitions.
    pub fn forget_held(&mut self, partition: &Partition) {
        self.waiting.remove(partition);
    }

    /// Records that messages of these partitions were settled, so their earlier failures are over.
    pub fn moved(&mut self, partitions: &[Partition]) {
        partitions.iter().for_each(|one| {
            self.given_up.remove(one);
        });
    }

    /// The stopped partitions that must be read again now.
    pub fn rewinds(&mut self, stuck: &[Stuck], now: Instant, voice: &Voice) -> Vec<Stuck> {
        let mut rewinds = Vec::new();
        for one in stuck {
            let entry = self.given_up.entry(one.partition.clone());
            let given_up = entry.or_insert_with(|| GivenUp {
                waits: Delays::new(self.backoff),
                again: None,
                is_over: false,
            });
            match given_up.again {
                Some(again) if again <= now => {
                    given_up.again = None;
                    rewinds.push(one.clone());
                }
                None if !given_up.is_over => given_up.plan((one, now), voice),
                _ => {}
            }
        }
        rewinds
    }

    /// The partitions to pause and those to resume. `all`: the assigned partitions, if all of them
    /// must pause.
    pub fn changes(
        &mut self,
        unsettled: &[(Partition, u64)],
        all: Option<Vec<Partition>>,
    ) -> (Vec<Partition>, Vec<Partition>) {
        let mut wanted: HashSet<Partition> = match all {
            Some(all) => all.into_iter().collect(),
            None => self.waiting.keys().cloned().collect(),
        };
        let given_up = self.given_up.iter();
        let given_up = given_up.filter(|(_, one)| one.again.is_some() || one.is_over);
        wanted.extend(given_up.map(|(partition, _)| partition.clone()));
        for (partition, bytes) in unsettled {
            let max = match self.paused.contains(partition) {
                true => UNSETTLED_BYTES_MAX / 2,
                false => UNSETTLED_BYTES_MAX,
            };
            if *bytes >= max {
                wanted.insert(partition.clone());
            }
        }
        let pause = wanted.difference(&self.paused).cloned().collect();
        let resume = self.paused.difference(&wanted).cloned().collect();
        self.paused = wanted;
        (pause, resume)
    }
}

impl GivenUp {
    /// When the message is read again, if ever.
    fn plan(&mut self, (stuck, now): (&Stuck, Instant), voice: &Voice) {
        let wait = match stuck.fate {
            // It would be refused again.
            Fate::Refused => None,
            _ => self.waits.next(None),
        };
        self.again = wait.map(|wait| now + wait);
        self.is_over = wait.is_none();
        let Partition { topic, number } = &stuck.partition;
        let what = format!(
            "{topic}[{number}]: the message {} was not delivered",
            stuck.offset
        );
        voice.tell(
            "given up",
            &match wait {
                Some(wait) => format!("{what}: it is read again in {wait:?}"),
                None => format!("{what}: the partition stands still until it is assigned anew"),
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use super::*;
    use crate::run::Log;
    use crate::run::kafka::Counts;
    use crate::run::kafka::settings::receiver;
    use crate::run::storage::Token;

    fn partition(number: i32) -> Partition {
        Partition {
            topic: "spans".into(),
            number,
        }
    }

    const NOTHING: [Vec<i32>; 2] = [Vec::new(), Vec::new()];

    fn voice() -> Voice {
        Voice::new(
            "test".into(),
            &Log::new(|_, _| {}),
            &Arc::<Counts>::default(),
        )
    }

    fn numbers((pause, resume): (Vec<Partition>, Vec<Partition>)) -> [Vec<i32>; 2] {
        [pause, resume].map(|all| {
            let mut numbers: Vec<i32> = all.into_iter().map(|one| one.number).collect();
            numbers.sort_unstable();
            numbers
        })
    }

    #[test]
    fn a_partition_is_paused_while_a_request_of_it_waits() {
        let mut holding = Holding::new(None);
        let now = Instant::now();
        let fate = Arc::new(Mutex::new(None));
        let tell = Arc::clone(&fate);
        let token = Token::new(move |fate| *tell.lock().unwrap() = Some(fate));
        let held = Held {
            offset: 3,
            request: Bytes::new(),
            hold: Hold::Messages(token),
            origin: None,
        };
        holding.add(partition(1), held, now + Duration::from_secs(1));
        assert_eq!(numbers(holding.changes(&[], None)), [vec![1], vec![]]);
        assert!(holding.due(now).is_empty());
        let due = holding.due(now + Duration::from_secs(1));
        assert_eq!(numbers(holding.changes(&[], None)), [vec![], vec![1]]);
        for (partition, held) in due {
            holding.add(partition, held, now);
        }
        // Another member reads it: that leaves no trace in the token, which others have too.
        holding.forget(&partition(1));
        assert_eq!(*fate.lock().unwrap(), Some(Fate::Done));
        assert_eq!(numbers(holding.changes(&[], None)), NOTHING);
        let all = vec![partition(0), partition(1)];
        assert_eq!(
            numbers(holding.changes(&[], Some(all))),
            [vec![0, 1], vec![]]
        );
    }

    #[test]
    fn a_partition_of_which_too_much_is_not_settled_is_paused() {
        let mut holding = Holding::new(None);
        let mut changes = |bytes| numbers(holding.changes(&[(partition(0), bytes)], None));
        assert_eq!(changes(UNSETTLED_BYTES_MAX - 1), NOTHING);
        assert_eq!(changes(UNSETTLED_BYTES_MAX), [vec![0], vec![]]);
        assert_eq!(changes(UNSETTLED_BYTES_MAX / 2), NOTHING);
        assert_eq!(changes(UNSETTLED_BYTES_MAX / 2 - 1), [vec![], vec![0]]);
    }

    /// What was given up is read again where that is set, and never where it was refused for good.
    #[test]
    fn what_was_given_up_is_read_again_after_waits() {
        let backoff =
            "error_backoff: { enabled: true, initial_interval: 1s, randomization_factor: 0 }";
        for (options, fate, is_again) in [
            (backoff, Fate::Failed, true),
            (backoff, Fate::Refused, false),
            ("", Fate::Failed, false),
        ] {
            let mut holding = Holding::new(receiver(options).error_backoff);
            let stuck = [Stuck {
                partition: partition(0),
                offset: 7,
                fate,
            }];
            let now = Instant::now();
            assert!(holding.rewinds(&stuck, now, &voice()).is_empty());
            assert_eq!(numbers(holding.changes(&[], None)), [vec![0], vec![]]);
            let later = now + Duration::from_secs(1);
            let rewinds = holding.rewinds(&stuck, later, &voice());
            assert_eq!(rewinds.len(), usize::from(is_again), "{options} {fate:?}");
            let resumed = if is_again { vec![0] } else { vec![] };
            assert_eq!(numbers(holding.changes(&[], None)), [vec![], resumed]);
            // It fails again: the next wait is longer.
            assert!(holding.rewinds(&stuck, later, &voice()).is_empty());
            let paused = if is_again { vec![0] } else { vec![] };
            assert_eq!(numbers(holding.changes(&[], None)), [paused, vec![]]);
            let next = later + Duration::from_secs(1);
            assert!(holding.rewinds(&stuck, next, &voice()).is_empty());
            holding.moved(&[partition(0)]);
            let resumed = numbers(holding.changes(&[], None));
            assert_eq!(resumed[1], [0], "{options} {fate:?}");
        }
    }
}
