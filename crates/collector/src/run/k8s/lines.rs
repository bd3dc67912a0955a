//! The events of a watch: a JSON object a line.

use std::fmt;
use std::marker::PhantomData;

use bytes::{Bytes, BytesMut};
use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};

/// Bytes of an event: what the store of a cluster takes of one object is less.
const EVENT_BYTES_MAX: usize = 2 << 20;
/// Bytes of a name, as the API has it, and of a host (RFC 1035 section 2.3.4).
pub(in crate::run) const NAME_BYTES_MAX: usize = 253;

/// Why an event cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Events before it are lost (410): all objects are to be listed again.
    Expired,
    /// It says what cannot be, or cannot be read.
    Wrong(String),
}

/// A version that may stand in a URL as it came.
pub(in crate::run) fn version(text: Option<String>) -> Result<Option<String>, Fault> {
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if text.len() <= NAME_BYTES_MAX && text.bytes().all(is_plain) {
        Ok(Some(text))
    } else {
        Err(Fault::Wrong("a version that is none".to_owned()))
    }
}

/// A line of a watch.
#[derive(serde::Deserialize)]
pub(in crate::run) struct Event<O> {
    #[serde(rename = "type")]
    kind: String,
    /// What it tells of; of an error its status.
    pub object: O,
}

/// The change that an event tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::run) enum Change {
    /// The object is new, or other than before.
    Put,
    /// The object is gone.
    Deleted,
    /// None; the version is a newer one.
    Bookmark,
    /// A later version of the API may have more kinds of events.
    Unknown,
}

impl<O> Event<O> {
    /// The change. `code` and `message` are those of the status that the object of an error is.
    ///
    /// # Errors
    /// The event is an error.
    pub(in crate::run) fn change(
        &self,
        code: Option<u16>,
        message: Option<&str>,
    ) -> Result<Change, Fault> {
        match self.kind.as_str() {
            "ADDED" | "MODIFIED" => Ok(Change::Put),
            "DELETED" => Ok(Change::Deleted),
            "BOOKMARK" => Ok(Change::Bookmark),
            "ERROR" if code == Some(410) => Err(Fault::Expired),
            "ERROR" => {
                let (code, said) = (code.unwrap_or_default(), message.unwrap_or_default());
                Err(Fault::Wrong(format!("status {code}: {said}")))
            }
            _ => Ok(Change::Unknown),
        }
    }
}

/// The version of a list. A body without one is no list, and not one of nothing.
pub(in crate::run) fn version_of_list(text: Option<String>) -> Result<String, Fault> {
    version(text)?.ok_or_else(|| Fault::Wrong("a list without a version".to_owned()))
}

/// JSON that is not what it should be.
pub(in crate::run) fn wrong(error: serde_json::Error) -> Fault {
    Fault::Wrong(format!("an answer that cannot be read: {error}"))
}

/// A list of so many; nothing (`null`) is an empty one.
pub(in crate::run) fn at_most<'de, D, T, const MAX: usize>(source: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct AtMost<T, const MAX: usize>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for AtMost<T, MAX> {
        type Value = Vec<T>;

        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(out, "a list of {MAX} at most")
        }

        fn visit_unit<E: de::Error>(self) -> Result<Vec<T>, E> {
            Ok(Vec::new())
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<T>, A::Error> {
            let mut all = Vec::new();
            while let Some(item) = items.next_element()? {
                if all.len() == MAX {
                    return Err(de::Error::invalid_length(MAX + 1, &self));
                }
                all.push(item);
            }
            Ok(all)
        }
    }
    source.deserialize_any(AtMost::<T, MAX>(PhantomData))
}

/// The lines of a stream, which comes in pieces.
#[derive(Debug, Default)]
pub struct Lines {
    rest: BytesMut,
    /// Bytes of the rest that have no end of a line.
    seen: usize,
}

impl Lines {
    /// The next piece. To be called when there is no line left.
    pub fn push(&mut self, piece: &[u8]) {
        self.rest.extend_from_slice(piece);
    }

    /// The next line that is whole, and not empty.
    ///
    /// # Errors
    /// It is too long.
    pub fn line(&mut self) -> Result<Option<Bytes>, Fault> {
        loop {
            let end = self.rest[self.seen..]
                .iter()
                .position(|byte| *byte == b'\n');
            let Some(end) = end else {
                self.seen = self.rest.len();
                break;
            };
            let line = self.rest.split_to(self.seen + end + 1).freeze();
            self.seen = 0;
            let line = line.slice(..line.len() - 1);
            if line.len() > EVENT_BYTES_MAX {
                return Err(too_long());
            }
            if !line.trim_ascii().is_empty() {
                return Ok(Some(line));
            }
        }
        if self.rest.len() > EVENT_BYTES_MAX {
            Err(too_long())
        } else {
            Ok(None)
        }
    }
}

fn too_long() -> Fault {
    Fault::Wrong(format!("an event of more than {EVENT_BYTES_MAX} bytes"))
}
