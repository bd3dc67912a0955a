//! Changes on their way to the store.

use std::sync::Arc;

use redis::Cmd;
use tables::{Change, Definition, SharedField, SharedKind};

/// The script that runs in the store.
pub const SCRIPT: &str = include_str!("script.lua");
/// How long the store keeps the number of the last batch of a process that sends nothing more,
/// milliseconds.
pub const PROCESS_KEPT_MS: u64 = 24 * 60 * 60 * 1000;
/// How long it may take until the store learns that an entry was used, besides the time between two
/// exchanges, milliseconds: that of a slow answer.
const USE_IS_TOLD_MS: u64 = 2000;

/// The names that a table has in the store.
#[derive(Clone, Debug)]
pub struct Names {
    /// What the names of all entries begin with.
    entries: Vec<u8>,
    /// What the names of all processes begin with.
    processes: Vec<u8>,
    /// The fields of an entry.
    fields: Vec<Field>,
    expire_ms: u64,
}

/// A field of an entry.
#[derive(Clone, Debug)]
struct Field {
    /// Its name: that of the data type, with the index in an array and the period of a rate.
    name: String,
    kind: SharedKind,
}

impl Names {
    /// The names for a table; none if its counters are not shared.
    #[must_use]
    pub fn of(definition: &Definition) -> Option<Names> {
        let share = definition.share()?;
        let name = |part: char| format!("{}/{}/{part}/", share.prefix, definition.name);
        Some(Names {
            entries: name('k').into_bytes(),
            processes: name('p').into_bytes(),
            fields: definition.shared_fields().iter().map(Field::of).collect(),
            // An entry must not end in the store while its last use here is on its way.
            expire_ms: definition.expire_ms.unwrap_or(PROCESS_KEPT_MS)
                + USE_IS_TOLD_MS
                + 2 * u64::from(share.every_ms),
        })
    }

    fn entry(&self, key: &[u8]) -> Vec<u8> {
        [&self.entries, key].concat()
    }

    fn process(&self, id: u64) -> Vec<u8> {
        [&self.processes, format!("{id:016x}").as_bytes()].concat()
    }

    /// The number of fields of an entry.
    #[must_use]
    pub fn fields(&self) -> usize {
        self.fields.len()
    }

    pub(crate) fn kinds(&self) -> impl Iterator<Item = SharedKind> {
        self.fields.iter().map(|field| field.kind)
    }
}

impl Field {
    fn of(field: &SharedField) -> Field {
        let mut name = field.data.name().to_owned();
        if field.data.is_array() {
            name += &format!("[{}]", field.index);
        }
        if let SharedKind::Rate { period_ms } = field.kind {
            name += &format!("({period_ms})");
        }
        Field {
            name,
            kind: field.kind,
        }
    }

    fn kind(&self) -> String {
        match self.kind {
            SharedKind::Sum => "s".to_owned(),
            SharedKind::Tag => "t".to_owned(),
            SharedKind::Rate { period_ms } => period_ms.max(1).to_string(),
        }
    }
}

/// An entry of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its key.
    pub key: Arc<[u8]>,
    /// The changes of its fields; empty if there are none.
    pub changes: Vec<Change>,
    /// It is only read; otherwise it was used here, and lives on in the store too.
    pub is_read: bool,
}

impl Item {
    /// An item that only asks for the totals.
    #[must_use]
    pub fn read(key: Arc<[u8]>) -> Item {
        Item {
            key,
            changes: Vec::new(),
            is_read: true,
        }
    }

    /// The changes as the script reads them. Events of a rate that is over do not count any more.
    fn text(&self, names: &Names, age_ms: u64) -> String {
        if self.changes.is_empty() {
            return if self.is_read { "" } else { "+" }.to_owned();
        }
        let words = self
            .changes
            .iter()
            .zip(names.kinds())
            .map(|(change, kind)| match (*change, kind) {
                (Change::Add(amount), _) => amount.to_string(),
                (Change::Events(_), SharedKind::Rate { period_ms })
                    if age_ms >= period_ms.into() =>
                {
                    "0".to_owned()
                }
                (Change::Events(events), _) => events.to_string(),
                (Change::Set(tag), _) => tag.to_string(),
                (Change::None, SharedKind::Tag) => "-".to_owned(),
                (Change::None, SharedKind::Sum | SharedKind::Rate { .. }) => "0".to_owned(),
            });
        words.collect::<Vec<String>>().join(" ")
    }
}

/// Items that are added together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The number of the batch, from 1. For a batch that only reads, that of the one before.
    pub number: u64,
    /// When the changes were taken, milliseconds.
    pub taken_ms: u64,
    /// The items.
    pub items: Vec<Item>,
}

impl Batch {
    /// The command that runs the script, whose digest is `sha`, with this batch.
    #[must_use]
    pub fn command(&self, sha: &str, names: &Names, process: u64, after: u64, now_ms: u64) -> Cmd {
        let mut command = redis::cmd("EVALSHA");
        command.arg(sha).arg(1 + self.items.len());
        command.arg(names.process(process));
        for item in &self.items {
            command.arg(names.entry(&item.key));
        }
        command.arg(self.number).arg(after);
        command.arg(names.expire_ms.max(1)).arg(PROCESS_KEPT_MS);
        command.arg(names.fields.len());
        for field in &names.fields {
            command.arg(&field.name);
        }
        for field in &names.fields {
            command.arg(field.kind());
        }
        let age_ms = now_ms.saturating_sub(self.taken_ms);
        for item in &self.items {
            command.arg(item.text(names, age_ms));
        }
        command
    }
}
