//! Reads files of `/proc` and `/sys` under a root directory.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// Bytes of a file that are read. The longest ones, lists of mounts and disks, have kilobytes.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// Bytes of a line of a file that is read line by line.
const LINE_BYTES_MAX: u64 = 64 << 10;

/// The root directory of the host, as this process sees it.
#[derive(Clone, Debug)]
pub(super) struct Root(pub PathBuf);

impl Root {
    /// The path of a file of the host.
    pub fn path(&self, path: &str) -> PathBuf {
        // Joining an absolute path would leave the root.
        self.0.join(path.trim_start_matches('/'))
    }

    /// The text of a file. Bytes that are not UTF-8 are replaced.
    ///
    /// # Errors
    /// The path, and why it cannot be read.
    pub fn read(&self, path: &str) -> Result<String, String> {
        let path = self.path(path);
        let mut bytes = Vec::new();
        let read = File::open(&path).and_then(|file| {
            let mut file = file.take(FILE_BYTES_MAX + 1);
            file.read_to_end(&mut bytes)
        });
        read.map_err(|error| failed(&path, &error))?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(format!(
                "{}: has more than {FILE_BYTES_MAX} bytes",
                path.display()
            ));
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Calls `each` with the lines of a file, which may be long: only a line is in memory.
    ///
    /// # Errors
    /// The path, and why it cannot be read.
    pub fn lines(&self, path: &str, mut each: impl FnMut(&str)) -> Result<(), String> {
        let path = self.path(path);
        let file = File::open(&path).map_err(|error| failed(&path, &error))?;
        let mut reader = BufReader::new(file);
        let mut line = Vec::new();
        loop {
            line.clear();
            let mut part = reader.by_ref().take(LINE_BYTES_MAX);
            let read = part.read_until(b'\n', &mut line);
            if read.map_err(|error| failed(&path, &error))? == 0 {
                return Ok(());
            }
            each(String::from_utf8_lossy(&line).trim_end());
        }
    }

    /// A file that holds a number.
    ///
    /// # Errors
    /// The path, and why there is none.
    pub fn number(&self, path: &str) -> Result<u64, String> {
        let text = self.read(path)?;
        let number = text.trim().parse();
        number.map_err(|_| format!("{}: holds no number", self.path(path).display()))
    }
}

fn failed(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}", path.display())
}

/// The number at a place of fields; 0 where there is none.
pub(super) fn number(fields: &[&str], place: usize) -> u64 {
    let field = fields.get(place);
    field.and_then(|field| field.parse().ok()).unwrap_or(0)
}

/// A name as `/proc/mounts` writes it, with three octal digits for blanks and the like (proc(5)).
pub(super) fn unescaped(name: &str) -> String {
    let mut out = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|_| *first == b'\\');
        let is_octal = |digits: &&[u8]| digits.iter().all(|digit| (b'0'..=b'7').contains(digit));
        let code = digits.filter(is_octal).and_then(|digits| {
            let text = std::str::from_utf8(digits).ok()?;
            u8::from_str_radix(text, 8).ok()
        });
        match code {
            Some(code) => {
                out.push(code);
                rest = &after[3..];
            }
            None => {
                out.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unescaped() {
        for (name, expected) in [
            ("/mnt/a\\040b\\134", "/mnt/a b\\"),
            ("\\04", "\\04"),
            ("\\999x", "\\999x"),
            ("\\777", "\\777"),
            ("\\+01", "\\+01"),
            ("", ""),
        ] {
            assert_eq!(unescaped(name), expected);
        }
    }
}
