//! The examples of RFC 9204 Appendix B, and sections of our encoder that our decoder reads.

use testing::Random;

use super::decode::Prefix;
use super::encode::SECTIONS_MAX;
use super::*;
use crate::h2::hpack::{FieldEncoder, Found, Kind, Sink};
use crate::{Method, Name};

/// A sink that keeps text.
#[derive(Default)]
struct Lines {
    buf: Vec<u8>,
    fields: Vec<String>,
}

impl Sink for Lines {
    fn buf(&mut self) -> &mut Vec<u8> {
        &mut self.buf
    }

    fn is_lost(&self) -> bool {
        false
    }

    fn field(&mut self, found: Found) {
        let line = &self.buf[found.at..];
        assert_eq!(line.len(), found.name_len + found.value_len + 4);
        let text = String::from_utf8(line[..line.len() - 2].to_vec()).expect("text");
        assert_eq!(found.id, Name::from_lower(&line[..found.name_len]));
        assert_eq!(found.kind == Kind::Field, !text.starts_with(':'));
        assert!(!found.is_bad);
        self.fields.push(text);
        self.buf.truncate(found.at);
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| crate::hex_byte(pair[0], pair[1]).expect("hexadecimal digits");
    digits.chunks(2).map(byte).collect()
}

/// Follows instructions, which may be cut anywhere.
fn instruct(decoder: &mut Decoder, bytes: &[u8]) {
    let mut at = 0;
    while at < bytes.len() {
        let (used, _) = (1..=bytes.len() - at)
            .find_map(|len| decoder.instruction(&bytes[at..at + len]).expect("legal"))
            .expect("whole");
        at += used;
    }
}

/// The fields of a section, and the bytes of its acknowledgement.
fn decode(decoder: &mut Decoder, stream: u64, section: &[u8]) -> (Vec<String>, Vec<u8>) {
    let prefix: Prefix = decoder.prefix(section).expect("a prefix");
    assert!(prefix.required <= decoder.inserted());
    let (mut lines, mut acknowledgement) = (Lines::default(), Vec::new());
    decoder
        .decode(prefix, section, &mut lines)
        .expect("a section");
    decoder.acknowledge(stream, prefix.required, &mut acknowledgement);
    (lines.fields, acknowledgement)
}

/// The fields of the dynamic table, the oldest first.
fn table(decoder: &Decoder) -> Vec<String> {
    let table = &decoder.table;
    (0..table.len())
        .rev()
        .filter_map(|age| table.get(age))
        .map(|entry| String::from_utf8_lossy(table.line(entry)).trim().to_owned())
        .collect()
}

/// RFC 9204 Appendix B.
#[test]
fn appendix_b() {
    let mut decoder = Decoder::new(220);
    let told = |decoder: &mut Decoder| {
        let mut out = Vec::new();
        decoder.tell_inserted(&mut out);
        out
    };
    // B.1. A literal with a name reference.
    let section = bytes("0000 510b 2f69 6e64 6578 2e68 746d 6c");
    let (fields, acknowledgement) = decode(&mut decoder, 0, &section);
    assert_eq!(fields, [":path: /index.html"]);
    assert!(acknowledgement.is_empty());

    // B.2. The dynamic table.
    instruct(
        &mut decoder,
        &bytes(
            "3fbd01 c00f 7777 772e 6578 616d 706c 652e 636f 6d c10c 2f73 616d 706c 652f 7061 7468",
        ),
    );
    let authority = ":authority: www.example.com";
    let path = ":path: /sample/path";
    assert_eq!(table(&decoder), [authority, path]);
    assert_eq!(decoder.table.size(), 106);
    let (fields, acknowledgement) = decode(&mut decoder, 4, &bytes("0381 10 11"));
    assert_eq!(fields, [authority, path]);
    assert_eq!(acknowledgement, bytes("84"));

    // B.3. A speculative insertion.
    instruct(
        &mut decoder,
        &bytes("4a63 7573 746f 6d2d 6b65 790c 6375 7374 6f6d 2d76 616c 7565"),
    );
    let custom = "custom-key: custom-value";
    assert_eq!(table(&decoder), [authority, path, custom]);
    assert_eq!(told(&mut decoder), bytes("01"));

    // B.4. A duplicate, and the cancellation of a stream.
    instruct(&mut decoder, &bytes("02"));
    assert_eq!(table(&decoder), [authority, path, custom, authority]);
    assert_eq!(decoder.table.size(), 217);
    let (fields, _) = decode(&mut decoder, 8, &bytes("0500 80 c1 81"));
    assert_eq!(fields, [authority, ":path: /", custom]);
    let mut cancellation = Vec::new();
    decoder.cancel(8, &mut cancellation);
    assert_eq!(cancellation, bytes("48"));

    // B.5. An insertion that evicts.
    instruct(
        &mut decoder,
        &bytes("810d 6375 7374 6f6d 2d76 616c 7565 32"),
    );
    assert_eq!(
        table(&decoder),
        [path, custom, authority, "custom-key: custom-value2"]
    );
    assert_eq!(decoder.table.size(), 215);
}

/// RFC 9204 §4.5.1.1: the count wraps.
#[test]
fn required_insert_counts_wrap() {
    let mut decoder = Decoder::new(100);
    instruct(&mut decoder, &[0x3f, 69]);
    for nth in 1..200u64 {
        instruct(&mut decoder, &[0x41, b'x', 1, b'0' + (nth % 10) as u8]);
        for required in nth.saturating_sub(2).max(1)..=nth + 3 {
            let encoded = (required % 6 + 1) as u8;
            let prefix = decoder.prefix(&[encoded, 0]).expect("a prefix");
            assert_eq!(prefix.required, required, "of {nth}");
        }
        assert!(decoder.prefix(&[7, 0]).is_err());
    }
}

/// An encoder and a decoder of a peer.
struct Pair {
    encoder: Encoder,
    decoder: Decoder,
}

impl Pair {
    fn new(capacity: usize) -> Pair {
        let mut encoder = Encoder::new();
        encoder.set_capacity(capacity as u64, capacity);
        Pair {
            encoder,
            decoder: Decoder::new(capacity),
        }
    }

    /// A section with these fields, and its instructions.
    fn encode(&mut self, stream: u64, fields: &[(&str, &str)]) -> (Vec<u8>, Vec<u8>) {
        let (mut section, mut lines) = (Vec::new(), Vec::new());
        self.encoder.begin(true);
        for (name, value) in fields {
            let id = Name::from_lower(name.as_bytes());
            self.encoder
                .field(id, name.as_bytes(), value.as_bytes(), &mut lines);
        }
        self.encoder.finish(stream, &mut section);
        section.extend(lines);
        (section, std::mem::take(self.encoder.instructions()))
    }

    /// Sends a section that arrives at once; the size of it.
    fn send(&mut self, stream: u64, fields: &[(&str, &str)]) -> usize {
        let (section, instructions) = self.encode(stream, fields);
        instruct(&mut self.decoder, &instructions);
        let (came, mut told) = decode(&mut self.decoder, stream, &section);
        let expected: Vec<String> = fields
            .iter()
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        assert_eq!(came, expected);
        self.decoder.tell_inserted(&mut told);
        self.acknowledge(&told);
        section.len()
    }

    fn acknowledge(&mut self, told: &[u8]) {
        let mut at = 0;
        while let Some(used) = self.encoder.acknowledgement(&told[at..]).expect("legal") {
            at += used;
        }
        assert_eq!(at, told.len());
    }
}

#[test]
fn repeated_fields_become_references() {
    let mut pair = Pair::new(4096);
    let fields = [("x-a", "some value"), ("user-agent", "some agent")];
    let sizes: Vec<usize> = (0..4).map(|nth| pair.send(4 * nth, &fields)).collect();
    // As a literal, inserted, as references.
    assert_eq!(sizes[0], sizes[1]);
    assert_eq!(sizes[2..], [4, 4]);
    // Secrets and single values are never inserted.
    let once = [
        ("authorization", "some secret"),
        ("etag", "some tag"),
        ("cookie", "a=1"),
    ];
    let sizes: Vec<usize> = (0..4).map(|nth| pair.send(100 + nth, &once)).collect();
    assert!(sizes.iter().all(|size| *size == sizes[0]));
    assert_eq!(pair.decoder.inserted(), 2);
    // The static table.
    assert_eq!(
        pair.send(0, &[("accept", "*/*"), ("x-frame-options", "deny")]),
        2 + 1 + 2
    );
}

/// Only what the peer has acknowledged is referred to.
#[test]
fn no_section_waits() {
    let mut pair = Pair::new(4096);
    let fields = [("x-a", "some value")];
    let mut streams = 0..;
    let mut encode = |pair: &mut Pair| pair.encode(streams.next().unwrap_or(0), &fields);
    let (_, none) = encode(&mut pair);
    let (_, instructions) = encode(&mut pair);
    assert!(none.is_empty() && !instructions.is_empty());
    for _ in 0..3 {
        let (section, more) = encode(&mut pair);
        assert_eq!(section[..2], [0, 0]);
        assert!(more.is_empty());
    }
    instruct(&mut pair.decoder, &instructions);
    let mut told = Vec::new();
    pair.decoder.tell_inserted(&mut told);
    pair.acknowledge(&told);
    // So many sections may be in flight, then no more refer to the table.
    for _ in 0..SECTIONS_MAX {
        let (section, _) = encode(&mut pair);
        assert_eq!(section, [2, 0, 0x80]);
    }
    let (section, _) = encode(&mut pair);
    assert_eq!(section[..2], [0, 0]);
    // The oldest was on stream 5.
    pair.acknowledge(&[0x85]);
    let (section, _) = encode(&mut pair);
    assert_eq!(section, [2, 0, 0x80]);
    assert!(pair.encoder.acknowledgement(&[0x85]).is_err());
}

/// What a section in flight refers to is not evicted, and a field in use is inserted again before it
/// is evicted.
#[test]
fn entries_in_use_stay() {
    let mut pair = Pair::new(400);
    let used = ("x-used", "some value");
    for nth in 0..2 {
        pair.send(nth, &[used]);
    }
    let (held, _) = pair.encode(1000, &[used]);
    assert_eq!(held, [2, 0, 0x80]);
    let value = |nth: usize| format!("value {nth}");
    for nth in 0..100 {
        let value = value(nth);
        for _ in 0..2 {
            pair.send(2000, &[("x-other", &value)]);
        }
    }
    // The table is full and its oldest entry is pinned.
    let (fields, told) = decode(&mut pair.decoder, 1000, &held);
    assert_eq!(fields, ["x-used: some value"]);
    pair.acknowledge(&told);
    let before = pair.decoder.inserted();
    for nth in 0..100 {
        let value = value(nth);
        for _ in 0..2 {
            pair.send(3000, &[("x-other", &value)]);
        }
        pair.send(3000, &[used]);
    }
    assert!(pair.decoder.inserted() > before + 100);
    assert!(table(&pair.decoder).contains(&"x-used: some value".to_owned()));
    assert!(pair.decoder.table.size() <= 400);
}

#[test]
fn memory_is_freed() {
    let mut pair = Pair::new(4096);
    for round in 0..3 {
        for nth in 0..4 {
            pair.send(nth, &[("x-a", "some value"), ("x-b", "other")]);
        }
        assert_eq!(table(&pair.decoder).len(), 2, "round {round}");
        pair.encoder.release_spare();
        pair.decoder.release_spare();
    }
    assert_eq!(pair.decoder.inserted(), 6);
    let (mut section, mut out) = (Vec::new(), Vec::new());
    pair.encoder.begin(false);
    pair.encoder.method(Method::Other, b"PURGE", &mut section);
    pair.encoder.finish(0, &mut out);
    assert_eq!(out, [0, 0]);
}

/// Random sections, with instructions and acknowledgements that are late.
#[test]
fn random_sections() {
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let mut pair = Pair::new(random.below(1000));
        pair.encoder.is_bold = random.one_in(2);
        let (mut instructions, mut told) = (Vec::new(), Vec::new());
        let mut sections = Vec::new();
        for stream in 0..300 {
            let names = ["x-a", "x-b", "user-agent", "vary", "content-type"];
            let fields: Vec<(&str, String)> = (0..random.below(6))
                .map(|_| (random.pick(&names), "v".repeat(random.below(40))))
                .collect();
            let fields: Vec<(&str, &str)> = fields
                .iter()
                .map(|(name, value)| (*name, &value[..]))
                .collect();
            let (section, more) = pair.encode(stream, &fields);
            instructions.extend(more);
            let expected: Vec<String> = fields
                .iter()
                .map(|(name, value)| format!("{name}: {value}"))
                .collect();
            sections.push((stream, section, expected));
            if random.one_in(3) {
                instruct(&mut pair.decoder, &std::mem::take(&mut instructions));
                pair.decoder.tell_inserted(&mut told);
            }
            while !sections.is_empty() && random.chance(60) {
                let at = random.below(sections.len());
                let (stream, section, expected) = &sections[at];
                let prefix = pair.decoder.prefix(section).expect("a prefix");
                if random.one_in(20) {
                    pair.decoder.cancel(*stream, &mut told);
                } else if prefix.required > pair.decoder.inserted() {
                    assert!(pair.encoder.is_bold);
                    break;
                } else {
                    let (came, acknowledgement) = decode(&mut pair.decoder, *stream, section);
                    assert_eq!(came, *expected, "seed {seed}");
                    told.extend(acknowledgement);
                }
                sections.swap_remove(at);
            }
            if random.one_in(3) {
                pair.acknowledge(&std::mem::take(&mut told));
                pair.encoder.release_spare();
            }
        }
    }
}
