use super::ParseError::*;
use super::*;

/// The payload, the trailers as written, and the bytes left over.
type Outcome = Result<(String, String, String), ParseError>;

/// Decodes `input`, which comes in pieces that end at the `cuts`.
fn decode_cut(framing: Framing, input: &[u8], cuts: &[usize], strictness: Strictness) -> Outcome {
    let mut decoder = BodyDecoder::with(framing, LIMITS, strictness);
    let (mut trailers, mut data, mut at) = (Head::default(), Vec::new(), 0);
    for &end in cuts.iter().chain([&input.len()]) {
        loop {
            let (consumed, piece) = decoder.next(&input[at..end], &mut trailers)?;
            at += consumed;
            match piece {
                Piece::Data(bytes) => {
                    assert!(!bytes.is_empty());
                    data.extend_from_slice(bytes);
                }
                Piece::More => {
                    assert_eq!(at, end, "all of an incomplete input is consumed");
                    break;
                }
                Piece::End => {
                    assert!(decoder.is_done());
                    let mut out = Vec::new();
                    crate::h1::write::write_fields(&trailers, &mut out);
                    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                    return Ok((text(&data), text(&out), text(&input[at..])));
                }
            }
        }
    }
    assert!(!decoder.is_done());
    Ok((
        String::from_utf8_lossy(&data).into_owned(),
        "incomplete".to_owned(),
        String::new(),
    ))
}

const LIMITS: Limits = Limits {
    head_bytes_max: 256,
    fields_max: 4,
};

/// Decodes in one piece; cut once at any place and byte by byte, the result must be the same.
fn decode(framing: Framing, input: &str, strictness: Strictness) -> Outcome {
    let whole = decode_cut(framing, input.as_bytes(), &[], strictness);
    for cut in 0..=input.len() {
        let found = decode_cut(framing, input.as_bytes(), &[cut], strictness);
        assert_eq!(found, whole, "{input:?} cut at {cut}");
    }
    let every: Vec<_> = (0..input.len()).collect();
    assert_eq!(
        decode_cut(framing, input.as_bytes(), &every, strictness),
        whole,
        "{input:?} byte by byte"
    );
    whole
}

fn chunked(input: &str) -> Outcome {
    decode(Framing::Chunked, input, Strictness::Strict)
}

fn done(data: &str, trailers: &str, rest: &str) -> Outcome {
    Ok((data.to_owned(), format!("{trailers}\r\n"), rest.to_owned()))
}

#[test]
fn bodies_without_chunks() {
    let plain = |framing, input| decode(framing, input, Strictness::Strict);
    assert_eq!(plain(Framing::None, "rest"), done("", "", "rest"));
    assert_eq!(plain(Framing::Length(0), "rest"), done("", "", "rest"));
    assert_eq!(
        plain(Framing::Length(3), "abcrest"),
        done("abc", "", "rest")
    );
    assert_eq!(plain(Framing::Length(5), "abc").unwrap().1, "incomplete");
    assert_eq!(plain(Framing::UntilClose, "abc").unwrap().0, "abc");
    assert!(BodyDecoder::new(Framing::None).is_done());
    let mut huge = BodyDecoder::new(Framing::Length(u64::MAX));
    assert_eq!(
        huge.next(b"ab", &mut Head::default()),
        Ok((2, Piece::Data(b"ab")))
    );
}

#[test]
fn chunks_are_decoded() {
    #[rustfmt::skip]
    let table: &[(&str, &str, &str, &str)] = &[
        ("0\r\n\r\nrest",                              "",           "",             "rest"),
        ("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",           "abcde",      "",             ""),
        ("A\r\n0123456789\r\n0\r\n\r\n\r\n",           "0123456789", "",             "\r\n"),
        ("0a\r\n0123456789\r\n000\r\n\r\n",            "0123456789", "",             ""),
        ("1 \t\r\na\r\n0 \r\n\r\n",                    "a",          "",             ""),
        ("1;x\r\na\r\n0;y=\"\\\"\\\\;\t\" ; z=1\r\n\r\n", "a",       "",             ""),
        ("1;\u{e9}\r\na\r\n0\r\n\r\n",                 "a",          "",             ""),
        ("0\r\nX-Sum: 1\r\nB:\r\n\r\nrest",            "",           "x-sum: 1\r\nb: \r\n", "rest"),
        ("0\r\nContent-Length: 1\r\nX: y\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", "", "x: y\r\n", ""),
    ];
    for (input, data, trailers, rest) in table {
        assert_eq!(chunked(input), done(data, trailers, rest), "{input:?}");
    }
}

#[test]
fn malformed_chunks_are_refused() {
    #[rustfmt::skip]
    let table: &[(&str, ParseError)] = &[
        ("\r\n",                        BadChunkSize),
        (";x\r\n",                      BadChunkSize),
        (" 1\r\n",                      BadChunkSize),
        ("g\r\n",                       BadChunkSize),
        ("-1\r\n",                      BadChunkSize),
        ("+1\r\n",                      BadChunkSize),
        ("0x1\r\n",                     BadChunkSize),
        ("1 1\r\n",                     BadChunkSize),
        ("1\n",                         BadChunkSize),
        ("1\0\r\n",                     BadChunkSize),
        ("1\r1",                        BareCr),
        ("1\r\r\n",                     BareCr),
        ("1;a\n",                       BadChunkExtension),
        ("1;a\0\r\n",                   BadChunkExtension),
        ("1;a\x7f\r\n",                 BadChunkExtension),
        ("1;\\a\r\n",                   BadChunkExtension),
        ("1;\"\r\n",                    BadChunkExtension),
        ("1;\"\\\r\n",                  BadChunkExtension),
        ("1;a\rb",                      BareCr),
        ("10000000000000\r\n",          ChunkTooLarge),
        ("ffffffffffffffff\r\n",        ChunkTooLarge),
        ("00000000000000000\r\n",       ChunkTooLarge),
        ("1\r\nabc",                    BadChunkEnd),
        ("1\r\na\n",                    BadChunkEnd),
        ("1\r\na\rb",                   BadChunkEnd),
        ("1\r\na0\r\n\r\n",             BadChunkEnd),
        ("0\r\nX : y\r\n\r\n",          SpaceBeforeColon),
        ("0\r\nX: y\n\n",               BareLf),
        ("0\r\n\n",                     BareLf),
        ("0\r\nX: y\r\n z\r\n\r\n",     FoldedField),
        ("0\r\nX: \0\r\n\r\n",          NulInFieldValue),
        ("0\r\nno colon\r\n\r\n",       SpaceBeforeColon),
        ("0\r\nA:\r\nB:\r\nC:\r\nD:\r\nE:\r\n\r\n", TooManyFields),
    ];
    for (input, error) in table {
        assert_eq!(chunked(input), Err(*error), "{input:?}");
    }
}

#[test]
fn the_largest_chunk_is_accepted() {
    assert_eq!(chunked("fffffffffffff\r\na").unwrap().0, "a");
    assert_eq!(
        chunked("0000000000000001\r\na\r\n0\r\n\r\n"),
        done("a", "", "")
    );
}

#[test]
fn extensions_and_trailers_are_bounded() {
    let extension = |len: usize| format!("1;{}\r\na\r\n0\r\n\r\n", "x".repeat(len));
    let run = |input: &str| decode_cut(Framing::Chunked, input.as_bytes(), &[], Strictness::Strict);
    let max = CHUNK_EXTENSION_BYTES_MAX as usize;
    assert_eq!(run(&extension(max - 1)), done("a", "", ""));
    assert_eq!(run(&extension(max)), Err(ChunkExtensionsTooLong));
    let many = "1;x\r\na\r\n".repeat(max);
    assert_eq!(
        run(&many),
        Err(ChunkExtensionsTooLong),
        "the bound is one of the message"
    );

    let trailer = |len: usize| format!("0\r\nA: {}\r\n\r\n", "b".repeat(len - "A: \r\n\r\n".len()));
    assert!(chunked(&trailer(LIMITS.head_bytes_max)).is_ok());
    assert_eq!(chunked(&trailer(LIMITS.head_bytes_max + 1)), Err(TooLarge));
    assert_eq!(
        chunked(&format!("0\r\nA: {}", "b".repeat(400))),
        Err(TooLarge)
    );
}

#[test]
fn relaxed_trailers() {
    let found = decode(
        Framing::Chunked,
        "0\r\nA b: c\nX:\n y\n\nrest",
        Strictness::Relaxed,
    );
    assert_eq!(found, done("", "x: y\r\n", "rest"));
}

/// Payload that is taken back is given again, at every place.
#[test]
fn payload_that_was_not_used_comes_again() {
    let cases: [(Framing, &[u8]); 3] = [
        (Framing::Length(10), b"0123456789"),
        (Framing::Chunked, b"4\r\n0123\r\n6\r\n456789\r\n0\r\n\r\n"),
        (Framing::UntilClose, b"0123456789"),
    ];
    for (framing, input) in cases {
        for used_at_once in 0..4 {
            let mut decoder = BodyDecoder::new(framing);
            let (mut trailers, mut data, mut at) = (Head::default(), Vec::new(), 0);
            let mut refusals = 0;
            while at < input.len() || !decoder.is_done() {
                let (consumed, piece) = decoder.next(&input[at..], &mut trailers).unwrap();
                at += consumed;
                match piece {
                    Piece::Data(bytes) => {
                        // Sometimes nothing at all is used.
                        let used = match refusals % 3 {
                            0 => 0,
                            _ => bytes.len().min(used_at_once.max(1)),
                        };
                        refusals += 1;
                        data.extend_from_slice(&bytes[..used]);
                        decoder.unread(bytes.len() - used);
                        at -= bytes.len() - used;
                    }
                    Piece::More | Piece::End => break,
                }
            }
            assert_eq!(data, b"0123456789", "{framing:?}, {used_at_once}");
            assert_eq!(decoder.is_done(), framing != Framing::UntilClose);
        }
    }
}
