use super::kind::{ALPN, GROUPS, KEY_SHARE, SERVER_NAME, SESSION_TICKET};
use super::*;

/// A list with its length before it, in `width` bytes.
fn sized(width: usize, bytes: &[u8]) -> Vec<u8> {
    let length = (bytes.len() as u32).to_be_bytes();
    [&length[4 - width..], bytes].concat()
}

fn ext(kind: u16, content: &[u8]) -> Vec<u8> {
    [&kind.to_be_bytes()[..], &sized(2, content)].concat()
}

/// A ClientHello with these extensions.
fn hello(extensions: &[u8]) -> Vec<u8> {
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.extend(sized(1, &[9; 32]));
    body.extend(sized(2, &[0x13, 0x01, 0x13, 0x02]));
    body.extend(sized(1, &[0]));
    body.extend(sized(2, extensions));
    let message = [&[CLIENT_HELLO][..], &sized(3, &body)].concat();
    [&[HANDSHAKE, 3, 1][..], &sized(2, &message)].concat()
}

pub(crate) fn example() -> Vec<u8> {
    let name = [&[0][..], &sized(2, b"www.example.com")].concat();
    let protocols = [sized(1, b"h2"), sized(1, b"http/1.1")].concat();
    let shares = [
        &[0, 29][..],
        &sized(2, &[1; 32]),
        &[0, 23],
        &sized(2, &[2; 65]),
    ]
    .concat();
    let all = [
        ext(SESSION_TICKET, b""),
        ext(SERVER_NAME, &sized(2, &name)),
        ext(GROUPS, &sized(2, &[0, 29, 0, 23])),
        ext(ALPN, &sized(2, &protocols)),
        ext(KEY_SHARE, &sized(2, &shares)),
    ];
    hello(&all.concat())
}

#[test]
fn all_that_a_hello_says() {
    let bytes = example();
    assert_eq!(message_type(&bytes), Sniffed::Found(1));
    assert_eq!(version(&bytes, 16_384), Sniffed::Found((3, 3)));
    assert_eq!(
        cipher_suites(&bytes),
        Sniffed::Found(&[0x13, 1, 0x13, 2][..])
    );
    let Sniffed::Found(all) = extensions(&bytes) else {
        panic!("no extensions");
    };
    let name = extension(all, SERVER_NAME).and_then(host_name);
    assert_eq!(name, Some(&b"www.example.com"[..]));
    assert_eq!(extension(all, SESSION_TICKET), Some(&b""[..]));
    assert_eq!(extension(all, 4711), None);
    let groups = extension(all, GROUPS).and_then(|content| list(content, 2));
    assert_eq!(groups, Some(&[0, 29, 0, 23][..]));
    let protocols = extension(all, ALPN).expect("protocols");
    let (first, next) = protocol_at(protocols, FIRST_PROTOCOL).expect("a name");
    let (second, end) = protocol_at(protocols, next).expect("a name");
    assert_eq!((first, second), (&b"h2"[..], &b"http/1.1"[..]));
    assert_eq!((end, protocol_at(protocols, end)), (protocols.len(), None));
    let shares = extension(all, KEY_SHARE).and_then(key_share_groups);
    let shares: Vec<_> = shares.expect("shares").collect();
    assert_eq!(shares, [[0, 29], [0, 23]]);
}

#[test]
fn a_part_of_a_hello_asks_for_more() {
    let bytes = example();
    for cut in 0..bytes.len() {
        let part = &bytes[..cut];
        assert_eq!(message_type(part), Sniffed::More, "{cut}");
        assert_eq!(version(part, 16_384), Sniffed::More, "{cut}");
        assert_eq!(extensions(part), Sniffed::More, "{cut}");
        assert_eq!(cipher_suites(part), Sniffed::More, "{cut}");
    }
    assert_eq!(
        version(&bytes[..100], 100),
        Sniffed::Found((3, 3)),
        "a full buffer"
    );
}

#[test]
fn other_protocols_and_broken_lengths_are_no_hello() {
    for other in [
        &b"GET / HTTP/1.1\r\n"[..],
        b"SSH-2.0-x\r\n",
        b"\x16\x02\x01\0\0\0\0\0\0\0\0",
    ] {
        assert_eq!(extensions(other), Sniffed::No);
        assert_ne!(message_type(other), Sniffed::More);
    }
    // A byte of any length field is changed: the parser never reads beyond the bytes.
    let whole = example();
    for at in 0..whole.len() {
        for value in [0, 1, 0x7f, 0xff] {
            let mut bytes = whole.clone();
            bytes[at] = value;
            let _ = (
                message_type(&bytes),
                version(&bytes, 16_384),
                cipher_suites(&bytes),
            );
            if let Sniffed::Found(all) = extensions(&bytes) {
                let _ = extension(all, SERVER_NAME).and_then(host_name);
                let shares = extension(all, KEY_SHARE).and_then(key_share_groups);
                assert!(shares.is_none_or(|shares| shares.count() <= bytes.len()));
            }
        }
    }
}

#[test]
fn the_version_of_an_old_hello() {
    // RFC 5246 appendix E.2: length, type, version, three lengths, a cipher of three bytes, a
    // challenge.
    let mut bytes = vec![0x80, 9 + 3 + 16, 1, 3, 1, 0, 3, 0, 0, 0, 16];
    bytes.extend([5; 3 + 16]);
    assert_eq!(version(&bytes, 16_384), Sniffed::Found((3, 1)));
    for cut in 0..bytes.len() {
        assert_eq!(version(&bytes[..cut], 16_384), Sniffed::More, "{cut}");
    }
    bytes[6] = 4;
    assert_eq!(version(&bytes, 16_384), Sniffed::No);
    assert_eq!(version(b"GET / HTTP/1.1", 16_384), Sniffed::No);
}
