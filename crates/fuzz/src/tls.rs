//! Lists of certificates, of ciphers, of curves and of signature algorithms; what is kept of client
//! hellos; the status of certificates; encrypted keys.

use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use config::build::tls::{ciphers, crt_list, groups};
use config::diagnostic::{Diagnostics, Rendering};
use sample::HelloFacts;
use tls::{Buffer, CaSigner, IdentityError, OcspResponse, Passphrases, Session};

/// Every line of any bytes is an entry, a fault or nothing; faults have a place that can be shown.
pub fn crt_list(data: &[u8]) {
    let (entries, faults) = crt_list::parse("list", data.to_vec());
    let lines = data.split_inclusive(|byte| *byte == b'\n').count();
    assert!(entries.len() <= lines);
    for entry in &entries {
        assert_eq!(entry.certificate.words.len(), 1);
        let words = entry.certificate.words.iter();
        let options = entry.options.iter().flat_map(|options| &options.words);
        for word in words.chain(options) {
            let (start, end) = (word.span.start as usize, word.span.end as usize);
            assert_eq!(word.span.excerpt().get(start..end), Some(word.bytes()));
        }
    }
    let mut diagnostics = Diagnostics::new();
    for fault in faults {
        diagnostics.add_once(fault.severity, &fault.span, fault.message);
    }
    diagnostics.render(&Rendering {
        pid: 1,
        diag: true,
        quiet: false,
    });
}

/// A list of any text comes to numbers, each once.
pub fn tls_lists(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    for parser in [
        ciphers::tls12,
        ciphers::tls13,
        groups::curves,
        groups::sigalgs,
    ] {
        let Ok(chosen) = parser(&text) else {
            continue;
        };
        let mut numbers = chosen.numbers.clone();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), chosen.numbers.len(), "{text}");
        assert!(chosen.dropped.iter().all(|name| text.contains(name)));
    }
}

/// More than any input.
const ROOM: usize = 1 << 20;

/// A session reads the same hello, or none, from any bytes in one piece and one by one.
fn session_hello(data: &[u8]) {
    // A session holds a limited number of bytes.
    let data = &data[..data.len().min(100 << 10)];
    let (mut plain, mut out) = (Buffer::default(), Buffer::default());
    let mut read = |session: &mut Session, bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        let progress = session.read(&mut bytes, usize::MAX, &mut plain, &mut out);
        progress.is_ok_and(|progress| progress.awaits_acceptor)
    };
    let (mut whole, mut pieces) = (Session::awaiting_hello(), Session::awaiting_hello());
    let is_whole = read(&mut whole, data);
    let mut bytes = data.iter();
    let is_joined = bytes.any(|byte| read(&mut pieces, &[*byte]));
    assert_eq!((is_whole, whole.hello()), (is_joined, pieces.hello()));
}

/// Of a hello as much is kept as there is room for, from the beginning of each list on.
pub fn client_hello(data: &[u8]) {
    session_hello(data);
    // The seeds begin with the header of a record.
    let data = data.get(5..).unwrap_or_default();
    let Some(whole) = HelloFacts::of(data, ROOM) else {
        assert_eq!(HelloFacts::of(data, 0), None);
        return;
    };
    let lists = |facts: &HelloFacts| {
        [
            facts.ciphers.to_vec(),
            facts.extensions.to_vec(),
            facts.groups.to_vec(),
            facts.formats.to_vec(),
            facts.versions.to_vec(),
            facts.sigalgs.to_vec(),
        ]
    };
    for room in [0, 1, 2, 7, 64, 300, ROOM] {
        let facts = HelloFacts::of(data, room).expect("it was a hello with more room");
        let (kept, all) = (lists(&facts), lists(&whole));
        let bytes: usize = kept.iter().map(Vec::len).sum();
        assert!(bytes <= room && bytes <= 2 * data.len());
        assert!(
            kept.iter()
                .zip(&all)
                .all(|(kept, all)| all.starts_with(kept))
        );
        assert_eq!(facts.extensions.len() % 2, 0);
        assert_eq!(
            (facts.version, facts.ciphers_xxh),
            (whole.version, whole.ciphers_xxh)
        );
    }
}

/// A response is read or refused. What it says of its certificate can be asked for again, and
/// nobody signed it whose key is not known.
pub fn ocsp_response(data: &[u8]) {
    let Ok(response) = OcspResponse::parse(data) else {
        return;
    };
    let parts = response.id.parts().expect("an identifier has its parts");
    assert!(parts.iter().all(|part| part.len() <= data.len()));
    let (request, id) = (response.id.request(), response.id.der());
    assert!(request.ends_with(id) && request.len() <= id.len() + 4 * 5);
    for issuer in [&b""[..], data] {
        let now = Duration::from_secs(response.produced_s);
        assert!(response.check_signature(issuer, now).is_err());
    }
    // Nothing behind its end belongs to it.
    let longer = [data, b"\0"].concat();
    assert_eq!(OcspResponse::parse(&longer), Ok(response));
}

/// The passphrase of an encrypted key is asked for only if the key can be decrypted.
pub fn encrypted_key(data: &[u8]) {
    let section = |label: &str, content: &[u8]| {
        let text = STANDARD.encode(content);
        format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n")
    };
    let pem = section("CERTIFICATE", b"any") + &section("ENCRYPTED PRIVATE KEY", data);
    let mut asked = false;
    let mut ask = |_: &Path| {
        asked = true;
        Err("none".to_owned())
    };
    let passphrases = &mut Passphrases::new(&mut ask);
    let signer = CaSigner::parse(pem.as_bytes(), Path::new("f"), passphrases);
    match signer {
        Err(IdentityError::Encrypted(_, why)) => assert_eq!(asked, why == "none"),
        result => assert!(result.is_err() && !asked, "{result:?}"),
    }
}
