//! Options that count as not written, for `tools/proofs`: a test that proves an option fails then.
//!
//! Built with the feature `mute` only.

use std::io::Write as _;
use std::sync::LazyLock;

use regex_automata::meta::Regex;

/// The options that count as not written: an expression over paths such as
/// `processors::batch::timeout`.
static MUTED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let text = std::env::var("SPANGATE_MUTE").ok()?;
    Some(Regex::new(&text).expect("SPANGATE_MUTE is an expression"))
});

/// The file that gets the options that each test writes: the thread's name and the path.
static READS: LazyLock<Option<String>> = LazyLock::new(|| std::env::var("SPANGATE_READS").ok());

/// Whether an option that is written counts as not written. Indexes of lists are not part of its
/// path.
pub(super) fn is_muted(section: &str, name: &str) -> bool {
    if MUTED.is_none() && READS.is_none() {
        return false;
    }
    let mut path = String::new();
    for part in section.split('[') {
        path.push_str(part.split_once(']').map_or(part, |(_, rest)| rest));
    }
    path = format!("{path}::{name}");
    if let Some(file) = &*READS {
        let thread = std::thread::current();
        let line = format!("{}\t{path}\n", thread.name().unwrap_or_default());
        let file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(file);
        let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
        written.expect("SPANGATE_READS is a file");
    }
    MUTED.as_ref().is_some_and(|muted| muted.is_match(&path))
}
