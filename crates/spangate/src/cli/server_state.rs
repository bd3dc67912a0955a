//! `show servers state` and `show servers conn`: servers as lines for programs.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::Arc;

use config::anonymise::Anonymiser;
use config::model::ServerAddress;
use net::Addr;
use proxy::{CheckView, ServerLoad, ServerRecord, ServerView};

use super::servers::find_backend;
use super::{Asked, Command, Level, Reply, Subjects, command};
use crate::server_state::{FIELDS, VERSION};

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    command("show servers conn", "[<backend>]", Level::User, "show the connections of servers", |asked| show(asked, Kind::Connections)),
    command("show servers state", "[<backend>]", Level::User, "show the states of servers in the format of a state file", |asked| show(asked, Kind::States)),
];

#[derive(Clone, Copy)]
enum Kind {
    States,
    Connections,
}

fn show(asked: &Asked<'_>, kind: Kind) -> Reply {
    let subjects = asked.subjects;
    let only = match asked.rest.first() {
        None => None,
        Some(name) => match find_backend(asked, name) {
            Some((place, _)) => Some(place),
            None => return Reply::Refused("Can't find backend.\n".to_owned()),
        },
    };
    let head = match kind {
        Kind::States => format!("{VERSION}\n# {FIELDS}\n"),
        Kind::Connections => format!(
            "# bkname/svname bkid/svid addr port - purge_delay served used_cur used_max need_est idle_sess unsafe_nb safe_nb idle_lim idle_cur idle_per_thr[{}]\n",
            subjects.runtime_config.process.nbthread
        ),
    };
    let backends = match only {
        Some(place) => place..place + 1,
        None => 0..subjects.runtime_config.config.proxies.len(),
    };
    let (subjects, hide) = (Arc::clone(subjects), asked.anonymiser);
    let lines = backends.map(move |backend| lines(&subjects, backend, kind, hide).into_bytes());
    Reply::Parts(Box::new(std::iter::once(head.into_bytes()).chain(lines)))
}

/// The lines of a backend's servers.
fn lines(subjects: &Subjects, backend: usize, kind: Kind, hide: Anonymiser) -> String {
    let proxy = &subjects.runtime_config.config.proxies[backend];
    let mut out = String::new();
    if !proxy.is_backend || subjects.shared.is_deleted(backend) {
        return out;
    }
    for (place, server) in subjects.shared.server_tables().servers(backend) {
        let shared = &subjects.shared;
        // Writing to memory does not fail.
        let _ = match kind {
            Kind::States => {
                let view = shared.server_view(backend, place);
                let initial = shared.server_load(backend, place).initial_weight;
                write!(out, "{} {} ", proxy.id, hide.text(&proxy.name))
                    .and_then(|()| state(server, &view, initial, hide, &mut out))
            }
            Kind::Connections => {
                let load = shared.server_load(backend, place);
                let idle = shared.idle_by_worker(backend, place);
                write!(
                    out,
                    "{}/{} {}/{} ",
                    hide.text(&proxy.name),
                    hide.text(&server.name),
                    proxy.id,
                    server.id
                )
                .and_then(|()| connections(server, &load, &idle, hide, &mut out))
            }
        };
    }
    out
}

/// Flags of a check's state, with HAProxy's values.
const CONFIGURED: u8 = 0x02;
const ENABLED: u8 = 0x04;
const PAUSED: u8 = 0x08;
const IS_AGENT: u8 = 0x10;

fn flags(check: &CheckView) -> u8 {
    let flag = |is_set, flag| if is_set { flag } else { 0 };
    flag(check.is_configured, CONFIGURED)
        | flag(check.is_configured && check.is_enabled, ENABLED)
        | flag(check.is_paused, PAUSED)
}

fn state(
    server: &ServerRecord,
    view: &ServerView,
    initial_weight: u32,
    hide: Anonymiser,
    out: &mut String,
) -> std::fmt::Result {
    let (addr, port) = place(server, hide);
    let names = Names::of(server, hide);
    let check = &view.check;
    let agent = if view.agent.is_configured {
        flags(&view.agent) | IS_AGENT
    } else {
        0
    };
    let own = |addr: &Option<Addr>| {
        let ip = addr.as_ref().and_then(Addr::ip);
        ip.map_or_else(
            || "-".to_owned(),
            |ip| hide.ip(&ip.to_string()).into_owned(),
        )
    };
    let ssl = match server.tls_words.as_deref() {
        Some(words) if words.ssl => 1,
        Some(words) if words.is_refused => -1,
        _ => 0,
    };
    writeln!(
        out,
        "{} {} {addr} {} {} {} {initial_weight} {} {} {} {} {} {agent} 0 0 {} {port} {} {ssl} {} {} {} {}",
        server.id,
        hide.text(&server.name),
        view.state as u8,
        view.admin.0,
        view.weight,
        view.since_change.as_secs(),
        // The first status that a check can have is 1.
        (check.status as u8).max(1),
        check.result as u8,
        check.health,
        flags(check),
        names.host.as_deref().unwrap_or("-"),
        names.service.as_deref().unwrap_or("-"),
        server.checks.port,
        own(&server.checks.addr),
        own(&server.checks.agent.addr),
        server.checks.agent.port,
    )
}

fn connections(
    server: &ServerRecord,
    load: &ServerLoad,
    idle: &[u32],
    hide: Anonymiser,
    out: &mut String,
) -> std::fmt::Result {
    let (addr, port) = place(server, hide);
    let all: u32 = idle.iter().sum();
    let used = load.connections.saturating_sub(all);
    let limit = server.pool_max_conn.map_or(-1, i64::from);
    write!(
        out,
        "{addr} {port} - {} {} {used} 0 {used} 0 0 {all} {limit} {all}",
        server.pool_purge_delay.as_millis(),
        load.sessions,
    )?;
    idle.iter().try_for_each(|idle| write!(out, " {idle}"))?;
    writeln!(out)
}

/// Address and port in HAProxy's format; `-` for a socket that has no network address.
fn place(server: &ServerRecord, hide: Anonymiser) -> (String, i32) {
    let shown = |ip: IpAddr| {
        if server.lacks_address() {
            return "-".to_owned();
        }
        hide.ip(&ip.to_string()).into_owned()
    };
    match &server.address {
        ServerAddress::Fixed(Addr::Inet(addr)) => (shown(addr.ip()), i32::from(addr.port())),
        ServerAddress::PortOffset { ip, offset } => (shown(*ip), *offset),
        ServerAddress::Fixed(_) => ("-".to_owned(), 0),
    }
}

/// The names of a server that is resolved: its host, and the service that has it.
struct Names {
    host: Option<String>,
    service: Option<String>,
}

impl Names {
    fn of(server: &ServerRecord, hide: Anonymiser) -> Names {
        let shown = |name: &str| hide.text(name).into_owned();
        let name = server.fqdn.as_deref();
        let is_service = name.is_some_and(|name| name.starts_with('_'));
        let host = if is_service {
            server.service_host.as_deref()
        } else {
            name
        };
        Names {
            host: host.map(shown),
            service: name.filter(|_| is_service).map(shown),
        }
    }
}
