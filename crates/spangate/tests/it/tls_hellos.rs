//! Client hellos that choose the options of a certificate, in every form in which a client may send
//! them.

use crate::common;

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;

use common::http::Client;
use common::tls::{Authority, Secure, client_config};
use common::{DEADLINE, DEFAULTS, Folder, Proxy, address, listener};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ClientConnection, StreamOwned};

/// What a session holds of an unfinished hello at most.
const HELD_BYTES_MAX: usize = 128 << 10;
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;

/// How a client cuts the records and the segments of its hello.
#[derive(Clone, Copy, Debug)]
enum Cut {
    /// As the library writes it.
    Nowhere,
    /// One record until this byte of the message, another with the rest.
    At(usize),
    /// Records of so many bytes.
    Every(usize),
    /// The library's records, one segment per byte.
    Segments,
}

/// Sends the hello of a client, cut, and continues as the library does.
fn connect(config: &Arc<ClientConfig>, to: SocketAddr, name: &str, cut: Cut) -> Secure {
    let name = name.to_owned().try_into().expect("a name");
    let mut session = ClientConnection::new(config.clone(), name).expect("a session");
    let mut hello = Vec::new();
    while session.wants_write() {
        session.write_tls(&mut hello).expect("a hello");
    }
    let mut stream = TcpStream::connect(to).expect("a connection");
    stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
    stream.set_nodelay(true).expect("an option");
    let message = message(&hello);
    let wire = match cut {
        Cut::Nowhere | Cut::Segments => hello,
        Cut::At(at) => [record(&message[..at]), record(&message[at..])].concat(),
        Cut::Every(bytes) => message.chunks(bytes).flat_map(record).collect(),
    };
    let segment = match cut {
        Cut::Segments => 1,
        _ => wire.len(),
    };
    for segment in wire.chunks(segment) {
        // A refused hello may end the connection before its last byte.
        if stream.write_all(segment).is_err() {
            break;
        }
    }
    StreamOwned::new(session, stream)
}

/// The handshake message in these records.
fn message(mut records: &[u8]) -> Vec<u8> {
    let mut message = Vec::new();
    while let [HANDSHAKE, 3, _, high, low, rest @ ..] = records {
        let len = usize::from(u16::from_be_bytes([*high, *low]));
        message.extend_from_slice(&rest[..len]);
        records = &rest[len..];
    }
    assert!(records.is_empty(), "records of a handshake");
    message
}

/// A record with a part of a handshake message.
fn record(part: &[u8]) -> Vec<u8> {
    let len = u16::try_from(part.len()).expect("a short part");
    [&[HANDSHAKE, 3, 1][..], &len.to_be_bytes(), part].concat()
}

/// The answer to a request, if there is one.
fn answer(mut wire: Secure) -> Option<String> {
    let request = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n";
    wire.write_all(request).ok()?;
    let response = Client::over(wire).response()?;
    Some(response.text())
}

/// A proxy with `list` as its list of certificates; it returns the requested name.
struct Listed {
    proxy: Proxy,
    at: SocketAddr,
    authority: Authority,
    own: String,
}

/// In the list, `ONE` to `THREE` are certificates for `one.test` to `three.test`, and `CA` is the
/// authority of clients.
fn listed(list: &str) -> Listed {
    let (authority, folder) = (Authority::new("root"), Folder::new());
    let mut list = list.replace("CA", &folder.write("ca.pem", authority.pem()));
    for name in ["one", "two", "three"] {
        let pem = authority.issue(&[&format!("{name}.test")]);
        let file = folder.write(&format!("{name}.pem"), pem);
        list = list.replace(&name.to_uppercase(), &file);
    }
    let list = folder.write("list", list);
    let front = listener();
    let config = format!(
        "{DEFAULTS}\nfrontend f\n bind \"fd@${{FRONT}}\" ssl crt-list {list}\n \
         http-request return status 200 content-type text/plain lf-string \"%[ssl_fc_sni] %[ssl_fc_protocol] %[ssl_c_used] %[ssl_fc_cipher]\"\n"
    );
    Listed {
        proxy: Proxy::start_in(folder, &config, &[("FRONT", &front)]),
        at: address(&front),
        own: authority.issue(&["client"]),
        authority,
    }
}

/// The type of the first record that a server sends to these bytes; none if it sends nothing.
fn first_record(to: SocketAddr, bytes: &[u8]) -> Option<u8> {
    let mut stream = TcpStream::connect(to).expect("a connection");
    stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
    let mut first = [0];
    stream.write_all(bytes).expect("a hello is taken");
    match stream.read(&mut first) {
        Ok(1) => Some(first[0]),
        _ => None,
    }
}

/// The message of a hello for `one.test`, and the position of its extension with the name.
fn plain_hello(listed: &Listed) -> (Vec<u8>, usize) {
    let config = Arc::new(client_config(&listed.authority, None, &[&TLS12]));
    let name = "one.test".try_into().expect("a name");
    let mut session = ClientConnection::new(config, name).expect("a session");
    let mut hello = Vec::new();
    session.write_tls(&mut hello).expect("a hello");
    let message = message(&hello);
    let at = message.windows(8).position(|part| part == b"one.test");
    (message, at.expect("the name") - NAME_HEAD_BYTES)
}

/// Extension type and length, list length, name type, name length (RFC 6066 §3).
const NAME_HEAD_BYTES: usize = 4 + 2 + 1 + 2;

/// The hello with other bytes at an extension's place, in one record.
fn with_extension(message: &[u8], at: usize, extension: &[u8]) -> Vec<u8> {
    let mut new = message.to_vec();
    let before = NAME_HEAD_BYTES + "one.test".len();
    new.splice(at..at + before, extension.iter().copied());
    let grown = |len: usize| len + extension.len() - before;
    // The length of the message, and the length of all extensions.
    let len = grown(message.len() - 4);
    new[1..4].copy_from_slice(&(len as u32).to_be_bytes()[1..]);
    let all = extensions_at(message);
    let old = usize::from(u16::from_be_bytes([message[all], message[all + 1]]));
    new[all..all + 2].copy_from_slice(&(grown(old) as u16).to_be_bytes());
    record(&new)
}

/// The position of the length of all extensions in a hello.
fn extensions_at(message: &[u8]) -> usize {
    let session = 4 + 2 + 32;
    let ciphers = session + 1 + usize::from(message[session]);
    let len = usize::from(u16::from_be_bytes([message[ciphers], message[ciphers + 1]]));
    let methods = ciphers + 2 + len;
    methods + 1 + usize::from(message[methods])
}

/// A server_name extension with these names.
fn names(names: &[&[u8]]) -> Vec<u8> {
    let sized = |bytes: &[u8]| [&(bytes.len() as u16).to_be_bytes(), bytes].concat();
    let list: Vec<u8> = names
        .iter()
        .flat_map(|name| [&[0][..], &sized(name)].concat())
        .collect();
    [&[0, 0][..], &sized(&sized(&list))].concat()
}

#[test]
fn a_name_that_demands_a_certificate_demands_it_from_every_hello() {
    let listed = listed("TWO\nONE [verify required ca-file CA] one.test\n");
    // One that fills several records, and more than a buffer (`tune.bufsize`).
    let long: Vec<Vec<u8>> = (0..200)
        .map(|number| format!("{number:0100}").into_bytes())
        .collect();
    for version in [&TLS12, &TLS13] {
        for protocols in [Vec::new(), long.clone()] {
            let config = |own: Option<&str>| {
                let mut config = client_config(&listed.authority, own, &[version]);
                config.alpn_protocols.clone_from(&protocols);
                Arc::new(config)
            };
            let (anyone, known) = (config(None), config(Some(&listed.own)));
            let cuts = if protocols.is_empty() {
                &[1, 4, 5, 40, 100].map(Cut::At)[..]
            } else {
                &[Cut::At(16_000)]
            };
            // Each record has five bytes of its own, and of all together a limited number is held.
            let each = Cut::Every(if protocols.is_empty() { 1 } else { 7 });
            for cut in cuts.iter().chain(&[Cut::Nowhere, Cut::Segments, each]) {
                for name in ["one.test", "ONE.test"] {
                    let case = (version, protocols.len(), cut, name);
                    let got = answer(connect(&anyone, listed.at, name, *cut));
                    assert_eq!(got, None, "without a certificate, {case:?}");
                    let got = answer(connect(&known, listed.at, name, *cut));
                    let got = got.unwrap_or_else(|| panic!("no answer, {case:?}"));
                    assert!(got.starts_with("one.test ") && got.contains(" 1 "), "{got}");
                }
                let got = answer(connect(&anyone, listed.at, "two.test", *cut));
                assert!(got.is_some(), "{version:?} {cut:?}");
            }
        }
    }
    listed.proxy.stop();
}

#[test]
fn a_name_has_its_versions_and_ciphers_in_every_hello() {
    // We prefer others.
    const RARE: &str = "ECDHE-ECDSA-CHACHA20-POLY1305";
    let list =
        format!("TWO\nONE [ssl-min-ver TLSv1.3] one.test\nTHREE [ciphers {RARE}] three.test\n");
    let listed = listed(&list);
    let old = client_config(&listed.authority, None, &[&TLS12]);
    let new = client_config(&listed.authority, None, &[&TLS13]);
    let (old, new) = (Arc::new(old), Arc::new(new));
    for cut in [Cut::Nowhere, Cut::At(100), Cut::Every(1), Cut::Segments] {
        let ask = |config, name| answer(connect(config, listed.at, name, cut));
        let tell = |config, name| ask(config, name).unwrap_or_default();
        assert_eq!(ask(&old, "one.test"), None, "{cut:?}");
        assert!(
            tell(&new, "one.test").starts_with("one.test TLSv1.3 "),
            "{cut:?}"
        );
        assert!(
            tell(&old, "two.test").starts_with("two.test TLSv1.2 "),
            "{cut:?}"
        );
        assert!(!tell(&old, "two.test").ends_with(RARE), "{cut:?}");
        assert!(tell(&old, "three.test").ends_with(RARE), "{cut:?}");
    }
    listed.proxy.stop();
}

#[test]
fn hellos_that_cannot_be_read_are_refused_at_once() {
    let listed = listed("TWO\nONE [verify required ca-file CA] one.test\n");
    let (message, at) = plain_hello(&listed);
    let first = |bytes: &[u8]| first_record(listed.at, bytes);
    let good = record(&message);
    assert_eq!(first(&good), Some(HANDSHAKE));
    // Other records before the hello, between its parts, and empty ones (RFC 8446 §5.1).
    let (start, end) = (record(&message[..50]), record(&message[50..]));
    let change_cipher = [20, 3, 3, 0, 1, 1];
    let warning = [ALERT, 3, 3, 0, 2, 1, 90];
    let other: [&[u8]; 3] = [&change_cipher, &warning, &record(b"")];
    for other in other {
        assert_eq!(first(&[other, &good].concat()), Some(ALERT), "{other:?}");
        let between = [&start, other, &end].concat();
        assert_eq!(first(&between), Some(ALERT), "{other:?}");
    }
    // A longer message than the library reads, a message of another type, a record that is too
    // long.
    for head in [[1, 1, 0, 0], [1, 0xff, 0xff, 0xff], [2, 0, 0, 100]] {
        assert_eq!(first(&record(&head)), Some(ALERT), "{head:?}");
    }
    assert_eq!(first(&[HANDSHAKE, 3, 1, 0x40, 1]), Some(ALERT));
    // The frame of SSLv2 (RFC 5246 appendix E.2).
    let mut old = vec![0x80, 46, 1, 3, 3, 0, 3, 0, 0, 0, 32, 0, 0xc0, 0x2b];
    old.extend([7; 34]);
    assert_eq!(first(&old), Some(ALERT));
    assert_eq!(first(b"G"), Some(ALERT));

    // Names: which extension is used instead of that of `one.test`.
    let one = names(&[b"one.test"]);
    let cases: [(&str, Vec<u8>, u8); 8] = [
        (
            "two extensions",
            [&one[..], &names(&[b"two.test"])].concat(),
            ALERT,
        ),
        ("two names", names(&[b"two.test", b"one.test"]), ALERT),
        ("an empty name", names(&[b""]), ALERT),
        ("no name", names(&[]), ALERT),
        ("no text", names(&[b"one\xff.test"]), ALERT),
        // These are for the default certificate, which demands nothing.
        ("a dot at the end", names(&[b"one.test."]), HANDSHAKE),
        ("an address", names(&[b"127.0.0.1"]), HANDSHAKE),
        ("no extension", Vec::new(), HANDSHAKE),
    ];
    for (what, extension, wanted) in cases {
        let hello = with_extension(&message, at, &extension);
        assert_eq!(first(&hello), Some(wanted), "{what}");
        let whole = self::message(&hello);
        let bytes: Vec<u8> = whole.chunks(7).flat_map(record).collect();
        assert_eq!(first(&bytes), Some(wanted), "{what}, cut");
    }
    listed.proxy.stop();
}

#[test]
fn a_hello_without_end_holds_a_bounded_number_of_bytes() {
    let listed = listed("TWO\nONE [verify required ca-file CA] one.test\n");
    let mut stream = TcpStream::connect(listed.at).expect("a connection");
    stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
    // The message says that it has 65,535 bytes; each record has one of them, so six bytes on the
    // wire.
    let mut records = record(&[1, 0, 0xff, 0xfb]);
    records.extend([0; HELD_BYTES_MAX / 6 + 1].chunks(1).flat_map(record));
    let ended = stream.write_all(&records).and_then(|()| {
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).map(|_| rest)
    });
    match ended {
        Ok(rest) => assert_eq!(rest.first(), Some(&ALERT)),
        // A reset overtakes the alert if bytes were not read.
        Err(error) => assert!(
            matches!(
                error.kind(),
                ErrorKind::ConnectionReset | ErrorKind::BrokenPipe
            ),
            "{error}"
        ),
    }
    listed.proxy.stop();
}

#[test]
fn what_is_kept_of_a_hello_does_not_depend_on_its_records() {
    let (authority, folder) = (Authority::new("root"), Folder::new());
    let crt = folder.write("one.pem", authority.issue(&["one.test"]));
    let front = listener();
    let config = format!(
        "global\n tune.ssl.capture-buffer-size 200\n{DEFAULTS}\nfrontend f\n bind \"fd@${{FRONT}}\" ssl crt {crt} no-alpn\n \
         http-request return status 200 content-type text/plain lf-string \"%[ssl_fc_cipherlist_bin,hex] %[ssl_fc_extlist_bin,hex]\"\n"
    );
    let proxy = Proxy::start_in(folder, &config, &[("FRONT", &front)]);
    let client = Arc::new(client_config(&authority, None, &[&TLS12]));
    let ask = |cut| answer(connect(&client, address(&front), "one.test", cut));
    for cut in [Cut::Nowhere, Cut::At(50), Cut::Every(1), Cut::Segments] {
        let kept = ask(cut).expect("an answer");
        let lists = kept.split_once(' ').expect("two lists");
        // The suite that every client has, and the extension with the name.
        assert!(lists.0.contains("C02F"), "{cut:?}: {kept}");
        assert!(lists.1.contains("0000"), "{cut:?}: {kept}");
    }
    proxy.stop();
}
