//! The key by which a request is hashed, and its hash: identical to HAProxy's, so that a migrated
//! backend keeps its distribution.

use config::model::{Balance, HashFunction, HashType, Proxy};
use http::{Head, Method};
use net::Addr;
use sample::{Session, Txn, hashes};

/// The hash of a request's key; none for algorithms without hashing, or where the request lacks the
/// key. `body`: the received part of the request's body. `expression` evaluates the key of `balance
/// hash`.
pub(crate) fn key(
    proxy: &Proxy,
    session: &Session,
    txn: &Txn,
    request: Option<&Head>,
    body: &[u8],
    expression: impl FnOnce(&sample::Expr, &mut Vec<u8>) -> bool,
) -> Option<u32> {
    let how = proxy.hash_type;
    match &proxy.balance {
        // Addresses are numbers already, so the hash function is not applied.
        Balance::Source => source(session.src_of(Some(txn))).map(|number| mixed(number, how)),
        Balance::Uri {
            whole,
            len,
            depth,
            path_only,
        } => {
            let request = request?;
            let uri = if *path_only {
                request.path_and_query()
            } else {
                request.target()
            };
            Some(hash(uri_part(uri, *whole, *len, *depth), how))
        }
        Balance::UrlParam { name, check_post } => {
            let request = request?;
            let query = request.query().and_then(|query| param(query, name));
            let is_post = *check_post && request.method() == Method::Post;
            let value = query.or_else(|| param(is_post.then_some(body)?, name))?;
            Some(hash(value, how))
        }
        Balance::Hdr {
            name,
            use_domain_only,
        } => {
            let (_, value) = request?.find(name.as_bytes()).next()?;
            let value = value.split(|byte| *byte == b',').next()?.trim_ascii();
            if value.is_empty() {
                return None;
            }
            let part = if *use_domain_only {
                domain(value)
            } else {
                value
            };
            Some(hash(part, how))
        }
        Balance::Hash(expr) => {
            let mut value = Vec::new();
            expression(expr, &mut value).then(|| hash(&value, how))
        }
        _ => None,
    }
}

/// The value of a parameter in a query, or in a form.
fn param<'a>(query: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let mut pairs = query.split(|byte| *byte == b'&');
    pairs.find_map(|pair| pair.strip_prefix(name)?.strip_prefix(b"="))
}

/// `hash-type … <function> [avalanche]` over bytes (manual §4.2).
pub(crate) fn hash(bytes: &[u8], how: HashType) -> u32 {
    let function = match how.function {
        HashFunction::Sdbm => hashes::sdbm,
        HashFunction::Djb2 => hashes::djb2,
        HashFunction::Wt6 => hashes::wt6,
        HashFunction::Crc32 => hashes::crc32_ieee,
        HashFunction::None => number,
    };
    mixed(function(bytes), how)
}

fn mixed(hash: u32, how: HashType) -> u32 {
    if how.avalanche {
        hashes::full_avalanche(hash)
    } else {
        hash
    }
}

/// `none`: the key is a decimal number; its low 32 bits are used.
fn number(bytes: &[u8]) -> u32 {
    let (digits, negative) = match bytes {
        [b'-', digits @ ..] => (digits, true),
        [b'+', digits @ ..] => (digits, false),
        digits => (digits, false),
    };
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    let number = digits.fold(0_i64, |number, digit| {
        let digit = i64::from(digit - b'0');
        let number = number.saturating_mul(10);
        if negative {
            number.saturating_sub(digit)
        } else {
            number.saturating_add(digit)
        }
    });
    number as u32
}

fn source(addr: &Addr) -> Option<u32> {
    match addr.ip()? {
        std::net::IpAddr::V4(ip) => Some(u32::from(ip)),
        std::net::IpAddr::V6(ip) => {
            let words = ip.octets();
            let words = words
                .chunks_exact(4)
                .map(|word| u32::from_be_bytes([word[0], word[1], word[2], word[3]]));
            Some(words.fold(0, |hash, word| hash ^ word))
        }
    }
}

/// The part of a URI before its query, or the whole URI, cut at `len` bytes and before the slash
/// after `depth` directories.
fn uri_part(uri: &[u8], whole: bool, len: Option<usize>, depth: Option<usize>) -> &[u8] {
    let uri = &uri[..len.unwrap_or(usize::MAX).min(uri.len())];
    let mut slashes = 0;
    for (index, byte) in uri.iter().enumerate() {
        match byte {
            b'/' => {
                slashes += 1;
                if depth.is_some_and(|depth| slashes > depth) {
                    return &uri[..index];
                }
            }
            b'?' if !whole => return &uri[..index],
            _ => {}
        }
    }
    uri
}

/// The label before the last dot: `www.example.com` → `example`. The whole name if it has no dot.
fn domain(host: &[u8]) -> &[u8] {
    // A dot at the very start does not count.
    let Some(end) = host
        .iter()
        .rposition(|byte| *byte == b'.')
        .filter(|at| *at > 0)
    else {
        return host;
    };
    // The byte right before the last dot belongs to the label, even if it is a dot.
    let start = host[..end - 1]
        .iter()
        .rposition(|byte| *byte == b'.')
        .map_or(0, |at| at + 1);
    &host[start..end]
}

#[cfg(test)]
mod tests {
    use config::model::HashMethod;
    use net::Now;

    use super::*;

    #[test]
    fn uris_are_cut_where_they_should() {
        assert_eq!(uri_part(b"/a/b/c?x", false, None, None), b"/a/b/c");
        assert_eq!(uri_part(b"/a/b/c?x", true, None, None), b"/a/b/c?x");
        assert_eq!(uri_part(b"/a/b/c?x", false, Some(3), None), b"/a/");
        assert_eq!(uri_part(b"/a/b/c?x", false, None, Some(1)), b"/a");
    }

    #[test]
    fn a_parameter_is_looked_for_in_the_query_and_then_in_the_form_of_a_post() {
        let mut proxy = Proxy::default();
        let mut key_of = |check_post, method: &[u8], target: &[u8], body: &[u8]| {
            proxy.balance = Balance::UrlParam {
                name: b"id"[..].into(),
                check_post,
            };
            let mut head = Head::default();
            assert!(head.set_method(method));
            head.set_target(target);
            let nobody = Addr::Unix(Vec::new().into());
            let session = Session::new(Now::default(), nobody.clone(), nobody, 0, 0);
            let txn = Txn::default();
            key(&proxy, &session, &txn, Some(&head), body, |_, _| false)
        };
        let wanted = key_of(false, b"GET", b"/?x=1&id=7", b"");
        assert!(wanted.is_some());
        assert_eq!(key_of(true, b"POST", b"/?id=7", b"id=8"), wanted);
        assert_eq!(key_of(true, b"POST", b"/?x=1", b"y=2&id=7&z"), wanted);
        assert_eq!(key_of(true, b"PUT", b"/", b"id=7"), None);
        assert_eq!(key_of(false, b"POST", b"/", b"id=7"), None);
    }

    #[test]
    fn domains() {
        let cases = [
            ("www.example.com", "example"),
            ("www.example.com:80", "example"),
            ("example.com", "example"),
            ("localhost:80", "localhost:80"),
            ("127.0.0.1", "0"),
            (".com", ".com"),
            ("a..com", "a."),
        ];
        for (host, expected) in cases {
            assert_eq!(domain(host.as_bytes()), expected.as_bytes(), "{host}");
        }
    }

    /// Read off the converters of the same names of HAProxy 3.5.
    #[test]
    fn functions_are_haproxys() {
        let text = b"hello-world-of-proxies";
        let cases = [
            (HashFunction::Sdbm, 1_754_698_988, 2_175_318_688),
            (HashFunction::Djb2, 12_175_751, 3_699_259_290),
            (HashFunction::Wt6, 1_005_555_418, 3_569_044_092),
            (HashFunction::Crc32, 3_462_378_748, 312_040_050),
        ];
        for (function, plain, mixed) in cases {
            let how = |avalanche| HashType {
                method: HashMethod::Map,
                function,
                avalanche,
            };
            assert_eq!(hash(text, how(false)), plain, "{function:?}");
            assert_eq!(hash(text, how(true)), mixed, "{function:?} avalanche");
        }
        assert_eq!(number(b"4294967297x"), 1);
        assert_eq!(number(b"-1"), u32::MAX);
        assert_eq!(number(b""), 0);
    }
}
