//! The exporter `file`: a request a line, or with its length before it.

mod group;
mod rotate;

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use export::client::Outcome;

use super::{ExporterDeps, QueueSettings, StartExporter, Started, Target};
use crate::config::Signal;
use crate::config::components::exporters::file::{FileExporter, Format};
use crate::run::data::Batch;
use group::Groups;
use rotate::Writer;

/// What the Collector's zstd takes where nothing is said.
const ZSTD_LEVEL: i32 = 3;

impl StartExporter for FileExporter {
    /// The signals of an exporter share its file.
    fn start(&self, deps: ExporterDeps<'_, '_>) -> Result<Started, String> {
        let file = Arc::new(File::open(self)?);
        deps.queues(|| QueueSettings::of(self), |_, _| Ok(Arc::clone(&file)))
    }
}

impl Target for Arc<File> {
    type Prepared = Option<Pending>;

    async fn send(&self, batch: &Batch, prepared: &mut Option<Pending>) -> Outcome {
        write(self, batch, prepared).await
    }
}

/// What an exporter writes to.
struct File {
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
struct Pending {
    rest: Bytes,
    rejected: u64,
    why: String,
}

/// Writes a batch, on a thread that may wait. A disk error leaves in `pending` what the next
/// attempt has to write, so that no record is written twice.
async fn write(file: &Arc<File>, batch: &Batch, pending: &mut Option<Pending>) -> Outcome {
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
