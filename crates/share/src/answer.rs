//! What the script in the store answers.

use redis::Value;
use tables::{SharedKind, Total};

use crate::batch::Names;

/// Why an entry is not used that has another content than the script writes.
const FOREIGN: &str = "an entry has a value that is none of a counter";
/// The most characters of a reason that are kept.
const REASON_CHARACTERS_MAX: usize = 200;
/// The most bytes of an answer.
pub const ANSWER_BYTES_MAX: usize = 4 << 20;

/// An answer to a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The batch is in the store; per item its totals, none where the store has no such entry, or
    /// why the store cannot change or read the entry.
    Totals(Vec<Result<Option<Vec<Total>>, String>>),
    /// The last batch of the process that is in the store is another one. This one was not added.
    Last(u64),
    /// Nothing of the process is in the store. The batch was not added.
    Lost,
}

/// An answer that the script does not give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nonsense;

impl Answer {
    /// Reads the answer to a batch of `items` items.
    ///
    /// # Errors
    /// [`Nonsense`].
    pub fn read(value: Value, names: &Names, items: usize) -> Result<Answer, Nonsense> {
        let Value::Array(values) = value else {
            return Err(Nonsense);
        };
        let mut values = values.into_iter();
        match bytes(&values.next().ok_or(Nonsense)?)? {
            b"lost" => Ok(Answer::Lost),
            b"last" => match values.next() {
                Some(Value::Int(number)) => u64::try_from(number)
                    .map(Answer::Last)
                    .map_err(|_| Nonsense),
                _ => Err(Nonsense),
            },
            b"ok" => {
                let now_ms = number(bytes(&values.next().ok_or(Nonsense)?)?)?;
                let totals: Result<Vec<_>, Nonsense> = values
                    .map(|value| match value {
                        Value::Nil => Ok(Ok(None)),
                        Value::Array(reason) => match &reason[..] {
                            [reason] => Ok(Err(readable(bytes(reason)?))),
                            _ => Err(Nonsense),
                        },
                        // Somebody else has written into the entry.
                        value => Ok(totals(bytes(&value)?, names, now_ms)
                            .map(Some)
                            .map_err(|Nonsense| FOREIGN.to_owned())),
                    })
                    .collect();
                let totals = totals?;
                if totals.len() == items {
                    Ok(Answer::Totals(totals))
                } else {
                    Err(Nonsense)
                }
            }
            _ => Err(Nonsense),
        }
    }
}

/// A reason of the store, cut and without control characters.
fn readable(reason: &[u8]) -> String {
    let text = String::from_utf8_lossy(reason);
    let text = text.chars().take(REASON_CHARACTERS_MAX);
    text.map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn bytes(value: &Value) -> Result<&[u8], Nonsense> {
    match value {
        Value::BulkString(bytes) => Ok(bytes),
        _ => Err(Nonsense),
    }
}

fn number<T: std::str::FromStr>(bytes: &[u8]) -> Result<T, Nonsense> {
    let text = std::str::from_utf8(bytes).map_err(|_| Nonsense)?;
    text.parse().map_err(|_| Nonsense)
}

/// The totals of an entry, at this time of the store.
fn totals(text: &[u8], names: &Names, now_ms: u64) -> Result<Vec<Total>, Nonsense> {
    let mut words = text.split(|byte| *byte == b' ');
    let totals: Result<Vec<Total>, Nonsense> = names
        .kinds()
        .map(|kind| total(words.next().ok_or(Nonsense)?, kind, now_ms))
        .collect();
    match words.next() {
        None => totals,
        Some(_) => Err(Nonsense),
    }
}

fn total(word: &[u8], kind: SharedKind, now_ms: u64) -> Result<Total, Nonsense> {
    match kind {
        SharedKind::Sum => Ok(Total::Sum(number::<i64>(word)? as u64)),
        SharedKind::Tag if word == b"-" => Ok(Total::Unknown),
        SharedKind::Tag => Ok(Total::Tag(number(word)?)),
        SharedKind::Rate { period_ms } => {
            let comma = word.iter().position(|byte| *byte == b',').ok_or(Nonsense)?;
            let capped =
                |word| number::<u64>(word).map(|events| u32::try_from(events).unwrap_or(u32::MAX));
            Ok(Total::Rate {
                age_ms: (now_ms % u64::from(period_ms.max(1))) as u32,
                current: capped(&word[..comma])?,
                previous: capped(&word[comma + 1..])?,
            })
        }
    }
}
