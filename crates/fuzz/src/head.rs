//! HTTP/1 heads.

use http::h1::{
    Limits, ParseError, Parsed, Strictness, parse_request, parse_response, write_request,
    write_response,
};
use http::{Head, Method};

/// Small, so that inputs reach them.
const LIMITS: Limits = Limits {
    head_bytes_max: 4096,
    fields_max: 16,
};
/// Those of a head that was written again, which may be a little longer.
const WIDE: Limits = Limits {
    head_bytes_max: 2 * LIMITS.head_bytes_max,
    fields_max: LIMITS.fields_max,
};

/// A parser of one kind of head, and the writer that belongs to it.
struct Codec<Parse> {
    parse: Parse,
    write: fn(&Head, &mut Vec<u8>),
}

/// A request head: a shorter input is incomplete or has the same result; what is accepted is
/// written so that it is accepted again as the same.
pub fn h1_request(data: &[u8]) {
    for strictness in [Strictness::Strict, Strictness::Relaxed] {
        check(
            data,
            &Codec {
                parse: |input: &[u8], limits, head: &mut Head| {
                    parse_request(input, limits, strictness, head)
                },
                write: |head, out| write_request(head, None, out),
            },
        );
    }
    agree(data, |strictness, head| {
        parse_request(data, LIMITS, strictness, head)
    });
}

/// A response head, with the same rules.
pub fn h1_response(data: &[u8]) {
    for to in [Method::Get, Method::Head, Method::Connect] {
        for strictness in [Strictness::Strict, Strictness::Relaxed] {
            check(
                data,
                &Codec {
                    parse: |input: &[u8], limits, head: &mut Head| {
                        parse_response(input, to, limits, strictness, head)
                    },
                    write: |head, out| write_response(head, None, out),
                },
            );
        }
        agree(data, |strictness, head| {
            parse_response(data, to, LIMITS, strictness, head)
        });
    }
}

fn check<Parse>(data: &[u8], codec: &Codec<Parse>)
where
    Parse: Fn(&[u8], Limits, &mut Head) -> Result<Option<Parsed>, ParseError>,
{
    let mut head = Head::default();
    for cut in crate::cuts(data.len()) {
        let part = (codec.parse)(&data[..cut], LIMITS, &mut head);
        let whole = (codec.parse)(data, LIMITS, &mut head);
        match (part, whole) {
            (Ok(None), _) => {}
            (part, whole) => assert_eq!(part, whole, "cut at {cut}"),
        }
    }
    let Ok(Some(parsed)) = (codec.parse)(data, LIMITS, &mut head) else {
        assert_eq!(
            head.field_count(),
            0,
            "nothing is left of what was not accepted"
        );
        return;
    };
    assert!(parsed.consumed <= data.len().min(LIMITS.head_bytes_max));
    let (mut first, mut second) = (Vec::new(), Vec::new());
    (codec.write)(&head, &mut first);
    assert_eq!(first.len(), head.wire_bytes());
    assert!(head.path_and_query().starts_with(head.path()));

    let again = (codec.parse)(&first, WIDE, &mut head)
        .expect("what was written is accepted")
        .expect("and whole");
    assert_eq!(again.consumed, first.len());
    assert_eq!(
        (again.framing, again.upgrade, again.expect_continue),
        (parsed.framing, parsed.upgrade, parsed.expect_continue)
    );
    (codec.write)(&head, &mut second);
    assert_eq!(first, second, "normalised once is normalised");
}

/// What the strict parser accepts, the relaxed one accepts as the same.
fn agree(data: &[u8], parse: impl Fn(Strictness, &mut Head) -> Result<Option<Parsed>, ParseError>) {
    let (mut strict, mut relaxed) = (Head::default(), Head::default());
    let Ok(Some(parsed)) = parse(Strictness::Strict, &mut strict) else {
        return;
    };
    assert_eq!(
        parse(Strictness::Relaxed, &mut relaxed),
        Ok(Some(parsed)),
        "{} bytes",
        data.len()
    );
    assert!(
        strict
            .fields()
            .map(|(_, _, name, value)| (name, value))
            .eq(relaxed.fields().map(|(_, _, name, value)| (name, value)))
    );
}
