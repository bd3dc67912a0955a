//! The exporter `file`: a request a line, or with its length before it.

mod group;
mod rotate;

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use export::Retry;
use export::client::Outcome;

use crate::config::Signal;
use crate::config::components::exporters::file::{FileExporter, Format};
use crate::run::data::Batch;
use group::Groups;
use rotate::Writer;

/// What the Collector's zstd takes where nothing is said.
const ZSTD_LEVEL: i32 = 3;

/// The delays of attempts after a disk error. A batch is never given up: the disk may be full for
/// long, and senders are told to come back when the queue is full.
pub(super) fn retry() -> Retry {
    Retry {
        elapsed_max: None,
        ..Retry::default()
    }
}

/// Files by the exporter that writes them: its signals share one.
pub type Files = HashMap<String, Arc<File>>;

/// What an exporter writes to.
pub struct File {
    to: Mutex<To>,
    format: Format,
    zstd: bool,
}

enum To {
    One(Writer),
    /// A file for each value of an attribute.
    Many(Groups),
}

impl File {
    /// The file of an exporter, opened where it is not yet.
    pub(super) fn of(
        files: &mut Files,
        name: &str,
        settings: &FileExporter,
    ) -> Result<Arc<File>, String> {
        if let Some(file) = files.get(name) {
            return Ok(Arc::clone(file));
        }
        let file = Arc::new(File::open(settings)?);
        files.insert(name.to_owned(), Arc::clone(&file));
        Ok(file)
    }

    fn open(settings: &FileExporter) -> Result<File, String> {
        let path = Path::new(&settings.path);
        let failed = |error: std::io::Error| format!("{}: {error}", settings.path);
        let to = match &settings.group_by {
            Some(group_by) => To::Many(Groups::new(settings, group_by)),
            None => {
                if settings.create_directory {
                    make_folder(path, settings.directory_permissions).map_err(failed)?;
                }
                let rotation = settings.rotation.clone();
                To::One(Writer::open(path, settings.append, rotation).map_err(failed)?)
            }
        };
        Ok(File {
            to: Mutex::new(to),
            format: settings.format,
            zstd: settings.zstd,
        })
    }

    /// Writes a request, or what an earlier attempt left of it.
    ///
    /// # Errors
    /// The request cannot be encoded.
    fn write(&self, signal: Signal, request: &Bytes) -> Result<Attempt, String> {
        let mut to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *to {
            To::One(writer) => {
                let message = self.message(signal, request)?;
                let mut attempt = Attempt::default();
                if let Err(error) = writer.write(&message) {
                    attempt.rest = request.to_vec();
                    attempt.busy = Some(error.to_string());
                }
                Ok(attempt)
            }
            To::Many(groups) => {
                groups.write((signal, request), |bytes| self.message(signal, bytes))
            }
        }
    }

    /// A request as it is written.
    fn message(&self, signal: Signal, bytes: &[u8]) -> Result<Vec<u8>, String> {
        let encoded = match self.format {
            Format::Json => {
                let mut line = otlp::json::encode(signal, bytes);
                if !self.zstd {
                    line.push(b'\n');
                    return Ok(line);
                }
                line
            }
            Format::Proto => bytes.to_vec(),
        };
        let encoded = if self.zstd {
            zstd::bulk::compress(&encoded, ZSTD_LEVEL).map_err(|error| error.to_string())?
        } else {
            encoded
        };
        let len = u32::try_from(encoded.len()).map_err(|error| error.to_string())?;
        Ok([&len.to_be_bytes()[..], &encoded].concat())
    }
}

/// Makes the folder of a file.
fn make_folder(path: &Path, permissions: u32) -> std::io::Result<()> {
    let Some(folder) = path.parent() else {
        return Ok(());
    };
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(permissions).create(folder)
}

/// The result of one attempt to write a request.
#[derive(Default)]
pub(super) struct Attempt {
    /// Records that can never be written, and why.
    pub rejected: u64,
    pub why: String,
    /// The part that is not written because a file cannot be written now, and why.
    pub rest: Vec<u8>,
    pub busy: Option<String>,
}

/// The part of a batch that earlier attempts did not write.
pub(super) struct Pending {
    rest: Bytes,
    rejected: u64,
    why: String,
}

/// Writes a batch, on a thread that may wait. A disk error leaves in `pending` what the next
/// attempt has to write, so that no record is written twice.
pub(super) async fn write(
    file: &Arc<File>,
    batch: &Batch,
    pending: &mut Option<Pending>,
) -> Outcome {
    let before = pending.take().unwrap_or_else(|| Pending {
        rest: batch.bytes.clone(),
        rejected: 0,
        why: String::new(),
    });
    let (file, signal, request) = (Arc::clone(file), batch.signal, before.rest);
    let written = tokio::task::spawn_blocking(move || file.write(signal, &request)).await;
    let attempt = match written {
        Ok(Ok(attempt)) => attempt,
        Ok(Err(why)) => return Outcome::Refused(why),
        Err(error) => return Outcome::Refused(error.to_string()),
    };
    let rejected = before.rejected + attempt.rejected;
    let message = if attempt.rejected > 0 {
        attempt.why
    } else {
        before.why
    };
    match attempt.busy {
        None => Outcome::Taken { rejected, message },
        Some(why) => {
            *pending = Some(Pending {
                rest: attempt.rest.into(),
                rejected,
                why: message,
            });
            Outcome::Busy { after: None, why }
        }
    }
}
