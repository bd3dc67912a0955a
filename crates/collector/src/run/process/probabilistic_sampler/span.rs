//! Spans: the `tracestate` carries randomness and threshold.

use otlp::scan::{Any, Malformed};
use otlp::tracestate::{
    MEMBERS_MAX, THRESHOLD_MAX, members, randomness_of_digits, threshold_of_digits,
};
use otlp::write;

use super::randomness::{hashed, of_trace_id, randomness_text, threshold_text};
use super::{Carried, Found, Origin, Sampler};
use crate::run::process::edit::text::double_of;
use crate::run::process::edit::{List, Outcome, last_bytes, replace_field};

const TRACE_ID: u32 = 1 << 3 | 2;
const TRACE_STATE: u32 = 3 << 3 | 2;
/// The attribute that overrules everything: 0 drops a span, more keeps it (OpenTracing).
const PRIORITY: &[u8] = b"sampling.priority";
/// Bytes of a `tracestate`; a longer one is not looked at.
const STATE_BYTES_MAX: usize = 1024;

/// The member `ot`, and all others as they came.
#[derive(Debug, Default)]
struct State<'a> {
    threshold: Option<u64>,
    randomness: Option<u64>,
    /// What else `ot` has.
    ot: Vec<&'a [u8]>,
    others: Vec<(&'a [u8], &'a [u8])>,
}

impl Sampler {
    /// What becomes of a span.
    pub(super) fn span(
        &self,
        span: &[u8],
        attributes: &List<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Outcome, Malformed> {
        let id = trace_id(last_bytes(span, TRACE_ID)?.unwrap_or_default())?;
        let came = last_bytes(span, TRACE_STATE)?;
        let state = State::read(came.unwrap_or_default());
        let mut found = self.of_span(id, state.as_ref());
        found.priority = priority(attributes.get(PRIORITY));
        let Some(kept) = self.decide(found) else {
            return Ok(Outcome::Gone);
        };
        let (Some(carried), Some(state)) = (kept, state) else {
            return Ok(Outcome::Same);
        };
        let state = state.written(carried);
        if came == Some(&state) {
            return Ok(Outcome::Same);
        }
        replace_field(span, TRACE_STATE >> 3, out, |out| {
            write::bytes(out, TRACE_STATE >> 3, &state);
        });
        Ok(Outcome::Changed)
    }

    fn of_span(&self, id: [u8; 16], state: Option<&State<'_>>) -> Found {
        let carried = state.map(|state| Carried {
            threshold: state.threshold,
            randomness: state.randomness,
        });
        let of_id = of_trace_id(id);
        let found = Found {
            randomness: of_id,
            origin: of_id.map_or(Origin::Missing, |_| Origin::TraceId),
            carried,
            fault: state.is_none(),
            priority: None,
        };
        let hash = |seed| match of_id {
            Some(_) => (Some(hashed(&id, seed)), Origin::TraceIdHash),
            None => (None, Origin::Missing),
        };
        self.ruled(found, hash, Some(THRESHOLD_MAX - 1))
    }
}

fn trace_id(id: &[u8]) -> Result<[u8; 16], Malformed> {
    match id {
        [] => Ok([0; 16]),
        id => id.try_into().map_err(|_| Malformed::TraceId),
    }
}

/// The threshold that an attribute demands.
fn priority(value: Option<Any<'_>>) -> Option<u64> {
    let value = match value? {
        Any::Int(value) => value as f64,
        Any::Double(value) => value,
        Any::Text(text) => double_of(text)?,
        _ => return None,
    };
    if value == 0.0 {
        return Some(THRESHOLD_MAX);
    }
    (value > 0.0).then_some(0)
}

impl<'a> State<'a> {
    /// None where it makes no sense.
    fn read(list: &'a [u8]) -> Option<State<'a>> {
        if list.len() > STATE_BYTES_MAX {
            return None;
        }
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        let whole = list.split(|byte| *byte == b',');
        let count = whole.filter(|member| !member.iter().all(is_blank)).count();
        if count > MEMBERS_MAX || count != members(list).count() {
            return None;
        }
        let mut state = State::default();
        for (key, value) in members(list) {
            match key {
                b"ot" => state.read_ot(value)?,
                _ => state.others.push((key, value)),
            }
        }
        Some(state)
    }

    /// `key:value;key:value`
    fn read_ot(&mut self, ot: &'a [u8]) -> Option<()> {
        for pair in ot.split(|byte| *byte == b';') {
            let colon = pair.iter().position(|byte| *byte == b':')?;
            let (key, value) = (&pair[..colon], &pair[colon + 1..]);
            let is_key = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
            let is_value =
                |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
            let begins = key.first().is_some_and(u8::is_ascii_lowercase);
            if !begins || !key.iter().all(is_key) || !value.iter().all(is_value) {
                return None;
            }
            match key {
                b"th" => self.threshold = Some(threshold_of_digits(value)?),
                b"rv" => self.randomness = Some(randomness_of_digits(value)?),
                _ => self.ot.push(pair),
            }
        }
        Some(())
    }

    /// The list with these numbers: `ot` first.
    fn written(&self, carried: Carried) -> Vec<u8> {
        let mut pairs: Vec<Vec<u8>> = Vec::new();
        if let Some(randomness) = carried.randomness {
            pairs.push(format!("rv:{}", randomness_text(randomness)).into());
        }
        if let Some(threshold) = carried.threshold {
            pairs.push(format!("th:{}", threshold_text(threshold)).into());
        }
        pairs.extend(self.ot.iter().map(|pair| pair.to_vec()));
        let mut out = Vec::new();
        if !pairs.is_empty() {
            out.extend_from_slice(b"ot=");
            out.extend_from_slice(&pairs.join(&b';'));
        }
        for (key, value) in &self.others {
            if !out.is_empty() {
                out.push(b',');
            }
            out.extend_from_slice(key);
            out.push(b'=');
            out.extend_from_slice(value);
        }
        out
    }
}
