//! Syslog: messages, and streams of them.

use net::syslog::{BSD_TIME_BYTES, ISO_MOMENT_BYTES, Message, Time};
use syslog::frames::Frames;

/// The longest message of a stream.
const MESSAGE_BYTES_MAX: usize = 64;

/// A message: its fields and its text are parts of it, and a time has the length that its kind
/// promises.
pub fn syslog_message(data: &[u8]) {
    let message = Message::parse(data);
    let fields = [
        message.host,
        message.tag,
        message.pid,
        message.id,
        message.sd,
        message.text,
    ];
    let bytes: usize = fields.iter().map(|field| field.len()).sum();
    assert!(bytes <= data.len());
    assert!(data.ends_with(message.text));
    match message.time {
        Time::Missing => assert!(message.host.is_empty()),
        Time::Nil => {}
        Time::Bsd(time) => assert_eq!(time.len(), BSD_TIME_BYTES),
        Time::Iso(time) => assert!(time.len() > ISO_MOMENT_BYTES),
    }
    if message.priority.is_none() {
        assert_eq!(message, Message::plain(data));
    }
}

/// A stream of messages: cut anywhere, it has the same messages and the same end; no message is
/// longer than allowed.
pub fn syslog_stream(data: &[u8]) {
    for assumes_lines in [false, true] {
        let whole = messages(&[data], assumes_lines);
        for cut in crate::cuts(data.len()) {
            let (first, rest) = data.split_at(cut);
            assert_eq!(
                messages(&[first, rest], assumes_lines),
                whole,
                "cut at {cut}"
            );
        }
        let (messages, _) = whole;
        let longest = messages.iter().map(Vec::len).max();
        assert!(longest.is_none_or(|bytes| bytes <= MESSAGE_BYTES_MAX));
    }
}

/// The messages of a stream that comes in these parts, and whether it is faulty.
fn messages(parts: &[&[u8]], assumes_lines: bool) -> (Vec<Vec<u8>>, bool) {
    let mut frames = Frames::new(MESSAGE_BYTES_MAX, assumes_lines);
    let mut all = Vec::new();
    for part in parts {
        frames.push(part);
        loop {
            match frames.next_message() {
                Ok(Some(message)) => all.push(message.to_vec()),
                Ok(None) => break,
                Err(_) => return (all, true),
            }
        }
    }
    (all, false)
}
