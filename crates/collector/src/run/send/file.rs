//! The exporter `file`: a request a line, or with its length before it.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use export::client::Outcome;

use super::TAKEN;
use crate::config::components::exporters::file::{FileExporter, Format};
use crate::run::data::Batch;
use crate::run::json;

pub(super) struct File {
    file: Mutex<fs::File>,
    format: Format,
}

impl File {
    pub(super) fn open(settings: &FileExporter) -> Result<File, String> {
        let unknown = [
            (settings.zstd, "compression"),
            (settings.rotation.is_some(), "rotation"),
            (settings.group_by.is_some(), "group_by"),
        ];
        if let Some((_, option)) = unknown.iter().find(|(is_on, _)| *is_on) {
            return Err(format!("'{option}' does not work yet"));
        }
        let path = Path::new(&settings.path);
        let failed = |error: std::io::Error| format!("{}: {error}", settings.path);
        if settings.create_directory
            && let Some(folder) = path.parent()
        {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(settings.directory_permissions)
                .create(folder)
                .map_err(failed)?;
        }
        let file = OpenOptions::new()
            .create(true)
            .write(true)
            .append(settings.append)
            .truncate(!settings.append)
            .open(path)
            .map_err(failed)?;
        Ok(File {
            file: Mutex::new(file),
            format: settings.format,
        })
    }

    fn write(&self, batch: &Batch) -> Result<(), String> {
        let bytes = match self.format {
            Format::Json => {
                let mut line = json::encode(batch.signal, &batch.bytes)?;
                line.push(b'\n');
                line
            }
            Format::Proto => {
                let len = u32::try_from(batch.bytes.len()).map_err(|error| error.to_string())?;
                [&len.to_be_bytes()[..], &batch.bytes].concat()
            }
        };
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(&bytes).map_err(|error| error.to_string())
    }
}

/// Writes a batch, on a thread that may wait.
pub(super) async fn write(file: &Arc<File>, batch: &Batch) -> Outcome {
    let (file, batch) = (Arc::clone(file), batch.shared());
    let written = tokio::task::spawn_blocking(move || file.write(&batch)).await;
    match written {
        Ok(Ok(())) => TAKEN,
        Ok(Err(why)) => Outcome::Refused(why),
        Err(error) => Outcome::Refused(error.to_string()),
    }
}
