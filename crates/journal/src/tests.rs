use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;

use crate::format::{self, HEAD_BYTES, Item, Items, Kind, START_BYTES};
use crate::{Damage, Failed, Journal, Left, Lock, Place, Settings, Space};

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// A folder that is gone with this.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Relaxed);
        let name = format!("spangate-journal-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// Names of segments, in their order.
    fn files(&self) -> Vec<PathBuf> {
        let found = crate::folder::segments(&self.0).unwrap();
        let found = found.into_iter();
        found
            .map(|(number, _)| crate::folder::path(&self.0, number))
            .collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn settings() -> Settings {
    Settings {
        fsync: false,
        segment_bytes: 1 << 20,
        segment_age: Duration::from_secs(3600),
        recreate: false,
    }
}

type Lines = Arc<Mutex<Vec<String>>>;

fn open_with(path: &Path, settings: Settings, space: &Arc<Space>) -> (Journal, Left, Lines) {
    let lines = Lines::default();
    let report = Arc::clone(&lines);
    let report = Box::new(move |line: &str| report.lock().unwrap().push(line.to_owned()));
    let (journal, left) = Journal::open(path, settings, Arc::clone(space), report).unwrap();
    (journal, left, lines)
}

fn open(path: &Path) -> (Journal, Left, Lines) {
    open_with(path, settings(), &Arc::new(Space::new(1 << 30)))
}

fn append(journal: &Journal, text: &str) -> Result<Place, Failed> {
    let (told, hears) = mpsc::channel();
    let written = Box::new(move |written| told.send(written).unwrap());
    let (head, body) = text.split_at(text.len().min(3));
    journal.append(
        head.into(),
        Bytes::copy_from_slice(body.as_bytes()),
        written,
    )?;
    hears.recv_timeout(PATIENCE).unwrap()
}

/// All entries that are left, and what holds them.
fn entries(mut left: Left) -> (Vec<String>, Vec<Place>) {
    let (mut texts, mut places) = (Vec::new(), Vec::new());
    while let Some(segment) = left.next_segment() {
        for entry in segment.unwrap().entries() {
            texts.push(String::from_utf8(entry.payload.to_vec()).unwrap());
            places.push(entry.place);
        }
    }
    (texts, places)
}

/// As a process that is killed: nothing is let go.
fn kill(journal: Journal, places: &[Place]) {
    places.iter().for_each(|place| place.hold.stay());
    drop(journal);
}

#[test]
fn what_is_held_is_read_again_and_the_rest_is_gone() {
    let folder = Folder::new();
    let (journal, left, _) = open(&folder.0);
    assert!(left.is_empty());
    let mut places: Vec<Place> = ["one", "two", "", "four and more"]
        .map(|text| append(&journal, text).unwrap())
        .into();
    journal.note(b"note".to_vec());
    journal.done(places.remove(1));
    kill(journal, &places);

    let (journal, left, lines) = open(&folder.0);
    assert_eq!(left.notes, [Bytes::from_static(b"note")]);
    let (texts, places) = entries(left);
    assert_eq!(texts, ["one", "", "four and more"]);
    assert!(lines.lock().unwrap().is_empty());
    // New entries go to a segment of their own.
    let new = append(&journal, "five").unwrap();
    assert!(new.hold.segment() > places[0].hold.segment());
    places.into_iter().for_each(|place| journal.done(place));
    kill(journal, std::slice::from_ref(&new));
    let (journal, left, _) = open(&folder.0);
    assert_eq!(entries(left).0, ["five"]);
    drop(journal);
    assert!(folder.files().is_empty(), "nobody needed anything");
}

#[test]
fn segments_go_in_their_order_and_what_was_noted_stays_with_what_it_is_about() {
    let folder = Folder::new();
    let small = Settings {
        segment_bytes: 1,
        ..settings()
    };
    let space = Arc::new(Space::new(1 << 20));
    let (journal, _, _) = open_with(&folder.0, small, &space);
    let first = append(&journal, "first").unwrap();
    let second = append(&journal, "second").unwrap();
    drop(second);
    journal.note(b"about first".to_vec());
    let third = append(&journal, "third").unwrap();
    // The note may share a segment with what came next.
    assert!(folder.files().len() >= 3, "the oldest is held");
    drop(first);
    // The next commit is behind the removal.
    let fourth = append(&journal, "fourth").unwrap();
    let fifth = append(&journal, "fifth").unwrap();
    assert!(folder.files()[0].ends_with(format!("{:016x}.journal", third.hold.segment())));
    let bytes: u64 = folder
        .files()
        .iter()
        .map(|path| path.metadata().unwrap().len())
        .sum();
    assert_eq!(space.used_bytes(), bytes);
    drop((third, fourth, fifth));
    drop(journal);
    assert_eq!((folder.files().len(), space.used_bytes()), (0, 0));
}

#[test]
fn an_old_segment_is_followed_by_another() {
    let folder = Folder::new();
    let young = Settings {
        segment_age: Duration::ZERO,
        fsync: true,
        ..settings()
    };
    let (journal, _, _) = open_with(&folder.0, young, &Arc::new(Space::new(1 << 20)));
    let first = append(&journal, "first").unwrap();
    let second = append(&journal, "second").unwrap();
    assert_ne!(first.hold.segment(), second.hold.segment());
}

#[test]
fn what_there_is_no_room_for_is_refused_and_taken_once_there_is() {
    let folder = Folder::new();
    let space = Arc::new(Space::new(200));
    let small = Settings {
        segment_bytes: 1,
        ..settings()
    };
    let (journal, _, _) = open_with(&folder.0, small, &space);
    let first = append(&journal, &"x".repeat(100)).unwrap();
    assert_eq!(
        append(&journal, &"y".repeat(100)).unwrap_err(),
        Failed::Full
    );
    // A note has room, for it makes room.
    journal.note(vec![0; 500]);
    drop(first);
    let until = crate::folder::now() + PATIENCE;
    while append(&journal, &"y".repeat(100)).is_err() {
        assert!(crate::folder::now() < until, "room is found again");
        std::thread::yield_now();
        // Entries of nobody move the queue on.
        journal.note(Vec::new());
    }
}

#[test]
fn what_the_disk_does_not_take_is_refused_and_later_taken_again() {
    let folder = Folder::new();
    let path = folder.0.join("journal");
    let small = Settings {
        segment_bytes: 1,
        ..settings()
    };
    let (journal, _, lines) = open_with(&path, small, &Arc::new(Space::new(1 << 20)));
    let first = append(&journal, "first").unwrap();
    // No segment can be begun where there is no folder.
    let aside = folder.0.join("aside");
    std::fs::rename(&path, &aside).unwrap();
    assert_eq!(append(&journal, "second").unwrap_err(), Failed::Disk);
    journal.note(b"kept".to_vec());
    std::fs::rename(&aside, &path).unwrap();
    let until = crate::folder::now() + PATIENCE;
    let third = loop {
        match append(&journal, "third") {
            Ok(place) => break place,
            Err(failed) => assert_eq!(failed, Failed::Disk),
        }
        assert!(crate::folder::now() < until, "it is written again");
        std::thread::yield_now();
    };
    assert_eq!(lines.lock().unwrap().len(), 2, "once each: {lines:?}");
    kill(journal, &[first, third]);
    let (_, left, _) = open(&path);
    assert_eq!(left.notes, [Bytes::from_static(b"kept")]);
    assert_eq!(entries(left).0, ["first", "third"]);
}

#[test]
fn one_process_at_a_time_has_a_folder() {
    let folder = Folder::new();
    let path = folder.0.join("made");
    assert!(
        Lock::take(&path, None, Duration::ZERO).is_err(),
        "it is not there"
    );
    let lock = Lock::take(&path, Some(0o750), Duration::ZERO).unwrap();
    let refused = Lock::take(&path, None, Duration::from_millis(30)).unwrap_err();
    assert!(refused.contains("another process has it"), "{refused}");
    drop(lock);
    Lock::take(&path, None, Duration::ZERO).unwrap();
}

/// A segment of a few entries of all kinds, and where each ends.
fn file() -> (Vec<u8>, Vec<usize>) {
    let mut file = format::start(7).to_vec();
    let mut ends = Vec::new();
    for (kind, payload) in [
        (Kind::Data, &b"some entry"[..]),
        (Kind::Note, b""),
        (Kind::Data, &[0; 40]),
        (Kind::Done, &format::done(7, 16)),
        (Kind::Data, b"the last one"),
    ] {
        let at = file.len() as u64;
        file.extend(format::head(
            7,
            at,
            kind,
            [&payload[..payload.len() / 2], &payload[payload.len() / 2..]],
        ));
        file.extend(payload);
        ends.push(file.len());
    }
    (file, ends)
}

fn read(file: &[u8]) -> (Vec<(u64, Kind, Vec<u8>)>, u64) {
    let (mut found, mut damaged) = (Vec::new(), 0);
    for item in Items::new(7, file) {
        match item {
            Item::Entry { at, kind, payload } => found.push((at, kind, payload.to_vec())),
            Item::Damaged(_, bytes) => damaged += bytes,
        }
    }
    (found, damaged)
}

#[test]
fn a_file_that_is_cut_anywhere_has_all_entries_before() {
    let (file, ends) = file();
    let (whole, damaged) = read(&file);
    assert_eq!((whole.len(), damaged), (5, 0));
    for cut in 0..file.len() {
        let (found, damaged) = read(&file[..cut]);
        let complete = ends.iter().filter(|end| **end <= cut).count();
        assert_eq!(found, whole[..complete], "{cut}");
        let end = ends[..complete].last().copied().unwrap_or(START_BYTES);
        assert_eq!(damaged, cut.saturating_sub(end) as u64, "{cut}");
    }
}

#[test]
fn a_file_that_is_damaged_anywhere_has_all_other_entries() {
    let (file, ends) = file();
    let (whole, _) = read(&file);
    for at in START_BYTES..file.len() {
        for change in [0x01, 0x80, 0xff] {
            let mut damaged = file.clone();
            damaged[at] ^= change;
            let hit = ends.iter().position(|end| at < *end).unwrap();
            let mut expected = whole.clone();
            let gone = expected.remove(hit);
            let (found, bytes) = read(&damaged);
            assert_eq!(found, expected, "{at} {change}");
            assert_eq!(bytes, (HEAD_BYTES + gone.2.len()) as u64);
        }
    }
    // An entry of one segment is none of another.
    assert_eq!(
        Items::new(8, &file)
            .filter(|item| matches!(item, Item::Entry { .. }))
            .count(),
        0
    );
}

/// The journal of [`file`], cut or changed.
fn reopened(bytes: &[u8], recreate: bool) -> Result<(Vec<String>, Vec<String>, usize), String> {
    let folder = Folder::new();
    std::fs::write(crate::folder::path(&folder.0, 7), bytes).unwrap();
    let lines = Lines::default();
    let report = Arc::clone(&lines);
    let report = Box::new(move |line: &str| report.lock().unwrap().push(line.to_owned()));
    let settings = Settings {
        recreate,
        ..settings()
    };
    let (journal, left) =
        Journal::open(&folder.0, settings, Arc::new(Space::new(1 << 20)), report)?;
    let bytes = std::fs::read(crate::folder::path(&folder.0, 7)).map_or(0, |file| file.len());
    let (texts, places) = entries(left);
    drop(places);
    drop(journal);
    assert_eq!(folder.files().len(), 0);
    let lines = lines.lock().unwrap().clone();
    Ok((texts, lines, bytes))
}

#[test]
fn a_torn_end_is_cut_off_without_a_word_and_damage_is_told() {
    let (file, ends) = file();
    // The first entry is done.
    let all = ["\0".repeat(40), "the last one".to_owned()];
    assert_eq!(
        reopened(&file, false).unwrap(),
        (all.to_vec(), vec![], file.len())
    );
    for cut in START_BYTES..file.len() {
        let (texts, lines, bytes) = reopened(&file[..cut], false).unwrap();
        assert_eq!(lines, [""; 0], "{cut}");
        let complete = ends.iter().filter(|end| **end <= cut).count();
        assert_eq!(texts.len(), [0, 1, 1, 2, 1, 2][complete], "{cut}");
        assert_eq!(
            bytes,
            ends[..complete].last().copied().unwrap_or(START_BYTES)
        );
    }
    let mut damaged = file.clone();
    damaged[START_BYTES] ^= 1;
    let (texts, lines, _) = reopened(&damaged, false).unwrap();
    assert_eq!(texts, all);
    assert!(lines[0].contains("34 bytes are damaged"), "{lines:?}");
}

/// The journal of files that a loss of power left, each by its number: its entries, the number of
/// its lines, and the damage.
fn after_power_loss(files: &[(u64, &[u8])]) -> (Vec<String>, Vec<String>, Damage) {
    let folder = Folder::new();
    for (number, bytes) in files {
        std::fs::write(crate::folder::path(&folder.0, *number), bytes).unwrap();
    }
    let (journal, left, lines) = open(&folder.0);
    let damage = left.damage;
    let (texts, places) = entries(left);
    // The journal works, and what is new has a number of its own.
    let new = append(&journal, "new").unwrap();
    assert!(files.iter().all(|(number, _)| *number < new.hold.segment()));
    drop((places, new, journal));
    assert_eq!(folder.files().len(), 0);
    let lines = lines.lock().unwrap().clone();
    (texts, lines, damage)
}

#[test]
fn files_that_a_loss_of_power_left_are_read_as_far_as_they_go() {
    let (file, _) = file();
    let all = ["\0".repeat(40), "the last one".to_owned()];
    let damage = |files, bytes| Damage { files, bytes };
    let zeros = [0; 100];
    let garbage: Vec<u8> = (1..=200).collect();
    let zero_tail = [&file[..], &zeros].concat();
    let garbage_tail = [&file[..], &garbage].concat();
    let zero_start = [&zeros[..START_BYTES], &file[START_BYTES..]].concat();
    for (name, files, texts, expected) in [
        (
            "empty",
            vec![(7, &file[..]), (8, b"")],
            &all[..],
            damage(1, 0),
        ),
        (
            "part of a start",
            vec![(7, &file), (8, &format::start(8)[..9])],
            &all,
            damage(1, 9),
        ),
        ("zeros", vec![(7, &file), (8, &zeros)], &all, damage(1, 100)),
        (
            "two",
            vec![(7, &file), (8, &zeros), (9, b"")],
            &all,
            damage(2, 100),
        ),
        (
            "two empty",
            vec![(7, &file), (8, b""), (9, b"")],
            &all,
            damage(2, 0),
        ),
        (
            "an older one",
            vec![(6, &zeros), (7, &file)],
            &all,
            damage(1, 100),
        ),
        (
            "nothing else",
            vec![(8, &zeros), (9, &zeros[..3])],
            &[],
            damage(2, 103),
        ),
        (
            "zeros at the end",
            vec![(7, &zero_tail)],
            &all,
            damage(1, 100),
        ),
        (
            "garbage at the end",
            vec![(7, &garbage_tail)],
            &all,
            damage(1, 200),
        ),
        (
            "both",
            vec![(7, &garbage_tail), (8, &zeros)],
            &all,
            damage(2, 300),
        ),
        (
            "only the start",
            vec![(7, &zero_start)],
            &all,
            damage(1, 16),
        ),
    ] {
        let (found, lines, counted) = after_power_loss(&files);
        assert_eq!((&found[..], counted), (texts, expected), "{name}");
        assert_eq!(lines.len() as u64, expected.files, "{name}: {lines:?}");
        assert!(
            lines.iter().all(|line| line.contains("is lost")),
            "{lines:?}"
        );
    }
}

#[test]
fn a_file_that_is_no_segment_is_set_aside_only_where_that_was_asked_for() {
    for cut in 0..START_BYTES {
        let (file, _) = file();
        let (texts, lines, _) = reopened(&file[..cut], false).unwrap();
        assert_eq!(
            (texts.len(), lines.len()),
            (0, 1),
            "a first write that did not come to its end"
        );
    }
    for at in 0..START_BYTES {
        let (mut file, _) = file();
        file[at] ^= 1;
        let refused = reopened(&file, false).unwrap_err();
        assert!(
            refused.contains("is not a file of this journal"),
            "{refused}"
        );
        let (texts, lines, _) = reopened(&file, true).unwrap();
        assert_eq!((texts.len(), lines.len()), (0, 1));
        assert!(lines[0].contains(".damaged"), "{lines:?}");
    }
}
