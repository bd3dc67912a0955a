//! Three groups of tests: the examples of RFC 7541 Appendix C, header blocks that are refused, and
//! blocks of our encoder that our decoder reads.

use super::*;

/// A sink that keeps text.
#[derive(Default)]
struct Lines {
    buf: Vec<u8>,
    fields: Vec<(String, String, bool)>,
    is_lost: bool,
}

impl Sink for Lines {
    fn buf(&mut self) -> &mut Vec<u8> {
        &mut self.buf
    }

    fn is_lost(&self) -> bool {
        self.is_lost
    }

    fn field(&mut self, found: Found) {
        let line = &self.buf[found.at..];
        assert_eq!(line.len(), found.name_len + found.value_len + 4);
        assert_eq!(&line[found.name_len..found.name_len + 2], b": ");
        assert!(line.ends_with(b"\r\n"));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let name = text(&line[..found.name_len]);
        assert_eq!(found.id, Name::from_lower(name.as_bytes()));
        assert_eq!(found.kind == Kind::Field, !name.starts_with(':'));
        let value = text(&line[found.name_len + 2..line.len() - 2]);
        self.fields.push((name, value, found.is_bad));
        self.buf.truncate(found.at);
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| crate::hex_byte(pair[0], pair[1]).expect("hexadecimal digits");
    digits.chunks(2).map(byte).collect()
}

fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<Vec<(String, String)>, BlockError> {
    let mut lines = Lines::default();
    decoder.decode(block, &mut lines)?;
    Ok(lines
        .fields
        .into_iter()
        .map(|(name, value, _)| (name, value))
        .collect())
}

fn fields(text: &str) -> Vec<(String, String)> {
    let field = |line: &str| {
        let (name, value) = line.trim().rsplit_once(" = ").expect("name = value");
        (name.to_owned(), value.to_owned())
    };
    text.trim().lines().map(field).collect()
}

#[test]
fn integers() {
    // RFC 7541 C.1.
    for (bits, value, code) in [(5, 10, "0a"), (5, 1337, "1f9a0a"), (8, 42, "2a")] {
        let (code, mut out, mut at) = (bytes(code), Vec::new(), 0);
        if bits < 8 {
            integer::write(0, bits, value, &mut out);
            assert_eq!(out, code);
            assert_eq!(integer::read(&code, &mut at, bits), Ok(value));
            assert_eq!(at, code.len());
        }
    }
    for (code, error) in [
        ("", BlockError::Truncated),
        ("1f", BlockError::Truncated),
        ("1f80", BlockError::Truncated),
        ("1fffffffffff", BlockError::BadInteger),
        ("1f8080808000", BlockError::BadInteger),
    ] {
        assert_eq!(integer::read(&bytes(code), &mut 0, 5), Err(error), "{code}");
    }
}

#[test]
fn literals_and_indexes() {
    // RFC 7541 C.2.
    for (block, expected) in [
        (
            "400a637573746f6d2d6b65790d637573746f6d2d686561646572",
            "custom-key = custom-header",
        ),
        ("040c2f73616d706c652f70617468", ":path = /sample/path"),
        ("100870617373776f726406736563726574", "password = secret"),
        ("82", ":method = GET"),
    ] {
        let found = decode(&mut Decoder::new(), &bytes(block));
        assert_eq!(found, Ok(fields(expected)));
    }
}

/// The requests of RFC 7541 C.3 (plain) and C.4 (Huffman).
#[test]
fn requests() {
    for blocks in [
        [
            "828684410f7777772e6578616d706c652e636f6d",
            "828684be58086e6f2d6361636865",
            "828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565",
        ],
        [
            "828684418cf1e3c2e5f23a6ba0ab90f4ff",
            "828684be5886a8eb10649cbf",
            "828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf",
        ],
    ] {
        let mut decoder = Decoder::new();
        let expected = [
            ":method = GET\n:scheme = http\n:path = /\n:authority = www.example.com",
            ":method = GET\n:scheme = http\n:path = /\n:authority = www.example.com\ncache-control = no-cache",
            ":method = GET\n:scheme = https\n:path = /index.html\n:authority = www.example.com\ncustom-key = custom-value",
        ];
        for (block, expected) in blocks.iter().zip(expected) {
            assert_eq!(decode(&mut decoder, &bytes(block)), Ok(fields(expected)));
        }
    }
}

/// The responses of RFC 7541 C.5 (plain) and C.6 (Huffman), with a table of 256 bytes: entries are
/// evicted.
#[test]
fn responses() {
    for blocks in [
        [
            "4803333032580770726976617465611d4d6f6e2c203231204f637420323031332032303a31333a323120474d546e1768747470733a2f2f7777772e6578616d706c652e636f6d",
            "4803333037c1c0bf",
            "88c1611d4d6f6e2c203231204f637420323031332032303a31333a323220474d54c05a04677a69707738666f6f3d4153444a4b48514b425a584f5157454f50495541585157454f49553b206d61782d6167653d333630303b2076657273696f6e3d31",
        ],
        [
            "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c78f0b97c8e9ae82ae43d3",
            "4883640effc1c0bf",
            "88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b335dfdfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007",
        ],
    ] {
        let mut decoder = Decoder::new();
        decoder.table.set_size_max(256);
        let expected = [
            ":status = 302\ncache-control = private\ndate = Mon, 21 Oct 2013 20:13:21 GMT\nlocation = https://www.example.com",
            ":status = 307\ncache-control = private\ndate = Mon, 21 Oct 2013 20:13:21 GMT\nlocation = https://www.example.com",
            ":status = 200\ncache-control = private\ndate = Mon, 21 Oct 2013 20:13:22 GMT\nlocation = https://www.example.com\ncontent-encoding = gzip\nset-cookie = foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
        ];
        for (block, expected) in blocks.iter().zip(expected) {
            assert_eq!(decode(&mut decoder, &bytes(block)), Ok(fields(expected)));
        }
        // What was evicted is gone: three entries are left.
        assert!(decode(&mut decoder, &bytes("c0")).is_ok());
        assert_eq!(
            decode(&mut decoder, &bytes("c1")),
            Err(BlockError::BadIndex)
        );
    }
}

#[test]
fn refused_blocks() {
    for (block, error) in [
        ("80", BlockError::BadIndex),         // index 0
        ("be", BlockError::BadIndex),         // beyond the tables
        ("7f800161", BlockError::BadIndex),   // the same of a name
        ("3fe21f", BlockError::BadTableSize), // 4097
        ("8220", BlockError::BadTableSize),   // behind a field
        ("00018485", BlockError::Truncated),
        ("400161", BlockError::Truncated),
        ("4001610461", BlockError::Truncated),
        ("00016181ff", BlockError::BadHuffman),
        ("000161", BlockError::Truncated),
        ("ffffffffff7f", BlockError::BadInteger),
    ] {
        let found = decode(&mut Decoder::new(), &bytes(block));
        assert_eq!(found, Err(error), "{block}");
    }
}

#[test]
fn malformed_fields_are_told_each_time() {
    let mut decoder = Decoder::new();
    let mut lines = Lines::default();
    // A: b, added; then the same by index; then a good value with its name.
    decoder
        .decode(&bytes("40014101 62 be 7e0163"), &mut lines)
        .expect("a block");
    assert!(lines.fields.iter().all(|(_, _, is_bad)| *is_bad));
    assert_eq!(lines.fields.len(), 3);
    // The same with a value that has a control character: its name is good.
    lines.fields.clear();
    decoder
        .decode(&bytes("4001780201 62 be 7e0163"), &mut lines)
        .expect("a block");
    let bad: Vec<bool> = lines.fields.iter().map(|(_, _, is_bad)| *is_bad).collect();
    assert_eq!(bad, [true, true, false]);
}

/// A block that no one wants changes the table all the same.
#[test]
fn a_lost_block_keeps_the_table() {
    let mut decoder = Decoder::new();
    let mut lost = Lines {
        is_lost: true,
        ..Lines::default()
    };
    decoder
        .decode(&bytes("400161016282be"), &mut lost)
        .expect("a block");
    assert_eq!(decode(&mut decoder, &bytes("be")), Ok(fields("a = b")));
}

#[test]
fn a_smaller_table_must_be_announced() {
    let mut decoder = Decoder::new();
    decoder.set_table_bytes_max(100);
    assert_eq!(
        decode(&mut decoder, &bytes("82")),
        Err(BlockError::BadTableSize)
    );
    assert!(decode(&mut decoder, &bytes("3f4582")).is_ok());
    assert!(decode(&mut decoder, &bytes("82")).is_ok());
}

/// Random fields, few enough to repeat: whatever the encoder does with its table, the decoder
/// follows.
#[test]
fn what_is_encoded_is_decoded() {
    let mut seed = 7u64;
    let mut random = |below: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % below
    };
    let names = [
        "server",
        "date",
        "x-custom",
        "x-other-name",
        "cookie",
        "authorization",
        "etag",
    ];
    let (mut encoder, mut decoder) = (Encoder::new(4096), Decoder::new());
    let (mut plain, mut coded) = (0, 0);
    for round in 0..3000 {
        match random(100) {
            0 => encoder.set_table_bytes(random(4097) as usize),
            1 => encoder.release_spare(),
            _ => {}
        }
        let (mut out, mut expected) = (Vec::new(), Vec::new());
        encoder.begin(&mut out);
        encoder.status(200 + random(5) as u16, &mut out);
        for _ in 0..random(10) {
            let name = names[random(7) as usize];
            let value = format!("{:-<1$}", random(30), random(60) as usize);
            encoder.field(
                Name::from_lower(name.as_bytes()),
                name.as_bytes(),
                value.as_bytes(),
                &mut out,
            );
            plain += name.len() + value.len();
            expected.push((name.to_owned(), value));
        }
        coded += out.len();
        let mut found = decode(&mut decoder, &out).expect("a block");
        assert!(found[0].0 == ":status");
        found.remove(0);
        assert_eq!(found, expected, "round {round}");
    }
    assert!(coded < plain, "{coded} of {plain}");
}

#[test]
fn a_field_is_sent_by_index_from_the_third_time_on() {
    let mut encoder = Encoder::new(4096);
    let sizes: Vec<usize> = (0..4)
        .map(|_| {
            let mut out = Vec::new();
            encoder.field(Name::Server, b"server", b"spangate", &mut out);
            out.len()
        })
        .collect();
    assert_eq!(sizes[2..], [1, 1]);
    for id in [Name::Authorization, Name::SetCookie] {
        let mut out = Vec::new();
        for _ in 0..3 {
            encoder.field(
                id,
                id.as_str().as_bytes(),
                b"0123456789012345678901234567",
                &mut out,
            );
        }
        assert!(out.len() > 3 * 28);
        assert_eq!(out[0] & 0xf0, 0x10, "never indexed");
    }
}
