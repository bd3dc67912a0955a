#![allow(clippy::type_complexity, reason = "tables of cases")]

use super::*;

fn inet(text: &str) -> Addr {
    Addr::Inet(text.parse().unwrap())
}

/// Parses a header that is followed by other bytes; every shorter input must be incomplete or fail
/// alike.
fn outcome(input: &[u8]) -> Result<(usize, Header), Error> {
    let whole = parse(input);
    for len in 0..input.len() {
        match (parse(&input[..len]), &whole) {
            (Ok(None), _) => {}
            (Ok(Some(cut)), Ok(Some(whole))) if len >= whole.0 => assert_eq!(cut, *whole),
            (Err(cut), Err(whole)) if cut == *whole => {}
            (cut, whole) => panic!("{input:?} cut at {len}: {cut:?}, whole: {whole:?}"),
        }
    }
    whole.map(|found| found.unwrap_or_else(|| panic!("{input:?} is incomplete")))
}

fn v2(command: u8, family: u8, block: &[u8]) -> Vec<u8> {
    let mut out = v2::SIGNATURE.to_vec();
    out.extend([command, family]);
    out.extend((block.len() as u16).to_be_bytes());
    out.extend(block);
    out
}

/// 127.0.0.1:42 to 127.0.0.1:1337, as in HAProxy's `proxy_protocol_tlv_validation.vtc`.
const LOOPBACK: &[u8] = &[127, 0, 0, 1, 127, 0, 0, 1, 0, 42, 5, 57];

#[test]
fn lines() {
    #[rustfmt::skip]
    let table: &[(&str, Result<Option<(&str, &str)>, Error>)] = &[
        ("PROXY TCP4 192.168.0.1 192.168.0.11 56324 443\r\n", Ok(Some(("192.168.0.1:56324", "192.168.0.11:443")))),
        ("PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n", Ok(Some(("255.255.255.255:65535", "255.255.255.255:65535")))),
        ("PROXY TCP6 ::1 2001:db8::2 0 1\r\n",                Ok(Some(("[::1]:0", "[2001:db8::2]:1")))),
        ("PROXY TCP6 ::ffff:1.2.3.4 ::1 1 2\r\n",             Ok(Some(("[::ffff:1.2.3.4]:1", "[::1]:2")))),
        ("PROXY UNKNOWN\r\n",                                 Ok(None)),
        ("PROXY UNKNOWN ::1 ::2 whatever\r\n",                Ok(None)),
        ("PROXY TCP5 ::1 ::1 1 1\r\n",                        Err(Error::UnknownProtocol)),
        ("PROXY UNKNOWN2\r\n",                                Err(Error::UnknownProtocol)),
        ("PROXY  TCP4 1.2.3.4 1.2.3.4 1 1\r\n",               Err(Error::UnknownProtocol)),
        ("PROXY TCP4\r\n",                                    Err(Error::BadLine)),
        ("PROXY TCP4 1.2.3.4 1.2.3.4 1\r\n",                  Err(Error::BadLine)),
        ("PROXY TCP4 1.2.3.4 1.2.3.4 1 1 1\r\n",              Err(Error::BadLine)),
        ("PROXY TCP4 1.2.3.4 1.2.3.4 1 1 \r\n",               Err(Error::BadLine)),
        ("PROXY TCP4 1.2.3.4  1.2.3.4 1 1\r\n",               Err(Error::BadLine)),
        ("PROXY TCP4 1.2.3 1.2.3.4 1 1\r\n",                  Err(Error::BadLine)),
        ("PROXY TCP4 01.2.3.4 1.2.3.4 1 1\r\n",               Err(Error::BadLine)),
        ("PROXY TCP4 ::1 ::1 1 1\r\n",                        Err(Error::BadLine)),
        ("PROXY TCP6 1.2.3.4 1.2.3.4 1 1\r\n",                Err(Error::BadLine)),
        ("PROXY TCP4 1.2.3.4 1.2.3.4 01 1\r\n",               Err(Error::BadLine)),
        ("PROXY TCP4 1.2.3.4 1.2.3.4 +1 1\r\n",               Err(Error::BadLine)),
        ("PROXY TCP4 1.2.3.4 1.2.3.4 65536 1\r\n",            Err(Error::BadLine)),
        ("PROXY TCP4 1.2.3.4 1.2.3.4 1 1\n",                  Err(Error::BadLine)),
        ("PROXY TCP4 1.2.3.4\r1.2.3.4 1 1\r\n",               Err(Error::BadLine)),
        ("PROXY UNKNOWN \r\r\n",                              Err(Error::BadLine)),
        ("GET / HTTP/1.1\r\n\r\n",                            Err(Error::NotProxy)),
        ("proxy UNKNOWN\r\n",                                 Err(Error::NotProxy)),
    ];
    for (line, expected) in table {
        let found = outcome(format!("{line}GET /").as_bytes());
        let addresses = found.map(|(len, header)| {
            assert_eq!(len, line.len(), "{line:?}");
            assert_eq!(header.tlvs().count(), 0);
            header.addresses.map(|both| (both.source, both.destination))
        });
        assert_eq!(
            addresses,
            expected.map(|both| both.map(|(from, to)| (inet(from), inet(to)))),
            "{line:?}"
        );
    }
}

#[test]
fn lines_are_bounded() {
    let line = |len: usize| {
        format!(
            "PROXY UNKNOWN {}\r\n",
            "x".repeat(len - "PROXY UNKNOWN \r\n".len())
        )
    };
    assert!(outcome(line(V1_LINE_BYTES_MAX).as_bytes()).is_ok());
    assert_eq!(
        outcome(line(V1_LINE_BYTES_MAX + 1).as_bytes()),
        Err(Error::LineTooLong)
    );
}

#[test]
fn binary_headers() {
    let unix = |path: &[u8]| Addr::Unix(path.into());
    let mut inet6 = [0; 36];
    (inet6[15], inet6[31], inet6[33], inet6[35]) = (1, 2, 3, 4);
    let mut paths = [0; 216];
    paths[..4].copy_from_slice(b"/a\0b");
    paths[108..111].copy_from_slice(b"\0ab");
    #[rustfmt::skip]
    let table: &[(u8, u8, &[u8], Result<Option<(Addr, Addr)>, Error>)] = &[
        (0x21, 0x11, LOOPBACK,   Ok(Some((inet("127.0.0.1:42"), inet("127.0.0.1:1337"))))),
        (0x21, 0x21, &inet6,     Ok(Some((inet("[::1]:3"), inet("[::2]:4"))))),
        (0x21, 0x31, &paths,     Ok(Some((unix(b"/a"), unix(b"\0ab"))))),
        (0x21, 0x31, &[0; 216],  Ok(Some((unix(b""), unix(b""))))),
        (0x21, 0x12, LOOPBACK,   Ok(None)),
        (0x21, 0x00, &[],        Ok(None)),
        (0x20, 0x00, &[],        Ok(None)),
        (0x20, 0x11, LOOPBACK,   Ok(None)),
        (0x20, 0xff, LOOPBACK,   Ok(None)),
        (0x11, 0x11, LOOPBACK,   Err(Error::BadVersion)),
        (0x22, 0x11, LOOPBACK,   Err(Error::BadCommand)),
        (0x21, 0x41, LOOPBACK,   Err(Error::BadFamily)),
        (0x21, 0x13, LOOPBACK,   Err(Error::BadFamily)),
        (0x21, 0x11, &[0; 11],   Err(Error::TooShort)),
        (0x21, 0x21, &[0; 35],   Err(Error::TooShort)),
        (0x21, 0x31, &[0; 215],  Err(Error::TooShort)),
    ];
    for (command, family, block, expected) in table {
        let header = v2(*command, *family, block);
        let found = outcome(&[&header[..], b"GET /"].concat());
        let addresses = found.map(|(len, found)| {
            assert_eq!(len, header.len());
            found.addresses.map(|both| (both.source, both.destination))
        });
        assert_eq!(addresses, *expected, "{command:#x} {family:#x}");
    }
}

#[test]
fn tlv_lists_are_checked() {
    let long =
        |kind, len: usize| [&[kind, (len >> 8) as u8, len as u8][..], &vec![0; len]].concat();
    #[rustfmt::skip]
    let table: &[(&[u8], Result<(), Error>)] = &[
        (b"\x02\0\x0512345",           Ok(())),
        (b"\x02\0\x0512345\x04\0\0",   Ok(())),
        (b"\x02\0\x0a1234512345",      Ok(())),
        (b"\x02\0\x0a12345",           Err(Error::BadTlv)),
        (b"\x02\0\x041234\0",          Err(Error::BadTlv)),
        (b"\x02\0",                    Err(Error::BadTlv)),
        (b"\x03\0\x03abc",             Err(Error::BadTlv)),
        (b"\x03\0\x04abcd",            Err(Error::BadChecksum)),
        (&long(0x02, 255),             Ok(())),
        (&long(0x02, 256),             Err(Error::TlvTooLong)),
        (&long(0x05, 128),             Ok(())),
        (&long(0x05, 129),             Err(Error::TlvTooLong)),
        (&long(0xe0, 1024),            Ok(())),
        (&long(0xe0, 1025),            Err(Error::TlvTooLong)),
    ];
    for (list, expected) in table {
        let found = outcome(&v2(0x21, 0x11, &[LOOPBACK, list].concat()));
        assert_eq!(found.map(drop), *expected, "{list:?}");
    }
    let (_, header) = outcome(&v2(
        0x21,
        0x11,
        &[LOOPBACK, b"\x01\0\x02h2\x02\0\x01a\x02\0\x01b"].concat(),
    ))
    .unwrap();
    assert_eq!(
        (header.tlv(kind::ALPN), header.tlv(kind::AUTHORITY)),
        (Some(&b"h2"[..]), Some(&b"a"[..]))
    );
    assert_eq!(
        (header.tlv(kind::UNIQUE_ID), header.tlvs().count()),
        (None, 3)
    );
}

#[test]
fn long_headers_are_refused_before_they_come() {
    let mut header = v2(0x21, 0x11, LOOPBACK);
    header[14..16].copy_from_slice(&u16::MAX.to_be_bytes());
    assert_eq!(parse(&header[..16]), Err(Error::HeaderTooLong));
}

#[test]
fn headers_are_written_as_they_are_read() {
    let (v4, v6) = (inet("10.0.0.1:1"), inet("[2001:db8::1]:65535"));
    let path = Addr::Unix(b"/run/x"[..].into());
    #[rustfmt::skip]
    let table: &[(Option<(&Addr, &Addr)>, &str)] = &[
        (Some((&v4, &v4)),   "PROXY TCP4 10.0.0.1 10.0.0.1 1 1\r\n"),
        (Some((&v6, &v6)),   "PROXY TCP6 2001:db8::1 2001:db8::1 65535 65535\r\n"),
        (Some((&v4, &v6)),   "PROXY TCP6 ::ffff:10.0.0.1 2001:db8::1 1 65535\r\n"),
        (Some((&v4, &path)), "PROXY UNKNOWN\r\n"),
        (None,               "PROXY UNKNOWN\r\n"),
    ];
    let tlvs = [
        Tlv {
            kind: 0xe0,
            value: b"custom",
        },
        Tlv {
            kind: kind::CRC32C,
            value: b"",
        },
        Tlv {
            kind: kind::AUTHORITY,
            value: b"example.org",
        },
    ];
    for (addresses, line) in table {
        let mut out = Vec::new();
        write_v1(*addresses, &mut out);
        assert_eq!(String::from_utf8_lossy(&out), *line);
        let (_, first) = outcome(&out).unwrap();

        out.clear();
        write_v2(*addresses, &tlvs, &mut out).unwrap();
        let (len, second) = outcome(&out).unwrap();
        assert_eq!((len, &second.addresses), (out.len(), &first.addresses));
        assert_eq!(second.tlv(0xe0), Some(&b"custom"[..]));
        assert_eq!(second.tlvs().count(), 3);

        // Any changed byte is found, but for the one that says where the checksum is.
        let checksum_at = out
            .windows(3)
            .position(|bytes| bytes == [kind::CRC32C, 0, 4]);
        for at in (14..out.len()).filter(|&at| Some(at) != checksum_at) {
            let mut broken = out.clone();
            broken[at] ^= 0x40;
            let found = parse(&broken);
            assert!(
                !matches!(found, Ok(Some((len, _))) if len == out.len()),
                "a changed byte at {at} is found"
            );
        }
    }
}

#[test]
fn a_checksum_stands_once() {
    let mut out = Vec::new();
    let checksum = Tlv {
        kind: kind::CRC32C,
        value: b"",
    };
    write_v2(None, &[checksum, checksum], &mut out).unwrap();
    assert_eq!(parse(&out), Err(Error::BadChecksum));
}

#[test]
fn values_that_do_not_fit_are_not_written() {
    let mut out = b"kept".to_vec();
    let value = vec![0; usize::from(u16::MAX)];
    for value in [&value[..], &[value.clone(), vec![0]].concat()] {
        let tlvs = [Tlv { kind: 0xe0, value }];
        assert_eq!(write_v2(None, &tlvs, &mut out), Err(Error::HeaderTooLong));
        assert_eq!(out, b"kept");
    }
}
