//! RFC 9204 §2.1.2, §2.2: sections that wait for insertions, and what comes behind them.

use super::*;

/// A section with the pseudo-header fields of a GET or POST, and the first `inserted` entries of the
/// table, of which there will be so many.
fn referring(method: &[u8], inserted: u8) -> Vec<u8> {
    let mut section = vec![inserted + 1, 0];
    section.extend_from_slice(method);
    section.extend([0xd7, 0x50, 1, b'h', 0xc1]);
    section.extend((0..inserted).map(|at| 0x80 | at));
    section
}

const A_GET: &[u8] = &[0xd1];
const A_POST: &[u8] = &[0xd4];

/// The capacity of the table, and a field `x: N` for each of these.
fn inserts(first: bool, values: &[u8]) -> Vec<u8> {
    let mut bytes = if first {
        vec![2, 0x3f, 0xe1, 0x1f]
    } else {
        vec![]
    };
    for value in values {
        bytes.extend([0x41, b'x', 1, *value]);
    }
    bytes
}

fn waiting(stream: u64, method: &[u8], inserted: u8) -> Vec<u8> {
    let _ = stream;
    frame_of(kind::HEADERS, &referring(method, inserted))
}

const HEAD: &str = "https end GET / HTTP/1.1|host: h|";

#[test]
fn a_section_waits() {
    let wire = Wire::client()
        .data(DECODER, &[3])
        .last(0, &waiting(0, A_GET, 2))
        .get(4)
        .data(ENCODER, &inserts(true, b"1"))
        .data(ENCODER, &inserts(false, b"2"));
    let told = server(&wire);
    assert_fine(&told);
    assert!(told.events[0].starts_with("head 1"));
    assert_eq!(told.events[1..], [format!("head 0 None {HEAD}x: 2|x: 1||")]);
    // One insertion is told, then the section is acknowledged, which tells the second.
    assert_eq!(told.answers, ["data 11 [01]", "data 11 [80]"]);
    // Acknowledged at once.
    let wire = Wire::client()
        .data(ENCODER, &inserts(true, b"12"))
        .last(0, &waiting(0, A_GET, 2));
    let told = server(&wire);
    assert_eq!(told.answers, ["data 11 [02]", "data 11 [80]"]);
}

/// Several sections, that are ready at the same time and one after the other.
#[test]
fn sections_wait() {
    let wire = Wire::client()
        .last(8, &waiting(8, A_GET, 2))
        .last(0, &waiting(0, A_GET, 1))
        .data(4, &waiting(4, A_GET, 2))
        .fin(4)
        .data(ENCODER, &inserts(true, b"123"));
    let told = server(&wire);
    assert_fine(&told);
    let begins: Vec<&str> = told.events.iter().map(|event| &event[..6]).collect();
    assert_eq!(begins, ["head 0", "head 2", "head 1"]);
    assert!(told.events.iter().all(|event| event.contains(" end ")));
    let acks = [
        "data 11 [80]",
        "data 11 [88]",
        "data 11 [84]",
        "data 11 [01]",
    ];
    assert_eq!(told.answers, acks);
}

/// A body and trailers behind a section come back from QUIC.
#[test]
fn bodies_wait() {
    let post = || Wire::client().data(0, &waiting(0, A_POST, 1));
    let insert = |wire: Wire| wire.data(ENCODER, &inserts(true, b"1"));
    for wire in [
        insert(post().body(0, b"abc").end(0, b"def")),
        insert(post().body(0, b"abc").body(0, b"def").fin(0)),
        insert(post().body(0, b"abc")).end(0, b"def"),
        insert(post().body(0, b"abc")).body(0, b"def").fin(0),
        insert(post()).body(0, b"abc").end(0, b"def"),
        insert(post().data(0, &[0, 6, b'a'])).last(0, b"bcdef"),
        insert(post().data(0, &[0, 6, b'a']))
            .data(0, b"bcd")
            .last(0, b"ef"),
    ] {
        let told = server(&wire);
        assert_fine(&told);
        let head = "head 0 Chunked https POST / HTTP/1.1|host: h|x: 1||";
        assert_eq!(told.events, [head, "data 0 abcdef$"]);
    }
    // Trailers wait again, with what is behind them.
    let trailers = || frame_of(kind::HEADERS, &[3, 0, 0x80]);
    let wire = insert(
        post()
            .body(0, b"abc")
            .data(0, &trailers())
            .frame(0, 0x21, b"xyz")
            .fin(0),
    )
    .data(ENCODER, &inserts(false, b"2"));
    let told = server(&wire);
    assert_fine(&told);
    assert_eq!(told.events[1..], ["data 0 abc", "trailers 0 x=2"]);
    let mut connection = new_server();
    feed(
        &mut connection,
        &[&insert(post().body(0, b"abc").last(0, &trailers())).0],
    );
    let told = feed(
        &mut connection,
        &[&Wire::default().data(ENCODER, &inserts(false, b"2")).0],
    );
    assert_eq!(told.events, ["trailers 0 x=2"]);
    assert_eq!(connection.buffered(), 0);
}

/// A stream whose section waits ends.
#[test]
fn waiting_sections_are_cancelled() {
    let wire = Wire::client()
        .data(0, &waiting(0, A_POST, 1))
        .body(0, b"abc")
        .reset(0, code::REQUEST_CANCELLED)
        .data(ENCODER, &inserts(true, b"1"))
        .get(4);
    let told = server(&wire);
    assert_fine(&told);
    assert_eq!(told.events.len(), 1);
    assert_eq!(
        told.answers,
        ["data 11 [40]", "reset 0 10c", "data 11 [01]"]
    );
    // Bytes on their way back are dropped.
    let mut connection = new_server();
    let (mut out, mut head) = (Vec::new(), Head::default());
    let wire = Wire::client()
        .data(0, &waiting(0, A_POST, 1))
        .body(0, b"abc")
        .data(ENCODER, &inserts(true, b"1"));
    let mut at = 0;
    loop {
        let (used, event) = connection
            .read(&wire.0[at..], 0, &mut head, &mut out)
            .expect("legal");
        at += used;
        match event {
            Event::Head { stream, .. } => {
                assert!(connection.send_reset(stream, Code::CANCEL, &mut out));
            }
            Event::More => break,
            _ => {}
        }
    }
    let (mut told, mut echoes) = (Told::default(), Vec::new());
    answers(&out, &mut told, &mut echoes);
    assert!(!echoes.is_empty());
    let more = feed(&mut connection, &[&echoes]);
    assert_eq!(
        (more.error, more.events.len(), more.consumed[&0]),
        (None, 0, 5)
    );
    assert_eq!(connection.buffered(), 0);
}

#[test]
fn too_many_sections_wait() {
    let limits = Limits {
        streams_max: 50,
        ..limits()
    };
    let make = || Connection::server(limits, &mut Vec::new());
    let wire = |count: u64| {
        (0..count).fold(Wire::client(), |wire, nth| {
            wire.data(4 * nth, &waiting(0, A_GET, 1))
        })
    };
    let told = feed(&mut make(), &[&wire(16).0]);
    assert_fine(&told);
    assert_ends(&outcome(make, &wire(17)), code::DECOMPRESSION_FAILED);
    let peak = |wire: &Wire| {
        let mut connection = make();
        feed(&mut connection, &[&wire.0]);
        connection.buffered()
    };
    // Much behind them.
    let body = vec![0; 16000];
    let mut much = wire(16);
    for nth in 0..200 {
        much = much.data(4 * (nth % 16), &body);
    }
    assert!(peak(&much) <= BUFFERED_BYTES_MAX);
    let told = feed(&mut make(), &[&much.0]);
    assert!(
        told.events.iter().any(|event| event.starts_with("refused")),
        "{:?}",
        told.events
    );
}

/// A stream whose sections wait again and again, with much behind them.
#[test]
fn sections_that_wait_again() {
    let interim = |required: u8| frame_of(kind::HEADERS, &[required + 1, 0, 0xd8, 0x80]);
    let mut wire = Wire::server();
    for required in 1..=9 {
        wire = wire.data(0, &interim(required));
    }
    let wire = wire.data(7, &inserts(true, b""));
    let mut client = new_client(&["GET"]);
    assert_fine(&feed(&mut client, &[&wire.0]));
    let mut told = Told::default();
    for value in b"123456789" {
        told = feed(
            &mut client,
            &[&Wire::default().data(7, &inserts(false, &[*value])).0],
        );
        if told.events.len() > 1 {
            break;
        }
        assert!(told.events[0].contains("103"), "{told:?}");
    }
    assert_resets(&told, 0, code::EXCESSIVE_LOAD);
}

#[test]
fn broken_sections() {
    let with_table = || Wire::client().data(ENCODER, &inserts(true, b"12"));
    for section in [
        &[][..],
        &[0],
        &[0, 0x7f],
        &[2, 0x81],          // a base below 0
        &[1, 0],             // a Required Insert Count of 0 modulo the range
        &[0xff, 0x80, 2, 0], // beyond the range
        &[0, 0, 0x80],       // a reference without a Required Insert Count
        &[0, 0, 0x10],
        &[3, 0, 0x82], // beyond the table
        &[2, 1, 0x80], // beyond the Required Insert Count
        &[3, 0, 0x10], // behind it
        &[3, 0, 0x00, 0],
        &[0, 0, 0xff, 0x24], // beyond the static table
        &[0, 0, 0x5f, 0x54, 0],
        &[0, 0, 0x51], // truncated
        &[0, 0, 0x51, 5, b'a'],
        &[0, 0, 0x27, 5, b'a'],
        &[0, 0, 0x51, 0x81, 0], // a Huffman code
        &[
            0, 0, 0x51, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
        ],
    ] {
        let wire = with_table().frame(0, kind::HEADERS, section);
        assert_ends(&server(&wire), code::DECOMPRESSION_FAILED);
    }
    // A wait for more than there can be is a wait.
    let wire = with_table().frame(0, kind::HEADERS, &[9, 0, 0x80]);
    assert_eq!(feed(&mut new_server(), &[&wire.0]).error, None);
}

#[test]
fn broken_instructions() {
    for bytes in [
        &[0x3f, 0xe2, 0x1f][..],                  // a capacity above the limit
        &[0x41, b'x', 1, b'1'],                   // no capacity yet
        &[0x3f, 0x01, 0x41, b'x', 1, 0],          // an entry of 34 bytes for a capacity of 32
        &[0x3f, 0xe1, 0x1f, 0x00],                // nothing to duplicate
        &[0x3f, 0xe1, 0x1f, 0x80, 1, b'a'],       // no name to refer to
        &[0x3f, 0xe1, 0x1f, 0xff, 0x24, 1, b'a'], // beyond the static table
        &[0x3f, 0xe1, 0x1f, 0xc0, 0x81, 0],       // a Huffman code
        &[0x3f, 0xe1, 0x1f, 0xc0, 0x7f, 0xff, 0xff, 0x7f], // a string that does not fit
        &[0xff; 12],
    ] {
        let wire = Wire::client().data(ENCODER, &[2]).data(ENCODER, bytes);
        assert_ends(&server(&wire), code::ENCODER_STREAM_ERROR);
    }
    for bytes in [
        &[0x80][..], // no section
        &[0x00],
        &[0x01], // more than was inserted
        &[0xff; 12],
    ] {
        let wire = Wire::client().data(DECODER, &[3]).data(DECODER, bytes);
        assert_ends(&server(&wire), code::DECODER_STREAM_ERROR);
    }
    assert_fine(&server(
        &Wire::client().data(DECODER, &[3, 0x40, 0x7f, 0x85, 0x01]),
    ));
}

/// Our settings permit no table.
#[test]
fn without_a_table() {
    let limits = Limits {
        table_bytes: 0,
        ..limits()
    };
    let make = || Connection::server(limits, &mut Vec::new());
    let told = outcome(
        make,
        &Wire::client()
            .post(0)
            .reset(0, code::REQUEST_CANCELLED)
            .get(4),
    );
    assert_fine(&told);
    assert_eq!(told.answers, ["reset 0 10c"]);
    let wire = Wire::client().data(ENCODER, &[2, 0x21]);
    assert_ends(&outcome(make, &wire), code::ENCODER_STREAM_ERROR);
    let wire = Wire::client().frame(0, kind::HEADERS, &[2, 0, 0x80]);
    assert_ends(&outcome(make, &wire), code::DECOMPRESSION_FAILED);
}
