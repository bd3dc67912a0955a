//! A query, prepared for a scan of all traces.

use crate::intern::part;
use crate::query::{StatusRange, TraceQuery};
use crate::store::{Held, Trace};

/// The conditions for a trace. Texts were looked up in the store's tables, so the filter is valid
/// only while these do not change.
pub(crate) struct Filter {
    /// Matching operations, by number; None: any trace matches.
    operations: Option<Vec<bool>>,
    /// Matching policies, by number; None: any trace matches.
    policies: Option<Vec<bool>>,
    status: Option<StatusRange>,
    error: Option<bool>,
    min_ns: u64,
    max_ns: u64,
    since_ns: u64,
    until_ns: u64,
    kept: Option<bool>,
}

impl Filter {
    pub fn new(query: &TraceQuery, held: &Held) -> Filter {
        let texts = [&query.service, &query.name, &query.route];
        let operations = texts.iter().any(|text| text.is_some()).then(|| {
            let table = &held.shared.operations;
            let mut matching = vec![false; table.end()];
            for (number, operation) in table.iter() {
                matching[number as usize] = texts.iter().enumerate().all(|(at, wanted)| {
                    let text = part(operation, at);
                    wanted
                        .as_ref()
                        .is_none_or(|wanted| glob(wanted.as_bytes(), text))
                });
            }
            matching
        });
        let policies = query.policy.as_ref().map(|wanted| {
            let table = &held.shared.policies;
            let mut matching = vec![false; table.end()];
            for (number, policy) in table.iter() {
                matching[number as usize] = glob(wanted.as_bytes(), policy);
            }
            matching
        });
        Filter {
            operations,
            policies,
            status: query.status,
            error: query.error,
            // Conversions of floating-point numbers to integers saturate.
            min_ns: (query.min_ms.unwrap_or(0.0) * 1e6) as u64,
            max_ns: query.max_ms.map_or(u64::MAX, |ms| (ms * 1e6) as u64),
            since_ns: query.since_ms.unwrap_or(0).saturating_mul(1_000_000),
            until_ns: query
                .until_ms
                .map_or(u64::MAX, |ms| ms.saturating_mul(1_000_000)),
            kept: query.kept,
        }
    }

    pub fn matches(&self, trace: &Trace) -> bool {
        let is_in = |set: &Vec<bool>, number: u32| set.get(number as usize) == Some(&true);
        let duration_ns = trace.duration_ns();
        duration_ns >= self.min_ns
            && duration_ns <= self.max_ns
            && trace.start_ns >= self.since_ns
            && trace.start_ns < self.until_ns
            && self.error.is_none_or(|error| error == trace.is_error)
            && (self.kept.is_none() || self.kept == trace.fate.kept())
            && self
                .status
                .is_none_or(|range| (range.first..=range.last).contains(&trace.root.status))
            && self
                .policies
                .as_ref()
                .is_none_or(|set| trace.policy.is_some_and(|policy| is_in(set, policy)))
            && self.operations.as_ref().is_none_or(|set| {
                let mut own = trace.operations.iter();
                own.any(|operation| is_in(set, *operation))
            })
    }
}

/// Whether a text matches a pattern, in which `*` stands for any bytes. The time is at most the
/// product of both lengths.
fn glob(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut from) = (0, 0);
    // The last star, and the part of the text that it matches so far.
    let mut star: Option<(usize, usize)> = None;
    while from < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(byte) if *byte == text[from] => {
                at += 1;
                from += 1;
            }
            _ => {
                let Some((star_at, star_from)) = &mut star else {
                    return false;
                };
                *star_from += 1;
                (at, from) = (*star_at + 1, *star_from);
            }
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_anything() {
        let matches = |pattern: &str, text: &str| glob(pattern.as_bytes(), text.as_bytes());
        for (pattern, text) in [
            ("", ""),
            ("*", ""),
            ("*", "abc"),
            ("a*c", "abbc"),
            ("a*c", "ac"),
            ("*b*", "abc"),
            ("a*b*c", "a-b-b-c"),
            ("**", "x"),
            ("abc", "abc"),
        ] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [
            ("", "a"),
            ("a", ""),
            ("a*c", "ab"),
            ("*b", "abc"),
            ("ab", "abc"),
        ] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }
}
