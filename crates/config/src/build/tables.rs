//! Stick tables: `stick-table`, `stick`, and the actions `track-sc*` and `sc-*` (manual §4.2, §4.4,
//! §11).
//!
//! Expressions may name tables that are defined further down. So all tables are created first, from
//! the `stick-table` lines of a tree. Their faults are reported when their sections are built.

use std::sync::Arc;

use sample::{Place, table_key};
use tables::{ARRAY_MAX, Data, Definition, General, KeyType, ServerKey, Share, StoreError, Table};

use super::Shared;
use super::line::{Cursor, Fault, Line, Parse};
use super::names::is_proxy;
use super::proxy::ProxyBuild;
use super::share;
use super::values::{self, Bad};
use crate::keywords::actions::ActionParser;
use crate::model::{
    HttpAction, Peers, StickRule, StreamAction, TableAction, TableNumber, TcpAction,
};
use crate::tree::{Section, Tree};

/// Default number of stick counters of a connection or stream (`tune.stick-counters`).
pub const STICK_COUNTERS: u16 = 3;

/// Creates the stick tables of a configuration and declares their names. They are in reverse order,
/// as `show table` lists them. A table with the same definition in the `previous` configuration is
/// used again, with its entries.
pub fn collect(
    tree: &Tree,
    previous: &[Arc<Table>],
    compiler: &mut sample::Compiler,
) -> Vec<Arc<Table>> {
    let proxies = tree.sections.iter().filter(|section| is_proxy(section));
    let mut definitions: Vec<Definition> = Vec::new();
    for section in &tree.sections {
        let lines = section.statements.iter().map(Line::new);
        let read = |mut reading: Reading<'_>| reading.read().ok().map(|()| reading.definition);
        if is_proxy(section) {
            let mut lines = lines.filter(|line| line.keyword() == "stick-table");
            let definition = lines.find_map(|line| read(Reading::new(&line, name_of(section))));
            definitions.extend(definition);
        } else if section.kind() == "peers" {
            for line in lines.filter(|line| line.keyword() == "table") {
                let definition = read(Reading::of_peers(&line, name_of(section)));
                let is_new = |one: &Definition| definitions.iter().all(|old| old.name != one.name);
                let definition = definition.filter(is_new);
                definitions.extend(definition);
            }
        }
    }
    for section in proxies {
        let lines = section.statements.iter().map(Line::new);
        for line in lines.filter(|line| line.keyword() == "stick") {
            let mut named = line
                .texts(0)
                .into_iter()
                .skip_while(|word| *word != "table");
            let name = named.nth(1).unwrap_or(name_of(section));
            let table = definitions.iter_mut().find(|table| table.name == name);
            if let Some(table) = table {
                table.store_server();
            }
        }
    }
    let tables = definitions.into_iter().rev().map(|definition| {
        let mut same = previous.iter();
        let same = same.find(|table| *table.definition() == definition);
        match same {
            Some(table) => Arc::clone(table),
            None => Arc::new(Table::new(definition)),
        }
    });
    let tables: Vec<Arc<Table>> = tables.collect();
    for table in &tables {
        compiler.declare_table(Arc::clone(table));
    }
    tables
}

fn name_of(section: &Section) -> &str {
    section.name().map_or("", |word| word.text.as_str())
}

/// A `stick-table` line during parsing.
struct Reading<'a> {
    cursor: Cursor<'a>,
    definition: Definition,
    has_type: bool,
    is_of_peers: bool,
    share: Option<Share>,
    warnings: Vec<Fault>,
}

impl<'a> Reading<'a> {
    fn new(line: &Line<'a>, name: &str) -> Reading<'a> {
        Reading {
            cursor: Cursor { line: *line, at: 1 },
            definition: Definition::new(name, KeyType::Ip, 0),
            has_type: false,
            is_of_peers: false,
            share: None,
            warnings: Vec::new(),
        }
    }

    /// A `table` line of a section `peers`.
    fn of_peers(line: &Line<'a>, section: &str) -> Reading<'a> {
        let name = line.arg(1);
        let mut reading = Reading::new(line, &format!("{section}/{name}"));
        reading.cursor.at = 2;
        reading.is_of_peers = true;
        reading.definition.peers = Some(section.to_owned());
        // Among peers, a table has the name without that of the section (manual §11.2).
        reading.definition.wire_name = Some(format!("/{name}"));
        reading
    }

    fn fault(&self, message: impl std::fmt::Display) -> Box<Fault> {
        let keyword = self.cursor.line.keyword();
        self.cursor.fault(format!("{keyword}: {message}"))
    }

    /// The argument of the word taken last.
    fn argument(&mut self) -> Parse<&'a str> {
        let name = self.cursor.last();
        match self.cursor.take() {
            "" => Err(self.fault(format!("missing argument after '{name}'."))),
            text => Ok(text),
        }
    }

    fn size(&mut self) -> Parse<u32> {
        let name = self.cursor.last();
        let text = self.argument()?;
        match values::size(text) {
            Ok(size) => Ok(u32::try_from(size).unwrap_or(u32::MAX)),
            Err(Bad::Character(bad)) => Err(self.fault(format!(
                "unexpected character '{bad}' in argument of '{name}'."
            ))),
            Err(Bad::Overflow | Bad::Underflow) => {
                Err(self.fault(format!("size overflow in argument '{text}' of '{name}'.")))
            }
        }
    }

    fn read(&mut self) -> Parse {
        while !self.cursor.peek().is_empty() {
            match self.cursor.take() {
                "size" => self.definition.size = self.size()?,
                "expire" => {
                    let ms = self.expire()?;
                    self.definition.expire_ms = (ms > 0).then_some(ms);
                }
                "nopurge" => self.definition.no_purge = true,
                "recv-only" => self.definition.receives_only = true,
                "peers" if !self.is_of_peers => {
                    self.definition.peers = Some(self.argument()?.to_owned());
                }
                "share" if !self.is_of_peers => {
                    self.share = Some(share::read(&mut self.cursor)?);
                }
                "write-to" => {
                    self.definition.write_to = Some(match self.cursor.take() {
                        "" => return Err(self.fault("write-to requires table name.")),
                        name => name.to_owned(),
                    });
                }
                "type" => self.key_type()?,
                "store" => self.store()?,
                "srvkey" => {
                    self.definition.server_key = match self.cursor.take() {
                        "name" => ServerKey::Name,
                        "addr" => ServerKey::Addr,
                        other => {
                            return Err(self.fault(format!("unknown server key type '{other}'.")));
                        }
                    };
                }
                "brates-factor" => {
                    let factor = self.size()?;
                    if !(1..=1024).contains(&factor) {
                        return Err(self.fault(
                            "argument 'brates-factor' must be greater than 0 and lower or equal than 1024.",
                        ));
                    }
                    self.definition.bytes_factor = factor;
                }
                word => return Err(self.fault(format!("unknown argument '{word}'."))),
            }
        }
        match self.definition.size {
            0 => Err(self.fault("missing size.")),
            _ if !self.has_type => Err(self.fault("missing type.")),
            _ => match self.share.take() {
                Some(share) => {
                    share::apply(&mut self.definition, share).map_err(|message| self.fault(message))
                }
                None => Ok(()),
            },
        }
    }

    fn expire(&mut self) -> Parse<u64> {
        let text = self.argument()?;
        match values::time(text) {
            Ok(time) => Ok(time.as_millis() as u64),
            Err(Bad::Overflow) => Err(self.fault(format!(
                "timer overflow in argument <{text}> to <expire>, maximum value is 2147483647 ms (~24.8 days)."
            ))),
            Err(Bad::Underflow) => Err(self.fault(format!(
                "timer underflow in argument <{text}> to <expire>, minimum non-null value is 1 ms."
            ))),
            Err(Bad::Character(bad)) => Err(self.fault(format!(
                "unexpected character '{bad}' in argument of 'expire'."
            ))),
        }
    }

    fn key_type(&mut self) -> Parse {
        let name = self.cursor.take();
        let Some(key) = KeyType::named(name) else {
            return Err(self.fault(format!("unknown type '{name}'.")));
        };
        self.definition.set_key(key);
        self.has_type = true;
        if key.takes_len() && self.cursor.peek() == "len" {
            self.cursor.take();
            self.definition.key_bytes = match self.cursor.take().parse() {
                Ok(bytes @ 1..=KEY_BYTES_MAX) => bytes,
                _ => {
                    let message = "'len' expects a positive integer argument.";
                    return Err(self.cursor.fault(message));
                }
            };
        }
        Ok(())
    }

    /// `store <type>[(<argument>[,<argument>])][,…]`
    fn store(&mut self) -> Parse {
        let list = self.cursor.take();
        let mut rest = list;
        while !rest.is_empty() {
            let end = rest.find([',', '(']).unwrap_or(rest.len());
            let name = &rest[..end];
            let mut arguments = Vec::new();
            rest = &rest[end..];
            if let Some(inside) = rest.strip_prefix('(') {
                let Some((inside, behind)) = inside.split_once(')') else {
                    return Err(self.fault(format!(
                        "missing closing parenthesis after store option '{name}'."
                    )));
                };
                arguments.extend(inside.split(','));
                rest = behind;
            }
            // Text between the parenthesis and the comma is ignored.
            rest = rest.split_once(',').map_or("", |(_, rest)| rest);
            let Some(data) = Data::named(name) else {
                return Err(self.fault(format!("unknown store option '{name}'.")));
            };
            self.store_one(data, name, &arguments)?;
        }
        self.conflicts()
    }

    fn store_one(&mut self, data: Data, name: &str, arguments: &[&str]) -> Parse {
        let period_ms = |text: &str| values::time(text).ok().map(|time| time.as_millis() as u32);
        let what = match self.definition.store(data, arguments, period_ms) {
            Ok(()) => return Ok(()),
            Err(StoreError::Twice) => {
                let message = format!("store option '{name}' already enabled, ignored.");
                let warning = self.fault(message).as_warning();
                self.warnings.push(*warning);
                return Ok(());
            }
            Err(StoreError::MissingArgument) => "missing argument to".into(),
            Err(StoreError::ExtraArgument) => "unexpected argument to".into(),
            Err(StoreError::Length) => {
                format!("array size is out of allowed range (1-{ARRAY_MAX}) for")
            }
            Err(StoreError::Period) => "error when processing".into(),
        };
        Err(self.fault(format!("{what} store option '{name}'.")))
    }

    fn conflicts(&self) -> Parse {
        let stores = |data| self.definition.column(data).is_some();
        let conflict = if stores(Data::Gpt) && stores(Data::Gpt0) {
            ("gpt", "gpt0")
        } else if stores(Data::Gpc) && (stores(Data::Gpc0) || stores(Data::Gpc1)) {
            ("gpc", "gpc[0/1]")
        } else if stores(Data::GpcRate) && (stores(Data::Gpc0Rate) || stores(Data::Gpc1Rate)) {
            ("gpc_rate", "gpc[0/1]_rate")
        } else {
            return Ok(());
        };
        let (array, single) = conflict;
        Err(self.fault(format!(
            "simultaneous usage of '{array}' and '{single}' in a same table is not permitted as '{array}' overrides '{single}'."
        )))
    }
}

/// The longest key: the size of the largest buffer in use (`tune.bufsize`).
const KEY_BYTES_MAX: u32 = 1 << 20;

/// `table` in a section `peers`
pub fn section_table(peers: &Peers, line: &Line<'_>, shared: &mut Shared<'_>) -> Parse {
    let mut reading = Reading::of_peers(line, &peers.name);
    let result = reading.read();
    for warning in reading.warnings {
        shared.settle(Err(Box::new(warning)));
    }
    result?;
    let name = reading.definition.name;
    if shared.peer_tables.contains(&name) {
        let message = format!(
            "stick-table name '{}' conflicts with table declared in peers '{}' at {}.",
            line.arg(1),
            peers.name,
            peers.origin
        );
        return Err(line.fault(1, message));
    }
    shared.peer_tables.push(name);
    Ok(())
}

/// `stick-table`
pub fn stick_table(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    if build.proxy.table.is_some() {
        let message = format!(
            "stick-table name '{0}' conflicts with table declared in {1} '{0}' at {2}.",
            build.proxy.name, build.kind, build.proxy.origin
        );
        return Err(line.fault(0, message));
    }
    let mut reading = Reading::new(line, &build.proxy.name);
    let result = reading.read();
    for warning in reading.warnings {
        build.shared.settle(Err(Box::new(warning)));
    }
    result?;
    let named = |table: &&Arc<Table>| build.proxy.name == table.definition().name;
    build.proxy.table = build.shared.tables.iter().find(named).cloned();
    Ok(())
}

/// `stick on|match|store-request|store-response <expr> [table <table>] [if|unless <condition>]`
pub fn stick(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let (matches, stores, on_response) = match line.arg(1) {
        "store" | "store-request" => (false, true, false),
        "store-response" => (false, true, true),
        "match" => (true, false, false),
        "on" => (true, true, false),
        _ => return Err(line.fault(1, "'stick' expects 'on', 'match', or 'store'.")),
    };
    line.need(2, || "'stick' expects a fetch method.".into())?;
    let place = if on_response {
        Place::BE_STICK_STORE
    } else {
        Place::BE_USE_SERVER
    };
    let mut cursor = Cursor { line: *line, at: 2 };
    let key = build.shared.next_expr(&mut cursor, place)?;
    let named = match cursor.peek() {
        "table" => {
            cursor.take();
            cursor.take()
        }
        _ => "",
    };
    if !matches!(cursor.peek(), "" | "if" | "unless") {
        let message = format!("'stick': unknown keyword '{}'.", cursor.take());
        return Err(cursor.fault(message));
    }
    let condition = build.condition(line, cursor.at, place)?;
    let name = match named {
        "" => build.proxy.name.to_string(),
        name => name.to_owned(),
    };
    let Ok(table) = build.shared.compiler.table(&name) else {
        let message = format!(
            "Proxy '{}': unable to find stick-table '{name}'.",
            build.proxy.name
        );
        return Err(line.fault(0, message));
    };
    if !table_key::is_compatible(&key, table.definition().key) {
        let message = format!(
            "Proxy '{}': type of fetch not usable with type of stick-table '{name}'.",
            build.proxy.name
        );
        return Err(line.fault(2, message));
    }
    let rule = StickRule {
        matches,
        stores,
        key,
        table,
        condition,
    };
    if on_response {
        build.proxy.stick_response.push(rule)
    } else {
        build.proxy.stick_request.push(rule)
    }
    Ok(())
}

// ---- actions

/// The actions as parsers for both kinds of rules.
macro_rules! actions {
    ($($doc:literal $name:ident $parse:ident;)*) => {$(
        #[doc = $doc]
        pub const $name: ActionParser = ActionParser::Both(
            |build, cursor, place| {
                let action = $parse(build, cursor, place)?;
                Ok(HttpAction::Stream(StreamAction::Table(action)))
            },
            |build, cursor, place| {
                let action = $parse(build, cursor, place)?;
                Ok(TcpAction::Stream(StreamAction::Table(action)))
            },
        );
    )*};
}
actions! {
    "`track-sc<counter> <key> [table <table>]`" TRACK track;
    "`sc-inc-gpc(<index>,<counter>)`" INC_GPC inc_gpc;
    "`sc-inc-gpc0[(<counter>)]`" INC_GPC0 inc_gpc0;
    "`sc-inc-gpc1[(<counter>)]`" INC_GPC1 inc_gpc1;
    "`sc-add-gpc(<index>,<counter>) <number>|<expr>`" ADD_GPC add_gpc;
    "`sc-set-gpt(<index>,<counter>) <number>|<expr>`" SET_GPT set_gpt;
    "`sc-set-gpt0[(<counter>)] <number>|<expr>`" SET_GPT0 set_gpt0;
}

fn track(
    build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    place: Place,
) -> Parse<TableAction> {
    let word = cursor.last();
    let number = word.strip_prefix("track-sc").unwrap_or_default();
    let max = build.global.tune.stick_counters;
    // As in HAProxy, a missing number is 0.
    let counter = match if number.is_empty() { "0" } else { number }.parse::<u16>() {
        Ok(counter) if counter < max => usize::from(counter),
        Ok(counter) if max == 0 => {
            return Err(cursor.fault(format!(
                "{counter} track-sc number not usable, stick-counters are disabled by tune.stick-counters"
            )));
        }
        Ok(counter) => {
            return Err(cursor.fault(format!(
                "{counter} track-sc number exceeding {} (tune.stick-counters-1) value",
                max - 1
            )));
        }
        Err(_) => return Err(cursor.fault(format!("Wrong track-sc number '{number}'"))),
    };
    let at = cursor.at;
    let key = build.shared.next_expr(cursor, place)?;
    let named = match cursor.peek() {
        "table" => {
            cursor.take();
            match cursor.take() {
                "" => return Err(cursor.fault("missing table name")),
                name => name,
            }
        }
        _ => "",
    };
    // A `defaults` section has no table, so a rule of it must name one.
    let name = match named {
        "" => build.proxy.name.to_string(),
        name => name.to_owned(),
    };
    let Ok(table) = build.shared.compiler.table(&name) else {
        return Err(cursor.line.fault(
            at,
            format!("unable to find table '{name}' referenced by track-sc{counter}"),
        ));
    };
    if !table_key::is_compatible(&key, table.definition().key) {
        return Err(cursor.line.fault(
            at,
            format!(
                "stick-table '{name}' uses a type incompatible with the 'track-sc{counter}' rule"
            ),
        ));
    }
    Ok(TableAction::Track {
        counter,
        key,
        table,
    })
}

fn inc_gpc(
    build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    _: Place,
) -> Parse<TableAction> {
    let (index, counter) = index_and_counter(build, cursor, "gpc", "GPC")?;
    Ok(one_more(counter, General::Gpc(index)))
}

fn inc_gpc0(
    build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    _: Place,
) -> Parse<TableAction> {
    counter_alone(build, cursor).map(|counter| one_more(counter, General::Gpc0))
}

fn inc_gpc1(
    build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    _: Place,
) -> Parse<TableAction> {
    counter_alone(build, cursor).map(|counter| one_more(counter, General::Gpc1))
}

fn one_more(counter: usize, general: General) -> TableAction {
    TableAction::Add {
        counter,
        general,
        amount: TableNumber::Fixed(1),
    }
}

fn add_gpc(
    build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    place: Place,
) -> Parse<TableAction> {
    let (index, counter) = index_and_counter(build, cursor, "gpc", "GPC")?;
    Ok(TableAction::Add {
        counter,
        general: General::Gpc(index),
        amount: number(build, cursor, place)?,
    })
}

fn set_gpt(
    build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    place: Place,
) -> Parse<TableAction> {
    let (index, counter) = index_and_counter(build, cursor, "gpt", "GPT")?;
    Ok(TableAction::SetTag {
        counter,
        index: Some(index),
        value: number(build, cursor, place)?,
    })
}

fn set_gpt0(
    build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    place: Place,
) -> Parse<TableAction> {
    Ok(TableAction::SetTag {
        counter: counter_alone(build, cursor)?,
        index: None,
        value: number(build, cursor, place)?,
    })
}

/// An integer, or an expression.
fn number(
    build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    place: Place,
) -> Parse<TableNumber> {
    match cursor.peek().parse() {
        Ok(number) => {
            cursor.take();
            Ok(TableNumber::Fixed(number))
        }
        Err(_) => {
            let expr = build.shared.next_expr(cursor, place)?;
            Ok(TableNumber::Computed(expr))
        }
    }
}

/// `(<index>,<counter>)` after the action's name.
fn index_and_counter(
    build: &ProxyBuild<'_, '_>,
    cursor: &Cursor<'_>,
    kind: &str,
    shown: &str,
) -> Parse<(u32, usize)> {
    let word = cursor.last();
    let (name, inside) = word.split_once('(').unwrap_or((word, ""));
    let expected = format!("Expects {name}(<{shown} ID>,<Track ID>)");
    if inside.is_empty() {
        return Err(cursor.fault(format!("invalid {kind} ID '{word}'. {expected}")));
    }
    let Some((index, counter)) = inside.split_once(',') else {
        return Err(cursor.fault(format!("Missing {kind} ID '{word}'. {expected}")));
    };
    let Ok(index) = index.parse() else {
        return Err(cursor.fault(format!("Missing {kind} ID '{word}'. {expected}")));
    };
    let counter = counter.strip_suffix(')').and_then(|text| text.parse().ok());
    let invalid = || format!("invalid stick table track ID '{word}'. {expected}");
    Ok((index, known_counter(build, cursor, counter, invalid)?))
}

/// `(<counter>)` after the action's name, or nothing.
fn counter_alone(build: &ProxyBuild<'_, '_>, cursor: &Cursor<'_>) -> Parse<usize> {
    let word = cursor.last();
    let counter = match word.split_once('(') {
        None => Some(0),
        Some((_, inside)) => inside.strip_suffix(')').and_then(|text| text.parse().ok()),
    };
    let name = word.split('(').next().unwrap_or_default();
    let invalid = || format!("invalid stick table track ID. Expects {name}(<Track ID>)");
    known_counter(build, cursor, counter, invalid)
}

fn known_counter(
    build: &ProxyBuild<'_, '_>,
    cursor: &Cursor<'_>,
    counter: Option<usize>,
    invalid: impl FnOnce() -> String,
) -> Parse<usize> {
    let word = cursor.last();
    let max = usize::from(build.global.tune.stick_counters);
    match counter {
        _ if max == 0 => Err(cursor.fault(format!(
            "Cannot use '{word}', stick-counters are disabled via tune.stick-counters"
        ))),
        None => Err(cursor.fault(invalid())),
        Some(counter) if counter >= max => Err(cursor.fault(format!(
            "invalid stick table track ID '{word}'. The max allowed ID is {} (tune.stick-counters)",
            max - 1
        ))),
        Some(counter) => Ok(counter),
    }
}
