//! The copy of a ring in a file (`backing-file`, manual §12.5), in HAProxy's layout.
//!
//! A header of 192 bytes has four numbers of 8 bytes in the byte order of the machine: the size of
//! the area and of the header at 0 and 8, the tail at 64, the head at 128. The area follows. From
//! the head to the tail it holds a zero byte, and after it each message: its length as a variable
//! number, its bytes, and a zero byte. The area is a circle.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::sys::{Mapping, reserve};

const HEADER_BYTES: usize = 192;
/// Where the numbers of the header are.
const AT_SIZE: usize = 0;
const AT_HEADER: usize = 8;
const AT_TAIL: usize = 64;
const AT_HEAD: usize = 128;
/// The tail of a ring without messages whose head is 0.
const EMPTY: u64 = 1;
/// Files are multiples of this size.
const PAGE_BYTES: usize = 4096;
/// The longest variable number.
const NUMBER_BYTES_MAX: usize = 10;

/// See the module.
#[derive(Debug)]
pub struct RingFile {
    map: Mapping,
    size: usize,
    head: usize,
    tail: usize,
    /// The bytes of each message with its length and its mark.
    entries: VecDeque<u32>,
    /// The sum of `entries`.
    used: usize,
}

impl RingFile {
    /// Creates the file for a ring of this size. An earlier file with messages becomes `<path>.bak`,
    /// in the place of an earlier one of that name.
    ///
    /// # Errors
    /// The file cannot be created, or there is no room for it.
    pub fn create(path: &Path, bytes_max: usize) -> io::Result<RingFile> {
        put_aside(path)?;
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create_new(true).mode(0o600);
        let file = options.open(path)?;
        let bytes = bytes_max.max(PAGE_BYTES).next_multiple_of(PAGE_BYTES);
        reserve(&file, bytes as u64)?;
        let mut created = RingFile {
            map: Mapping::of(&file, bytes)?,
            size: bytes - HEADER_BYTES,
            head: 0,
            tail: EMPTY as usize,
            entries: VecDeque::new(),
            used: 0,
        };
        created.map.store(AT_HEADER, HEADER_BYTES as u64);
        created.map.store(AT_TAIL, EMPTY);
        created.map.store(AT_SIZE, created.size as u64);
        Ok(created)
    }

    /// Appends a message, in the place of the oldest ones if there is no room. A message that is
    /// longer than the area is not copied.
    pub fn push(&mut self, message: &[u8]) {
        let mut number = [0; NUMBER_BYTES_MAX];
        let number = write_number(message.len() as u64, &mut number);
        let needed = number.len() + message.len() + 1;
        // The mark before the first message, and a byte that tells a full area from an empty one.
        let room = self.size - 2;
        let Ok(entry) = u32::try_from(needed) else {
            return;
        };
        if needed > room {
            return;
        }
        let mut head = self.head;
        while self.used + needed > room {
            let Some(oldest) = self.entries.pop_front() else {
                return;
            };
            self.used -= oldest as usize;
            head = (head + oldest as usize) % self.size;
        }
        if head != self.head {
            self.head = head;
            self.map.store(AT_HEAD, head as u64);
        }
        for part in [number, message, &[0]] {
            self.write(part);
        }
        self.entries.push_back(entry);
        self.used += needed;
        self.map.store(AT_TAIL, self.tail as u64);
    }

    /// Writes bytes at the tail, and moves it.
    fn write(&mut self, bytes: &[u8]) {
        let (first, second) = bytes.split_at(bytes.len().min(self.size - self.tail));
        self.map.write(HEADER_BYTES + self.tail, first);
        self.map.write(HEADER_BYTES, second);
        self.tail = (self.tail + bytes.len()) % self.size;
    }
}

/// Renames a file that may have messages, and removes one that has none. So no file is used by two
/// processes.
fn put_aside(path: &Path) -> io::Result<()> {
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !metadata.is_file() {
        let message = "it is not a regular file";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    let mut header = [0; HEADER_BYTES];
    let is_empty = match File::open(path)?.read_exact(&mut header) {
        Ok(()) => is_without_messages(&header),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => metadata.len() == 0,
        Err(error) => return Err(error),
    };
    if is_empty {
        return fs::remove_file(path);
    }
    let mut old = path.as_os_str().to_owned();
    old.push(".bak");
    fs::rename(path, PathBuf::from(old))
}

fn is_without_messages(header: &[u8; HEADER_BYTES]) -> bool {
    let number = |at: usize| {
        let bytes = header[at..].first_chunk().copied();
        bytes.map(u64::from_ne_bytes)
    };
    number(AT_HEADER) == Some(HEADER_BYTES as u64)
        && number(AT_HEAD) == Some(0)
        && number(AT_TAIL) == Some(EMPTY)
}

/// Writes a number as HAProxy does: below 240 as one byte, otherwise four bits in the first byte
/// and seven in each of the next ones.
fn write_number(number: u64, to: &mut [u8; NUMBER_BYTES_MAX]) -> &[u8] {
    const ONE_BYTE: u64 = 240;
    const MORE: u64 = 128;
    let mut at = 0;
    let mut put = |byte: u64| {
        to[at] = byte as u8;
        at += 1;
    };
    if number < ONE_BYTE {
        put(number);
    } else {
        put(number | ONE_BYTE);
        let mut rest = (number - ONE_BYTE) >> 4;
        while rest >= MORE {
            put(rest | MORE);
            rest = (rest - MORE) >> 7;
        }
        put(rest);
    }
    &to[..at]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that is removed with this value.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("ring-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).expect("a folder");
            Folder(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn number(bytes: &[u8], at: usize) -> usize {
        u64::from_ne_bytes(*bytes[at..].first_chunk().expect("eight bytes")) as usize
    }

    /// The messages of a file, read as its layout says.
    fn messages(path: &Path) -> Vec<String> {
        let bytes = fs::read(path).expect("a file");
        let (size, header) = (number(&bytes, AT_SIZE), number(&bytes, AT_HEADER));
        let (head, tail) = (number(&bytes, AT_HEAD), number(&bytes, AT_TAIL));
        assert_eq!((header, header + size), (192, bytes.len()));
        let area = &bytes[header..];
        let used = (tail + size - head) % size;
        let byte = |at: usize| area[(head + at) % size];
        let mut found = Vec::new();
        let mut at = 0;
        while at + 1 < used {
            assert_eq!(byte(at), 0);
            at += 1;
            let mut length = usize::from(byte(at));
            at += 1;
            if length >= 240 {
                let mut shift = 4;
                loop {
                    let more = usize::from(byte(at));
                    at += 1;
                    length += more << shift;
                    shift += 7;
                    if more < 128 {
                        break;
                    }
                }
            }
            let text = (at..at + length).map(byte).collect();
            found.push(String::from_utf8(text).expect("text"));
            at += length;
        }
        assert_eq!((at + 1, byte(at)), (used, 0));
        found
    }

    #[test]
    fn the_newest_messages_are_in_the_file() {
        let folder = Folder::new("newest");
        let path = folder.0.join("ring");
        let mut file = RingFile::create(&path, 100).expect("a file");
        assert!(messages(&path).is_empty());
        let mut all = Vec::new();
        for number in 0..300 {
            let message = format!("{number} {}", "x".repeat(number * 7 % 700));
            file.push(message.as_bytes());
            all.push(message);
            let found = messages(&path);
            assert!(
                found.len() > 3.min(number) && all.ends_with(&found),
                "{number}"
            );
        }
        file.push(&vec![b'x'; 3898]);
        assert_eq!(messages(&path).len(), 1);
        file.push(&vec![b'x'; 3899]);
        file.push(b"");
        assert_eq!(messages(&path), [""]);
    }

    #[test]
    fn an_earlier_file_with_messages_is_kept() {
        let folder = Folder::new("earlier");
        let (path, old) = (folder.0.join("ring"), folder.0.join("ring.bak"));
        let mut file = RingFile::create(&path, 5000).expect("a file");
        file.push(b"one");
        drop(file);
        let mut file = RingFile::create(&path, 5000).expect("another file");
        assert_eq!(
            (messages(&path).len(), &*messages(&old)),
            (0, &["one".to_owned()][..])
        );
        // One without messages replaces none, and the process that has it open does not disturb.
        drop(RingFile::create(&path, 5000).expect("a file"));
        file.push(b"lost");
        assert_eq!((messages(&path).len(), messages(&old).len()), (0, 1));
        fs::write(&path, "other text").expect("written");
        drop(RingFile::create(&path, 5000).expect("a file"));
        assert_eq!(fs::read(&old).expect("a file"), b"other text");
        assert!(RingFile::create(&folder.0, 5000).is_err());
        assert!(RingFile::create(Path::new("/dev/null"), 5000).is_err());
    }
}
