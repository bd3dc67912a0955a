//! `show stat`, `show schema json`, `clear counters`, `dump stats-file`: statistics (management
//! guide §9.1, §9.3).

use std::sync::Arc;

use proxy::statistics::{Cursor, Selection, View};
use proxy::{RuntimeConfig, ServerTables, Shared, statistics};
use stats::{Kind, csv, json, nameserver, typed};

use super::servers::{find_backend, number};
use super::{Asked, Command, Level, Reply, command, denied};

pub(super) const COMMANDS: &[Command] = &[
    command(
        "clear counters",
        "[all|server <bk>/<srv> [force]]",
        Level::User,
        "clear max statistics counters (or all, or one server's)",
        clear,
    ),
    command(
        "dump stats-file",
        "",
        Level::User,
        "print the counters of all objects with a guid in the format of stats-file",
        dump_file,
    ),
    command(
        "show schema json",
        "",
        Level::User,
        "show the schema of the JSON output",
        |_| Reply::Dump(json::schema()),
    ),
    command(
        "show stat",
        "[desc|json|no-maint|typed|up]*",
        Level::User,
        "show the counters of proxies, listeners and servers",
        show,
    ),
];

/// Approximate bytes in one part of an answer.
const PART_BYTES: usize = 16 << 10;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Format {
    Csv,
    Typed,
    Json,
}

/// `show stat [domain proxy|resolvers] [<iid>|<proxy> <type> <sid>] [desc|json|no-maint|typed|up]*`
fn show(asked: &Asked<'_>) -> Reply {
    let mut words = asked.rest;
    if let ["domain", domain, rest @ ..] = words {
        match *domain {
            "proxy" => {}
            "resolvers" => return nameservers(asked, rest),
            _ => return Reply::Refused("Invalid statistics domain.\n".to_owned()),
        }
        words = rest;
    }
    let mut selection = Selection::default();
    if let [proxy, kinds, sid, rest @ ..] = words {
        let Some(iid) = proxy_number(asked, proxy) else {
            return Reply::Refused("No such proxy.\n".to_owned());
        };
        selection.iid = u32::try_from(iid).ok();
        selection.kinds = Some(kinds_of(number(kinds)));
        selection.sid = u32::try_from(number(sid)).ok();
        words = rest;
    }
    let (mut format, mut described) = (Format::Csv, false);
    for word in words {
        match *word {
            "typed" => format = Format::Typed,
            "json" => format = Format::Json,
            "desc" => described = true,
            "no-maint" => selection.hides_maintenance = true,
            "up" => selection.hides_down = true,
            // As in HAProxy, other words are ignored.
            _ => {}
        }
    }
    let rows = Rows {
        runtime_config: Arc::clone(&asked.subjects.runtime_config),
        shared: Arc::clone(&asked.subjects.shared),
        servers: asked.subjects.shared.server_tables(),
        legends: asked.level >= Level::Operator,
        selection,
        cursor: Cursor::default(),
        format,
        described,
        state: State::Begins,
    };
    Reply::Parts(Box::new(rows))
}

/// `show stat domain resolvers [desc|json|typed]*`
fn nameservers(asked: &Asked<'_>, words: &[&str]) -> Reply {
    let config = &asked.subjects.runtime_config.config;
    let rows = asked.subjects.shared.nameservers(config);
    let has = |wanted: &str| words.contains(&wanted);
    let mut out = String::new();
    if has("json") {
        for (place, row) in rows.iter().enumerate() {
            out.push(if place == 0 { '[' } else { ',' });
            row.json(&mut out);
        }
        out.push_str(if rows.is_empty() { "[]\n" } else { "]\n" });
    } else if has("typed") {
        for (place, row) in rows.iter().enumerate() {
            row.typed(place, has("desc"), &mut out);
        }
    } else {
        nameserver::csv_header(&mut out);
        rows.iter().for_each(|row| row.csv(&mut out));
    }
    Reply::Dump(out)
}

/// The id of the proxy with this name, or the id itself; -1 for all. None if there is no such
/// proxy.
pub(super) fn proxy_number(asked: &Asked<'_>, word: &str) -> Option<i64> {
    let proxies = &asked.subjects.runtime_config.config.proxies;
    let mut proxies = proxies.iter().filter(|proxy| !proxy.is_removed);
    let named = proxies.find(|proxy| proxy.name == word);
    let number = named.map_or_else(|| number(word), |proxy| i64::from(proxy.id));
    (number != 0).then_some(number)
}

/// The kinds whose bits are set; -1 sets all.
fn kinds_of(bits: i64) -> Vec<Kind> {
    let all = [Kind::Frontend, Kind::Backend, Kind::Server, Kind::Listener];
    let is_set = |kind: &Kind| bits & (1 << *kind as u32) != 0;
    all.into_iter().filter(is_set).collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Begins,
    /// Whether a row was written already.
    Goes(bool),
    Over,
}

/// The answer to `show stat`, in parts.
struct Rows {
    runtime_config: Arc<RuntimeConfig>,
    shared: Arc<Shared>,
    servers: Arc<ServerTables>,
    legends: bool,
    selection: Selection,
    cursor: Cursor,
    format: Format,
    described: bool,
    state: State,
}

impl Iterator for Rows {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let mut out = String::new();
        while self.state != State::Over && out.len() < PART_BYTES {
            self.step(&mut out);
        }
        (!out.is_empty()).then(|| out.into_bytes())
    }
}

impl Rows {
    fn step(&mut self, out: &mut String) {
        let follows = match self.state {
            State::Begins => {
                match self.format {
                    Format::Csv => csv::header(out),
                    Format::Typed => {}
                    Format::Json => out.push('['),
                }
                self.state = State::Goes(false);
                return;
            }
            State::Goes(follows) => follows,
            State::Over => return,
        };
        let view = View {
            runtime_config: &self.runtime_config,
            shared: &self.shared,
            servers: &self.servers,
            now: net::sys::now(),
            legends: self.legends,
        };
        let Some((_, row)) = self.cursor.next(&view, &self.selection) else {
            if self.format == Format::Json {
                out.push_str("]\n");
            }
            self.state = State::Over;
            return;
        };
        match self.format {
            Format::Csv => csv::row(&row, out),
            Format::Typed => typed::row(&row, self.described, out),
            Format::Json => {
                if follows {
                    out.push(',');
                }
                json::row(&row, out);
            }
        }
        self.state = State::Goes(true);
    }
}

/// `clear counters [all|server <backend>/<server> [force]]`
fn clear(asked: &Asked<'_>) -> Reply {
    let (runtime_config, shared) = (&asked.subjects.runtime_config, &asked.subjects.shared);
    let needed = match asked.rest.first() {
        Some(&("all" | "server")) => Level::Admin,
        _ => Level::Operator,
    };
    if asked.level < needed {
        return denied();
    }
    if asked.rest.first() != Some(&"server") {
        let all = asked.rest.first() == Some(&"all");
        statistics::clear_counters(runtime_config, shared, all, net::sys::now());
        return Reply::Done;
    }
    let name = asked.rest.get(1).copied().unwrap_or_default();
    let Some((backend, server)) = name.split_once('/') else {
        return Reply::Refused("Require 'backend/server'.\n".to_owned());
    };
    let Some((backend, _)) = find_backend(asked, backend) else {
        return Reply::Refused("No such backend.\n".to_owned());
    };
    let tables = shared.server_tables();
    let mut servers = tables.servers(backend);
    let Some((server, _)) = servers.find(|(_, record)| record.name == server) else {
        return Reply::Refused("No such server.\n".to_owned());
    };
    statistics::clear_server_counters(shared, backend, server, net::sys::now());
    Reply::Said("Server counters cleared.\n".to_owned())
}

fn dump_file(asked: &Asked<'_>) -> Reply {
    let subjects = asked.subjects;
    Reply::Dump(statistics::dump_file(&View {
        runtime_config: &subjects.runtime_config,
        shared: &subjects.shared,
        servers: &subjects.shared.server_tables(),
        now: net::sys::now(),
        legends: true,
    }))
}
