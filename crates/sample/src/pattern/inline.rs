//! Patterns written in the configuration: compiled once for their method, never changed.
//!
//! There are mostly few of them; comparing them is faster than a table lookup. Many exact texts are
//! hashed. Many regular expressions or substrings become one automaton.

use std::collections::HashSet;
use std::net::{Ipv4Addr, Ipv6Addr};

use aho_corasick::AhoCorasick;
use memchr::memmem::Finder;

use super::method::Method;
use super::parse::{Network, Range, length_of, prefix6};
use super::regex::{Regex, any_of};
use super::texts::{DIR_DELIMITERS, DOM_DELIMITERS, trimmed};
use super::uses::{How, bad_hex};
use crate::cast::{embedded_ipv4, method_of};
use crate::{Bytes, Kind, Value};
use syntax::hex;
use syntax::octets::readable;

/// Compiled patterns.
#[derive(Debug)]
pub(crate) struct Matcher {
    kind: Kind,
    folds: bool,
    ignore_case: bool,
    patterns: Patterns,
}

#[derive(Debug)]
enum Patterns {
    Found,
    NotZero,
    Ranges(Vec<Range>),
    Lengths(Vec<Range>),
    Networks(Networks),
    Exact(Exact),
    /// Prefixes or suffixes; the flag ignores case.
    Edges(Edge, Vec<Box<[u8]>>, bool),
    /// Substrings, each with a prepared searcher.
    Anywhere(Vec<Finder<'static>>),
    /// Texts between these delimiters.
    Between(&'static [u8], Vec<Box<[u8]>>),
    AnyPart(Box<AhoCorasick>),
    Regexes(Vec<Regex>),
    Methods(Vec<Box<[u8]>>),
}

/// Texts for equality. Comparing a few is faster than hashing one.
#[derive(Debug)]
enum Exact {
    Few(Vec<Box<[u8]>>),
    Many(HashSet<Box<[u8]>>),
}

/// Up to this many texts are compared or searched one by one.
const FEW_MAX: usize = 8;

impl Exact {
    fn new(texts: Vec<Box<[u8]>>) -> Exact {
        if texts.len() <= FEW_MAX {
            Exact::Few(texts)
        } else {
            Exact::Many(texts.into_iter().collect())
        }
    }

    fn contains(&self, text: &[u8]) -> bool {
        match self {
            Exact::Few(texts) => texts.iter().any(|known| **known == *text),
            Exact::Many(texts) => texts.contains(text),
        }
    }
}

/// The part of a text that is compared with a pattern.
#[derive(Clone, Copy, Debug)]
enum Edge {
    Beginning,
    End,
}

impl Matcher {
    /// Compiles the patterns of a method.
    ///
    /// # Errors
    /// The index of the faulty pattern, and the fault.
    pub(crate) fn new<P: AsRef<[u8]>>(
        how: How,
        patterns: &[P],
    ) -> Result<Matcher, (usize, String)> {
        let folded = || texts(patterns, how.ignore_case);
        let compiled = match how.method {
            Method::Found => Patterns::Found,
            Method::Bool => Patterns::NotZero,
            Method::Int => Patterns::Ranges(each_text(patterns, Range::parse)?),
            Method::Version => Patterns::Ranges(each_text(patterns, Range::parse_version)?),
            Method::Len => Patterns::Lengths(each_text(patterns, Range::parse)?),
            Method::Ip => {
                let network = |text: &str| Network::resolve(text, !how.strict_addresses);
                Patterns::Networks(Networks::new(&each_text(patterns, network)?))
            }
            Method::Bin => Patterns::Exact(Exact::new(each(patterns, |text| {
                hex::decode(text)
                    .map(Vec::into_boxed_slice)
                    .ok_or_else(|| bad_hex(text))
            })?)),
            Method::Str => Patterns::Exact(Exact::new(folded())),
            Method::Beg => Patterns::Edges(Edge::Beginning, folded(), how.folds()),
            Method::End => Patterns::Edges(Edge::End, folded(), how.folds()),
            Method::Sub => anywhere(folded()),
            Method::Dir => between(DIR_DELIMITERS, folded()),
            Method::Dom => between(DOM_DELIMITERS, folded()),
            Method::Reg => Patterns::Regexes(any_of(patterns, how.ignore_case)?),
            Method::Verb => Patterns::Methods(texts(patterns, false)),
        };
        Ok(Matcher {
            kind: how.method.kind(),
            // Prefixes and suffixes are compared without a folded copy.
            folds: how.folds() && !matches!(compiled, Patterns::Edges(..)),
            ignore_case: how.ignore_case,
            patterns: compiled,
        })
    }

    /// The type of the compared samples.
    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether a sample, cast to [`Matcher::kind`], matches one of the patterns.
    pub(crate) fn matches(&self, value: &Value<'_>) -> bool {
        if self.folds
            && let Some(folded) = folded(value, true)
        {
            return self.matches_folded(&folded);
        }
        self.matches_folded(value)
    }

    #[inline]
    fn matches_folded(&self, value: &Value<'_>) -> bool {
        match (&self.patterns, value) {
            (Patterns::Found, _) => true,
            (Patterns::NotZero, value) => is_true(value),
            (Patterns::Ranges(ranges), Value::Int(value)) => {
                ranges.iter().any(|range| range.contains(*value))
            }
            (Patterns::Lengths(ranges), Value::Str(text)) => {
                ranges.iter().any(|range| range.contains(text.len() as i64))
            }
            (Patterns::Networks(networks), Value::Ipv4(ip)) => {
                networks.contain4(*ip) || networks.contain6(ip.to_ipv6_mapped())
            }
            (Patterns::Networks(networks), Value::Ipv6(ip)) => {
                networks.contain6(*ip) || embedded_ipv4(*ip).is_some_and(|ip| networks.contain4(ip))
            }
            (Patterns::Exact(set), Value::Str(text) | Value::Bin(text)) => set.contains(text),
            (Patterns::Edges(edge, patterns, any_case), Value::Str(text)) => patterns
                .iter()
                .any(|pattern| edge.of(text, pattern, *any_case)),
            (Patterns::Anywhere(finders), Value::Str(text)) => {
                finders.iter().any(|finder| finder.find(text).is_some())
            }
            (Patterns::Between(delimiters, patterns), Value::Str(text)) => patterns
                .iter()
                .any(|pattern| is_between(text, pattern, delimiters)),
            (Patterns::AnyPart(automaton), Value::Str(text)) => automaton.is_match(&**text),
            (Patterns::Regexes(all), Value::Str(text)) => {
                all.iter().any(|regex| regex.is_match(text))
            }
            (Patterns::Methods(names), Value::Method(method, name)) => names.iter().any(|known| {
                **known == **name
                    || (*method == http::Method::Other
                        && self.ignore_case
                        && known.eq_ignore_ascii_case(name))
                    || (*method != http::Method::Other && method_of(known) == *method)
            }),
            _ => false,
        }
    }
}

/// Whether a number is not 0.
pub(super) fn is_true(value: &Value<'_>) -> bool {
    matches!(value, Value::Bool(true)) || matches!(value, Value::Int(number) if *number != 0)
}

/// A text in lower case, if case is ignored and the text is not in lower case yet.
pub(super) fn folded<'a>(value: &Value<'_>, ignore_case: bool) -> Option<Value<'a>> {
    match value {
        Value::Str(text) if ignore_case && text.iter().any(u8::is_ascii_uppercase) => {
            let mut buffer = Bytes::buffer();
            buffer.extend(text);
            buffer.bytes_mut().make_ascii_lowercase();
            Some(Value::Str(buffer.into()))
        }
        _ => None,
    }
}

impl Edge {
    #[inline]
    fn of(self, text: &[u8], pattern: &[u8], any_case: bool) -> bool {
        let Some(rest) = text.len().checked_sub(pattern.len()) else {
            return false;
        };
        let part = match self {
            Edge::Beginning => &text[..pattern.len()],
            Edge::End => &text[rest..],
        };
        if any_case {
            part.eq_ignore_ascii_case(pattern)
        } else {
            part == pattern
        }
    }
}

/// Whether the pattern occurs in the text with delimiters or the text's ends on both sides.
fn is_between(text: &[u8], pattern: &[u8], delimiters: &[u8]) -> bool {
    if pattern.is_empty() {
        return false;
    }
    let mut after_delimiters =
        (0..text.len()).filter(|at| *at == 0 || delimiters.contains(&text[at - 1]));
    after_delimiters.any(|at| {
        let closing = text.get(at + pattern.len());
        text[at..].starts_with(pattern) && closing.is_none_or(|byte| delimiters.contains(byte))
    })
}

/// Searches many texts at once.
fn anywhere(texts: Vec<Box<[u8]>>) -> Patterns {
    match AhoCorasick::new(&texts) {
        Ok(automaton) if texts.len() > FEW_MAX => Patterns::AnyPart(Box::new(automaton)),
        _ => Patterns::Anywhere(
            texts
                .iter()
                .map(|text| Finder::new(text).into_owned())
                .collect(),
        ),
    }
}

/// Delimiters at the ends of a pattern are ignored.
fn between(delimiters: &'static [u8], texts: Vec<Box<[u8]>>) -> Patterns {
    let texts = texts.iter().map(|text| trimmed(text, delimiters).into());
    Patterns::Between(delimiters, texts.collect())
}

fn texts<P: AsRef<[u8]>>(patterns: &[P], ignore_case: bool) -> Vec<Box<[u8]>> {
    let fold = |text: &P| {
        let mut bytes: Box<[u8]> = text.as_ref().into();
        if ignore_case {
            bytes.make_ascii_lowercase();
        }
        bytes
    };
    patterns.iter().map(fold).collect()
}

fn each<T, P: AsRef<[u8]>>(
    patterns: &[P],
    parse: impl Fn(&[u8]) -> Result<T, String>,
) -> Result<Vec<T>, (usize, String)> {
    let parsed = patterns
        .iter()
        .enumerate()
        .map(|(index, text)| parse(text.as_ref()).map_err(|message| (index, message)));
    parsed.collect()
}

/// Parses patterns that are numbers or addresses.
fn each_text<T, P: AsRef<[u8]>>(
    patterns: &[P],
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, (usize, String)> {
    each(patterns, |text| parse(&readable(text).to_string()))
}

/// Networks as sorted ranges that do not overlap. Masks with holes are compared one by one.
#[derive(Debug, Default)]
struct Networks {
    v4: Vec<(u32, u32)>,
    v6: Vec<(u128, u128)>,
    holed: Vec<(u32, u32)>,
}

impl Networks {
    fn new(networks: &[Network]) -> Networks {
        let mut set = Networks::default();
        for network in networks {
            match *network {
                Network::V4 { address, mask } if length_of(mask).is_some() => {
                    set.v4.push((address, address | !mask));
                }
                Network::V4 { address, mask } => set.holed.push((address, mask)),
                Network::V6 { address, bits } => set.v6.push((address, address | !prefix6(bits))),
            }
        }
        set.v4 = merged(set.v4);
        set.v6 = merged(set.v6);
        set
    }

    fn contain4(&self, ip: Ipv4Addr) -> bool {
        let ip = u32::from(ip);
        contains(&self.v4, ip)
            || self
                .holed
                .iter()
                .any(|(address, mask)| ip & mask == *address)
    }

    fn contain6(&self, ip: Ipv6Addr) -> bool {
        contains(&self.v6, u128::from(ip))
    }
}

fn merged<T: Ord + Copy>(mut ranges: Vec<(T, T)>) -> Vec<(T, T)> {
    ranges.sort_unstable();
    let mut out: Vec<(T, T)> = Vec::with_capacity(ranges.len());
    for (min, max) in ranges {
        match out.last_mut() {
            Some(last) if min <= last.1 => last.1 = last.1.max(max),
            _ => out.push((min, max)),
        }
    }
    out
}

fn contains<T: Ord + Copy>(ranges: &[(T, T)], value: T) -> bool {
    let after = ranges.partition_point(|(min, _)| *min <= value);
    after > 0 && value <= ranges[after - 1].1
}
