//! Reads the files that a configuration names, and resolves its names: from the system, or from a
//! [`Snapshot`].
//!
//! A process in a `chroot`, or with few rights, cannot read its files again. Another process reads
//! them under [`record`], sends the [`Snapshot`], and the first one reads the same configuration
//! under [`Snapshot::replay`]. Code that reads files calls the functions of this crate and does not
//! know which of the three it is. Where the files come from is a property of the thread: each
//! configuration is read by one thread.

mod snapshot;

use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::net::{IpAddr, ToSocketAddrs as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::Arc;

use snapshot::{Answer, Question};
pub use snapshot::{BYTES_MAX, Snapshot};

thread_local! {
    static ORIGIN: RefCell<Origin> = const { RefCell::new(Origin::Disk) };
    /// A pipe is not read: see [`without_pipes`].
    static REFUSES_PIPES: Cell<bool> = const { Cell::new(false) };
}

/// Where the files of a thread come from.
#[derive(Debug, Default)]
enum Origin {
    #[default]
    Disk,
    /// From disk; what is read is kept.
    Recorded(Snapshot),
    Replayed(Arc<Snapshot>),
}

/// What is known of a file without its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// A regular file.
    pub is_file: bool,
    /// A directory.
    pub is_dir: bool,
    /// The permission bits.
    pub mode: u32,
    /// Its size.
    pub bytes: u64,
}

/// The content of a file, at most `bytes_max` bytes of it: a device file may have no end.
///
/// # Errors
/// The system's. In a replay, `NotFound` for a file that was not read when it was recorded.
pub fn read(path: impl AsRef<Path>, bytes_max: u64) -> io::Result<Vec<u8>> {
    let path = path.as_ref();
    let mut content = answer(Question::Content, path.as_os_str().as_bytes(), || {
        if REFUSES_PIPES.get() && fs::metadata(path)?.file_type().is_fifo() {
            return Err(io::Error::other("a pipe, whose writer may never come"));
        }
        let mut content = Vec::new();
        File::open(path)?
            .take(bytes_max)
            .read_to_end(&mut content)?;
        Ok(content)
    })?;
    content.truncate(usize::try_from(bytes_max).unwrap_or(usize::MAX));
    Ok(content)
}

/// Kind, size and permissions of a file; links are followed.
///
/// # Errors
/// As [`read`].
pub fn info(path: impl AsRef<Path>) -> io::Result<Info> {
    let path = path.as_ref();
    let encoded = answer(Question::Info, path.as_os_str().as_bytes(), || {
        let metadata = fs::metadata(path)?;
        let info = Info {
            is_file: metadata.is_file(),
            is_dir: metadata.is_dir(),
            mode: metadata.permissions().mode(),
            bytes: metadata.len(),
        };
        Ok(info.encode())
    })?;
    Info::decode(&encoded).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Whether it is a regular file, or a link to one.
#[must_use]
pub fn is_file(path: impl AsRef<Path>) -> bool {
    info(path).is_ok_and(|info| info.is_file)
}

/// Whether it is a directory, or a link to one.
#[must_use]
pub fn is_dir(path: impl AsRef<Path>) -> bool {
    info(path).is_ok_and(|info| info.is_dir)
}

/// The names in a directory, sorted.
///
/// # Errors
/// As [`read`].
pub fn names(directory: impl AsRef<Path>) -> io::Result<Vec<OsString>> {
    /// No name has it.
    const SEPARATOR: u8 = 0;
    let directory = directory.as_ref();
    let joined = answer(Question::Names, directory.as_os_str().as_bytes(), || {
        let entries: io::Result<Vec<_>> = fs::read_dir(directory)?.collect();
        let mut names: Vec<_> = entries?.iter().map(fs::DirEntry::file_name).collect();
        names.sort();
        let names: Vec<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
        Ok(names.join(&SEPARATOR))
    })?;
    let names = joined.split(|byte| *byte == SEPARATOR);
    let names = names.filter(|name| !name.is_empty());
    Ok(names
        .map(|name| OsString::from_vec(name.to_vec()))
        .collect())
}

/// The addresses of a host, in the system's order (getaddrinfo). Blocks. The system reads files and
/// loads libraries for this.
///
/// # Errors
/// As [`read`].
pub fn addresses(host: &str) -> io::Result<Vec<IpAddr>> {
    let text = answer(Question::Addresses, host.as_bytes(), || {
        let found = (host, 0).to_socket_addrs()?;
        let lines = found.map(|address| format!("{}\n", address.ip()));
        Ok(lines.collect::<String>().into_bytes())
    })?;
    let text = String::from_utf8_lossy(&text);
    Ok(text.lines().filter_map(|line| line.parse().ok()).collect())
}

/// Returns bytes that do not come from a file, such as a passphrase. Only a process with more rights
/// can get them, by calling `get`. A replay does not call `get`: it finds the bytes by `name`.
///
/// # Errors
/// Those of `get`; otherwise as [`read`].
pub fn other(name: &str, get: impl FnOnce() -> io::Result<Vec<u8>>) -> io::Result<Vec<u8>> {
    answer(Question::Other, name.as_bytes(), get)
}

/// Runs `read`, in which named pipes cannot be read: others wait for it, and the writer of a pipe
/// may never come.
pub fn without_pipes<T>(read: impl FnOnce() -> T) -> T {
    let before = REFUSES_PIPES.replace(true);
    let result = read();
    REFUSES_PIPES.set(before);
    result
}

/// Runs `read` and keeps what it reads through this crate, from disk.
pub fn record<T>(read: impl FnOnce() -> T) -> (T, Snapshot) {
    let (result, origin) = with(Origin::Recorded(Snapshot::default()), read);
    match origin {
        Origin::Recorded(snapshot) => (result, snapshot),
        Origin::Disk | Origin::Replayed(_) => (result, Snapshot::default()),
    }
}

impl Snapshot {
    /// Runs `read`, with this snapshot for the disk.
    pub fn replay<T>(self, read: impl FnOnce() -> T) -> T {
        with(Origin::Replayed(Arc::new(self)), read).0
    }
}

/// Runs `read` with an origin. Returns the origin too, with what was recorded.
fn with<T>(origin: Origin, read: impl FnOnce() -> T) -> (T, Origin) {
    /// Puts the previous origin back, also if `read` panics.
    struct Back(Option<Origin>);
    impl Drop for Back {
        fn drop(&mut self) {
            if let Some(before) = self.0.take() {
                ORIGIN.replace(before);
            }
        }
    }
    let mut back = Back(Some(ORIGIN.replace(origin)));
    let result = read();
    (result, ORIGIN.replace(back.0.take().unwrap_or_default()))
}

/// The answer to a question from where the thread's files come from. `ask` asks the system.
fn answer(question: Question, name: &[u8], ask: impl FnOnce() -> Answer) -> Answer {
    let replayed = ORIGIN.with_borrow(|origin| match origin {
        Origin::Replayed(snapshot) => Some(Arc::clone(snapshot)),
        Origin::Disk | Origin::Recorded(_) => None,
    });
    if let Some(snapshot) = replayed {
        return snapshot.answer(question, name);
    }
    let answer = ask();
    ORIGIN.with_borrow_mut(|origin| {
        if let Origin::Recorded(snapshot) = origin {
            snapshot.keep(question, name, &answer);
        }
    });
    answer
}

impl Info {
    fn encode(self) -> Vec<u8> {
        let mut bytes = vec![u8::from(self.is_file), u8::from(self.is_dir)];
        bytes.extend_from_slice(&self.mode.to_ne_bytes());
        bytes.extend_from_slice(&self.bytes.to_ne_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Info> {
        let ([is_file, is_dir], rest) = bytes.split_first_chunk()?;
        let (mode, rest) = rest.split_first_chunk()?;
        Some(Info {
            is_file: *is_file != 0,
            is_dir: *is_dir != 0,
            mode: u32::from_ne_bytes(*mode),
            bytes: u64::from_ne_bytes(rest.try_into().ok()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of its own, removed at the end.
    struct Folder(std::path::PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("spangate-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).expect("a folder");
            Folder(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// What a test reads, as text, with the reasons of failures.
    fn read_all(folder: &Path) -> Vec<String> {
        let text = |read: io::Result<Vec<u8>>| match read {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) => error.to_string(),
        };
        vec![
            text(read(folder.join("one"), 3)),
            text(read(folder.join("one"), 100)),
            text(read(folder.join("one"), 0)),
            text(read(folder.join("missing"), 100)),
            text(read(folder, 100)),
            format!("{:?}", info(folder.join("one"))),
            format!("{:?}", info(folder.join("missing")).map_err(|e| e.kind())),
            format!("{} {}", is_file(folder.join("one")), is_dir(folder)),
            format!("{:?}", names(folder)),
            format!("{:?}", names(folder.join("one")).map_err(|e| e.kind())),
            format!("{:?}", addresses("127.0.0.1").map_err(|e| e.kind())),
            text(other("a", || Ok(b"said".to_vec()))),
            text(other("b", || Err(io::Error::other("no program")))),
        ]
    }

    #[test]
    fn a_replay_reads_what_was_recorded() {
        let folder = Folder::new("files-replay");
        fs::write(folder.0.join("one"), "first\0 text").expect("a file");
        fs::write(folder.0.join("two"), "").expect("a file");
        let from_disk = read_all(&folder.0);
        assert_eq!(from_disk[0], "fir");
        assert!(from_disk[8].contains(r#"["one", "two"]"#), "{from_disk:?}");
        let (recorded, snapshot) = record(|| read_all(&folder.0));
        assert_eq!(recorded, from_disk);
        let mut sent = Vec::new();
        snapshot.write_to(&mut sent).expect("memory takes it");
        fs::write(folder.0.join("one"), "another").expect("a file");
        let received = Snapshot::read_from(&sent[..]).expect("whole");
        let replayed = received.replay(|| {
            let replayed = read_all(&folder.0);
            let unread = read(folder.0.join("two"), 9).expect_err("it was not read");
            assert_eq!(unread.kind(), io::ErrorKind::NotFound);
            replayed
        });
        assert_eq!(replayed, from_disk);
        // The end of the replay.
        assert_eq!(read_all(&folder.0)[1], "another");
    }

    #[test]
    fn a_panic_ends_a_replay() {
        let panicked = std::panic::catch_unwind(|| {
            Snapshot::default().replay(|| {
                assert!(!is_dir("/"));
                panic!("a fault in the reader");
            })
        });
        assert!(panicked.is_err());
        assert!(is_dir("/"));
    }
}
