//! `trace_state`: a span's W3C tracestate has a key with one of some values. A state that is
//! malformed has none.

use otlp::tracestate;

/// Bytes of a member's key and value together.
const MEMBER_BYTES_MAX: usize = 256;

/// A key, its values, and the bit that says that a span has one of them.
#[derive(Debug)]
pub struct State {
    key: Box<[u8]>,
    values: Vec<Box<[u8]>>,
    pub bit: u64,
}

impl State {
    pub fn new(key: &str, values: &[String], bit: u64) -> State {
        let fits =
            |value: &&String| !value.is_empty() && key.len() + value.len() < MEMBER_BYTES_MAX;
        let values = values.iter().filter(fits);
        State {
            key: key.as_bytes().into(),
            values: values.map(|value| value.as_bytes().into()).collect(),
            bit,
        }
    }

    pub fn matches(&self, state: &[u8]) -> bool {
        if state.is_empty() || !is_well_formed(state) {
            return false;
        }
        let value = tracestate::get(state, &self.key);
        value.is_some_and(|value| self.values.iter().any(|wanted| **wanted == *value))
    }
}

/// Every member is well formed, there are not too many, and none has the key of another.
fn is_well_formed(state: &[u8]) -> bool {
    let commas = memchr::memchr_iter(b',', state)
        .take(tracestate::MEMBERS_MAX)
        .count();
    let twice = |at: usize, key: &[u8]| {
        tracestate::members(state)
            .take(at)
            .any(|(other, _)| other == key)
    };
    tracestate::members(state).count() == commas + 1
        && !tracestate::members(state)
            .enumerate()
            .any(|(at, (key, _))| twice(at, key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_the_values() {
        let state = State::new("k", &["v".to_owned(), "w".to_owned()], 1);
        assert!(state.matches(b"k=v") && state.matches(b"a=b,k=w") && state.matches(b"a=b, k=w"));
        assert!(!state.matches(b"") && !state.matches(b"k=x") && !state.matches(b"a=v"));
    }

    #[test]
    fn a_malformed_state_has_none() {
        let state = State::new("k", &["v".to_owned()], 1);
        for bad in ["k=v,bad", "k=v,", "k=v,k=w", "k=v,UP=x"] {
            assert!(!state.matches(bad.as_bytes()), "{bad}");
        }
        let many = vec!["k=v".to_owned(); 1]
            .into_iter()
            .chain((0..40).map(|n| format!("a{n}=b")));
        assert!(!state.matches(many.collect::<Vec<_>>().join(",").as_bytes()));
        assert!(
            !State::new("k", &["v".repeat(255)], 1)
                .matches(format!("k={}", "v".repeat(255)).as_bytes())
        );
    }
}
