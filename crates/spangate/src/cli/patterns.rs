//! `show|add|set|del|clear|get|prepare|commit map|acl`: pattern files, virtual ones, and the
//! patterns of ACLs with an id.

use std::sync::Arc;

use sample::pattern::{Columns, EditError};
use sample::{EntryId, Listing, Reference, Value};

use super::{Asked, Command, Level, Reply, command};

/// Bytes in one part of a listing.
const PART_BYTES: usize = 16 << 10;

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    command("add acl", "[@<ver>] <acl> <pattern>", Level::Admin, "add an acl entry", |asked| add(asked, Table::Acl)),
    command("add map", "[@<ver>] <map> <key> <val>", Level::Admin, "add a map entry, or the entries of a payload", |asked| add(asked, Table::Map)),
    command("clear acl", "[@<ver>] <acl>", Level::Admin, "remove all entries of an acl", |asked| clear(asked, Table::Acl)),
    command("clear map", "[@<ver>] <map>", Level::Admin, "remove all entries of a map", |asked| clear(asked, Table::Map)),
    command("commit acl", "@<ver> <acl>", Level::Admin, "activate a prepared version of an acl", |asked| commit(asked, Table::Acl)),
    command("commit map", "@<ver> <map>", Level::Admin, "activate a prepared version of a map", |asked| commit(asked, Table::Map)),
    command("del acl", "<acl> [<key>|#<ref>]", Level::Admin, "delete entries of an acl", |asked| delete(asked, Table::Acl)),
    command("del map", "<map> [<key>|#<ref>]", Level::Admin, "delete entries of a map", |asked| delete(asked, Table::Map)),
    command("get acl", "<acl> <value>", Level::Admin, "show the patterns of an acl that match a value", |asked| get(asked, Table::Acl)),
    command("get map", "<map> <value>", Level::Admin, "show the entries of a map that match a value", |asked| get(asked, Table::Map)),
    command("prepare acl", "<acl>", Level::Admin, "create a new version of an acl", |asked| prepare(asked, Table::Acl)),
    command("prepare map", "<map>", Level::Admin, "create a new version of a map", |asked| prepare(asked, Table::Map)),
    command("set map", "<map> [<key>|#<ref>] <value>", Level::Admin, "change the value of map entries", set),
    command("show acl", "[[@<ver>] <acl>]", Level::Admin, "show the acls, or the entries of one", |asked| show(asked, Table::Acl)),
    command("show map", "[[@<ver>] <map>]", Level::Admin, "show the maps, or the entries of one", |asked| show(asked, Table::Map)),
];

/// Whether a command asks for an ACL or for a map.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Table {
    Acl,
    Map,
}

impl Table {
    /// The name in messages.
    fn name(self) -> &'static str {
        match self {
            Table::Acl => "ACL",
            Table::Map => "map",
        }
    }

    fn word(self) -> &'static str {
        match self {
            Table::Acl => "acl",
            Table::Map => "map",
        }
    }

    fn is_of(self, reference: &Reference) -> bool {
        let usage = reference.usage();
        match self {
            Table::Acl => usage.acl,
            Table::Map => usage.map,
        }
    }

    fn unknown(self) -> Reply {
        let name = self.name();
        Reply::Refused(format!(
            "Unknown {name} identifier. Please use #<id> or <file>.\n"
        ))
    }

    fn missing(self) -> Reply {
        Reply::Refused(format!("Missing {} identifier.\n", self.name()))
    }
}

fn refused(text: &str) -> Reply {
    Reply::Refused(text.to_owned())
}

/// The reference with this name or `#<id>`.
fn find<'a>(asked: &'a Asked<'_>, name: &str) -> Option<&'a Arc<Reference>> {
    asked.subjects.runtime_config.config.patterns.find(name)
}

/// The same, if the reference is used as `table`.
fn find_used<'a>(asked: &'a Asked<'_>, name: &str, table: Table) -> Option<&'a Arc<Reference>> {
    find(asked, name).filter(|reference| table.is_of(reference))
}

/// A leading `@<version>`, and the words after it.
fn versioned<'a, 'w>(words: &'a [&'w str]) -> (Option<u32>, &'a [&'w str]) {
    match words {
        [first, rest @ ..] if first.starts_with('@') => {
            let digits = first[1..].bytes().take_while(u8::is_ascii_digit).count();
            (Some(first[1..=digits].parse().unwrap_or(0)), rest)
        }
        words => (None, words),
    }
}

fn edited(result: Result<(), EditError>, not_found: &str) -> Reply {
    match result {
        Ok(()) => Reply::Done,
        Err(EditError::NotFound) => refused(not_found),
        Err(EditError::Refused(message)) => Reply::Refused(format!("{message}.\n")),
    }
}

fn show(asked: &Asked<'_>, table: Table) -> Reply {
    let (version, words) = versioned(asked.rest);
    let Some(name) = words.first() else {
        return match version {
            None => show_all(asked, table),
            Some(_) => table.unknown(),
        };
    };
    let Some(reference) = find_used(asked, name, table) else {
        return table.unknown();
    };
    let version = version.unwrap_or_else(|| reference.versions().current());
    Reply::Parts(Box::new(Entries {
        listing: Some(reference.listing(version)),
        reference: Arc::clone(reference),
    }))
}

fn show_all(asked: &Asked<'_>, table: Table) -> Reply {
    let references = asked.subjects.runtime_config.config.patterns.iter();
    let line = |reference: &Arc<Reference>| {
        let versions = reference.versions();
        format!(
            "{} ({}) {}. curr_ver={} next_ver={} entry_cnt={}\n",
            reference.id(),
            reference.name().unwrap_or_default(),
            reference.usage().text,
            versions.current(),
            versions.latest(),
            reference.len(),
        )
    };
    let lines = references.filter(|reference| table.is_of(reference));
    let lines: String = lines.map(line).collect();
    Reply::Dump(format!("# id (file) description\n{lines}"))
}

/// The lines of the entries of a reference.
struct Entries {
    reference: Arc<Reference>,
    /// None after the last entry.
    listing: Option<Listing>,
}

impl Iterator for Entries {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let mut listing = self.listing.take()?;
        let mut part = Vec::with_capacity(PART_BYTES);
        let has_values = self.reference.columns() == Columns::KeysAndValues;
        let more = self.reference.list(&mut listing, |id, key, value| {
            part.extend_from_slice(format!("{id} ").as_bytes());
            part.extend_from_slice(key);
            if has_values {
                part.push(b' ');
                part.extend_from_slice(value);
            }
            part.push(b'\n');
        });
        self.listing = more.then_some(listing);
        Some(part)
    }
}

fn add(asked: &Asked<'_>, table: Table) -> Reply {
    let (version, words) = versioned(asked.rest);
    let bytes = &asked.bytes[asked.bytes.len() - words.len()..];
    let name = match (table, words, asked.payload) {
        (Table::Map, [name, ..], Some(_)) | (Table::Map, [name, _, _, ..], None) => name,
        (Table::Map, ..) => {
            return refused(
                "'add map' expects three parameters (map identifier, key and value) or one parameter (map identifier) and a payload\n",
            );
        }
        (Table::Acl, [name, _, ..], _) => name,
        (Table::Acl, ..) => {
            return refused("'add acl' expects two parameters: ACL identifier and pattern.\n");
        }
    };
    let Some(reference) = find(asked, name) else {
        return table.unknown();
    };
    let versions = reference.versions();
    let is_ahead = |version: u32| version.wrapping_sub(versions.latest()) as i32 > 0;
    if version.is_some_and(is_ahead) {
        let word = table.word();
        return Reply::Refused(format!(
            "Version number in the future, please use 'prepare {word}' before.\n"
        ));
    }
    if table == Table::Acl && reference.columns() == Columns::KeysAndValues {
        return refused(
            "This ACL is shared with a map containing samples. You must use the command 'add map' to add values.\n",
        );
    }
    let version = version.unwrap_or_else(|| versions.current());
    let add = |key: &[u8], value: &[u8]| {
        edited(
            reference.add_to(version, key, value),
            "Failed to add a key.\n",
        )
    };
    let Some(payload) = asked.payload else {
        return match table {
            Table::Map => add(bytes[1], bytes[2]),
            Table::Acl => add(bytes[1], b""),
        };
    };
    for line in payload.split(|byte| *byte == b'\n') {
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        let key_end = line.iter().position(is_blank).unwrap_or(line.len());
        let (key, rest) = line.split_at(key_end);
        let value = rest.iter().position(|byte| !is_blank(byte));
        let value = value.map_or(&[][..], |at| &rest[at..]);
        if rest.is_empty() && table == Table::Map {
            let key = String::from_utf8_lossy(key);
            return Reply::Refused(format!("Missing value for key '{key}'.\n"));
        }
        let value = if table == Table::Map { value } else { b"" };
        let reply = add(key, value);
        if !matches!(reply, Reply::Done) {
            return reply;
        }
    }
    Reply::Done
}

fn set(asked: &Asked<'_>) -> Reply {
    let ([name, key, _, ..], [_, key_bytes, value, ..]) = (asked.rest, asked.bytes) else {
        return refused("'set map' expects three parameters: map identifier, key and value.\n");
    };
    let Some(reference) = find(asked, name) else {
        return Table::Map.unknown();
    };
    let result = match entry_id(key) {
        Some(Ok(id)) => reference.set_entry(id, value),
        Some(Err(refusal)) => return refusal,
        None => reference.set(key_bytes, value),
    };
    edited(result, "key or pattern not found.\n")
}

/// The id of an entry, if the word has the form of one.
fn entry_id(word: &str) -> Option<Result<EntryId, Reply>> {
    let id = word.strip_prefix('#').filter(|id| id.starts_with("0x"))?;
    let malformed = "Malformed identifier. Please use #<id> or <file>.\n";
    Some(EntryId::parse(id).ok_or_else(|| refused(malformed)))
}

fn delete(asked: &Asked<'_>, table: Table) -> Reply {
    let ([name, key, ..], [_, key_bytes, ..]) = (asked.rest, asked.bytes) else {
        let name = table.name();
        return Reply::Refused(format!(
            "This command expects two parameters: {name} identifier and key.\n"
        ));
    };
    let Some(reference) = find_used(asked, name, table) else {
        return table.unknown();
    };
    let result = match entry_id(key) {
        Some(Ok(id)) => reference.remove_entry(id),
        Some(Err(refusal)) => return refusal,
        None => reference.remove_all(key_bytes),
    };
    edited(result, "Key not found.\n")
}

fn clear(asked: &Asked<'_>, table: Table) -> Reply {
    let (version, words) = versioned(asked.rest);
    let Some(name) = words.first() else {
        return table.missing();
    };
    let Some(reference) = find_used(asked, name, table) else {
        return table.unknown();
    };
    reference.clear_version(version.unwrap_or_else(|| reference.versions().current()));
    Reply::Done
}

fn prepare(asked: &Asked<'_>, table: Table) -> Reply {
    let reference = asked.rest.first();
    match reference.and_then(|name| find_used(asked, name, table)) {
        Some(reference) => {
            let version = reference.versions().prepare();
            Reply::Said(format!("New version created: {version}\n"))
        }
        None => table.unknown(),
    }
}

fn commit(asked: &Asked<'_>, table: Table) -> Reply {
    let (Some(version), words) = versioned(asked.rest) else {
        return refused("Missing version number.\n");
    };
    let Some(name) = words.first() else {
        return table.missing();
    };
    let Some(reference) = find_used(asked, name, table) else {
        return table.unknown();
    };
    match reference.commit_version(version) {
        Ok(()) => Reply::Done,
        Err(_) => refused("Version number out of range.\n"),
    }
}

fn get(asked: &Asked<'_>, table: Table) -> Reply {
    let ([name, _, ..], [_, value, ..]) = (asked.rest, asked.bytes) else {
        let name = table.name();
        return Reply::Refused(format!("Missing {name} identifier and/or key.\n"));
    };
    let Some(reference) = find(asked, name) else {
        return table.unknown();
    };
    let mut lines = Vec::new();
    for number in 0..reference.ways() {
        let Some(way) = reference.way(number) else {
            break;
        };
        let case = if way.ignores_case { "in" } else { "" };
        let (found, key_name) = match table {
            Table::Map => ("found", "key"),
            Table::Acl => ("match", "pattern"),
        };
        lines.extend_from_slice(format!("type={}, case={case}sensitive", way.method).as_bytes());
        let mut entry = None;
        let is_found = reference.look_up(number, Value::Str((*value).into()), |key, value| {
            entry = Some((key.to_vec(), value.to_vec()));
        });
        let Some((key, value)) = entry.filter(|_| is_found) else {
            lines.extend_from_slice(format!(", {found}=no\n").as_bytes());
            continue;
        };
        let index = if way.is_tree { "tree" } else { "list" };
        lines.extend_from_slice(format!(", {found}=yes, idx={index}, {key_name}=\"").as_bytes());
        lines.extend_from_slice(&key);
        lines.push(b'"');
        if table == Table::Map {
            match reference.columns() {
                Columns::Keys => lines.extend_from_slice(b", value=none"),
                Columns::KeysAndValues => {
                    lines.extend_from_slice(b", value=\"");
                    lines.extend_from_slice(&value);
                    let kind = reference.type_of(&value);
                    lines.extend_from_slice(format!("\", type=\"{kind}\"").as_bytes());
                }
            }
        }
        lines.push(b'\n');
    }
    Reply::Parts(Box::new(std::iter::once(lines)))
}
