//! A folder for configurations and outputs; the drop removes it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A folder in the system's folder for temporary files.
pub struct Workdir(PathBuf);

impl Workdir {
    /// Creates a folder; `purpose` is part of its name for users.
    ///
    /// # Errors
    /// It cannot be created.
    pub fn new(purpose: &str) -> io::Result<Self> {
        let base = std::env::temp_dir();
        let mut number = 0;
        loop {
            // A folder with this name may remain from an earlier process with the same id.
            let path = base.join(format!(
                "spangate-{purpose}-{}-{number}",
                std::process::id()
            ));
            match fs::create_dir(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Workdir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_ours_alone_and_goes_with_all_in_it() {
        let (one, two) = (Workdir::new("test").unwrap(), Workdir::new("test").unwrap());
        assert_ne!(one.path(), two.path());
        fs::write(one.path().join("file"), "x").unwrap();
        let gone = one.path().to_owned();
        drop(one);
        assert!(!gone.exists() && two.path().exists());
    }
}
