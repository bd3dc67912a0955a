//! What `attributes` and `resource` do to attributes.

use otlp::scan::Any;
use otlp::write;
use regex_automata::meta::Regex;
use regex_automata::{Input, PatternID};
use sha2::{Digest, Sha256};
use syntax::hex;

use super::edit::text::{double_of, int_of, text_of};
use super::edit::{List, Val, encode, encoded_text};
use crate::config::components::processors::action::{Action, Source, Type, When};
use crate::config::components::shared::context::Context;
use crate::config::pattern;
use crate::run::origin::{self, Origin};

/// Actions that are done one after the other.
#[derive(Debug)]
pub struct Actions(Vec<Compiled>);

#[derive(Debug)]
enum Compiled {
    Set {
        key: Box<[u8]>,
        source: Given,
        when: When,
    },
    Delete(Keys),
    Hash(Keys),
    Extract {
        key: Box<[u8]>,
        regex: Regex,
        /// Names of the groups from 1 on.
        groups: Vec<Box<[u8]>>,
    },
    Convert {
        key: Box<[u8]>,
        to: Type,
    },
}

#[derive(Debug)]
enum Given {
    /// An `AnyValue`.
    Value(Box<[u8]>),
    Attribute(Box<[u8]>),
    Context(Context),
}

/// A key, and those that match.
#[derive(Debug)]
struct Keys {
    key: Option<Box<[u8]>>,
    pattern: Option<Regex>,
}

impl Actions {
    /// Compiles them.
    ///
    /// # Errors
    /// Which expression cannot be compiled, and why.
    pub fn new(actions: &[Action]) -> Result<Actions, String> {
        let actions = actions.iter().map(compile);
        actions.collect::<Result<_, _>>().map(Actions)
    }

    /// Does all of them, to data of this origin.
    pub fn apply<'a>(&'a self, list: &mut List<'a>, origin: Option<&Origin>) {
        for action in &self.0 {
            match action {
                Compiled::Set { key, source, when } => {
                    if let Some(value) = value(list, source, origin) {
                        set(list, key, value, *when);
                    }
                }
                Compiled::Delete(keys) => keys.each(list, List::remove),
                Compiled::Hash(keys) => keys.each(list, hash),
                Compiled::Extract { key, regex, groups } => extract(list, key, regex, groups),
                Compiled::Convert { key, to } => convert(list, key, *to),
            }
        }
    }
}

fn compile(action: &Action) -> Result<Compiled, String> {
    let boxed = |text: &str| -> Box<[u8]> { text.as_bytes().into() };
    let keys = |key: &str, pattern: &Option<String>| -> Result<Keys, String> {
        Ok(Keys {
            key: (!key.is_empty()).then(|| boxed(key)),
            pattern: pattern.as_deref().map(pattern::compile).transpose()?,
        })
    };
    Ok(match action {
        Action::Set { key, source, when } => Compiled::Set {
            key: boxed(key),
            when: *when,
            source: match source {
                Source::Attribute(name) => Given::Attribute(boxed(name)),
                Source::Context(context) => Given::Context(context.clone()),
                Source::Value(value) => {
                    let mut bytes = Vec::new();
                    encode(value, &mut bytes);
                    Given::Value(bytes.into())
                }
            },
        },
        Action::Delete { key, pattern } => Compiled::Delete(keys(key, pattern)?),
        Action::Hash { key, pattern } => Compiled::Hash(keys(key, pattern)?),
        Action::Extract { key, pattern } => {
            let regex = pattern::compile(pattern)?;
            let names = regex.group_info().pattern_names(PatternID::ZERO).skip(1);
            let groups = names.map(|name| boxed(name.unwrap_or_default())).collect();
            Compiled::Extract {
                key: boxed(key),
                regex,
                groups,
            }
        }
        Action::Convert { key, to } => Compiled::Convert {
            key: boxed(key),
            to: *to,
        },
    })
}

/// None where there is nothing to be set.
fn value<'a>(list: &mut List<'a>, source: &'a Given, origin: Option<&Origin>) -> Option<Val<'a>> {
    match source {
        Given::Value(bytes) => Some(Val::Whole(bytes)),
        Given::Attribute(name) => list.find(name).map(|place| list.val(place)),
        Given::Context(context) => {
            let text = origin::text(origin, context)?;
            Some(list.make_text(text.as_bytes()))
        }
    }
}

fn set<'a>(list: &mut List<'a>, key: &'a [u8], value: Val<'a>, when: When) {
    match (when, list.find(key)) {
        (When::Missing | When::Always, None) => list.put(key, value),
        (When::Present | When::Always, Some(place)) => list.set(place, value),
        (When::Missing, Some(_)) | (When::Present, None) => {}
    }
}

impl Keys {
    /// Calls `work` with the place of the key, then with those of all that match: with the key's
    /// once more, as the Collector does.
    fn each<'a>(&self, list: &mut List<'a>, work: impl Fn(&mut List<'a>, usize)) {
        if let Some(place) = self.key.as_ref().and_then(|key| list.find(key)) {
            work(list, place);
        }
        if let Some(pattern) = &self.pattern {
            for place in list.places() {
                if list.name(place).is_some_and(|name| pattern.is_match(name)) {
                    work(list, place);
                }
            }
        }
    }
}

/// SHA-256 in hexadecimal: of a text's bytes, of a flag as one byte, of a number as 8 bytes, the
/// lowest first. What is empty or none of these becomes an empty text.
fn hash(list: &mut List<'_>, place: usize) {
    let digest = match list.any(place) {
        Any::Text(text) if !text.is_empty() => Some(Sha256::digest(text)),
        Any::Bool(value) => Some(Sha256::digest([u8::from(value)])),
        Any::Int(value) => Some(Sha256::digest(value.to_le_bytes())),
        Any::Double(value) => Some(Sha256::digest(value.to_le_bytes())),
        _ => None,
    };
    let text = digest.map(|digest| hex::text(&digest)).unwrap_or_default();
    let value = list.make_text(text.as_bytes());
    list.set(place, value);
}

fn extract<'a>(list: &mut List<'a>, key: &[u8], regex: &Regex, groups: &'a [Box<[u8]>]) {
    let Some(Any::Text(text)) = list.get(key) else {
        return;
    };
    let mut slots = vec![None; 2 * (groups.len() + 1)];
    if regex.search_slots(&Input::new(text), &mut slots).is_none() {
        return;
    }
    // Setting one may overwrite the text itself.
    let found: Vec<Vec<u8>> = (1..=groups.len())
        .map(|group| match (slots[2 * group], slots[2 * group + 1]) {
            (Some(from), Some(to)) => text[from.get()..to.get()].to_vec(),
            // A group that took no part is an empty text.
            _ => Vec::new(),
        })
        .collect();
    for (name, text) in groups.iter().zip(found) {
        let value = list.make_text(&text);
        list.put(name, value);
    }
}

fn convert(list: &mut List<'_>, key: &[u8], to: Type) {
    let Some(place) = list.find(key) else { return };
    let mut made = Vec::new();
    match (to, list.any(place)) {
        (Type::Text, Any::Text(_)) | (Type::Int, Any::Int(_)) | (Type::Double, Any::Double(_)) => {
            return;
        }
        (Type::Text, value) => encoded_text(&text_of(value), &mut made),
        // Go leaves open what a number is that does not fit; here it is the nearest that does.
        (Type::Int, Any::Double(value)) => int(value as i64, &mut made),
        (Type::Int, Any::Bool(value)) => int(i64::from(value), &mut made),
        (Type::Int, Any::Text(text)) => match int_of(text) {
            Some(value) => int(value, &mut made),
            None => return,
        },
        (Type::Double, Any::Int(value)) => write::double(&mut made, 4, value as f64),
        (Type::Double, Any::Bool(value)) => write::double(&mut made, 4, f64::from(u8::from(value))),
        (Type::Double, Any::Text(text)) => match double_of(text) {
            Some(value) => write::double(&mut made, 4, value),
            None => return,
        },
        (Type::Int | Type::Double, _) => return,
    }
    let value = list.make(|out| out.extend_from_slice(&made));
    list.set(place, value);
}

fn int(value: i64, out: &mut Vec<u8>) {
    write::uint(out, 3, value as u64);
}
