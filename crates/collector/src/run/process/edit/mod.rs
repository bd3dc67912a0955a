//! Requests changed as bytes: what is not changed is copied as it came, whether it is known or not.

mod list;
mod metric;

use std::borrow::Cow;
use std::fmt::Display;
use std::mem;
use std::sync::Arc;

use bytes::Bytes;
use otlp::scan::{Around, Malformed};
use otlp::write;

pub use otlp::text;

pub use list::{List, Val, encode, encoded_text};
pub use metric::{edit_data, with_exemplars, with_points};
pub use otlp::wire::{Fields, Value, Whole as Field, one_bytes as last_bytes};

use crate::config::Signal;
use crate::run::account::Loss;
use crate::run::consume::{Consumer, Pass, Refusal, Refused, refused};
use crate::run::data::Batch;

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It stays as it came; what was written is not to be used.
    Same,
    /// It is what was written.
    Changed,
    /// It is left out.
    Gone,
}

/// What a record is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `Span`
    Span,
    /// `LogRecord`
    Log,
    /// `NumberDataPoint`, `SummaryDataPoint`
    NumberPoint,
    /// `HistogramDataPoint`
    HistogramPoint,
    /// `ExponentialHistogramDataPoint`
    ExponentialPoint,
}

impl Kind {
    /// The key of its field `attributes` (`trace.proto`, `logs.proto`, `metrics.proto`).
    #[must_use]
    pub fn attributes_key(self) -> u32 {
        let number = match self {
            Kind::Span | Kind::HistogramPoint => 9,
            Kind::Log => 6,
            Kind::NumberPoint => 7,
            Kind::ExponentialPoint => 1,
        };
        number << 3 | 2
    }
}

/// Gets a record, and writes what it becomes.
pub type EditRecord<'e, 'a> =
    dyn FnMut(Kind, Around<'_>, &'a [u8], &mut Vec<u8>) -> Result<Outcome, Malformed> + 'e;
/// Gets a message, and writes what it becomes.
pub type EditField<'e, 'a> = dyn FnMut(&'a [u8], &mut Vec<u8>) -> Result<Outcome, Malformed> + 'e;
/// Gets a `Resource`, and writes what it becomes.
pub type EditResource<'e> = dyn FnMut(&[u8], &mut Vec<u8>) -> Result<Outcome, Malformed> + 'e;

/// Field 1: `Resource*` of a request, `Resource` and `InstrumentationScope`, points of a metric's
/// data.
pub const FIRST: u32 = 1 << 3 | 2;
/// Field 2: `Scope*` of a `Resource*`, records of a `Scope*`.
pub const SECOND: u32 = 2 << 3 | 2;
/// The number of `schema_url` in `Resource*` and `Scope*`.
pub const SCHEMA_URL: u32 = 3;
/// `Metric.data` by kind.
const DATA: [(u32, Kind); 5] = [
    (5 << 3 | 2, Kind::NumberPoint),
    (7 << 3 | 2, Kind::NumberPoint),
    (9 << 3 | 2, Kind::HistogramPoint),
    (10 << 3 | 2, Kind::ExponentialPoint),
    (11 << 3 | 2, Kind::NumberPoint),
];

/// Changes the records of a request. Scopes and resources whose records are all gone are left out.
/// `out` gets the new request.
///
/// # Errors
/// The request is malformed. What `out` has then is not to be used.
pub fn edit_records<'a>(
    signal: Signal,
    request: &'a [u8],
    out: &mut Vec<u8>,
    edit: &mut EditRecord<'_, 'a>,
) -> Result<Outcome, Malformed> {
    edit_fields(request, FIRST, out, &mut |resource, out| {
        let around_resource = joined(resource, FIRST)?.unwrap_or_default();
        edit_fields(resource, SECOND, out, &mut |scope, out| {
            let around_scope = joined(scope, FIRST)?.unwrap_or_default();
            let around = Around {
                resource: &around_resource,
                scope: &around_scope,
            };
            edit_fields(scope, SECOND, out, &mut |record, out| match signal {
                Signal::Traces => edit(Kind::Span, around, record, out),
                Signal::Logs => edit(Kind::Log, around, record, out),
                Signal::Metrics => edit_points(record, around, out, edit),
            })
        })
    })
}

fn edit_points<'a>(
    metric: &'a [u8],
    around: Around<'_>,
    out: &mut Vec<u8>,
    edit: &mut EditRecord<'_, 'a>,
) -> Result<Outcome, Malformed> {
    let mut all = Outcome::Same;
    for field in Fields::new(metric) {
        let field = field?;
        let known = DATA.iter().find(|(key, _)| key >> 3 == field.key >> 3);
        let Some((key, kind)) = known else {
            out.extend_from_slice(field.whole);
            continue;
        };
        let Value::Bytes(data) = field.value else {
            return Err(Malformed::WireType);
        };
        let outcome = put(out, *key, field.whole, |out| {
            edit_fields(data, FIRST, out, &mut |point, out| {
                edit(*kind, around, point, out)
            })
        })?;
        if outcome != Outcome::Same {
            all = Outcome::Changed;
        }
    }
    Ok(all)
}

/// Changes the resources of a request; one that is not there is an empty one. `out` gets the new
/// request.
///
/// # Errors
/// The request is malformed. What `out` has then is not to be used.
pub fn edit_resources(
    request: &[u8],
    out: &mut Vec<u8>,
    edit: &mut EditResource<'_>,
) -> Result<Outcome, Malformed> {
    edit_fields(request, FIRST, out, &mut |message, out| {
        let resource = joined(message, FIRST)?;
        // The new one stands where the first one did; where there is none, in front.
        let mut outcome = Ok(Outcome::Same);
        write::message(out, FIRST >> 3, |out| {
            outcome = edit(resource.as_deref().unwrap_or_default(), out);
        });
        if outcome? != Outcome::Changed {
            return Ok(Outcome::Same);
        }
        for field in Fields::new(message) {
            let field = field?;
            if field.key != FIRST {
                out.extend_from_slice(field.whole);
            }
        }
        Ok(Outcome::Changed)
    })
}

/// Changes the messages under a key. With all of them gone the whole is gone.
///
/// # Errors
/// The message is malformed. What `out` has then is not to be used.
pub fn edit_fields<'a>(
    message: &'a [u8],
    key: u32,
    out: &mut Vec<u8>,
    edit: &mut EditField<'_, 'a>,
) -> Result<Outcome, Malformed> {
    let (mut kept, mut gone, mut changed) = (0_u64, 0_u64, 0_u64);
    for field in Fields::new(message) {
        let field = field?;
        match field.value {
            Value::Bytes(inner) if field.key == key => {
                match put(out, key, field.whole, |out| edit(inner, out))? {
                    Outcome::Same => kept += 1,
                    Outcome::Changed => changed += 1,
                    Outcome::Gone => gone += 1,
                }
            }
            _ if field.key >> 3 == key >> 3 => return Err(Malformed::WireType),
            _ => out.extend_from_slice(field.whole),
        }
    }
    Ok(match (kept, changed, gone) {
        (_, 0, 0) => Outcome::Same,
        (0, 0, _) => Outcome::Gone,
        _ => Outcome::Changed,
    })
}

/// Changes the message under [`FIRST`], where there is one, and the messages under [`SECOND`]. A
/// changed first one stands in front.
///
/// # Errors
/// The message is malformed. What `out` has then is not to be used.
pub fn edit_both<'a>(
    message: &'a [u8],
    out: &mut Vec<u8>,
    edit_first: impl FnOnce(&[u8], &mut Vec<u8>) -> Result<Outcome, Malformed>,
    edit_second: &mut EditField<'_, 'a>,
) -> Result<Outcome, Malformed> {
    let first = match joined(message, FIRST)? {
        Some(first) => put(out, FIRST, b"", |out| edit_first(&first, out))?,
        None => Outcome::Same,
    };
    let mut is_changed = first != Outcome::Same;
    for field in Fields::new(message) {
        let field = field?;
        match field.value {
            Value::Bytes(inner) if field.key == SECOND => {
                let outcome = put(out, SECOND, field.whole, |out| edit_second(inner, out))?;
                is_changed |= outcome != Outcome::Same;
            }
            _ if field.key >> 3 == SECOND >> 3 => return Err(Malformed::WireType),
            _ if field.key == FIRST && first != Outcome::Same => {}
            _ => out.extend_from_slice(field.whole),
        }
    }
    Ok(if is_changed {
        Outcome::Changed
    } else {
        Outcome::Same
    })
}

/// Writes a field that is a message: what it becomes, or as it came.
fn put(
    out: &mut Vec<u8>,
    key: u32,
    whole: &[u8],
    edit: impl FnOnce(&mut Vec<u8>) -> Result<Outcome, Malformed>,
) -> Result<Outcome, Malformed> {
    let start = out.len();
    let mut outcome = Ok(Outcome::Same);
    write::message(out, key >> 3, |out| outcome = edit(out));
    let outcome = outcome?;
    if outcome != Outcome::Changed {
        out.truncate(start);
    }
    if outcome == Outcome::Same {
        out.extend_from_slice(whole);
    }
    Ok(outcome)
}

/// A message that stands once under a key. Where it stands there several times, it is all of them
/// behind each other, as protobuf says ("Last One Wins": embedded messages are merged).
///
/// # Errors
/// The message is malformed.
pub fn joined(message: &[u8], key: u32) -> Result<Option<Cow<'_, [u8]>>, Malformed> {
    let mut all: Option<Cow<'_, [u8]>> = None;
    for field in Fields::new(message) {
        let field = field?;
        match field.value {
            Value::Bytes(bytes) if field.key == key => match &mut all {
                None => all = Some(Cow::Borrowed(bytes)),
                Some(all) => all.to_mut().extend_from_slice(bytes),
            },
            _ if field.key >> 3 == key >> 3 => return Err(Malformed::WireType),
            _ => {}
        }
    }
    Ok(all)
}

/// Appends a message with another field of a number: `write` appends the new one, or nothing. It
/// stands where the first of the old ones did, and else at the end; all that is something else
/// stays. The message was checked before.
pub fn replace_field(
    message: &[u8],
    number: u32,
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>),
) {
    let mut write = Some(write);
    for field in Fields::new(message).map_while(Result::ok) {
        if field.key >> 3 != number {
            out.extend_from_slice(field.whole);
        } else if let Some(write) = write.take() {
            write(out);
        }
    }
    if let Some(write) = write {
        write(out);
    }
}

/// A request that was changed.
#[derive(Debug, Default)]
pub struct Edited {
    /// The new one; none where it is as it came.
    pub bytes: Option<Vec<u8>>,
    /// Records that are gone.
    pub dropped: u64,
    /// Records that were made of others, such as data points.
    pub added: u64,
}

impl Edited {
    /// Of what [`edit_records`] and [`edit_resources`] tell.
    #[must_use]
    pub fn new(outcome: Outcome, out: Vec<u8>, dropped: u64) -> Edited {
        let bytes = match outcome {
            Outcome::Same => None,
            Outcome::Changed => Some(out),
            Outcome::Gone => Some(Vec::new()),
        };
        Edited {
            bytes,
            dropped,
            added: 0,
        }
    }
}

impl Edited {
    /// Counts the records that were added or are gone, where `before` was the request.
    ///
    /// # Errors
    /// A request is malformed.
    pub fn count(&mut self, signal: Signal, before: &[u8]) -> Result<(), Malformed> {
        let Some(after) = &self.bytes else {
            return Ok(());
        };
        let before = otlp::count::records(signal, before)?;
        let after = otlp::count::records(signal, after)?;
        self.dropped = before.saturating_sub(after);
        self.added = after.saturating_sub(before);
        Ok(())
    }
}

/// Room for what a request becomes: attributes are added more often than removed.
#[must_use]
pub fn room_for(request: &[u8]) -> Vec<u8> {
    Vec::with_capacity(request.len() + request.len() / 8)
}

/// Hands a batch on as it has become. Where the next one refuses it, it is given back as it came.
///
/// # Errors
/// As [`Consumer::consume`]; also where it is malformed.
pub fn hand_on<P: Pass>(
    next: &Arc<dyn Consumer>,
    mut batch: Batch,
    edited: Result<Edited, impl Display>,
) -> Result<P::Taken, Box<Refused>> {
    let Edited {
        bytes,
        dropped,
        added,
    } = match edited {
        Ok(edited) => edited,
        Err(fault) => return refused(batch, Refusal::Malformed(fault.to_string())),
    };
    let dropped = dropped.min(batch.records);
    if dropped == batch.records && dropped > 0 && added == 0 {
        let lose = |batch: Batch| batch.receipt.lose(batch.records, Loss::Dropped);
        return Ok(P::ends(batch, lose));
    }
    let came = bytes.map(|bytes| mem::replace(&mut batch.bytes, Bytes::from(bytes)));
    // Added records have no account of their own: a receipt has no more records than came.
    batch.records = batch.records - dropped + added;
    let receipt = (dropped > 0).then(|| batch.receipt.clone());
    match P::on(&**next, batch) {
        Ok(taken) => Ok(match receipt {
            // Not before: whoever refuses a batch gets all of it back.
            Some(receipt) => P::then(taken, move || receipt.lose(dropped, Loss::Dropped)),
            None => taken,
        }),
        Err(mut given_back) => {
            let records = given_back.batch.records + dropped;
            given_back.batch.records = records.saturating_sub(added);
            if let Some(came) = came {
                given_back.batch.bytes = came;
            }
            Err(given_back)
        }
    }
}
