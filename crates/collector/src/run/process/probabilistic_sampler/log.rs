//! Log records: attributes carry randomness and threshold.

use std::borrow::Cow;

use otlp::scan::{Any, Malformed};

use super::randomness::{hashed, of_trace_id, randomness_text, threshold_of, threshold_text};
use super::{Carried, Found, Origin, Rule, Sampler};
use crate::run::process::edit::text::text_of;
use crate::run::process::edit::{Kind, List, Outcome, last_bytes};
use otlp::tracestate::{randomness_of_digits, threshold_of_digits};

/// `LogRecord.trace_id`
const TRACE_ID: u32 = 9 << 3 | 2;
const THRESHOLD: &[u8] = b"sampling.threshold";
const RANDOMNESS: &[u8] = b"sampling.randomness";

impl Sampler {
    /// What becomes of a log record.
    pub(super) fn log<'a>(
        &self,
        record: &'a [u8],
        attributes: &mut List<'a>,
        out: &mut Vec<u8>,
    ) -> Result<Outcome, Malformed> {
        // A log record's identifier may be of any length where it stands for none.
        let id = last_bytes(record, TRACE_ID)?.unwrap_or_default();
        let id = match id {
            [] => [0; 16],
            id => id.try_into().map_err(|_| Malformed::TraceId)?,
        };
        let found = self.of_log(id, attributes);
        let Some(kept) = self.decide(found) else {
            return Ok(Outcome::Gone);
        };
        let Some(carried) = kept else {
            return Ok(Outcome::Same);
        };
        if let (Rule::Hash(..), Some(randomness)) = (self.rule, carried.randomness) {
            let value = attributes.make_text(randomness_text(randomness).as_bytes());
            attributes.put(RANDOMNESS, value);
        }
        if let Some(threshold) = carried.threshold {
            let value = attributes.make_text(threshold_text(threshold).as_bytes());
            attributes.put(THRESHOLD, value);
        }
        Ok(attributes.write(record, Kind::Log.attributes_key(), out))
    }

    fn of_log(&self, id: [u8; 16], attributes: &List<'_>) -> Found {
        let carried = carried(attributes);
        let randomness = of_trace_id(id);
        let found = Found {
            randomness,
            origin: randomness.map_or(Origin::Missing, |_| Origin::TraceId),
            carried,
            fault: carried.is_none(),
            priority: self.log_priority(attributes),
        };
        self.ruled(found, |seed| self.hashed_log(id, attributes, seed), None)
    }

    /// A hash of the trace's identifier or, without it, of an attribute.
    fn hashed_log(&self, id: [u8; 16], attributes: &List<'_>, seed: u32) -> (Option<u64>, Origin) {
        if self.by_trace_id && id != [0; 16] {
            return (Some(hashed(&id, seed)), Origin::TraceIdHash);
        }
        match self.hashed_attribute(attributes, seed) {
            Some(hash) => (Some(hash), Origin::AttributeHash),
            None => (None, Origin::Missing),
        }
    }

    fn hashed_attribute(&self, attributes: &List<'_>, seed: u32) -> Option<u64> {
        if self.from_attribute.is_empty() {
            return None;
        }
        let bytes = match attributes.get(&self.from_attribute)? {
            Any::Text(bytes) | Any::Bytes(bytes) => Cow::Borrowed(bytes),
            value => Cow::Owned(text_of(value)),
        };
        (!bytes.is_empty()).then(|| hashed(&bytes, seed))
    }

    /// The threshold of the per cent that an attribute tells; 0 and what is out of range do not
    /// count.
    fn log_priority(&self, attributes: &List<'_>) -> Option<u64> {
        if self.priority.is_empty() {
            return None;
        }
        let percentage = match attributes.get(&self.priority)? {
            Any::Int(value) => value as f64,
            Any::Double(value) => value,
            _ => return None,
        };
        threshold_of(percentage / 100.0, self.precision)
    }
}

/// What the attributes tell; none where they make no sense. What is no text, or empty, is as if it
/// were not there.
fn carried(attributes: &List<'_>) -> Option<Carried> {
    let digits = |name: &[u8]| match attributes.get(name) {
        Some(Any::Text(text)) if !text.is_empty() => Some(text),
        _ => None,
    };
    let mut carried = Carried::default();
    if let Some(digits) = digits(THRESHOLD) {
        carried.threshold = Some(threshold_of_digits(digits)?);
    }
    if let Some(digits) = digits(RANDOMNESS) {
        carried.randomness = Some(randomness_of_digits(digits)?);
    }
    Some(carried)
}
