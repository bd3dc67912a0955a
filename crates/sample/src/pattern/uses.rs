//! One use of a pattern set: its keys, compiled for a matching method.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::hash::Direction;
use super::method::Method;
use super::networks::Networks;
use super::numbers::Numbers;
use super::parse::{Network, Range};
use super::parts::Parts;
use super::regex::Regex;
use super::store::Store;
use super::texts::{DIR_DELIMITERS, DOM_DELIMITERS, Prefer, Texts, View};
use crate::Value;
use crate::cast::method_of;
use syntax::hex;

/// How keys are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct How {
    /// The matching method.
    pub method: Method,
    /// `-i`.
    pub ignore_case: bool,
    /// `-n`: an incomplete address is refused.
    pub strict_addresses: bool,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Use {
    pub how: How,
    patterns: Patterns,
}

#[derive(Debug)]
enum Patterns {
    /// `found` and `bool` have no patterns.
    Nothing,
    /// The set's own table of keys is used.
    Keys,
    Texts(Texts),
    Parts(Parts),
    /// Names of HTTP methods, in the order of the entries.
    Methods(BTreeMap<u64, (u32, Box<[u8]>)>),
    Numbers(Numbers),
    Networks(Box<Networks>),
    /// Regular expressions, in the order of the entries.
    Regexes(BTreeMap<u64, (u32, Regex)>),
}

/// The result of checking a key: its compiled regular expression, if the method has one.
pub(super) type Checked = Option<Regex>;

impl How {
    /// Whether texts are compared in lower case.
    pub(super) fn folds(self) -> bool {
        self.ignore_case && self.method.folds()
    }

    /// Checks whether a key is a valid pattern for this method.
    ///
    /// # Errors
    /// HAProxy's message.
    pub(super) fn check(self, key: &[u8]) -> Result<Checked, String> {
        let text = String::from_utf8_lossy(key);
        match self.method {
            Method::Int | Method::Len => drop(Range::parse(&text)?),
            Method::Version => drop(Range::parse_version(&text)?),
            Method::Ip => drop(Network::parse(&text, !self.strict_addresses)?),
            Method::Bin if hex::decode(key).is_none() => return Err(bad_hex(key)),
            Method::Reg => return super::regex::compile_bytes(key, self.ignore_case).map(Some),
            _ => {}
        }
        Ok(None)
    }

    fn folded(self, key: &[u8]) -> Box<[u8]> {
        if self.ignore_case {
            key.to_ascii_lowercase().into()
        } else {
            key.into()
        }
    }
}

/// The message for a pattern that is not hexadecimal.
pub(super) fn bad_hex(key: &[u8]) -> String {
    if key.len() % 2 == 1 {
        return "an even number of hex digit is expected".to_owned();
    }
    let bad = key.iter().position(|digit| !digit.is_ascii_hexdigit());
    let rest = String::from_utf8_lossy(&key[bad.unwrap_or(0)..]);
    format!(
        "an hex digit is expected (found '{}')",
        rest.chars().next().unwrap_or(' ')
    )
}

impl Use {
    /// An empty use with room for this many entries.
    pub(super) fn new(how: How, room: usize) -> Use {
        let texts =
            |view, direction| Patterns::Texts(Texts::new(view, how.ignore_case, direction, room));
        let patterns = match how.method {
            Method::Found | Method::Bool => Patterns::Nothing,
            Method::Str | Method::Beg if !how.ignore_case => Patterns::Keys,
            Method::Str | Method::Beg => texts(View::Whole, Direction::Forward),
            Method::End => texts(View::Whole, Direction::Backward),
            Method::Dir => texts(View::Without(DIR_DELIMITERS), Direction::Forward),
            Method::Dom => texts(View::Without(DOM_DELIMITERS), Direction::Forward),
            Method::Bin => Patterns::Texts(Texts::new(View::Hex, false, Direction::Forward, room)),
            Method::Sub => Patterns::Parts(Parts::default()),
            Method::Verb => Patterns::Methods(BTreeMap::new()),
            Method::Int | Method::Len => Patterns::Numbers(Numbers::new(Range::parse, room)),
            Method::Version => Patterns::Numbers(Numbers::new(Range::parse_version, room)),
            Method::Ip => Patterns::Networks(Box::new(Networks::new(!how.strict_addresses, room))),
            Method::Reg => Patterns::Regexes(BTreeMap::new()),
        };
        Use { how, patterns }
    }

    /// Adds an entry whose key was checked.
    pub(super) fn insert(&mut self, store: &Store, number: u32, checked: Checked) {
        match &mut self.patterns {
            Patterns::Nothing | Patterns::Keys => {}
            Patterns::Texts(texts) => texts.insert(store, number),
            Patterns::Parts(parts) => {
                parts.insert(store, number, self.how.folded(store.key(number)));
            }
            Patterns::Methods(names) => {
                names.insert(store.order(number), (number, store.key(number).into()));
            }
            Patterns::Numbers(numbers) => numbers.insert(store, number),
            Patterns::Networks(networks) => networks.insert(store, number),
            Patterns::Regexes(regexes) => {
                if let Some(regex) = checked {
                    regexes.insert(store.order(number), (number, regex));
                }
            }
        }
    }

    /// All entries of a file were added.
    pub(super) fn seal(&mut self) {
        if let Patterns::Parts(parts) = &mut self.patterns {
            parts.seal();
        }
    }

    /// Removes an entry, which is still in the store.
    pub(super) fn remove(&mut self, store: &Store, number: u32) {
        match &mut self.patterns {
            Patterns::Nothing | Patterns::Keys => {}
            Patterns::Texts(texts) => texts.remove(store, number),
            Patterns::Parts(parts) => parts.remove(store, number),
            Patterns::Methods(names) => drop(names.remove(&store.order(number))),
            Patterns::Numbers(numbers) => numbers.remove(store, number),
            Patterns::Networks(networks) => networks.remove(store, number),
            Patterns::Regexes(regexes) => drop(regexes.remove(&store.order(number))),
        }
    }

    /// The entry that matches a value. The value was cast to the method's type, and to lower case
    /// if case is ignored.
    pub(super) fn find(&self, keys: &Texts, store: &Store, value: &Value<'_>) -> Option<u32> {
        match (&self.patterns, value) {
            (Patterns::Keys, Value::Str(text)) => match self.how.method {
                Method::Beg => keys.find_part(store, text, Prefer::Longest),
                _ => keys.find(store, text),
            },
            (Patterns::Texts(texts), Value::Str(text) | Value::Bin(text)) => {
                match self.how.method {
                    Method::Beg | Method::End => texts.find_part(store, text, Prefer::First),
                    Method::Dir => texts.find_between(store, text, DIR_DELIMITERS),
                    Method::Dom => texts.find_between(store, text, DOM_DELIMITERS),
                    _ => texts.find(store, text),
                }
            }
            (Patterns::Parts(parts), Value::Str(text)) => parts.find(text),
            (Patterns::Methods(names), Value::Method(method, name)) => {
                let is = |known: &[u8]| match (method, self.how.ignore_case) {
                    (http::Method::Other, true) => known.eq_ignore_ascii_case(name),
                    (http::Method::Other, false) => *known == **name,
                    (method, _) => method_of(known) == *method,
                };
                let mut all = names.values();
                all.find(|(_, known)| is(known)).map(|(number, _)| *number)
            }
            (Patterns::Numbers(numbers), Value::Int(value)) => numbers.find(store, *value),
            (Patterns::Numbers(numbers), Value::Str(text)) => {
                numbers.find(store, text.len() as i64)
            }
            (Patterns::Networks(networks), Value::Ipv4(ip)) => {
                networks.find(store, IpAddr::V4(*ip))
            }
            (Patterns::Networks(networks), Value::Ipv6(ip)) => {
                networks.find(store, IpAddr::V6(*ip))
            }
            (Patterns::Regexes(regexes), Value::Str(text)) => {
                let mut all = regexes.values();
                all.find(|(_, regex)| regex.is_match(text))
                    .map(|(number, _)| *number)
            }
            _ => None,
        }
    }

    /// The regular expression of an entry, if the method uses one.
    pub(super) fn regex(&self, store: &Store, number: u32) -> Option<&Regex> {
        match &self.patterns {
            Patterns::Regexes(regexes) => regexes.get(&store.order(number)).map(|(_, regex)| regex),
            _ => None,
        }
    }

    /// The size in memory, in bytes, without regular expressions.
    pub(super) fn bytes(&self) -> usize {
        match &self.patterns {
            Patterns::Nothing | Patterns::Keys | Patterns::Regexes(_) => 0,
            Patterns::Texts(texts) => texts.bytes(),
            Patterns::Parts(parts) => parts.bytes(),
            Patterns::Methods(names) => names.values().map(|(_, name)| name.len() + 40).sum(),
            Patterns::Numbers(numbers) => numbers.bytes(),
            Patterns::Networks(networks) => networks.bytes(),
        }
    }
}
