//! Normalisation of a request's path and query (RFC 3986 §6.2; manual §4.4 normalize-uri), in
//! single steps.
//!
//! Pure text: path and query in, path and query out. Every step takes time linear in its input
//! (sorting: n log n in the number of parameters) and never makes it longer, except that `#`
//! becomes three characters.

use crate::bytes::hex_byte;
use std::ops::Range;

/// One step of `normalize-uri`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Normalizer {
    /// `#` becomes `%23`.
    FragmentEncode,
    /// Removes the first `#` and everything after it.
    FragmentStrip,
    /// Merges consecutive slashes in the path.
    PathMergeSlashes,
    /// Removes the segments `.` of the path.
    PathStripDot,
    /// Removes each segment `..` of the path together with the one before it. `full`: also removes
    /// those that have none before.
    PathStripDotdot {
        /// `full`
        full: bool,
    },
    /// `%41` becomes `A`: unreserved characters stand for themselves (RFC 3986 §2.3).
    PercentDecodeUnreserved {
        /// `strict`: a `%` without two digits is an error.
        strict: bool,
    },
    /// `%2f` becomes `%2F`.
    PercentToUppercase {
        /// `strict`: a `%` without two digits is an error.
        strict: bool,
    },
    /// Sorts the parameters of the query by name; equal names keep their order.
    QuerySortByName,
}

/// A `%` that is not followed by two hexadecimal digits, if that is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadEscape;

/// The output and working memory of [`Normalizer::apply`], reused.
#[derive(Debug, Default)]
pub struct Normalized {
    /// The path and query after the step.
    pub text: Vec<u8>,
    parameters: Vec<Range<usize>>,
}

impl Normalizer {
    /// Applies the step to a path with its query, into `out.text`.
    ///
    /// # Errors
    /// Only of the strict steps.
    pub fn apply(self, path_and_query: &[u8], out: &mut Normalized) -> Result<(), BadEscape> {
        let text = &mut out.text;
        text.clear();
        let query_at = memchr::memchr(b'?', path_and_query).unwrap_or(path_and_query.len());
        let (path, query) = path_and_query.split_at(query_at);
        match self {
            Normalizer::FragmentEncode => encode_fragment(path_and_query, text),
            Normalizer::FragmentStrip => {
                let end = memchr::memchr(b'#', path_and_query).unwrap_or(path_and_query.len());
                text.extend_from_slice(&path_and_query[..end]);
            }
            Normalizer::PercentDecodeUnreserved { strict } => {
                return escapes(path_and_query, strict, text, decode_unreserved);
            }
            Normalizer::PercentToUppercase { strict } => {
                return escapes(path_and_query, strict, text, upper_case);
            }
            Normalizer::PathMergeSlashes => {
                merge_slashes(path, text);
                text.extend_from_slice(query);
            }
            Normalizer::PathStripDot => {
                strip_dot(path, text);
                text.extend_from_slice(query);
            }
            Normalizer::PathStripDotdot { full } => {
                strip_dotdot(path, full, text);
                text.extend_from_slice(query);
            }
            Normalizer::QuerySortByName => {
                text.extend_from_slice(path);
                sort_query(query, text, &mut out.parameters);
            }
        }
        Ok(())
    }
}

fn encode_fragment(input: &[u8], out: &mut Vec<u8>) {
    for byte in input {
        match byte {
            b'#' => out.extend_from_slice(b"%23"),
            byte => out.push(*byte),
        }
    }
}

/// Copies the input and passes each escape to `write`; an incomplete escape is kept, or is an
/// error.
fn escapes(
    input: &[u8],
    strict: bool,
    out: &mut Vec<u8>,
    write: impl Fn([u8; 2], u8, &mut Vec<u8>),
) -> Result<(), BadEscape> {
    let mut rest = input;
    while let Some(at) = memchr::memchr(b'%', rest) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        let digits = rest.first_chunk::<2>().copied();
        match digits.and_then(|digits| Some((digits, hex_byte(digits[0], digits[1])?))) {
            Some((digits, value)) => {
                write(digits, value, out);
                rest = &rest[2..];
            }
            None if strict => return Err(BadEscape),
            None => out.push(b'%'),
        }
    }
    out.extend_from_slice(rest);
    Ok(())
}

fn decode_unreserved(digits: [u8; 2], value: u8, out: &mut Vec<u8>) {
    match value {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(value),
        _ => out.extend_from_slice(&[b'%', digits[0], digits[1]]),
    }
}

fn upper_case(digits: [u8; 2], _value: u8, out: &mut Vec<u8>) {
    let [high, low] = digits.map(|digit| digit.to_ascii_uppercase());
    out.extend_from_slice(&[b'%', high, low]);
}

fn merge_slashes(path: &[u8], out: &mut Vec<u8>) {
    let mut after_slash = false;
    for byte in path {
        if *byte != b'/' || !after_slash {
            out.push(*byte);
        }
        after_slash = *byte == b'/';
    }
}

fn strip_dot(path: &[u8], out: &mut Vec<u8>) {
    for segment in path.split_inclusive(|byte| *byte == b'/') {
        if !matches!(segment, b"." | b"./") {
            out.extend_from_slice(segment);
        }
    }
}

/// Appends the segments one by one; `..` removes the last one. Those that find none come before all
/// others.
fn strip_dotdot(path: &[u8], full: bool, out: &mut Vec<u8>) {
    let Some(segments) = path.strip_prefix(b"/") else {
        return out.extend_from_slice(path);
    };
    let mut kept_from = 0;
    let mut ends_up = false;
    for segment in segments.split(|byte| *byte == b'/') {
        ends_up = segment == b"..";
        if !ends_up {
            out.push(b'/');
            out.extend_from_slice(segment);
        } else if out.len() > kept_from {
            let last = memchr::memrchr(b'/', out).unwrap_or(kept_from);
            out.truncate(last);
        } else if !full {
            out.extend_from_slice(b"/..");
            kept_from = out.len();
        }
    }
    if ends_up {
        out.push(b'/');
    }
}

/// `query` begins with its question mark, or is empty. An empty last parameter is dropped, as in
/// HAProxy.
fn sort_query(query: &[u8], out: &mut Vec<u8>, parameters: &mut Vec<Range<usize>>) {
    let Some(list) = query.strip_prefix(b"?") else {
        return;
    };
    out.push(b'?');
    parameters.clear();
    let mut at = 0;
    while at < list.len() {
        let length = memchr::memchr(b'&', &list[at..]).unwrap_or(list.len() - at);
        parameters.push(at..at + length);
        at += length + 1;
    }
    // Equal names are sorted by position, so that a sort without extra memory keeps the order.
    parameters.sort_unstable_by(|one, other| {
        let by_name = name(&list[one.clone()]).cmp(name(&list[other.clone()]));
        by_name.then(one.start.cmp(&other.start))
    });
    for (index, parameter) in parameters.iter().enumerate() {
        if index > 0 {
            out.push(b'&');
        }
        out.extend_from_slice(&list[parameter.clone()]);
    }
}

fn name(parameter: &[u8]) -> &[u8] {
    let end = memchr::memchr(b'=', parameter).unwrap_or(parameter.len());
    &parameter[..end]
}

#[cfg(test)]
mod tests {
    use super::Normalizer::{self, *};
    use super::*;

    fn applied(step: Normalizer, input: &str) -> String {
        let mut out = Normalized::default();
        match step.apply(input.as_bytes(), &mut out) {
            Ok(()) => String::from_utf8(out.text).expect("ASCII"),
            Err(BadEscape) => "bad".into(),
        }
    }

    #[test]
    fn the_manuals_examples_and_the_ends_of_each() {
        let plain = PathStripDotdot { full: false };
        let full = PathStripDotdot { full: true };
        let decode = |strict| PercentDecodeUnreserved { strict };
        let upper = |strict| PercentToUppercase { strict };
        let cases: &[(Normalizer, &str, &str)] = &[
            (FragmentEncode, "/#foo", "/%23foo"),
            (FragmentEncode, "/a?b#c#", "/a?b%23c%23"),
            (FragmentStrip, "/#foo", "/"),
            (FragmentStrip, "/a?b#c#d", "/a?b"),
            (FragmentStrip, "/a", "/a"),
            (PathMergeSlashes, "//", "/"),
            (PathMergeSlashes, "/foo//bar", "/foo/bar"),
            (PathMergeSlashes, "///a////?b//c", "/a/?b//c"),
            (PathStripDot, "/.", "/"),
            (PathStripDot, "/./bar/", "/bar/"),
            (PathStripDot, "/a/./a", "/a/a"),
            (PathStripDot, "/.well-known/", "/.well-known/"),
            (PathStripDot, "/././.?/./", "/?/./"),
            (plain, "/foo/../", "/"),
            (plain, "/foo/../bar/", "/bar/"),
            (plain, "/foo/bar/../", "/foo/"),
            (plain, "/../bar/", "/../bar/"),
            (plain, "/bar/../../", "/../"),
            (plain, "/foo//../", "/foo/"),
            (plain, "/foo/%2E%2E/", "/foo/%2E%2E/"),
            (plain, "/foo/..", "/"),
            (plain, "/a/b/..", "/a/"),
            (plain, "/..", "/../"),
            (plain, "/a/../../b/../..", "/../../"),
            (plain, "/a/...?/../", "/a/...?/../"),
            (plain, "", ""),
            (full, "/../bar/", "/bar/"),
            (full, "/bar/../../", "/"),
            (full, "/../../a/..", "/"),
            (decode(false), "/%61dmin", "/admin"),
            (decode(false), "/foo%3Fbar=baz", "/foo%3Fbar=baz"),
            (decode(false), "/%%36%36", "/%66"),
            (decode(false), "/%ZZ%4", "/%ZZ%4"),
            (decode(false), "/%7e%2D?%5f", "/~-?_"),
            (decode(true), "/%%36%36", "bad"),
            (decode(true), "/%ZZ", "bad"),
            (decode(true), "/%4", "bad"),
            (decode(true), "/%41", "/A"),
            (upper(false), "/%6f", "/%6F"),
            (upper(false), "/%zz%a", "/%zz%a"),
            (upper(true), "/%zz", "bad"),
            (upper(true), "/a?%ff", "/a?%FF"),
            (QuerySortByName, "/?c=3&a=1&b=2", "/?a=1&b=2&c=3"),
            (QuerySortByName, "/?aaa=3&a=1&aa=2", "/?a=1&aa=2&aaa=3"),
            (
                QuerySortByName,
                "/?a=3&b=4&a=1&b=5&a=2",
                "/?a=3&a=1&a=2&b=4&b=5",
            ),
            (QuerySortByName, "/?b&a&", "/?a&b"),
            (QuerySortByName, "/?&a", "/?&a"),
            (QuerySortByName, "/?", "/?"),
            (QuerySortByName, "/", "/"),
        ];
        for (step, input, output) in cases {
            assert_eq!(applied(*step, input), *output, "{step:?} {input}");
        }
    }

    #[test]
    fn many_parameters_keep_the_order_of_one_name() {
        let input = (0..100)
            .map(|number| format!("{}={number}", (b'a' + (number % 3) as u8) as char))
            .collect::<Vec<_>>()
            .join("&");
        let sorted = applied(QuerySortByName, &format!("/?{input}"));
        let of_b: Vec<u32> = sorted[2..]
            .split('&')
            .filter_map(|parameter| parameter.strip_prefix("b=")?.parse().ok())
            .collect();
        assert_eq!(of_b, (0..100).filter(|n| n % 3 == 1).collect::<Vec<_>>());
    }
}
