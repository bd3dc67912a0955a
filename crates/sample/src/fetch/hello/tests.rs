use crate::Verdict::{False, True, Wait};
use crate::testing::Facts;

/// A ClientHello of `www.example.com`: the part after the random bytes. The overall lengths are
/// filled in later.
const HELLO: &str = "00 0004 13011302 0100 0000
    0000 0014 0012 00 000f 7777772e6578616d706c652e636f6d
    000a 0006 0004 001d0017
    000d 0006 0004 04030804
    0010 000e 000c 02 6832 08 687474702f312e31
    0023 0004 01020304
    0033 0012 0010 001d 0004 aaaaaaaa 0017 0004 bbbbbbbb";

fn hello() -> Vec<u8> {
    let digits: Vec<u8> = HELLO.bytes().filter(u8::is_ascii_hexdigit).collect();
    let rest = syntax::hex::decode(&digits).expect("hexadecimal");
    let mut bytes = vec![0x16, 3, 1, 0, 0, 1, 0, 0, 0, 3, 3];
    bytes.extend([7; 32]);
    bytes.extend(rest);
    let all = bytes.len() as u16;
    for (at, before) in [(3, 5), (7, 9), (52, 54)] {
        bytes[at..at + 2].copy_from_slice(&(all - before).to_be_bytes());
    }
    bytes
}

fn tcp(bytes: &[u8]) -> Facts {
    let mut facts = Facts::new();
    facts.txn.is_http = false;
    facts.request_data = bytes.to_vec();
    facts
}

#[test]
fn what_a_hello_says() {
    let facts = tcp(&hello());
    for (expr, wanted) in [
        ("req.ssl_hello_type", "1"),
        ("req_ssl_hello_type", "1"),
        ("req.ssl_ver", "196611"),
        ("req.ssl_sni", "www.example.com"),
        ("req_ssl_sni,length", "15"),
        ("req.ssl_alpn", "h2"),
        ("req.ssl_ec_ext", "1"),
        ("req.ssl_st_ext", "2"),
        ("req.ssl_cipherlist,hex", "13011302"),
        ("req.ssl_supported_groups,hex", "001D0017"),
        ("req.ssl_sigalgs,hex", "04030804"),
        ("req.ssl_keyshare_groups,hex", "001D0017"),
    ] {
        assert_eq!(facts.text(expr).as_deref(), Some(wanted), "{expr}");
    }
    assert_eq!(facts.text("rep_ssl_hello_type"), None);
}

#[test]
fn rules_wait_for_the_whole_hello() {
    let whole = hello();
    for (words, wanted) in [
        ("req.ssl_hello_type 1", True),
        ("req_ssl_ver 3.3", True),
        ("req_ssl_ver 3.0:3.2", False),
        ("req_ssl_sni www.example.com", True),
        ("req.ssl_sni -m end .org", False),
        ("req.ssl_alpn http/1.1", True),
        ("req.ssl_alpn h3", False),
    ] {
        let mut facts = tcp(&whole);
        facts.last_chance = false;
        assert_eq!(facts.verdict(words), wanted, "{words}");
        facts.request_data.truncate(whole.len() - 1);
        assert_eq!(facts.verdict(words), Wait, "{words} of a part");
        facts.last_chance = true;
        assert_eq!(facts.verdict(words), False, "{words} when the time is up");
    }
}

#[test]
fn other_bytes_are_no_hello() {
    let mut facts = tcp(b"GET / HTTP/1.1\r\nHost: a\r\n");
    facts.last_chance = false;
    assert_eq!(facts.verdict("req.ssl_hello_type 1"), False);
    assert_eq!(facts.verdict("req_ssl_sni -m found"), False);
    let mut facts = tcp(&hello());
    facts.txn.is_http = true;
    assert_eq!(facts.text("req.ssl_sni"), None);
}
