//! Lists of certificates, of ciphers, of curves and of signature algorithms.

use config::build::tls::{ciphers, crt_list, groups};
use config::diagnostic::{Diagnostics, Rendering};

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
