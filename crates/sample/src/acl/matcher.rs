//! Matching methods and their patterns (manual §7.1).
//!
//! A set of patterns is made for its method: exact texts are hashed, addresses are sorted ranges, regular expressions
//! one automaton. Prefixes, suffixes and the like are compared one by one.

use std::collections::HashSet;
use std::net::{Ipv4Addr, Ipv6Addr};

use regex::bytes::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};

use crate::cast::{Cast, cast, cast_of, embedded_ipv4, method_of};
use crate::compile::mask4_of;
use crate::text::parse_int;
use crate::{Bytes, Kind, Value};

/// A matching method (`-m`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// There is a value.
    Found,
    /// It is not 0.
    Bool,
    /// An integer in a range.
    Int,
    /// An address in a network.
    Ip,
    /// The same bytes.
    Bin,
    /// A length in a range.
    Len,
    /// The same text.
    Str,
    /// It begins with it.
    Beg,
    /// It contains it.
    Sub,
    /// It is one of the parts between slashes.
    Dir,
    /// It is one of the parts between dots.
    Dom,
    /// It ends with it.
    End,
    /// A regular expression matches.
    Reg,
    /// The same HTTP method. Only of the keyword `method`.
    Verb,
    /// A version `major.minor` in a range. Only of keywords.
    Version,
}

/// Methods by the name that `-m` gives them.
pub(crate) const METHODS: &[(&str, Method)] = &[
    ("found", Method::Found),
    ("bool", Method::Bool),
    ("int", Method::Int),
    ("ip", Method::Ip),
    ("bin", Method::Bin),
    ("len", Method::Len),
    ("str", Method::Str),
    ("beg", Method::Beg),
    ("sub", Method::Sub),
    ("dir", Method::Dir),
    ("dom", Method::Dom),
    ("end", Method::End),
    ("reg", Method::Reg),
];

impl Method {
    /// The type a sample is cast to before it is compared.
    pub(crate) fn kind(self) -> Kind {
        match self {
            Method::Found => Kind::Any,
            Method::Bool | Method::Int | Method::Version => Kind::Int,
            Method::Ip => Kind::Addr,
            Method::Bin => Kind::Bin,
            Method::Verb => Kind::Method,
            _ => Kind::Str,
        }
    }

    /// Whether samples of this type can be compared this way.
    pub(crate) fn suits(self, kind: Kind) -> bool {
        cast_of(kind, self.kind()) != Cast::Never
    }

    /// The method of a type when none is given.
    pub(crate) fn default_of(kind: Kind) -> Option<Method> {
        match kind {
            Kind::Bool => Some(Method::Bool),
            Kind::Int => Some(Method::Int),
            Kind::Addr | Kind::Ipv4 | Kind::Ipv6 => Some(Method::Ip),
            Kind::Str => Some(Method::Str),
            Kind::Any | Kind::Bin | Kind::Method => None,
        }
    }

    /// Whether it compares with patterns at all.
    pub(crate) fn has_patterns(self) -> bool {
        !matches!(self, Method::Found | Method::Bool)
    }

    /// Whether patterns are numbers, which operators (`gt`, `le`, …) may stand before.
    pub(crate) fn takes_operators(self) -> bool {
        matches!(self, Method::Int | Method::Len | Method::Version)
    }
}

/// Patterns, ready to be compared with.
#[derive(Debug)]
pub(crate) struct Matcher {
    kind: Kind,
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
    Parts(Part, Vec<Box<[u8]>>),
    Regexes(Box<RegexSet>),
    Methods(Vec<Box<[u8]>>),
}

/// Texts to be equal to. A few are compared faster than one is hashed.
#[derive(Debug)]
enum Exact {
    Few(Vec<Box<[u8]>>),
    Many(HashSet<Box<[u8]>>),
}

/// Up to this many texts are compared one by one.
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

/// Which part of a text a pattern is compared with.
#[derive(Clone, Copy, Debug)]
enum Part {
    Beginning,
    End,
    Anywhere,
    /// Between these bytes.
    Between(&'static [u8]),
}

/// An inclusive range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    pub min: i64,
    pub max: i64,
}

impl Matcher {
    /// Makes the matcher of a method's patterns.
    ///
    /// # Errors
    /// The index of the faulty pattern and what is wrong with it.
    pub(crate) fn new(
        method: Method,
        ignore_case: bool,
        patterns: &[String],
    ) -> Result<Matcher, (usize, String)> {
        let patterns = match method {
            Method::Found => Patterns::Found,
            Method::Bool => Patterns::NotZero,
            Method::Int => Patterns::Ranges(each(patterns, Range::parse)?),
            Method::Version => Patterns::Ranges(each(patterns, Range::parse_version)?),
            Method::Len => Patterns::Lengths(each(patterns, Range::parse)?),
            Method::Ip => Patterns::Networks(Networks::new(&each(patterns, Network::parse)?)),
            Method::Bin => Patterns::Exact(Exact::new(each(patterns, |text| {
                crate::convert::coding::from_hex(text.as_bytes())
                    .map(Vec::into_boxed_slice)
                    .ok_or_else(|| format!("bad hexadecimal value '{text}'"))
            })?)),
            Method::Str => Patterns::Exact(Exact::new(texts(patterns, ignore_case))),
            Method::Beg => Patterns::Parts(Part::Beginning, texts(patterns, ignore_case)),
            Method::End => Patterns::Parts(Part::End, texts(patterns, ignore_case)),
            Method::Sub => Patterns::Parts(Part::Anywhere, texts(patterns, ignore_case)),
            Method::Dir => between(b"/?", texts(patterns, ignore_case)),
            Method::Dom => between(b"/?.:", texts(patterns, ignore_case)),
            Method::Reg => Patterns::Regexes(Box::new(regex_set(patterns, ignore_case)?)),
            Method::Verb => Patterns::Methods(texts(patterns, false)),
        };
        Ok(Matcher {
            kind: method.kind(),
            ignore_case,
            patterns,
        })
    }

    /// Whether the sample matches one of the patterns.
    pub(crate) fn matches(&self, value: Value<'_>) -> bool {
        let Some(value) = cast(value, self.kind) else {
            return false;
        };
        match (&self.patterns, value) {
            (Patterns::Found, _) => true,
            (Patterns::NotZero, Value::Int(value)) => value != 0,
            (Patterns::NotZero, Value::Bool(value)) => value,
            (Patterns::Ranges(ranges), Value::Int(value)) => {
                ranges.iter().any(|range| range.contains(value))
            }
            (Patterns::Lengths(ranges), Value::Str(text)) => {
                ranges.iter().any(|range| range.contains(text.len() as i64))
            }
            (Patterns::Networks(networks), Value::Ipv4(ip)) => {
                networks.contain4(ip) || networks.contain6(ip.to_ipv6_mapped())
            }
            (Patterns::Networks(networks), Value::Ipv6(ip)) => {
                networks.contain6(ip) || embedded_ipv4(ip).is_some_and(|ip| networks.contain4(ip))
            }
            (Patterns::Exact(set), Value::Str(text) | Value::Bin(text)) => {
                set.contains(&self.folded(text))
            }
            (Patterns::Parts(part, patterns), Value::Str(text)) => {
                let text = self.folded(text);
                patterns.iter().any(|pattern| part.of(&text, pattern))
            }
            (Patterns::Regexes(set), Value::Str(text)) => set.is_match(&text),
            (Patterns::Methods(names), Value::Method(method, name)) => names.iter().any(|known| {
                **known == *name
                    || (method == http::Method::Other
                        && self.ignore_case
                        && known.eq_ignore_ascii_case(&name))
                    || (method != http::Method::Other && method_of(known) == method)
            }),
            _ => false,
        }
    }

    /// The text in lower case where patterns are.
    fn folded<'a>(&self, text: Bytes<'a>) -> Bytes<'a> {
        if !self.ignore_case || !text.iter().any(u8::is_ascii_uppercase) || self.kind == Kind::Bin {
            return text;
        }
        let mut buffer = text.into_buffer();
        buffer.bytes_mut().make_ascii_lowercase();
        buffer.into()
    }
}

impl Part {
    fn of(self, text: &[u8], pattern: &[u8]) -> bool {
        match self {
            Part::Beginning => text.starts_with(pattern),
            Part::End => text.ends_with(pattern),
            Part::Anywhere => memchr::memmem::find(text, pattern).is_some(),
            Part::Between(delimiters) => is_between(text, pattern, delimiters),
        }
    }
}

/// Whether the pattern stands in the text with delimiters or the text's ends on both sides.
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

/// Delimiters around a pattern mean nothing.
fn between(delimiters: &'static [u8], texts: Vec<Box<[u8]>>) -> Patterns {
    let trimmed = texts.into_iter().map(|text| {
        let is_delimiter = |byte: &u8| delimiters.contains(byte);
        let start = text.iter().take_while(|byte| is_delimiter(byte)).count();
        let end = text.len()
            - text[start..]
                .iter()
                .rev()
                .take_while(|byte| is_delimiter(byte))
                .count();
        text[start..end].into()
    });
    Patterns::Parts(Part::Between(delimiters), trimmed.collect())
}

fn texts(patterns: &[String], ignore_case: bool) -> Vec<Box<[u8]>> {
    let fold = |text: &String| {
        if ignore_case {
            text.to_ascii_lowercase()
        } else {
            text.clone()
        }
    };
    patterns
        .iter()
        .map(|text| fold(text).into_bytes().into_boxed_slice())
        .collect()
}

fn each<T>(
    patterns: &[String],
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, (usize, String)> {
    let parsed = patterns
        .iter()
        .enumerate()
        .map(|(index, text)| parse(text).map_err(|message| (index, message)));
    parsed.collect()
}

/// Compiles a regular expression that works on bytes.
///
/// # Errors
/// What the regular expression library has against it.
pub fn regex(pattern: &str, ignore_case: bool) -> Result<Regex, String> {
    RegexBuilder::new(pattern)
        .unicode(false)
        .case_insensitive(ignore_case)
        .build()
        .map_err(|error| {
            format!(
                "regex '{pattern}' is invalid: {}",
                last_line(&error.to_string())
            )
        })
}

fn regex_set(patterns: &[String], ignore_case: bool) -> Result<RegexSet, (usize, String)> {
    // One by one first, so that the faulty one is known.
    each(patterns, |pattern| regex(pattern, ignore_case))?;
    RegexSetBuilder::new(patterns)
        .unicode(false)
        .case_insensitive(ignore_case)
        .build()
        .map_err(|error| (0, format!("the regular expressions are too big: {error}")))
}

fn last_line(text: &str) -> &str {
    text.lines().last().unwrap_or(text)
}

impl Range {
    fn contains(self, value: i64) -> bool {
        self.min <= value && value <= self.max
    }

    /// `n`, `n:m`, `n:`, `:m`; `-` separates as well.
    fn parse(text: &str) -> Result<Range, String> {
        let invalid = || format!("'{text}' is not a valid number range");
        let number = |text: &str| parse_int(text).ok_or_else(invalid);
        let Some((min, max)) = text.split_once([':', '-']) else {
            let value = parse_int(text).ok_or_else(|| format!("'{text}' is not a number"))?;
            return Ok(Range {
                min: value,
                max: value,
            });
        };
        let range = match (min, max) {
            ("", "") => return Err(invalid()),
            ("", max) => Range {
                min: i64::MIN,
                max: number(max)?,
            },
            (min, "") => Range {
                min: number(min)?,
                max: i64::MAX,
            },
            (min, max) => Range {
                min: number(min)?,
                max: number(max)?,
            },
        };
        if range.min > range.max {
            Err(invalid())
        } else {
            Ok(range)
        }
    }

    /// As [`Range::parse`] with versions `major.minor`, each as `major << 16 | minor`.
    fn parse_version(text: &str) -> Result<Range, String> {
        let invalid = || format!("'{text}' is not a valid version range");
        let number = |text: &str| {
            let (major, minor) = text.split_once('.').unwrap_or((text, "0"));
            let part = |text: &str| text.parse::<u16>().map_err(|_| invalid());
            Ok::<i64, String>(i64::from(part(major)?) << 16 | i64::from(part(minor)?))
        };
        match text.split_once([':', '-']) {
            None => number(text).map(|value| Range {
                min: value,
                max: value,
            }),
            Some(("", max)) => Ok(Range {
                min: i64::MIN,
                max: number(max)?,
            }),
            Some((min, "")) => Ok(Range {
                min: number(min)?,
                max: i64::MAX,
            }),
            Some((min, max)) => Ok(Range {
                min: number(min)?,
                max: number(max)?,
            }),
        }
    }
}

/// A network of patterns.
#[derive(Clone, Copy, Debug)]
enum Network {
    V4 { address: u32, mask: u32 },
    V6 { address: u128, bits: u32 },
}

impl Network {
    fn parse(text: &str) -> Result<Network, String> {
        let invalid = || format!("'{text}' is not a valid IPv4 or IPv6 address");
        let (address, mask) = text.split_once('/').unwrap_or((text, ""));
        if let Some(address) = ipv4_prefix(address) {
            let mask = if mask.is_empty() {
                u32::MAX
            } else {
                u32::from(mask4_of(mask).ok_or_else(invalid)?)
            };
            return Ok(Network::V4 {
                address: address & mask,
                mask,
            });
        }
        let address: Ipv6Addr = address.parse().map_err(|_| invalid())?;
        let bits = if mask.is_empty() {
            128
        } else {
            mask.parse()
                .ok()
                .filter(|bits| *bits <= 128)
                .ok_or_else(invalid)?
        };
        Ok(Network::V6 {
            address: u128::from(address) & prefix6(bits),
            bits,
        })
    }
}

/// An IPv4 address; missing octets at its end are 0.
fn ipv4_prefix(text: &str) -> Option<u32> {
    let mut octets = [0; 4];
    let mut count = 0;
    for part in text.split('.') {
        *octets.get_mut(count)? = part.parse::<u8>().ok()?;
        count += 1;
    }
    (count > 0).then(|| u32::from_be_bytes(octets))
}

fn prefix6(bits: u32) -> u128 {
    u128::MAX.checked_shl(128 - bits).unwrap_or(0)
}

/// Networks as sorted ranges that do not overlap; masks with holes are compared one by one.
#[derive(Debug, Default)]
struct Networks {
    v4: Vec<(u128, u128)>,
    v6: Vec<(u128, u128)>,
    holed: Vec<(u32, u32)>,
}

impl Networks {
    fn new(networks: &[Network]) -> Networks {
        let mut set = Networks::default();
        for network in networks {
            match *network {
                Network::V4 { address, mask }
                    if mask.leading_ones() + mask.trailing_zeros() >= 32 =>
                {
                    set.v4.push((address.into(), (address | !mask).into()));
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
        contains(&self.v4, ip.into())
            || self
                .holed
                .iter()
                .any(|(address, mask)| ip & mask == *address)
    }

    fn contain6(&self, ip: Ipv6Addr) -> bool {
        contains(&self.v6, ip.into())
    }
}

fn merged(mut ranges: Vec<(u128, u128)>) -> Vec<(u128, u128)> {
    ranges.sort_unstable();
    let mut out: Vec<(u128, u128)> = Vec::with_capacity(ranges.len());
    for (min, max) in ranges {
        match out.last_mut() {
            Some(last) if min <= last.1 => last.1 = last.1.max(max),
            _ => out.push((min, max)),
        }
    }
    out
}

fn contains(ranges: &[(u128, u128)], value: u128) -> bool {
    let after = ranges.partition_point(|(min, _)| *min <= value);
    after > 0 && value <= ranges[after - 1].1
}
