//! What a journal costs: requests of 512 spans of 457 bytes, by so many senders, each of which
//! waits for its own.
//!
//! `append FOLDER [requests] [senders] [fsync]`
#![allow(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a program that measures"
)]

use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use bytes::Bytes;
use spangate_journal::{Journal, Settings, Space};

const SPANS: u64 = 512;
const SPAN_BYTES: usize = 457;
/// Ticks of `/proc/self/stat` in a second.
const TICKS: u64 = 100;

/// Ticks in user mode and in the kernel.
fn ticks() -> (u64, u64) {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split(' ')
        .collect();
    let field = |at: usize| {
        fields
            .get(at)
            .and_then(|field| field.parse().ok())
            .unwrap_or(0)
    };
    (field(12), field(13))
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let number = |at: usize, default: u64| {
        words
            .get(at)
            .and_then(|word| word.parse().ok())
            .unwrap_or(default)
    };
    let folder = words.get(1).map_or("journal", String::as_str);
    let (requests, senders) = (number(2, 4000), number(3, 8));
    let fsync = words.get(4).is_some_and(|word| word == "fsync");
    let settings = Settings {
        fsync,
        segment_bytes: 64 << 20,
        segment_age: Duration::from_secs(10),
        recreate: false,
    };
    let report = Box::new(|line: &str| println!("{line}"));
    let space = Arc::new(Space::new(1 << 40));
    let (journal, _) =
        Journal::open(Path::new(folder), settings, space, report).expect("a journal");
    let body = Bytes::from(vec![7; SPANS as usize * SPAN_BYTES]);
    let (before, begin) = (ticks(), Instant::now());
    std::thread::scope(|scope| {
        for _ in 0..senders {
            scope.spawn(|| {
                for _ in 0..requests / senders {
                    let (told, hears) = mpsc::channel();
                    let written = Box::new(move |place| {
                        let _ = told.send(place);
                    });
                    journal
                        .append(vec![0; 8], body.clone(), written)
                        .expect("room");
                    // What is written is let go at once.
                    let _ = hears.recv().expect("an answer").expect("a place");
                }
            });
        }
    });
    let (took, after) = (begin.elapsed(), ticks());
    let spans = requests / senders * senders * SPANS;
    let cpu = |before: u64, after: u64| (after - before) * (1_000_000_000 / TICKS) / spans;
    println!(
        "fsync {fsync}, {senders} senders: {:.2} M spans/s, {:.0} MB/s; {} ns of user and {} ns of system CPU a span",
        spans as f64 / took.as_secs_f64() / 1e6,
        spans as f64 * SPAN_BYTES as f64 / took.as_secs_f64() / 1e6,
        cpu(before.0, after.0),
        cpu(before.1, after.1),
    );
}
