//! Attributes that tell what was changed.

use otlp::scan::Any;
use otlp::write;

use super::super::edit::List;

pub use crate::config::components::processors::redaction::Summary;

/// Bytes of the keys that one summary names. Keys within each other have long names: of further ones
/// only the count is told.
const NAMED_BYTES_MAX: usize = 64 << 10;

/// Outcome of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The attribute was removed.
    Redacted,
    /// The value was masked.
    Masked,
    /// An expression allowed the value.
    Allowed,
    /// The key is ignored.
    Ignored,
}

/// The attributes of a summary, by [`Fate`].
#[derive(Debug)]
pub struct Names {
    /// Names of the attributes that list keys; ignored keys are not listed.
    keys: [Option<&'static str>; 4],
    /// Names of the attributes that count keys.
    counts: [&'static str; 4],
}

/// Of attributes.
pub const RECORD: Names = Names {
    keys: [
        Some("redaction.redacted.keys"),
        Some("redaction.masked.keys"),
        Some("redaction.allowed.keys"),
        None,
    ],
    counts: [
        "redaction.redacted.count",
        "redaction.masked.count",
        "redaction.allowed.count",
        "redaction.ignored.count",
    ],
};
/// Of bodies of log records.
pub const BODY: Names = Names {
    keys: [
        Some("redaction.body.redacted.keys"),
        Some("redaction.body.masked.keys"),
        Some("redaction.body.allowed.keys"),
        None,
    ],
    counts: [
        "redaction.body.redacted.count",
        "redaction.body.masked.count",
        "redaction.body.allowed.count",
        "redaction.body.ignored.count",
    ],
};

impl Names {
    /// All of them.
    pub fn keys(&self) -> impl Iterator<Item = &'static str> + '_ {
        let keys = self.keys.iter().flatten();
        keys.chain(&self.counts).copied()
    }
}

/// Keys that were found, by [`Fate`].
#[derive(Debug)]
pub struct Found {
    summary: Summary,
    counts: [i64; 4],
    keys: [Vec<Vec<u8>>; 4],
    /// Of all keys.
    bytes: usize,
}

impl Found {
    /// Nothing yet.
    pub fn new(summary: Summary) -> Found {
        Found {
            summary,
            counts: [0; 4],
            keys: Default::default(),
            bytes: 0,
        }
    }

    /// Notes what became of a key.
    pub fn note(&mut self, fate: Fate, key: &[u8]) {
        self.counts[fate as usize] += 1;
        let bytes = self.bytes.saturating_add(key.len() + 1);
        let is_named = self.summary == Summary::Keys && fate != Fate::Ignored;
        if is_named && bytes <= NAMED_BYTES_MAX {
            self.bytes = bytes;
            self.keys[fate as usize].push(key.to_vec());
        }
    }

    /// Adds the summary to attributes. What an earlier processor told stays in it.
    pub fn tell(self, names: &Names, list: &mut List<'_>) {
        if self.summary == Summary::Silent {
            return;
        }
        let told = names.keys.iter().zip(&names.counts);
        for ((count, mut keys), (keys_name, count_name)) in
            self.counts.into_iter().zip(self.keys).zip(told)
        {
            if count == 0 {
                continue;
            }
            if let (Summary::Keys, Some(name)) = (self.summary, keys_name) {
                let name = name.as_bytes();
                if let Some(Any::Text(before)) = list.get(name)
                    && !before.is_empty()
                {
                    keys.extend(before.split(|byte| *byte == b',').map(<[u8]>::to_vec));
                }
                keys.sort_unstable();
                let value = list.make_text(&keys.join(&b','));
                list.put(name, value);
            }
            let name = count_name.as_bytes();
            let before = match list.get(name) {
                Some(Any::Int(before)) => before,
                _ => 0,
            };
            let count = before.saturating_add(count).cast_unsigned();
            let value = list.make(|out| write::uint(out, 3, count));
            list.put(name, value);
        }
    }
}
