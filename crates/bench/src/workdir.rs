//! A folder for configurations and outputs that is removed when dropped.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A folder of our own in the system's folder for temporary files.
pub struct Workdir(PathBuf);

impl Workdir {
    /// Makes one; `purpose` keeps those of one process apart.
    ///
    /// # Errors
    /// When it cannot be made, or is there already.
    pub fn new(purpose: &str) -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("spangate-{purpose}-{}", std::process::id()));
        fs::create_dir(&path)?;
        Ok(Self(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Workdir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
