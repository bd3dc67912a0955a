//! The exporter `file`: a request a line, or with its length before it.

mod group;
mod rotate;

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use export::client::Outcome;

use crate::config::components::exporters::file::{FileExporter, Format};
use crate::run::data::Batch;
use group::Groups;
use rotate::Writer;

/// What the Collector's zstd takes where nothing is said.
const ZSTD_LEVEL: i32 = 3;

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

    /// Writes a batch; how many records could not be, and why.
    fn write(&self, batch: &Batch) -> Result<(u64, String), String> {
        let mut to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *to {
            To::One(writer) => {
                let message = self.message(batch, &batch.bytes)?;
                writer.write(&message).map_err(|error| error.to_string())?;
                Ok((0, String::new()))
            }
            To::Many(groups) => groups.write(batch, |bytes| self.message(batch, bytes)),
        }
    }

    /// A request as it is written.
    fn message(&self, batch: &Batch, bytes: &[u8]) -> Result<Vec<u8>, String> {
        let encoded = match self.format {
            Format::Json => {
                let mut line = otlp::json::encode(batch.signal, bytes);
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

/// Writes a batch, on a thread that may wait.
pub(super) async fn write(file: &Arc<File>, batch: &Batch) -> Outcome {
    let (file, batch) = (Arc::clone(file), batch.shared());
    let written = tokio::task::spawn_blocking(move || file.write(&batch)).await;
    match written {
        Ok(Ok((rejected, message))) => Outcome::Taken { rejected, message },
        Ok(Err(why)) => Outcome::Refused(why),
        Err(error) => Outcome::Refused(error.to_string()),
    }
}
