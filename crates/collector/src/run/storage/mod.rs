//! What outlives the process: `file_storage`, and the journals in its folder.
//!
//! What a receiver takes is in the journal of its intake before it is answered; what waits in a
//! queue is in that queue's. Each batch holds the segments that its records are in ([`Custody`]),
//! through everything that it passes, so that a segment is there until its records are settled.

mod custody;
pub mod entry;
mod hold;
mod intake;
mod keeping;
mod queue;
mod recover;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use journal::{Damage, Journal, Left, Lock, Settings, Space};

pub use custody::{Commit, Custody, Ending, Pledge};
pub(super) use entry::Taken;
pub use hold::{Fate, Hold, Token};
pub use intake::{Kept, Outset};
pub use keeping::{Keeping, Until};
pub(super) use queue::{LeftBatch, Stored, Waiting, next_left};
pub(super) use recover::{Recovery, start};

use super::Log;
use crate::config::components::extensions::file_storage::FileStorage;
use crate::config::{ComponentId, Config, Extension};

/// A segment that has so many bytes is followed by the next.
const SEGMENT_BYTES: u64 = 64 << 20;
/// And one that is so old: what was settled is not sent again after the end of a process for much
/// longer.
const SEGMENT_AGE: Duration = Duration::from_secs(10);
/// Segments that the room of a storage has place for, at least.
const SEGMENTS_MIN: u64 = 8;
/// Time for the last writes, at the end.
const END_MAX: Duration = Duration::from_secs(5);

/// The storages that components name, opened as they are asked for.
pub(super) struct Storages<'a> {
    config: &'a Config,
    log: &'a Log,
    opened: HashMap<ComponentId, Opened>,
    kept: HashMap<ComponentId, Arc<Outset>>,
}

/// A folder that is this process's.
pub(super) struct Opened {
    folder: PathBuf,
    settings: Settings,
    /// Bytes used by all its journals, and their limit.
    space: Arc<Space>,
    journals: Vec<Arc<Journal>>,
    /// Damage found in the files of all its journals when they were opened.
    damage: Damage,
    /// Their folders.
    names: Vec<String>,
    _lock: Lock,
}

impl<'a> Storages<'a> {
    pub fn new(config: &'a Config, log: &'a Log) -> Storages<'a> {
        Storages {
            config,
            log,
            opened: HashMap::new(),
            kept: HashMap::new(),
        }
    }

    /// The journal of what receivers take.
    ///
    /// # Errors
    /// Why it cannot be opened.
    pub fn kept(&mut self, id: &ComponentId) -> Result<Arc<Outset>, String> {
        if let Some(kept) = self.kept.get(id) {
            return Ok(Arc::clone(kept));
        }
        let (journal, left) = self.journal(id, "intake")?;
        let kept = Arc::new(Outset::new(journal, left));
        self.kept.insert(id.clone(), Arc::clone(&kept));
        Ok(kept)
    }

    /// A journal of its own by a name, and what an earlier process left there.
    ///
    /// # Errors
    /// Why it cannot be opened.
    pub fn journal(
        &mut self,
        id: &ComponentId,
        name: &str,
    ) -> Result<(Arc<Journal>, Left), String> {
        let fault = |why: String| format!("'{id}': {why}");
        if !self.opened.contains_key(id) {
            let Some(Extension::FileStorage(settings)) = self.config.extension(id) else {
                return Err(fault("is no storage that runs".into()));
            };
            let opened = open(settings).map_err(fault)?;
            self.opened.insert(id.clone(), opened);
        }
        self.journal_in(id, name)
    }

    /// A journal in a folder that only one component has.
    ///
    /// # Errors
    /// Why it cannot be opened.
    pub fn own_journal(
        &mut self,
        component: &str,
        folder: &FileStorage,
        name: &str,
    ) -> Result<(Arc<Journal>, Left), String> {
        let fault = |why: String| format!("'{}': {why}", folder.directory);
        let id = ComponentId::parse(component)?;
        if !self.opened.contains_key(&id) {
            let opened = open(folder).map_err(fault)?;
            self.opened.insert(id.clone(), opened);
        }
        self.journal_in(&id, name)
    }

    fn journal_in(&mut self, id: &ComponentId, name: &str) -> Result<(Arc<Journal>, Left), String> {
        let fault = |why: String| format!("'{id}': {why}");
        let Some(opened) = self.opened.get_mut(id) else {
            return Err(fault("is not there".into()));
        };
        let name = file_name(name);
        let folder = opened.folder.join(&name);
        opened.names.push(name);
        let (log, own) = (self.log.clone(), id.to_string());
        let report = Box::new(move |line: &str| log.error(&format!("{own}: {line}")));
        let (settings, space) = (opened.settings.clone(), Arc::clone(&opened.space));
        let (journal, left) = Journal::open(&folder, settings, space, report).map_err(fault)?;
        opened.damage.files += left.damage.files;
        opened.damage.bytes += left.damage.bytes;
        let journal = Arc::new(journal);
        opened.journals.push(Arc::clone(&journal));
        Ok((journal, left))
    }

    /// The journals of receivers.
    pub fn outsets(&self) -> Vec<Arc<Outset>> {
        self.kept.values().map(Arc::clone).collect()
    }

    /// What was opened, by the ids. What an earlier process left for somebody who is gone is told
    /// of.
    pub fn into_opened(self) -> Vec<(String, Opened)> {
        for (id, opened) in &self.opened {
            for name in journal::names(&opened.folder) {
                if !opened.names.contains(&name) {
                    let path = opened.folder.join(name);
                    let line = format!("'{id}': nobody takes what is in {}", path.display());
                    self.log.warn(&line);
                }
            }
        }
        let opened = self.opened.into_iter();
        opened
            .map(|(id, opened)| (id.to_string(), opened))
            .collect()
    }
}

/// Opens a folder.
fn open(settings: &FileStorage) -> Result<Opened, String> {
    let FileStorage {
        directory,
        timeout_ns,
        fsync,
        create_directory,
        directory_permissions,
        recreate,
        bytes_max,
    } = settings;
    let folder = PathBuf::from(directory);
    let permissions = create_directory.then_some(*directory_permissions);
    let lock = Lock::take(&folder, permissions, Duration::from_nanos(*timeout_ns))?;
    Ok(Opened {
        folder,
        settings: Settings {
            fsync: *fsync,
            segment_bytes: SEGMENT_BYTES.min(bytes_max / SEGMENTS_MIN),
            segment_age: SEGMENT_AGE,
            recreate: *recreate,
        },
        space: Arc::new(Space::new(*bytes_max)),
        journals: Vec::new(),
        damage: Damage::default(),
        names: Vec::new(),
        _lock: lock,
    })
}

/// Metrics of a storage.
pub struct StorageView {
    /// Bytes used by all its journals, and their limit.
    pub space: Arc<Space>,
    /// Damage that was found when they were opened.
    pub damage: Damage,
}

impl Opened {
    pub fn view(&self) -> StorageView {
        StorageView {
            space: Arc::clone(&self.space),
            damage: self.damage,
        }
    }

    /// Writes what is still to be written, and lets the folder go.
    pub async fn end(self, log: &Log) {
        let ended = tokio::task::spawn_blocking(move || {
            self.journals.iter().for_each(|journal| journal.end());
        });
        if tokio::time::timeout(END_MAX, ended).await.is_err() {
            log.error("a storage does not come to its end");
        }
    }
}

/// A name that every file system takes, and no two names have: what is no letter and no digit is
/// written as `%` and two digits.
fn file_name(name: &str) -> String {
    let mut out = String::new();
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' => out.push(char::from(byte)),
            _ => out.push_str(&format!("%{byte:02x}")),
        }
    }
    out
}
