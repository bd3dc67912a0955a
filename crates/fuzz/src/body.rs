//! Chunked bodies.

use http::Head;
use http::h1::{
    BodyDecoder, Framing, Limits, ParseError, Piece, Strictness, write_chunk_head, write_last_chunk,
};

const LIMITS: Limits = Limits {
    head_bytes_max: 512,
    fields_max: 8,
};

/// What became of a body.
#[derive(Debug, PartialEq)]
struct Outcome {
    data: Vec<u8>,
    /// The trailers as written, and how much of the input was left. None while the body is
    /// incomplete.
    end: Option<(Vec<u8>, usize)>,
}

/// A chunked body: wherever the input is cut, the result is the same; and it is the same again when
/// it is encoded.
pub fn h1_body(data: &[u8]) {
    for strictness in [Strictness::Strict, Strictness::Relaxed] {
        let whole = decode(data, &[], strictness);
        for cut in crate::cuts(data.len()) {
            assert_eq!(decode(data, &[cut], strictness), whole, "cut at {cut}");
        }
        let every: Vec<_> = (0..data.len()).collect();
        assert_eq!(decode(data, &every, strictness), whole, "byte by byte");

        let Ok(Outcome {
            data: payload,
            end: Some((trailers, _)),
        }) = whole
        else {
            continue;
        };
        let mut encoded = Vec::new();
        for chunk in payload.chunks(7) {
            write_chunk_head(chunk.len(), &mut encoded);
            encoded.extend_from_slice(chunk);
            encoded.extend_from_slice(b"\r\n");
        }
        encoded.extend_from_slice(&trailers);
        let again = decode(&encoded, &[], strictness).expect("what was encoded is decoded");
        assert_eq!(
            again,
            Outcome {
                data: payload,
                end: Some((trailers, 0))
            }
        );
    }
}

fn decode(input: &[u8], cuts: &[usize], strictness: Strictness) -> Result<Outcome, ParseError> {
    let mut decoder = BodyDecoder::with(Framing::Chunked, LIMITS, strictness);
    let (mut trailers, mut data, mut at) = (Head::default(), Vec::new(), 0);
    for &end in cuts.iter().chain([&input.len()]) {
        loop {
            let (consumed, piece) = decoder.next(&input[at..end], &mut trailers)?;
            assert!(consumed <= end - at);
            at += consumed;
            match piece {
                Piece::Data(bytes) => data.extend_from_slice(bytes),
                Piece::More => break,
                Piece::End => {
                    assert!(decoder.is_done());
                    let mut out = Vec::new();
                    write_last_chunk(&trailers, &mut out);
                    return Ok(Outcome {
                        data,
                        end: Some((out, input.len() - at)),
                    });
                }
            }
        }
        assert_eq!(at, end, "all of an incomplete input is consumed");
    }
    Ok(Outcome { data, end: None })
}
