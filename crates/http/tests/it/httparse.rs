//! Differential test against the crate `httparse` on generated heads: whatever the strict parser
//! accepts, the other accepts with the same parts; what the other refuses is refused; and where
//! only this one refuses, it is for a rule that the other does not have.

use spangate_http::h1::{Limits, ParseError, Strictness, parse_request, parse_response};
use spangate_http::{Head, Method, Version};
use testing::Random;

const CASES: usize = 60_000;

const METHODS: &[&[u8]] = &[
    b"GET",
    b"POST",
    b"OPTIONS",
    b"PURGE",
    b"M-SEARCH",
    b"G ET",
    b"",
    b"G\xe9T",
    b"CONNECT",
];
const TARGETS: &[&[u8]] = &[
    b"/",
    b"/a/b?c=d",
    b"*",
    b"http://h/x",
    b"h:80",
    b"/a%20b",
    b"/a b",
    b"/\x01",
    b"/~(),;=:@!$&'*+",
];
const VERSIONS: &[&[u8]] = &[
    b"HTTP/1.1",
    b"HTTP/1.1",
    b"HTTP/1.1",
    b"HTTP/1.0",
    b"HTTP/1.",
    b"http/1.1",
    b"HTTP/1.1 ",
];
const STATUSES: &[&[u8]] = &[
    b"200", b"404", b"101", b"099", b"20", b"2000", b"2x0", b"999",
];
const REASONS: &[&[u8]] = &[b"OK", b"Not Found", b"", b"a\tb", b"a\x01b"];
const NAMES: &[&[u8]] = &[
    b"Host",
    b"Accept",
    b"X-Long-Header-Name",
    b"a",
    b"X_y.z~",
    b"Cookie",
    b"a b",
    b"",
    b"b\x80",
    b" c",
];
const VALUES: &[&[u8]] = &[
    b"h",
    b"",
    b" spaced \t ",
    b"a, b;c=\"d\"",
    b"\xc3\xa9",
    b"a\tb",
    b"a\0",
    b"a\x7f",
    b"a\rb",
    b"a\nb",
    b"a\r\n b",
];
const LINE_ENDS: &[&[u8]] = &[
    b"\r\n", b"\r\n", b"\r\n", b"\r\n", b"\r\n", b"\r\n", b"\n", b"\r",
];
const COLONS: &[&[u8]] = &[b": ", b": ", b": ", b":", b" : ", b":\t", b""];

fn fields(random: &mut Random, out: &mut Vec<u8>) {
    for _ in 0..random.below(5) {
        for part in [NAMES, COLONS, VALUES, LINE_ENDS] {
            out.extend_from_slice(random.pick(part));
        }
    }
    out.extend_from_slice(random.pick(LINE_ENDS));
    // Sometimes a byte changes, and sometimes the head is cut.
    if random.below(4) == 0 {
        let at = random.below(out.len());
        out[at] = random.below(256) as u8;
    }
    if random.below(8) == 0 {
        out.truncate(random.below(out.len()));
    }
}

/// What a parser found: the start line's words and the fields. None while the head is incomplete.
type Found = Option<(Vec<Vec<u8>>, Vec<(Vec<u8>, Vec<u8>)>)>;

fn other_fields(fields: &[httparse::Header<'_>]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let fields = fields
        .iter()
        .filter(|field| !field.name.eq_ignore_ascii_case("host"));
    fields
        .map(|field| {
            (
                field.name.to_ascii_lowercase().into_bytes(),
                field.value.to_vec(),
            )
        })
        .collect()
}

fn our_fields(head: &Head) -> Vec<(Vec<u8>, Vec<u8>)> {
    let fields = head.fields().filter(|(_, _, name, _)| *name != b"host");
    fields
        .map(|(_, _, name, value)| (name.to_vec(), value.to_vec()))
        .collect()
}

fn version(head: &Head) -> Vec<u8> {
    vec![u8::from(head.version() == Version::Http11)]
}

fn our_request(input: &[u8]) -> Result<Found, ParseError> {
    let mut head = Head::default();
    let parsed = parse_request(input, Limits::default(), Strictness::Strict, &mut head)?;
    let words = vec![
        head.method_bytes().to_vec(),
        head.target().to_vec(),
        version(&head),
    ];
    Ok(parsed.map(|_| (words, our_fields(&head))))
}

fn other_request(input: &[u8]) -> Result<Found, httparse::Error> {
    let mut fields = [httparse::EMPTY_HEADER; 32];
    let mut request = httparse::Request::new(&mut fields);
    if request.parse(input)?.is_partial() {
        return Ok(None);
    }
    // We leave out an empty port (RFC 9110 §4.2.3): one changed byte makes it of the host `h`.
    let target = request.path.unwrap().replace("://:/", ":///");
    let words = [
        request.method.unwrap().as_bytes(),
        target.as_bytes(),
        &[request.version.unwrap()],
    ]
    .map(<[u8]>::to_vec);
    Ok(Some((words.to_vec(), other_fields(request.headers))))
}

fn our_response(input: &[u8]) -> Result<Found, ParseError> {
    let mut head = Head::default();
    let parsed = parse_response(
        input,
        Method::Get,
        Limits::default(),
        Strictness::Strict,
        &mut head,
    )?;
    // The other does not tell a reason phrase that is not ASCII.
    let reason = if head.reason().is_ascii() {
        head.reason()
    } else {
        b""
    };
    let words = vec![
        head.status().to_string().into_bytes(),
        reason.to_vec(),
        version(&head),
    ];
    Ok(parsed.map(|_| (words, our_fields(&head))))
}

fn other_response(input: &[u8]) -> Result<Found, httparse::Error> {
    let mut fields = [httparse::EMPTY_HEADER; 32];
    let mut response = httparse::Response::new(&mut fields);
    if response.parse(input)?.is_partial() {
        return Ok(None);
    }
    let words = [
        response.code.unwrap().to_string().into_bytes(),
        response.reason.unwrap().into(),
        vec![response.version.unwrap()],
    ];
    Ok(Some((words.to_vec(), other_fields(response.headers))))
}

/// Rules that the other parser does not have.
fn is_ours_alone(error: ParseError) -> bool {
    use ParseError::*;
    matches!(
        error,
        BareLf
            | BadTargetForm
            | BadAuthority
            | BadTarget
            | BadHost
            | DifferentHosts
            | HostMismatch
            | BadStatus
    )
}

fn compare(
    input: &[u8],
    ours: Result<Found, ParseError>,
    other: Result<Found, httparse::Error>,
    counts: &mut [usize; 3],
) {
    let text = || String::from_utf8_lossy(input).into_owned();
    match (ours, other) {
        (Ok(Some(ours)), Ok(Some(other))) => {
            assert_eq!(ours, other, "{:?}", text());
            counts[0] += 1;
        }
        (Ok(None), Ok(None)) => counts[1] += 1,
        (Err(_), Err(_)) => counts[2] += 1,
        // The head's end is not looked for before a refusal, nor the other way round.
        (Err(error), Ok(found)) => assert!(
            found.is_none() || is_ours_alone(error),
            "{error:?} {:?}",
            text()
        ),
        (Ok(None), Err(_)) => {}
        // The other knows no minor version but 0 and 1.
        (Ok(Some(_)), Err(httparse::Error::Version)) => {}
        (ours, other) => panic!("{:?}: we find {ours:?}, the other {other:?}", text()),
    }
}

#[test]
fn requests_agree() {
    let (mut random, mut counts) = (Random::new(0x5eed), [0; 3]);
    for _ in 0..CASES {
        let mut input = Vec::new();
        for part in [METHODS, &[b" "], TARGETS, &[b" "], VERSIONS, LINE_ENDS] {
            input.extend_from_slice(random.pick(part));
        }
        fields(&mut random, &mut input);
        compare(
            &input,
            our_request(&input),
            other_request(&input),
            &mut counts,
        );
    }
    assert!(
        counts.iter().all(|&count| count > CASES / 100),
        "the generator reaches every outcome: {counts:?}"
    );
}

#[test]
fn responses_agree() {
    let (mut random, mut counts) = (Random::new(0xface), [0; 3]);
    for _ in 0..CASES {
        let mut input = Vec::new();
        for part in [VERSIONS, &[b" "], STATUSES, &[b" "], REASONS, LINE_ENDS] {
            input.extend_from_slice(random.pick(part));
        }
        fields(&mut random, &mut input);
        compare(
            &input,
            our_response(&input),
            other_response(&input),
            &mut counts,
        );
    }
    assert!(
        counts.iter().all(|&count| count > CASES / 100),
        "the generator reaches every outcome: {counts:?}"
    );
}
