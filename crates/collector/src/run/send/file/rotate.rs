//! A file that is followed by another when it is full, as the Collector's are: the full one gets
//! the time into its name.

use std::fs::{self, OpenOptions};
use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

use export::clock::now_unix_ns;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::config::components::exporters::file::Rotation;

/// Megabytes of a file where 0 is written.
const MEGABYTES_DEFAULT: u64 = 100;
/// A time in the name of a file.
const STAMP: &str = "%Y-%m-%dT%H-%M-%S%.3f";
/// Names that are tried for one file.
const NAMES_MAX: i64 = 1000;

/// See the module.
pub(super) struct Writer {
    path: PathBuf,
    file: fs::File,
    size: u64,
    /// Bytes at the end of the file that belong to a message that could not be written whole.
    torn_bytes: u64,
    rotation: Option<Rotation>,
}

impl Writer {
    /// Continues a file that is there where `append` says so, or where files follow each other;
    /// else it is emptied.
    pub(super) fn open(
        path: &Path,
        append: bool,
        rotation: Option<Rotation>,
    ) -> io::Result<Writer> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        if !append && rotation.is_none() {
            // A pipe or a terminal has nothing to be emptied.
            let is_file = file.metadata()?.is_file();
            is_file.then(|| file.set_len(0)).transpose()?;
        }
        let size = file.metadata()?.len();
        Ok(Writer {
            path: path.to_owned(),
            file,
            size,
            torn_bytes: 0,
            rotation,
        })
    }

    /// Appends a message whole to one file.
    ///
    /// # Errors
    /// The message is not written: what the file took of it is cut off again, at the latest before
    /// the next message.
    pub(super) fn write(&mut self, message: &[u8]) -> io::Result<()> {
        self.cut_torn()?;
        let len = message.len() as u64;
        if let Some(rotation) = self.rotation.clone()
            && self.size > 0
            && self.size + len > bytes_max(&rotation)
        {
            self.rotate(&rotation, now())?;
        }
        if let Err(error) = self.append(message) {
            // The next write tries again where this fails.
            let _ = self.cut_torn();
            return Err(error);
        }
        self.size += len;
        Ok(())
    }

    /// Writes a message, and remembers how much of it the file took when it fails.
    fn append(&mut self, message: &[u8]) -> io::Result<()> {
        let mut rest = message;
        while !rest.is_empty() {
            match self.file.write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    self.torn_bytes += written as u64;
                    rest = rest.get(written..).unwrap_or_default();
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.torn_bytes = 0;
        Ok(())
    }

    /// Cuts off what the file took of a message that was not written whole. A pipe keeps it, and so
    /// does a file to which another process has appended since.
    fn cut_torn(&mut self) -> io::Result<()> {
        if self.torn_bytes == 0 {
            return Ok(());
        }
        let metadata = self.file.metadata()?;
        // The position is where the last write ended.
        if metadata.is_file() && metadata.len() == self.file.stream_position()? {
            let whole = metadata.len().saturating_sub(self.torn_bytes);
            self.file.set_len(whole)?;
        }
        self.torn_bytes = 0;
        Ok(())
    }

    fn rotate(&mut self, rotation: &Rotation, now: Timestamp) -> io::Result<()> {
        match fs::rename(&self.path, free_name(&self.path, rotation, now)) {
            // An earlier attempt renamed the file and then failed to create its successor.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            renamed => renamed?,
        }
        let mut options = OpenOptions::new();
        self.file = options.create(true).append(true).open(&self.path)?;
        self.size = 0;
        // What cannot be removed is in nobody's way but the disk's.
        let _ = remove_old(&self.path, rotation, now);
        Ok(())
    }
}

fn now() -> Timestamp {
    Timestamp::from_nanosecond(i128::from(now_unix_ns())).unwrap_or_default()
}

fn bytes_max(rotation: &Rotation) -> u64 {
    let megabytes = match rotation.megabytes_max {
        0 => MEGABYTES_DEFAULT,
        megabytes => megabytes,
    };
    megabytes.saturating_mul(1 << 20)
}

fn stamp(rotation: &Rotation, moment: Timestamp) -> String {
    let zone = if rotation.local_time {
        TimeZone::system()
    } else {
        TimeZone::UTC
    };
    moment.to_zoned(zone).strftime(STAMP).to_string()
}

/// What stands before and behind the time in the names of full files.
fn name_parts(path: &Path) -> (String, String) {
    let text = |part: Option<&std::ffi::OsStr>| {
        part.map_or(String::new(), |part| part.to_string_lossy().into_owned())
    };
    let extension = match path.extension() {
        Some(extension) => format!(".{}", extension.to_string_lossy()),
        None => String::new(),
    };
    (format!("{}-", text(path.file_stem())), extension)
}

/// A name that no file has: none is written over.
fn free_name(path: &Path, rotation: &Rotation, now: Timestamp) -> PathBuf {
    let (before, behind) = name_parts(path);
    let named = |later_ms| {
        let moment = now
            .checked_add(SignedDuration::from_millis(later_ms))
            .unwrap_or(now);
        path.with_file_name(format!("{before}{}{behind}", stamp(rotation, moment)))
    };
    let mut names = (0..NAMES_MAX).map(named);
    names.find(|name| !name.exists()).unwrap_or(named(0))
}

/// Removes full files that are too many or too old.
fn remove_old(path: &Path, rotation: &Rotation, now: Timestamp) -> io::Result<()> {
    let (before, behind) = name_parts(path);
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut full = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let rest = name.strip_prefix(&before);
        let middle = rest.and_then(|rest| rest.strip_suffix(&behind));
        if let Some(middle) = middle.filter(|middle| is_stamp(middle)) {
            full.push((middle.to_owned(), entry.path()));
        }
    }
    // The newest first: times are written so that their order is that of texts.
    full.sort_unstable_by(|one, other| other.cmp(one));
    let hours = i64::try_from(rotation.days_max.saturating_mul(24)).unwrap_or(i64::MAX / 3600);
    let oldest = now.checked_sub(SignedDuration::from_secs(hours.saturating_mul(3600)));
    let oldest = oldest.map(|oldest| stamp(rotation, oldest)).ok();
    for (place, (time, path)) in full.iter().enumerate() {
        let too_many = rotation.backups_max > 0 && place as u64 >= rotation.backups_max;
        let too_old = rotation.days_max > 0 && oldest.as_ref().is_some_and(|oldest| time < oldest);
        if too_many || too_old {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

/// Whether a text has the form of [`STAMP`].
fn is_stamp(text: &str) -> bool {
    let form = b"0000-00-00T00-00-00.000";
    text.len() == form.len()
        && text.bytes().zip(form).all(|(byte, form)| match form {
            b'0' => byte.is_ascii_digit(),
            form => byte == *form,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn full_files_keep_their_time_and_the_oldest_go() {
        let folder = std::env::temp_dir().join(format!("spangate-rotate-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("data.json");
        let rotation = Rotation {
            megabytes_max: 1,
            days_max: 2,
            backups_max: 3,
            local_time: false,
        };
        fs::write(&path, b"there before\n").unwrap();
        let mut writer = Writer::open(&path, false, Some(rotation.clone())).unwrap();
        let moment = |hours: i64| Timestamp::from_second(1_700_000_000 + hours * 3600).unwrap();
        writer.rotate(&rotation, moment(0)).unwrap();
        // At the same moment: nothing is written over.
        writer.rotate(&rotation, moment(0)).unwrap();
        let first = "data-2023-11-14T22-13-20.000.json";
        let full = names(&folder);
        assert_eq!(
            full,
            [first, "data-2023-11-14T22-13-20.001.json", "data.json"]
        );
        assert_eq!(fs::read(folder.join(first)).unwrap(), b"there before\n");
        fs::write(folder.join("data-other.json"), b"").unwrap();
        // The first two are older than two days then.
        writer.rotate(&rotation, moment(50)).unwrap();
        assert_eq!(names(&folder).len(), 3);
        for hour in 51..60 {
            writer.rotate(&rotation, moment(hour)).unwrap();
        }
        assert_eq!(names(&folder).len(), 5);
        // By size: what would not fit begins the next one.
        let large = vec![b'x'; 600 << 10];
        writer.write(&large).unwrap();
        writer.write(&large).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), large.len() as u64);
        fs::remove_dir_all(&folder).unwrap();
    }
}
