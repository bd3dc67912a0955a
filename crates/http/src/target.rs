//! Request targets (RFC 9112 §3.2) and authorities (RFC 3986 §3.2): the positions of their parts.

use std::ops::Range;

use crate::bytes::is_plain_host;

/// The form of a request target (RFC 9112 §3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Origin,
    Absolute,
    /// Any other form: only `CONNECT` may have it.
    Authority,
    Asterisk,
    Empty,
}

/// The parts of a request target; ranges are offsets into it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Parts {
    pub form: Form,
    /// The scheme without `://`; empty if there is none.
    pub scheme: Range<usize>,
    /// The authority without user information; empty if there is none.
    pub authority: Range<usize>,
    /// Where path and query begin; the length of the target if it has neither.
    pub path_at: usize,
}

/// Splits a target by its first byte, as far as possible; validates nothing.
pub(crate) fn split(target: &[u8]) -> Parts {
    let end = target.len();
    let whole = |form, path_at| Parts {
        form,
        scheme: 0..0,
        authority: 0..0,
        path_at,
    };
    match target.first() {
        None => whole(Form::Empty, 0),
        Some(b'/') => whole(Form::Origin, 0),
        Some(b'*') => whole(Form::Asterisk, end),
        Some(_) => match scheme_len(target) {
            Some(len) => {
                let authority = authority_from(target, len + 3);
                Parts {
                    form: Form::Absolute,
                    scheme: 0..len,
                    path_at: authority.end,
                    authority,
                }
            }
            None => Parts {
                authority: authority_from(target, 0),
                ..whole(Form::Authority, end)
            },
        },
    }
}

/// A host and its port, if the host is followed by a colon and only digits; the port may be empty.
/// A host that itself contains a colon but is no IP literal has no port, since the parts would be
/// ambiguous.
pub(crate) fn host_port(authority: &[u8]) -> (&[u8], Option<&[u8]>) {
    let digits = authority
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    match authority[..authority.len() - digits].split_last() {
        Some((b':', host)) if host.ends_with(b"]") || !host.contains(&b':') => {
            (host, Some(&authority[authority.len() - digits..]))
        }
        _ => (authority, None),
    }
}

/// Whether the port is the scheme's default; an empty port always is, and without a scheme both 80
/// and 443 are.
pub(crate) fn is_default_port(scheme: &[u8], port: &[u8]) -> bool {
    match port {
        b"" => true,
        b"80" => scheme.is_empty() || scheme.eq_ignore_ascii_case(b"http"),
        b"443" => scheme.is_empty() || scheme.eq_ignore_ascii_case(b"https"),
        _ => false,
    }
}

/// Whether `Host` equals the authority of a request; they may differ in a default port.
pub(crate) fn is_same_host(scheme: &[u8], authority: &[u8], host: &[u8]) -> bool {
    if authority.eq_ignore_ascii_case(host) {
        return true;
    }
    let (name, port) = host_port(authority);
    let (host_name, host_given) = host_port(host);
    let default = |port: Option<&[u8]>| port.is_none_or(|port| is_default_port(scheme, port));
    default(port) && default(host_given) && name.eq_ignore_ascii_case(host_name)
}

/// Whether an authority contains a character that a host and port must not (RFC 3986 §3.2), or an
/// invalid port.
#[inline]
pub(crate) fn is_bad_authority(authority: &[u8]) -> bool {
    is_bad_host(authority, false)
}

/// The same check for a `Host` field; `any_port`: the text after the colon may be no port.
#[inline]
pub(crate) fn is_bad_host(host: &[u8], any_port: bool) -> bool {
    !is_plain_host(host) && is_odd_bad_host(host, any_port)
}

fn is_odd_bad_host(host: &[u8], any_port: bool) -> bool {
    let is_odd = |byte: &u8| *byte == b':' || NOT_HOST[*byte as usize];
    match host.iter().position(is_odd) {
        None => false,
        Some(at) if host[at] == b':' => is_bad_port(&host[at + 1..], any_port),
        Some(_) => is_bad_literal(host, any_port),
    }
}

/// Whether the text after a colon is not a valid port.
fn is_bad_port(port: &[u8], any_port: bool) -> bool {
    !port.iter().all(u8::is_ascii_digit)
        && (!any_port || port.iter().any(|byte| NOT_HOST[*byte as usize]))
}

/// Square brackets may only enclose an IP literal. A comma is refused because the host is also a
/// field's value.
#[cold]
fn is_bad_literal(authority: &[u8], any_port: bool) -> bool {
    let Some(end) = authority.iter().position(|byte| *byte == b']') else {
        return true;
    };
    let (literal, rest) = authority.split_at(end);
    let is_odd = |byte: &u8| NOT_HOST[*byte as usize];
    let is_literal = literal
        .split_first()
        .is_some_and(|(first, rest)| *first == b'[' && !rest.iter().any(is_odd));
    let is_bad_rest = match &rest[1..] {
        [] => false,
        [b':', port @ ..] => is_bad_port(port, any_port),
        _ => true,
    };
    !is_literal || is_bad_rest
}

/// Bytes that must not occur in an authority, and brackets.
static NOT_HOST: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = matches!(byte as u8, 0..=0x20 | 0x7f.. | b',' | b'#' | b'/' | b'?' | b'@' | b'[' | b'\\' | b']');
        byte += 1;
    }
    table
};

/// The length of a scheme that is followed by `://` (RFC 3986 §3.1).
fn scheme_len(target: &[u8]) -> Option<usize> {
    let in_scheme = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let len = target.iter().take_while(|byte| in_scheme(byte)).count();
    (target.first()?.is_ascii_alphabetic() && target[len..].starts_with(b"://")).then_some(len)
}

fn authority_from(target: &[u8], at: usize) -> Range<usize> {
    let rest = &target[at..];
    let len = rest
        .iter()
        .position(|byte| matches!(byte, b'/' | b'?' | b'#'))
        .unwrap_or(rest.len());
    let user = rest[..len]
        .iter()
        .rposition(|&byte| byte == b'@')
        .map_or(0, |user| user + 1);
    at + user..at + len
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_split() {
        #[rustfmt::skip]
        let table: &[(&str, Form, &str, &str, &str)] = &[
            ("/a?b",                    Form::Origin,    "",      "",           "/a?b"),
            ("*",                       Form::Asterisk,  "",      "",           ""),
            ("",                        Form::Empty,     "",      "",           ""),
            ("http://u:p@h:80/a",       Form::Absolute,  "http",  "h:80",       "/a"),
            ("http://h?a",              Form::Absolute,  "http",  "h",          "?a"),
            ("http://h#f",              Form::Absolute,  "http",  "h",          "#f"),
            ("https://",                Form::Absolute,  "https", "",           ""),
            ("h:80",                    Form::Authority, "",      "h:80",       ""),
            ("[::1]:80",                Form::Authority, "",      "[::1]:80",   ""),
            ("http:/h",                 Form::Authority, "",      "http:",      ""),
        ];
        for (target, form, scheme, authority, path) in table {
            let parts = split(target.as_bytes());
            assert_eq!(parts.form, *form, "{target}");
            assert_eq!(&target[parts.scheme], *scheme, "{target}");
            assert_eq!(&target[parts.authority], *authority, "{target}");
            assert_eq!(&target[parts.path_at..], *path, "{target}");
        }
    }

    #[test]
    fn ports() {
        assert_eq!(host_port(b"h:80"), (&b"h"[..], Some(&b"80"[..])));
        assert_eq!(host_port(b"h:"), (&b"h"[..], Some(&b""[..])));
        assert_eq!(host_port(b":"), (&b""[..], Some(&b""[..])));
        assert_eq!(host_port(b"h80"), (&b"h80"[..], None));
        assert_eq!(host_port(b"80"), (&b"80"[..], None));
        assert_eq!(host_port(b"::1"), (&b"::1"[..], None));
        assert_eq!(host_port(b"h:80:"), (&b"h:80:"[..], None));
        assert_eq!(host_port(b"[::1]:8"), (&b"[::1]"[..], Some(&b"8"[..])));
        assert_eq!(host_port(b"[::1]"), (&b"[::1]"[..], None));
        assert_eq!(host_port(b""), (&b""[..], None));
    }

    #[test]
    fn bad_authorities() {
        for good in [
            &b""[..],
            b"h",
            b"h:80",
            b"[::1]",
            b"[::1]:80",
            b"h:",
            b"a-b_c.d%20",
        ] {
            assert!(!is_bad_authority(good), "{good:?}");
        }
        for bad in [
            &b"a b"[..],
            b"a,b",
            b"a@b",
            b"a/b",
            b"a\\b",
            b"a[",
            b"[::1",
            b"::1]",
            b"[a]b",
            b"a\0",
            b"\xe9",
            b"a#",
            b"a:b",
            b"a:80:",
            b"::1",
            b"[::1]:x",
        ] {
            assert!(is_bad_authority(bad), "{bad:?}");
        }
    }
}
