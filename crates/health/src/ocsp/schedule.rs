//! The schedule of status updates: as soon as possible without a status, otherwise before the
//! status expires, within `ocsp-update.mindelay` and `ocsp-update.maxdelay`; after a failure, with
//! a pause that doubles.

use std::collections::{BTreeMap, BTreeSet};

use proxy::OcspSubject;
use tls::CertId;

use super::OcspOutcome;

/// How long before its expiry a status is updated.
const MARGIN_S: u64 = 60;
/// The pause after a failure; it doubles with each, up to `ocsp-update.maxdelay`.
const REPLAY_S: u64 = 60;
/// The most failures that double the pause.
const DOUBLED_MAX: u32 = 16;

/// The limits of the time between two updates.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delays {
    pub min_s: u64,
    pub max_s: u64,
}

/// The due time, then the order of arrival. The lowest turn is first.
type Turn = (u64, u64);

/// The queue of updates.
#[derive(Debug)]
pub(super) struct Schedule {
    delays: Delays,
    entries: BTreeMap<CertId, Entry>,
    queue: BTreeMap<Turn, CertId>,
    /// The number of entries queued so far.
    count: u64,
}

#[derive(Debug)]
struct Entry {
    subject: OcspSubject,
    /// Its turn in the queue; none during its update, and if it is not to be updated.
    turn: Option<Turn>,
    order: u64,
    /// Only a command requested the update.
    is_once: bool,
    is_updating: bool,
    last_update_s: Option<u64>,
    successes: u32,
    failures: u32,
    failures_in_a_row: u32,
    outcome: OcspOutcome,
    why: String,
}

/// What to do next.
#[derive(Debug)]
pub(super) enum Due {
    Now(OcspSubject),
    In(u64),
    Never,
}

/// A certificate whose status is updated.
#[derive(Clone, Debug)]
pub struct OcspUpdate {
    /// Its identifier in requests to responders.
    pub id: CertId,
    /// The name of the first certificate with this status.
    pub name: String,
    /// When the next update is due, in seconds since the UNIX epoch. 0: immediately.
    pub next_s: u64,
    /// When the last successful update ended.
    pub last_s: Option<u64>,
    /// Successful updates.
    pub successes: u32,
    /// Failed updates.
    pub failures: u32,
    /// The outcome of the last update.
    pub outcome: OcspOutcome,
    /// Details of its failure; may be empty.
    pub why: String,
}

impl OcspUpdate {
    /// The outcome of the last update, as text.
    #[must_use]
    pub fn outcome_text(&self) -> String {
        match self.why.as_str() {
            "" => self.outcome.text().to_owned(),
            why => format!("{} ({why})", self.outcome.text()),
        }
    }

    /// The part of the log line after its tag.
    pub(super) fn log_text(&self) -> String {
        let (number, text) = (self.outcome.number(), self.outcome_text());
        let (name, failures, successes) = (&self.name, self.failures, self.successes);
        format!("{name} {number} \"{text}\" {failures} {successes}")
    }
}

impl Schedule {
    pub fn new(delays: Delays) -> Schedule {
        Schedule {
            delays,
            entries: BTreeMap::new(),
            queue: BTreeMap::new(),
            count: 0,
        }
    }

    /// Takes over the current certificates. `is_off`: none is updated automatically.
    pub fn refresh(&mut self, subjects: Vec<OcspSubject>, is_off: bool, now_s: u64) {
        let mut present = BTreeSet::new();
        for subject in subjects {
            let is_wanted = subject.is_automatic && !is_off;
            let known = self.entries.contains_key(&subject.id);
            if !is_wanted && !known {
                continue;
            }
            let id = subject.id.clone();
            present.insert(id.clone());
            let next_s = self.delays.next_s(&subject, now_s);
            let entry = self.enter(subject);
            let was_wanted = !entry.is_once && (entry.turn.is_some() || entry.is_updating);
            match is_wanted {
                true if was_wanted => {}
                true => {
                    entry.is_once = false;
                    let turn = (next_s, entry.order);
                    if !entry.is_updating {
                        self.put(&id, turn);
                    }
                }
                false => {
                    entry.is_once |= entry.is_updating;
                    if !entry.is_once {
                        self.take_out(&id);
                    }
                }
            }
        }
        let gone: Vec<CertId> = self.entries.keys().cloned().collect();
        for id in gone.iter().filter(|id| !present.contains(*id)) {
            self.take_out(id);
            self.entries.remove(id);
        }
    }

    /// The entry of a certificate, made if there is none.
    fn enter(&mut self, subject: OcspSubject) -> &mut Entry {
        let order = self.count;
        let count = &mut self.count;
        let entry = self.entries.entry(subject.id.clone()).or_insert_with(|| {
            *count += 1;
            Entry {
                subject: subject.clone(),
                turn: None,
                order,
                is_once: false,
                is_updating: false,
                last_update_s: None,
                successes: 0,
                failures: 0,
                failures_in_a_row: 0,
                outcome: OcspOutcome::default(),
                why: String::new(),
            }
        });
        entry.subject = subject;
        entry
    }

    fn put(&mut self, id: &CertId, turn: Turn) {
        self.take_out(id);
        if let Some(entry) = self.entries.get_mut(id) {
            entry.turn = Some(turn);
            self.queue.insert(turn, id.clone());
        }
    }

    fn take_out(&mut self, id: &CertId) {
        let turn = self.entries.get_mut(id).and_then(|entry| entry.turn.take());
        if let Some(turn) = turn {
            self.queue.remove(&turn);
        }
    }

    /// Requests an immediate update. False if there is no status to replace.
    pub fn ask_now(&mut self, subject: OcspSubject) -> bool {
        let id = subject.id.clone();
        if !subject.has_response && !self.entries.contains_key(&id) {
            return false;
        }
        let entry = self.enter(subject);
        if !entry.is_updating {
            entry.is_once |= entry.turn.is_none();
            let turn = (0, entry.order);
            self.put(&id, turn);
        }
        true
    }

    /// What to do now. An update that is due counts as running until [`Schedule::ended`].
    pub fn due(&mut self, now_s: u64) -> Due {
        let Some((&(next_s, _), id)) = self.queue.first_key_value() else {
            return Due::Never;
        };
        if next_s > now_s {
            return Due::In(next_s - now_s);
        }
        let id = id.clone();
        self.take_out(&id);
        let Some(entry) = self.entries.get_mut(&id) else {
            return Due::Never;
        };
        entry.is_updating = true;
        entry.outcome = OcspOutcome::Unknown;
        Due::Now(entry.subject.clone())
    }

    /// Records the result of an update: when the new status expires, or why there is none. None if
    /// the certificate is no longer wanted.
    pub fn ended(
        &mut self,
        id: &CertId,
        outcome: OcspOutcome,
        result: Result<Option<u64>, String>,
        now_s: u64,
    ) -> Option<OcspUpdate> {
        let delays = self.delays;
        let entry = self.entries.get_mut(id)?;
        entry.is_updating = false;
        entry.outcome = outcome;
        let next_s = match result {
            Ok(expires_s) => {
                entry.subject.has_response = true;
                entry.subject.expires_s = expires_s;
                entry.successes += 1;
                entry.failures_in_a_row = 0;
                entry.last_update_s = Some(now_s);
                entry.why.clear();
                delays.next_s(&entry.subject, now_s)
            }
            Err(why) => {
                entry.failures += 1;
                entry.failures_in_a_row += 1;
                entry.why = why;
                let doubled = entry.failures_in_a_row.min(DOUBLED_MAX);
                let replay = (REPLAY_S << doubled).min(delays.max_s);
                delays.next_s(&entry.subject, now_s).max(now_s + replay)
            }
        };
        let is_once = std::mem::take(&mut entry.is_once);
        let turn = (next_s, entry.order);
        if !is_once {
            self.put(id, turn);
        }
        self.entries.get(id).map(|entry| view(id, entry))
    }

    /// The queued updates, in order.
    pub fn list(&self) -> Vec<OcspUpdate> {
        let queued = self.queue.values();
        queued
            .filter_map(|id| Some(view(id, self.entries.get(id)?)))
            .collect()
    }
}

impl Delays {
    /// The time of the next update of a status.
    fn next_s(self, subject: &OcspSubject, now_s: u64) -> u64 {
        let expires_s = subject.expires_s.unwrap_or(0);
        let next_s = expires_s.saturating_sub(MARGIN_S).min(now_s + self.max_s);
        if subject.has_response {
            next_s.max(now_s + self.min_s)
        } else {
            next_s
        }
    }
}

fn view(id: &CertId, entry: &Entry) -> OcspUpdate {
    OcspUpdate {
        id: id.clone(),
        name: entry.subject.name.clone(),
        next_s: entry.turn.map_or(0, |(next_s, _)| next_s),
        last_s: entry.last_update_s,
        successes: entry.successes,
        failures: entry.failures,
        outcome: entry.outcome,
        why: entry.why.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_S: u64 = 1_000_000;
    const DELAYS: Delays = Delays {
        min_s: 300,
        max_s: 3600,
    };

    /// A certificate; its status expires then, if it has one.
    fn subject(name: &str, expires_s: Option<u64>) -> OcspSubject {
        OcspSubject {
            id: tls::CertId::by_sha1([name.as_bytes(), b"key", &[1]]),
            name: name.to_owned(),
            uri: "http://a.test".to_owned(),
            issuer: Vec::new(),
            has_response: expires_s.is_some(),
            expires_s,
            is_automatic: true,
        }
    }

    fn due(schedule: &mut Schedule, now_s: u64) -> Option<String> {
        match schedule.due(now_s) {
            Due::Now(subject) => Some(subject.name),
            Due::In(_) | Due::Never => None,
        }
    }

    #[test]
    fn what_has_no_status_is_asked_for_first_and_then_within_the_delays() {
        let mut schedule = Schedule::new(DELAYS);
        let subjects = vec![
            subject("short", Some(NOW_S + 400)),
            subject("none", None),
            subject("expired", Some(NOW_S)),
            subject("long", Some(NOW_S + 1_000_000)),
            subject("none too", None),
        ];
        schedule.refresh(subjects, false, NOW_S);
        assert_eq!(due(&mut schedule, NOW_S).as_deref(), Some("none"));
        assert_eq!(due(&mut schedule, NOW_S).as_deref(), Some("none too"));
        let times: Vec<_> = schedule
            .list()
            .into_iter()
            .map(|each| (each.name, each.next_s - NOW_S))
            .collect();
        let expected = [("expired", 300), ("short", 340), ("long", 3600)];
        assert_eq!(times, expected.map(|(name, s)| (name.to_owned(), s)));
        assert!(matches!(schedule.due(NOW_S), Due::In(300)));
    }

    #[test]
    fn pauses_after_failures_double_up_to_the_longest_delay() {
        let mut schedule = Schedule::new(DELAYS);
        schedule.refresh(vec![subject("one", None)], false, NOW_S);
        let id = subject("one", None).id;
        let mut now_s = NOW_S;
        for pause in [120, 240, 480, 960, 1920, 3600, 3600] {
            assert!(due(&mut schedule, now_s).is_some());
            assert!(matches!(schedule.due(now_s), Due::Never));
            let why = Err("no".to_owned());
            schedule.ended(&id, OcspOutcome::Http, why, now_s);
            assert!(matches!(schedule.due(now_s), Due::In(s) if s == pause));
            now_s += pause;
        }
        assert!(due(&mut schedule, now_s).is_some());
        schedule.ended(&id, OcspOutcome::Done, Ok(Some(now_s + 1000)), now_s);
        assert!(matches!(schedule.due(now_s), Due::In(940)));
        let [entry] = &schedule.list()[..] else {
            panic!("one");
        };
        assert_eq!((entry.failures, entry.successes), (7, 1));
    }

    #[test]
    fn a_command_asks_once_and_what_is_gone_is_not_asked_for() {
        let mut schedule = Schedule::new(DELAYS);
        let once = OcspSubject {
            is_automatic: false,
            ..subject("once", Some(NOW_S + 1000))
        };
        let without = OcspSubject {
            is_automatic: false,
            ..subject("without", None)
        };
        assert!(!schedule.ask_now(without));
        assert!(schedule.ask_now(once.clone()));
        assert!(schedule.ask_now(once.clone()));
        assert_eq!(due(&mut schedule, NOW_S).as_deref(), Some("once"));
        // Its certificate is used while its responder is asked.
        schedule.refresh(vec![subject("once", None)], false, NOW_S);
        schedule.ended(&once.id, OcspOutcome::Done, Ok(None), NOW_S);
        assert_eq!(schedule.list().len(), 1);
        schedule.refresh(vec![once.clone()], false, NOW_S);
        assert_eq!(schedule.list().len(), 0);
        assert!(schedule.ask_now(once.clone()));
        schedule.refresh(Vec::new(), false, NOW_S);
        assert!(matches!(schedule.due(NOW_S), Due::Never));
        assert!(
            schedule
                .ended(&once.id, OcspOutcome::Done, Ok(None), NOW_S)
                .is_none()
        );
    }

    #[test]
    fn nothing_is_asked_for_by_itself_where_it_is_off() {
        let mut schedule = Schedule::new(DELAYS);
        schedule.refresh(vec![subject("one", None)], true, NOW_S);
        assert!(matches!(schedule.due(NOW_S), Due::Never));
        assert!(schedule.ask_now(subject("one", Some(NOW_S))));
        assert!(due(&mut schedule, NOW_S).is_some());
    }
}
