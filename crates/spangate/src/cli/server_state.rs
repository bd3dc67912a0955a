//! `show servers state` and `show servers conn`: servers as lines for programs.

use std::fmt::Write as _;
use std::sync::Arc;

use config::model::ServerAddress;
use net::Addr;
use proxy::{ServerLoad, ServerRecord};

use super::servers::find_backend;
use super::{Asked, Command, Level, Reply, Subjects, command};
use crate::server_state::{FIELDS, VERSION};

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    command("show servers conn", "[<backend>]", Level::User, "connections of servers", |asked| show(asked, Kind::Connections)),
    command("show servers state", "[<backend>]", Level::User, "states of servers, as a file of states has them", |asked| show(asked, Kind::States)),
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
            subjects.running.process.nbthread
        ),
    };
    let backends = match only {
        Some(place) => place..place + 1,
        None => 0..subjects.running.config.proxies.len(),
    };
    let subjects = Arc::clone(subjects);
    let lines = backends.map(move |backend| lines(&subjects, backend, kind).into_bytes());
    Reply::Parts(Box::new(std::iter::once(head.into_bytes()).chain(lines)))
}

/// The lines of a backend's servers.
fn lines(subjects: &Subjects, backend: usize, kind: Kind) -> String {
    let proxy = &subjects.running.config.proxies[backend];
    let mut out = String::new();
    if !proxy.is_backend {
        return out;
    }
    for (place, server) in subjects.shared.server_tables().servers(backend) {
        let load = subjects.shared.server_load(backend, place);
        // Writing to memory does not fail.
        let _ = match kind {
            Kind::States => write!(out, "{} {} ", proxy.id, proxy.name)
                .and_then(|()| state(server, &load, &mut out)),
            Kind::Connections => {
                let idle = subjects.shared.idle_by_worker(backend, place);
                write!(
                    out,
                    "{}/{} {}/{} ",
                    proxy.name, server.name, proxy.id, server.id
                )
                .and_then(|()| connections(server, &load, &idle, &mut out))
            }
        };
    }
    out
}

fn state(server: &ServerRecord, load: &ServerLoad, out: &mut String) -> std::fmt::Result {
    let (addr, port) = place(server);
    let is_up = !load.in_maintenance && !load.is_down;
    let admin = u8::from(load.in_maintenance)
        | if server.disabled { 4 } else { 0 }
        | if load.drains { 8 } else { 0 };
    let ssl = u8::from(server.tls().is_some());
    writeln!(
        out,
        "{} {} {addr} {} {admin} {} {} 0 1 0 0 0 0 0 0 - {port} - {ssl} 0 - - 0",
        server.id,
        server.name,
        if is_up { 2 } else { 0 },
        load.weight,
        load.initial_weight,
    )
}

fn connections(
    server: &ServerRecord,
    load: &ServerLoad,
    idle: &[u32],
    out: &mut String,
) -> std::fmt::Result {
    let (addr, port) = place(server);
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

/// Address and port as HAProxy shows them; `-` for what is no address of a network.
fn place(server: &ServerRecord) -> (String, i32) {
    match &server.address {
        ServerAddress::Fixed(Addr::Inet(addr)) => (addr.ip().to_string(), i32::from(addr.port())),
        ServerAddress::PortOffset { ip, offset } => (ip.to_string(), *offset),
        ServerAddress::Fixed(_) => ("-".to_owned(), 0),
    }
}
