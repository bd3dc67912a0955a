//! Maps: attributes of a message, or maps within them.

use otlp::scan::Any;
use otlp::write;
use ottl::{
    ENTRIES, Failure, Form, Found, Message, Path, Replace, Strategy, Subject, Value, check_depth,
};

use super::super::edit::text::text_of;
use super::super::edit::{Fields, List, Outcome, last_bytes, replace_field};
use super::list::with_item;

/// Changes the map that a path leads to: the message that it is in, whose new bytes are appended to
/// `out`.
///
/// # Errors
/// The path leads to no map, or `change` fails.
pub fn edit(
    path: &Path,
    subject: &Subject<'_, '_, '_>,
    out: &mut Vec<u8>,
    change: impl FnOnce(&mut List<'_>) -> Result<(), Failure>,
) -> Result<Option<Message>, Failure> {
    let (message, form) = path.written(subject);
    let before = message.bytes(subject);
    match form {
        Form::Nothing => return Ok(None),
        Form::Attributes(key) if !path.has_keys() => {
            return Ok(changed(before, key, out, change)?.then_some(message));
        }
        Form::Attributes(_) | Form::Any(_) => {}
        _ => return Err(Failure::Type),
    }
    let Value::Map(inner, inner_key) = path.get(subject)? else {
        return Err(Failure::Type);
    };
    let mut map = Vec::new();
    if !changed(&inner, inner_key, &mut map, change)? {
        return Ok(None);
    }
    let mut any = Vec::new();
    Value::Map(map.into(), inner_key).encode(&mut any)?;
    put_at(before, form, &path.keys(subject)?, &any, out)?;
    Ok(Some(message))
}

/// Appends a message with another value, an `AnyValue`, where keys lead within its attributes or
/// within one of its values.
///
/// # Errors
/// As [`put`]; also where a value that is neither map nor list has keys.
pub fn put_at(
    message: &[u8],
    form: Form,
    keys: &[Found<'_>],
    any: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), Failure> {
    match form {
        Form::Attributes(key) => put(message, key, keys, any, out),
        Form::Any(number) => {
            let old = last_bytes(message, number << 3 | 2).map_err(|_| Failure::Type)?;
            let old = old.unwrap_or_default();
            if !keys.is_empty() && Any::read(old) == Any::Empty {
                return Err(Failure::Type);
            }
            let new = put_within(old, keys, any)?;
            check_depth(&new)?;
            replace_field(message, number, out, |out| write::bytes(out, number, &new));
            Ok(())
        }
        _ => Err(Failure::Type),
    }
}

/// Appends a message whose attributes were changed; false where they were not.
fn changed(
    message: &[u8],
    key: u32,
    out: &mut Vec<u8>,
    change: impl FnOnce(&mut List<'_>) -> Result<(), Failure>,
) -> Result<bool, Failure> {
    let mut list = read(message, key)?;
    change(&mut list)?;
    Ok(list.write(message, key, out) == Outcome::Changed)
}

fn read(message: &[u8], key: u32) -> Result<List<'_>, Failure> {
    let mut list = List::default();
    list.read(message, key).map_err(|_| Failure::Type)?;
    Ok(list)
}

/// Appends a message with another value, an `AnyValue`, where keys lead within its attributes. Maps
/// on the way are made.
///
/// # Errors
/// What is on the way is no map or list, or a list has no such item; the value would be nested too
/// deeply.
pub fn put(
    message: &[u8],
    key: u32,
    keys: &[Found<'_>],
    any: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), Failure> {
    let Some((Found::Name(name), keys)) = keys.split_first() else {
        return Err(Failure::Type);
    };
    let mut list = read(message, key)?;
    let old = list
        .find(name)
        .map_or(&b""[..], |place| list.any_bytes(place));
    let new = put_within(old, keys, any)?;
    check_depth(&new)?;
    let value = list.make(|out| out.extend_from_slice(&new));
    list.put(name, value);
    if list.write(message, key, out) != Outcome::Changed {
        out.extend_from_slice(message);
    }
    Ok(())
}

/// Appends a message with another value of one attribute.
///
/// # Errors
/// The message is malformed.
pub fn set(
    message: &[u8],
    key: u32,
    name: &[u8],
    any: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), Failure> {
    put(message, key, &[Found::Name(name.into())], any, out)
}

/// A value with another one where keys lead within it.
fn put_within(old: &[u8], keys: &[Found<'_>], any: &[u8]) -> Result<Vec<u8>, Failure> {
    let Some((first, rest)) = keys.split_first() else {
        return Ok(any.to_vec());
    };
    let mut out = Vec::new();
    match (first, Any::read(old)) {
        (Found::Name(_), Any::Empty) => {
            let mut map = Vec::new();
            put(b"", ENTRIES, keys, any, &mut map)?;
            write::bytes(&mut out, 6, &map);
        }
        (Found::Name(_), Any::Map(map)) => {
            let mut new = Vec::new();
            put(map, ENTRIES, keys, any, &mut new)?;
            write::bytes(&mut out, 6, &new);
        }
        (Found::Index(index), Any::Array(array)) => {
            let list = with_item(array, *index, |item| put_within(item, rest, any))?;
            write::bytes(&mut out, 5, &list);
        }
        _ => return Err(Failure::Type),
    }
    Ok(out)
}

/// Appends a message whose attributes are the entries of a map.
///
/// # Errors
/// The message is malformed.
pub fn replace(
    message: &[u8],
    key: u32,
    map: &Value<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Failure> {
    let mut list = read(message, key)?;
    // What both have stays where it is.
    retain(&mut list, |name| map.entries().any(|(key, _)| key == name));
    merge(&mut list, map, Strategy::Upsert);
    if list.write(message, key, out) != Outcome::Changed {
        out.extend_from_slice(message);
    }
    Ok(())
}

/// Leaves the keys that are wanted.
pub fn retain(list: &mut List<'_>, wanted: impl Fn(&[u8]) -> bool) {
    for place in list.places() {
        if list.name(place).is_some_and(|name| !wanted(name)) {
            list.remove(place);
        }
    }
}

/// Takes the last ones out that are no priority, until there are no more than `limit`.
pub fn limit(list: &mut List<'_>, limit: usize, priority: &[Vec<u8>]) {
    let is_there = |list: &List<'_>, place| list.name(place).is_some();
    let mut count = list.places().filter(|place| is_there(list, *place)).count();
    for place in list.places().rev() {
        if count <= limit {
            return;
        }
        let is_priority = |name: &[u8]| priority.iter().any(|kept| kept == name);
        if list.name(place).is_some_and(|name| !is_priority(name)) {
            list.remove(place);
            count -= 1;
        }
    }
}

/// Shortens texts to so many bytes, a marker included.
pub fn truncate(list: &mut List<'_>, limit: usize, whole: bool, marker: &[u8]) {
    for place in list.places() {
        let short = match list.any(place) {
            Any::Text(text) if text.len() > limit && list.name(place).is_some() => {
                let mut end = limit - marker.len().min(limit);
                // Bytes that go on with a character begin with the bits 10.
                while whole && end > 0 && text[end] & 0xc0 == 0x80 {
                    end -= 1;
                }
                [&text[..end], marker].concat()
            }
            _ => continue,
        };
        let value = list.make_text(&short);
        list.set(place, value);
    }
}

/// Replaces in all texts.
///
/// # Errors
/// As [`Replace::apply`].
pub fn replace_values(
    list: &mut List<'_>,
    replace: &Replace,
    replacement: &[u8],
) -> Result<(), Failure> {
    for place in list.places() {
        let new = match list.any(place) {
            Any::Text(text) if list.name(place).is_some() => replace.apply(text, replacement)?,
            _ => None,
        };
        if let Some(new) = new {
            let value = list.make_text(&new);
            list.set(place, value);
        }
    }
    Ok(())
}

/// Replaces in all keys. Of two that become the same the later one's value counts, at the earlier
/// one's place.
///
/// # Errors
/// As [`Replace::apply`].
pub fn replace_keys(
    list: &mut List<'_>,
    replace: &Replace,
    replacement: &[u8],
) -> Result<(), Failure> {
    for place in list.places() {
        let Some(name) = list.name(place) else {
            continue;
        };
        let Some(new) = replace.apply(name, replacement)? else {
            continue;
        };
        match list.find(&new) {
            Some(other) if other != place => {
                let value = list.val(place);
                list.set(other, value);
                list.remove(place);
            }
            _ => list.rename(place, &new),
        }
    }
    Ok(())
}

/// Takes the entries of a map in.
pub fn merge(list: &mut List<'_>, source: &Value<'_>, strategy: Strategy) {
    for (name, any) in source.entries() {
        let place = list.find(name);
        let wanted = match strategy {
            Strategy::Insert => place.is_none(),
            Strategy::Update => place.is_some(),
            Strategy::Upsert => true,
        };
        if wanted {
            let value = list.make(|out| out.extend_from_slice(any));
            list.put(name, value);
        }
    }
}

/// Texts of all values.
pub fn stringify(list: &mut List<'_>) {
    for place in list.places() {
        if list.name(place).is_none() || matches!(list.any(place), Any::Text(_)) {
            continue;
        }
        let text = text_of(list.any(place));
        let value = list.make_text(&text);
        list.set(place, value);
    }
}

/// Moves what is in maps and lists up, under keys that tell the way; `depth` levels of it.
pub fn flatten(list: &mut List<'_>, prefix: &[u8], depth: u32) {
    if depth == 0 {
        return;
    }
    let mut flat = Vec::new();
    let mut nested = !prefix.is_empty();
    for place in list.places() {
        let Some(name) = list.name(place) else {
            continue;
        };
        nested |= matches!(list.any(place), Any::Map(_) | Any::Array(_));
        let key = match prefix {
            b"" => name.to_vec(),
            prefix => [prefix, b".", name].concat(),
        };
        leaves(key, list.any_bytes(place), depth, &mut flat);
    }
    if !nested {
        return;
    }
    list.places().for_each(|place| list.remove(place));
    for (key, any) in flat {
        let value = list.make(|out| out.extend_from_slice(&any));
        list.put(&key, value);
    }
}

/// The depth of a value is bounded, and so is this.
fn leaves(key: Vec<u8>, any: &[u8], depth: u32, flat: &mut Vec<(Vec<u8>, Vec<u8>)>) {
    let below = |name: &[u8]| [&key, &b"."[..], name].concat();
    match Any::read(any) {
        Any::Map(map) if depth > 1 => {
            for (name, any) in otlp::scan::Attributes::of_map(map) {
                leaves(below(name), any, depth - 1, flat);
            }
        }
        Any::Array(array) if depth > 1 => {
            let items = Fields::new(array).map_while(Result::ok);
            let items = items.filter_map(|field| field.message(ENTRIES >> 3));
            for (at, any) in items.enumerate() {
                leaves(below(at.to_string().as_bytes()), any, depth - 1, flat);
            }
        }
        _ => flat.push((key, any.to_vec())),
    }
}
