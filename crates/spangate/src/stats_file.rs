//! `stats-file` of section `global`: counters of an earlier process (manual §3.1).

use std::io::Read as _;
use std::path::Path;

use proxy::{RuntimeConfig, Shared, statistics};
use stats::file;

use crate::warning;

/// A file that was read.
pub(crate) struct StatsFile {
    /// The path in the configuration.
    path: String,
    text: String,
}

/// Reads the file that the configuration names, before the process loses access to it. Faults are
/// reported.
pub(crate) fn read(path: Option<&Path>) -> Option<StatsFile> {
    let (path, shown) = (path?, path?.display().to_string());
    match read_file(path) {
        Ok(text) => Some(StatsFile { path: shown, text }),
        Err(why) => {
            warning(&format!("config: Can't load stats-file '{shown}': {why}."));
            None
        }
    }
}

fn read_file(path: &Path) -> Result<String, &'static str> {
    let file = std::fs::File::open(path).map_err(|_| "cannot open file")?;
    let mut bytes = Vec::new();
    let mut limited = file.take(file::BYTES_MAX + 1);
    let read = limited.read_to_end(&mut bytes);
    if read.map_err(|_| "cannot read file")? as u64 > file::BYTES_MAX {
        Err("file too large")
    } else {
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

impl StatsFile {
    /// Adds the file's values to the counters.
    pub fn apply(&self, runtime_config: &RuntimeConfig, shared: &Shared) {
        match file::read(&self.text) {
            Ok(loaded) => statistics::load_file(runtime_config, shared, &loaded),
            Err(_) => {
                let path = &self.path;
                warning(&format!(
                    "config: Invalid stats-file format in file '{path}'."
                ));
            }
        }
    }
}
