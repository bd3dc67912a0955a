//! `show table`, `set table` and `clear table` (management guide §9.3).

use std::fmt::Write as _;
use std::sync::Arc;

use sample::{Value, table_key};
use tables::{Argument, Data, Entry, KeyType, Place, Removal, Table};

use super::errors::escaped;
use super::{Asked, Command, Level, Reply, command};

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    command("clear table", "<table> [<filter>]*", Level::Operator, "remove entries of a stick table (filter: data/key/ptr)", clear),
    command("set table", "<table> <filter> [<filter>]*", Level::Operator, "change or add an entry of a stick table (filter: data/key/ptr)", set),
    command("show table", "[<table> [<filter>]*]", Level::User, "show the stick tables, or the entries of one (filter: data/key/ptr)", show),
];

/// Most conditions of a command.
const FILTERS_MAX: usize = 4;
/// Entries that are checked for one part of a listing.
const ENTRIES_A_PART: usize = 128;

const SHOW_USAGE: &str = "Optional argument only supports \"data.<store_data_type>\" <operator> <value> or key <key> or ptr <ptr>\n";
const CLEAR_USAGE: &str = "Required arguments: <table> \"data.<store_data_type>\" <operator> <value> or <table> key <key> or <table> ptr <ptr>\n";
const SET_USAGE: &str = "Required arguments: <table> key <key> [data.<store_data_type> <value>]* or <table> ptr <ptr> [data.<store_data_type> <value>]*\n";

fn refused(text: &str) -> Reply {
    Reply::Refused(text.to_owned())
}

fn now_ms() -> u64 {
    net::sys::now().ms()
}

fn all<'a>(asked: &Asked<'a>) -> &'a [Arc<Table>] {
    &asked.subjects.runtime_config.config.tables
}

fn find<'a>(asked: &Asked<'a>, name: &str) -> Result<&'a Arc<Table>, Reply> {
    let mut tables = all(asked).iter();
    let found = tables.find(|table| table.definition().name == name);
    found.ok_or_else(|| refused("No such table\n"))
}

fn show(asked: &Asked<'_>) -> Reply {
    let (name, rest) = match asked.rest {
        [] => return Reply::Dump(all(asked).iter().map(|table| head(table)).collect()),
        [name, rest @ ..] => (name, rest),
    };
    let table = match find(asked, name) {
        Ok(table) => table,
        Err(reply) => return reply,
    };
    let may_see = asked.level >= Level::Operator;
    match rest {
        ["key" | "ptr", ..] => {
            let place = match Target::read(table, rest, SHOW_KEYS) {
                Ok(target) => target,
                Err(reply) => return reply,
            };
            if !may_see {
                return Reply::Done;
            }
            // As in HAProxy, an absent key has not even a head.
            let shown = Shown::new(asked, table);
            let mut line = None;
            place.with(table, |place, entry| {
                let line = line.insert(String::new());
                shown.line(place, entry, line);
            });
            line.map_or(Reply::Done, |line| Reply::Dump(head(table) + &line))
        }
        [] | [_, ..] if rest.first().is_none_or(|word| word.starts_with("data.")) => {
            let filters = match filters(table, rest) {
                Ok(filters) => filters,
                Err(reply) => return reply,
            };
            if may_see {
                listing(Shown::new(asked, table), filters)
            } else {
                Reply::Dump(head(table) + "# contents not dumped due to insufficient privileges\n")
            }
        }
        _ => refused(SHOW_USAGE),
    }
}

fn head(table: &Table) -> String {
    let of = table.definition();
    format!(
        "# table: {}, type: {}, size:{}, used:{}\n",
        of.name,
        of.key.name(),
        of.size,
        table.used(now_ms())
    )
}

/// The entries that match all filters, in parts.
fn listing(shown: Shown, filters: Vec<Filter>) -> Reply {
    let mut next = Some(Place::default());
    let first = head(&shown.table).into_bytes();
    let parts = std::iter::from_fn(move || {
        let from = next?;
        let mut out = String::new();
        let mut left = ENTRIES_A_PART;
        next = shown.table.list(from, now_ms(), |place, entry| {
            if filters.iter().all(|filter| filter.holds(entry)) {
                shown.line(place, entry, &mut out);
            }
            left -= 1;
            left > 0
        });
        Some(out.into_bytes())
    });
    Reply::Parts(Box::new(std::iter::once(first).chain(parts)))
}

/// A table and what its listing shows.
struct Shown {
    table: Arc<Table>,
    /// `shards` of its section `peers`; 0 without.
    shards: u32,
}

impl Shown {
    fn new(asked: &Asked<'_>, table: &Arc<Table>) -> Shown {
        let mut sections = asked.subjects.runtime_config.config.peers.iter();
        let name = table.definition().peers.as_ref();
        let section = sections.find(|section| Some(&section.name) == name);
        Shown {
            table: Arc::clone(table),
            shards: section.map_or(0, |section| section.shards),
        }
    }

    fn line(&self, place: Place, entry: &Entry<'_>, out: &mut String) {
        // Writing to memory does not fail.
        let _ = write_line(self, place, entry, out);
    }
}

fn write_line(
    shown: &Shown,
    place: Place,
    entry: &Entry<'_>,
    out: &mut String,
) -> std::fmt::Result {
    let Shown { table, shards } = shown;
    let shards = *shards;
    let of = table.definition();
    write!(out, "{:#x}: key=", place.pointer())?;
    match table_key::sample_of(entry.key(), of) {
        Some(Value::Ipv4(ip)) => write!(out, "{ip}")?,
        Some(Value::Ipv6(ip)) => write!(out, "{ip}")?,
        Some(Value::Int(number)) => write!(out, "{number}")?,
        Some(Value::Str(text)) => write_text(&text, out),
        Some(Value::Bin(bytes)) => bytes
            .iter()
            .try_for_each(|byte| write!(out, "{byte:02X}"))?,
        Some(Value::Bool(_) | Value::Method(..)) | None => {}
    }
    write!(
        out,
        " use={} exp={} shard={}",
        entry.trackers(),
        entry.expires_in_ms(),
        peers::shard(of, entry.key(), shards)
    )?;
    for data in Data::all() {
        let Some(column) = of.column(data) else {
            continue;
        };
        for index in 0..column.elements {
            out.push(' ');
            out.push_str(&element_name(data, index));
            if data.argument() == Argument::Period {
                write!(out, "({})", column.period_ms)?;
            }
            out.push('=');
            match entry.get(data, index) {
                Some(value) => write!(out, "{value}")?,
                None => out.push_str(table.server_name(entry).as_deref().unwrap_or("-")),
            }
        }
    }
    out.push('\n');
    Ok(())
}

/// Writes a text in HAProxy's format of keys: characters that would end a word are escaped, too.
fn write_text(text: &[u8], out: &mut String) {
    for byte in text {
        if matches!(byte, b' ' | b'=') {
            out.push('\\');
        }
        out.push_str(&escaped(*byte));
    }
}

/// The name of a data type. The index of an array's element stands before the first `_`
/// (`gpc3_rate`).
fn element_name(data: Data, index: u32) -> String {
    let name = data.name();
    match (data.is_array(), name.split_once('_')) {
        (false, _) => name.to_owned(),
        (true, None) => format!("{name}{index}"),
        (true, Some((before, behind))) => format!("{before}{index}_{behind}"),
    }
}

/// The data type and the element with such a name. An element of an array is `gpc[1]`, as in
/// HAProxy; `gpc` is the first one, and `gpc1` is another data type.
fn named(name: &str) -> Option<(Data, u32)> {
    let Some((array, rest)) = name.split_once('[') else {
        return Data::named(name).map(|data| (data, 0));
    };
    let data = Data::named(array).filter(|data| data.is_array())?;
    let digits = rest.strip_suffix(']')?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    let index = digits.parse().ok().filter(|_| is_number)?;
    Some((data, index))
}

/// The element with this name, if the table stores it.
fn stored(table: &Table, name: &str) -> Result<(Data, u32), &'static str> {
    let (data, index) = named(name).ok_or("Unknown data type")?;
    if table.definition().column(data).is_none() {
        return Err("Data type not stored in this table");
    }
    Ok((data, index))
}

/// `data.<type> <operator> <value>`
struct Filter {
    data: Data,
    index: u32,
    holds: fn(&i64, &i64) -> bool,
    value: i64,
}

impl Filter {
    fn holds(&self, entry: &Entry<'_>) -> bool {
        let value = entry.get(self.data, self.index);
        value.is_some_and(|value| (self.holds)(&value, &self.value))
    }
}

fn filters(table: &Table, words: &[&str]) -> Result<Vec<Filter>, Reply> {
    let mut filters = Vec::new();
    let mut words = words.chunks(3);
    for (place, condition) in words.by_ref().take(FILTERS_MAX).enumerate() {
        let number = place + 1;
        let fault = |text: &str| Reply::Refused(format!("Filter entry #{number}: {text}\n"));
        let Some(name) = condition[0].strip_prefix("data.") else {
            return Err(extra(number, condition[0]));
        };
        let (data, index) = stored(table, name).map_err(fault)?;
        let holds = match condition.get(1) {
            Some(&"eq") => i64::eq,
            Some(&"ne") => i64::ne,
            Some(&"le") => i64::le,
            Some(&"ge") => i64::ge,
            Some(&"lt") => i64::lt,
            Some(&"gt") => i64::gt,
            _ => {
                return Err(fault(
                    "Require and operator among \"eq\", \"ne\", \"le\", \"ge\", \"lt\", \"gt\"",
                ));
            }
        };
        let value = condition.get(2).and_then(|value| value.parse().ok());
        let value =
            value.ok_or_else(|| fault("Require a valid integer value to compare against"))?;
        filters.push(Filter {
            data,
            index,
            holds,
            value,
        });
    }
    match words.next() {
        Some(words) => Err(extra(FILTERS_MAX + 1, words[0])),
        None => Ok(filters),
    }
}

fn extra(number: usize, word: &str) -> Reply {
    Reply::Refused(format!(
        "Detected extra data in filter, {}th word of input, after '{word}'\n",
        3 * number
    ))
}

/// What `key <key>` and `ptr <ptr>` name.
enum Target {
    Key(Vec<u8>),
    Place(Place),
}

const SHOW_KEYS: &str =
    "Showing keys from tables of type other than ip, ipv6, string and integer is not supported\n";
const CLEAR_KEYS: &str =
    "Removing keys from tables of type other than ip, ipv6, string and integer is not supported\n";
const SET_KEYS: &str =
    "Inserting keys into tables of type other than ip, ipv6, string and integer is not supported\n";

impl Target {
    /// `binary`: the message for tables whose keys cannot be written as text.
    fn read(table: &Table, words: &[&str], binary: &str) -> Result<Target, Reply> {
        let of = table.definition();
        match words {
            ["key"] => Err(refused("Key value expected\n")),
            ["key", key, ..] => {
                if of.key == KeyType::Binary {
                    return Err(refused(binary));
                }
                let value = Value::text(*key);
                let key = table_key::with_key(value, of, <[u8]>::to_vec);
                key.map(Target::Key).ok_or_else(|| refused("Invalid key\n"))
            }
            ["ptr"] => Err(refused("Pointer expected (0xffff notation)\n")),
            ["ptr", pointer, ..] => {
                let digits = pointer.strip_prefix("0x");
                let number = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
                let number = number.ok_or_else(|| refused("Malformed ptr.\n"))?;
                let place = Place::of_pointer(number);
                let place = place.filter(|place| table.at(*place, now_ms(), |_| ()).is_some());
                place
                    .map(Target::Place)
                    .ok_or_else(|| refused("No entry can be found matching ptr.\n"))
            }
            _ => Err(refused(SET_USAGE)),
        }
    }

    /// Calls `work` with the entry, if it exists.
    fn with(&self, table: &Table, mut work: impl FnMut(Place, &mut Entry<'_>)) {
        match self {
            Target::Key(key) => {
                table.find(key, now_ms(), work);
            }
            Target::Place(place) => {
                table.at(*place, now_ms(), |entry| work(*place, entry));
            }
        }
    }
}

fn clear(asked: &Asked<'_>) -> Reply {
    let [name, rest @ ..] = asked.rest else {
        return refused(CLEAR_USAGE);
    };
    let table = match find(asked, name) {
        Ok(table) => table,
        Err(reply) => return reply,
    };
    match rest {
        ["key" | "ptr", ..] => {
            let removal = match Target::read(table, rest, CLEAR_KEYS) {
                Ok(Target::Key(key)) => table.remove(&key, now_ms()),
                Ok(Target::Place(place)) => table.remove_at(place, now_ms()),
                Err(reply) => return reply,
            };
            match removal {
                Removal::Removed | Removal::Absent => Reply::Done,
                Removal::InUse => refused("Entry currently in use, cannot remove\n"),
            }
        }
        _ if rest.first().is_none_or(|word| word.starts_with("data.")) => {
            let filters = match filters(table, rest) {
                Ok(filters) => filters,
                Err(reply) => return reply,
            };
            remove_all(table, &filters);
            Reply::Done
        }
        _ => refused(CLEAR_USAGE),
    }
}

/// Removes the entries that match all filters, except those in use.
fn remove_all(table: &Table, filters: &[Filter]) {
    let mut next = Some(Place::default());
    let mut found = Vec::with_capacity(ENTRIES_A_PART);
    while let Some(from) = next {
        next = table.list(from, now_ms(), |place, entry| {
            if filters.iter().all(|filter| filter.holds(entry)) {
                found.push(place);
            }
            found.len() < ENTRIES_A_PART
        });
        for place in found.drain(..) {
            table.remove_at(place, now_ms());
        }
    }
}

fn set(asked: &Asked<'_>) -> Reply {
    let [name, rest @ ..] = asked.rest else {
        return refused(SET_USAGE);
    };
    let table = match find(asked, name) {
        Ok(table) => table,
        Err(reply) => return reply,
    };
    if rest.first().is_some_and(|word| word.starts_with("data.")) {
        return refused(
            "content-based lookup is only supported with the \"show\" and \"clear\" actions\n",
        );
    }
    let target = match Target::read(table, rest, SET_KEYS) {
        Ok(target) => target,
        Err(reply) => return reply,
    };
    let mut result = Ok(());
    let work = |entry: &mut Entry<'_>| {
        result = set_values(table, entry, rest.get(2..).unwrap_or_default());
        entry.touch();
    };
    let is_there = match &target {
        Target::Key(key) => table.with_new(key, now_ms(), work),
        Target::Place(place) => table.at(*place, now_ms(), work),
    };
    match (is_there, result) {
        (None, _) => refused("Unable to allocate a new entry\n"),
        (Some(()), Err(fault)) => Reply::Refused(format!("{fault}\n")),
        (Some(()), Ok(())) => Reply::Done,
    }
}

fn set_values(table: &Table, entry: &mut Entry<'_>, words: &[&str]) -> Result<(), &'static str> {
    for pair in words.chunks(2) {
        let name = pair[0].strip_prefix("data.");
        let name = name.ok_or("\"data.<type>\" followed by a value expected")?;
        let (data, index) = stored(table, name)?;
        let value = pair.get(1).and_then(|value| value.parse().ok());
        let value = value.ok_or("Require a valid integer value to store")?;
        if !entry.set(data, index, value) {
            return Err("index out of range in this data array");
        }
    }
    Ok(())
}
