//! File rotation by size and by name.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use jiff::{Timestamp, Zoned, tz::TimeZone};
use telemetry::settings::OtlpFile;

use crate::clock::now_unix_ns;

/// The current file among those that a pattern names.
///
/// A file that would exceed its size limit is followed by the file with the next number, which is
/// emptied first; after the last number follows the first. A new file is also begun when a time
/// field of the pattern changes, for instance on a new day.
pub(crate) struct Rotating {
    settings: OtlpFile,
    number: u32,
    path: String,
    file: File,
    size: u64,
}

impl Rotating {
    /// Continues with the first file that has room.
    pub(crate) fn open(settings: OtlpFile) -> io::Result<Rotating> {
        let now = local_time();
        let has_room = |number: &u32| {
            let found = fs::metadata(path(&settings, &now, *number));
            found.map_or(true, |file| file.len() < settings.file_bytes_max)
        };
        let number = (0..settings.files_max).find(has_room);
        let (number, fresh) = (number.unwrap_or(0), number.is_none());
        let path = path(&settings, &now, number);
        let (file, size) = open(&path, fresh)?;
        let rotating = Rotating {
            settings,
            number,
            path,
            file,
            size,
        };
        rotating.link(&now);
        Ok(rotating)
    }

    /// Appends a line.
    pub(crate) fn write(&mut self, line: &[u8]) -> io::Result<()> {
        self.write_at(line, &local_time())
    }

    fn write_at(&mut self, line: &[u8], now: &Zoned) -> io::Result<()> {
        let path = path(&self.settings, now, self.number);
        if path != self.path {
            self.go_to(path, false, now)?;
        }
        let size = self.size + line.len() as u64;
        if self.size > 0 && size > self.settings.file_bytes_max {
            self.number = (self.number + 1) % self.settings.files_max;
            let path = self::path(&self.settings, now, self.number);
            self.go_to(path, true, now)?;
        }
        self.file.write_all(line)?;
        self.size += line.len() as u64;
        Ok(())
    }

    fn go_to(&mut self, path: String, fresh: bool, now: &Zoned) -> io::Result<()> {
        (self.file, self.size) = open(&path, fresh)?;
        self.path = path;
        self.link(now);
        Ok(())
    }

    /// Updates the alias link. An error is ignored, because the records are written all the same.
    fn link(&self, now: &Zoned) {
        let Some(pattern) = &self.settings.alias_pattern else {
            return;
        };
        let alias = expand(pattern, now, self.number);
        let is_ours = fs::symlink_metadata(&alias).map_or(true, |found| found.is_symlink());
        if let Ok(target) = fs::canonicalize(&self.path)
            && is_ours
        {
            let fresh = format!("{alias}.new");
            let linked = std::os::unix::fs::symlink(target, &fresh);
            let _ = linked.and_then(|()| fs::rename(&fresh, &alias));
        }
    }
}

/// The path for a number; if the pattern has no field for it, the number is appended.
fn path(settings: &OtlpFile, now: &Zoned, number: u32) -> String {
    let path = expand(&settings.file_pattern, now, number);
    let named = settings.file_pattern.contains("%N") || settings.file_pattern.contains("%n");
    match number {
        0 => path,
        _ if named => path,
        _ => format!("{path}.{number}"),
    }
}

fn open(path: &str, fresh: bool) -> io::Result<(File, u64)> {
    if let Some(folder) = Path::new(path).parent() {
        fs::create_dir_all(folder)?;
    }
    let mut options = OpenOptions::new();
    let file = if fresh {
        options.write(true).create(true).truncate(true).open(path)?
    } else {
        options.append(true).create(true).open(path)?
    };
    let size = file.metadata()?.len();
    Ok((file, size))
}

fn local_time() -> Zoned {
    let now = Timestamp::from_nanosecond(i128::from(now_unix_ns())).unwrap_or_default();
    now.to_zoned(TimeZone::system())
}

/// Fills the time fields and the number into a pattern. Unknown fields stay unchanged.
fn expand(pattern: &str, now: &Zoned, number: u32) -> String {
    let mut out = String::with_capacity(pattern.len() + 16);
    let mut rest = pattern.chars();
    while let Some(c) = rest.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        match rest.next() {
            Some('N') => out += &number.to_string(),
            Some('n') => out += &(number + 1).to_string(),
            Some('%') => out.push('%'),
            Some(c) if "YmdHMSFTRjyIpw".contains(c) => {
                out += &now.strftime(&format!("%{c}")).to_string();
            }
            Some(c) => out.extend(['%', c]),
            None => out.push('%'),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern() {
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        let now = now.to_zoned(TimeZone::UTC);
        let all = expand(
            "%F-%N-%n_%Y%m%d %H%M%S|%T|%R|%j|%y|%I|%p|%w|%%|%q|%",
            &now,
            2,
        );
        let expected = "2023-11-14-2-3_20231114 221320|22:13:20|22:13|318|23|10|PM|2|%|%q|%";
        assert_eq!(all, expected);
    }
}
