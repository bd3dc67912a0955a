//! Commands on servers: their states, weights, limits, addresses and names.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use config::dynamic::{self, leading_number};
use config::model::{Proxy, ServerAddress};
use net::Addr;
use proxy::{
    Admin, Checker, NameChange, OpState, RenameError, ServerChange, ServerRecord, ServerTables,
};
use resolvers::NameError;

use super::server_settings::{self, Setting};
use super::{Asked, Command, Level, Reply, command, dynamic_cookie};

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    command("disable agent", "<bk>/<srv>", Level::Admin, "stop the agent checks of a server", |asked| enable_checks(asked, Checker::Agent, false)),
    command("disable health", "<bk>/<srv>", Level::Admin, "stop the health checks of a server", |asked| enable_checks(asked, Checker::Health, false)),
    command("disable server", "(DEPRECATED)", Level::Admin, "put a server into maintenance (use 'set server')", |asked| change_state(asked, State::Maintenance)),
    command("enable agent", "<bk>/<srv>", Level::Admin, "start the agent checks of a server", |asked| enable_checks(asked, Checker::Agent, true)),
    command("enable health", "<bk>/<srv>", Level::Admin, "start the health checks of a server", |asked| enable_checks(asked, Checker::Health, true)),
    command("enable server", "(DEPRECATED)", Level::Admin, "take a server out of maintenance (use 'set server')", |asked| change_state(asked, State::Ready)),
    command("get weight", "<bk>/<srv>", Level::User, "show a server's weight", get_weight),
    command("set maxconn server", "<bk>/<srv> <n>", Level::Admin, "change a server's maxconn", set_maxconn),
    command("set server", "<bk>/<srv> [opts]", Level::Admin, "change a server's state, weight, address or name", set_server),
    command("set weight", "<bk>/<srv> (DEPRECATED)", Level::Admin, "change a server's weight (use 'set server')", set_weight),
];

/// Most bytes of a server's name, including the terminating zero in HAProxy.
const NAME_BYTES_MAX: usize = 64;

/// A server that a command names.
pub(super) struct Found {
    /// The indexes of its backend and of the server itself in the configuration.
    pub backend: usize,
    pub place: usize,
    tables: Arc<ServerTables>,
}

impl Found {
    /// The server as it was when the command arrived.
    pub fn record(&self) -> Option<&ServerRecord> {
        let mut servers = self.tables.servers(self.backend);
        servers
            .find(|(place, _)| *place == self.place)
            .map(|(_, record)| record)
    }
}

fn refused(text: &str) -> Reply {
    Reply::Refused(text.to_owned())
}

/// The index of a backend, and the backend.
pub(super) fn find_backend<'a>(asked: &Asked<'a>, name: &str) -> Option<(usize, &'a Proxy)> {
    let mut proxies = asked
        .subjects
        .runtime_config
        .config
        .proxies
        .iter()
        .enumerate();
    let shared = &asked.subjects.shared;
    proxies
        .find(|(place, proxy)| proxy.is_backend && proxy.name == name && !shared.is_deleted(*place))
}

/// The server that `<backend>/<server>` names.
///
/// # Errors
/// The reply to the client.
pub(super) fn find_server(asked: &Asked<'_>, name: &str) -> Result<Found, Reply> {
    let found = find_any_server(asked, name)?;
    if asked.subjects.runtime_config.config.proxies[found.backend].disabled {
        Err(refused("Proxy is disabled.\n"))
    } else {
        Ok(found)
    }
}

fn find_any_server(asked: &Asked<'_>, name: &str) -> Result<Found, Reply> {
    let (backend, server) = name.split_once('/').unwrap_or((name, ""));
    if server.is_empty() {
        return Err(refused("Require 'backend/server'.\n"));
    }
    let Some((backend, _)) = find_backend(asked, backend) else {
        return Err(refused("No such backend.\n"));
    };
    let tables = asked.subjects.shared.server_tables();
    let place = tables
        .servers(backend)
        .find(|(_, record)| record.name == server)
        .map(|(place, _)| place);
    match place {
        Some(place) => Ok(Found {
            backend,
            place,
            tables,
        }),
        None => Err(refused("No such server.\n")),
    }
}

/// Whether a server can be deleted now; if not, the reason.
///
/// # Errors
/// The reason why it can never be deleted.
pub(super) fn removable(
    asked: &Asked<'_>,
    name: &str,
) -> Result<Option<&'static str>, &'static str> {
    let (backend, server) = name.split_once('/').unwrap_or((name, ""));
    let (backend, _) = find_backend(asked, backend).ok_or("No such backend.")?;
    let shared = &asked.subjects.shared;
    let tables = shared.server_tables();
    let mut servers = tables.servers(backend);
    let found = servers.find(|(_, record)| record.name == server);
    let (place, record) = found.ok_or("No such server.")?;
    let view = shared.server_view(backend, place);
    if record.is_named {
        return Err(
            "This server cannot be removed at runtime due to other configuration elements pointing to it.",
        );
    }
    if !view.admin.has(Admin::MAINTENANCE) {
        return Err("Only servers in maintenance mode can be deleted.");
    }
    let load = shared.server_load(backend, place);
    let is_used = load.sessions > 0 || load.connections > 0 || load.queued > 0;
    Ok(is_used.then_some("Server still has connections attached to it, cannot remove it."))
}

/// The word at an index; empty if there is none.
fn word<'a>(asked: &Asked<'a>, place: usize) -> &'a str {
    asked.rest.get(place).copied().unwrap_or_default()
}

fn change(asked: &Asked<'_>, server: &Found, change: ServerChange) {
    let shared = &asked.subjects.shared;
    let woken = shared.change_server(server.backend, server.place, change);
    asked.subjects.workers.wake(&woken);
}

/// The state that a command sets.
#[derive(Clone, Copy)]
enum State {
    Ready,
    Drain,
    Maintenance,
}

fn change_state(asked: &Asked<'_>, state: State) -> Reply {
    match find_server(asked, word(asked, 0)) {
        Ok(server) => {
            set_state(asked, &server, state);
            Reply::Done
        }
        Err(reply) => reply,
    }
}

fn set_state(asked: &Asked<'_>, server: &Found, state: State) {
    let (drain, maintenance) = match state {
        State::Ready => (false, false),
        State::Drain => (true, false),
        State::Maintenance => (false, true),
    };
    change(asked, server, ServerChange::Drain(drain));
    change(asked, server, ServerChange::Maintenance(maintenance));
}

fn enable_checks(asked: &Asked<'_>, checker: Checker, on: bool) -> Reply {
    let server = match find_server(asked, word(asked, 0)) {
        Ok(server) => server,
        Err(reply) => return reply,
    };
    let shared = &asked.subjects.shared;
    let view = shared.server_view(server.backend, server.place);
    match checker {
        Checker::Health if on && !view.check.is_configured => {
            return refused("Health check was not configured on this server, cannot enable.\n");
        }
        Checker::Agent if on && !view.agent.is_configured => {
            return refused("Agent was not configured on this server, cannot enable.\n");
        }
        _ => {}
    }
    change(asked, &server, ServerChange::Checks(checker, on));
    Reply::Done
}

/// `set server … health` and `agent`
fn set_health(asked: &Asked<'_>, server: &Found, checker: Checker, value: &str) -> Reply {
    let shared = &asked.subjects.shared;
    let view = shared.server_view(server.backend, server.place);
    let state = match (checker, value) {
        (Checker::Health, _) if view.tracked.is_some() => {
            return refused("cannot change health on a tracking server.\n");
        }
        (Checker::Agent, _) if !view.agent.is_enabled => {
            return refused("agent checks are not enabled on this server.\n");
        }
        (_, "up") => OpState::Running,
        (_, "down") => OpState::Stopped,
        (Checker::Health, "stopping") => OpState::Stopping,
        (Checker::Health, _) => {
            return refused("'set server <srv> health' expects 'up', 'stopping', or 'down'.\n");
        }
        (Checker::Agent, _) => {
            return refused("'set server <srv> agent' expects 'up' or 'down'.\n");
        }
    };
    change(asked, server, ServerChange::Health(checker, state));
    Reply::Done
}

fn get_weight(asked: &Asked<'_>) -> Reply {
    match find_any_server(asked, word(asked, 0)) {
        Ok(server) => {
            let shared = &asked.subjects.shared;
            let load = shared.server_load(server.backend, server.place);
            Reply::Dump(format!(
                "{} (initial {})\n",
                load.weight, load.initial_weight
            ))
        }
        Err(reply) => reply,
    }
}

fn set_weight(asked: &Asked<'_>) -> Reply {
    match find_server(asked, word(asked, 0)) {
        Ok(server) => change_weight(asked, &server, word(asked, 1)),
        Err(reply) => reply,
    }
}

fn change_weight(asked: &Asked<'_>, server: &Found, text: &str) -> Reply {
    let load = asked
        .subjects
        .shared
        .server_load(server.backend, server.place);
    let backend = &asked.subjects.runtime_config.config.proxies[server.backend];
    let weight = match dynamic::weight(backend, load.initial_weight, text) {
        Ok(weight) => weight,
        Err(message) => return refused(message),
    };
    change(asked, server, ServerChange::Weight(weight));
    Reply::Done
}

/// The number at the beginning of a word, parsed like C's `atoi`.
pub(super) fn number(word: &str) -> i64 {
    leading_number(word).map_or(0, |(number, _)| number)
}

fn set_maxconn(asked: &Asked<'_>) -> Reply {
    let server = match find_server(asked, word(asked, 0)) {
        Ok(server) => server,
        Err(reply) => return reply,
    };
    let text = word(asked, 1);
    let maxconn = match leading_number(text) {
        _ if text.is_empty() => return refused("Require <maxconn>.\n"),
        None => return refused("maxconn string empty or preceded by garbage\n"),
        Some((_, rest)) if !rest.is_empty() => {
            return refused("Trailing garbage in maxconn string\n");
        }
        Some((number, _)) => u32::try_from(number).unwrap_or(0),
    };
    change(asked, &server, ServerChange::Maxconn(maxconn));
    Reply::Done
}

const SET_SERVER_USAGE: &str = "usage: set server <backend>/<server> addr | agent | agent-addr | agent-port | agent-send | check-addr | check-port | fqdn | health | name | ssl | state | weight\n";

fn set_server(asked: &Asked<'_>) -> Reply {
    let server = match find_server(asked, word(asked, 0)) {
        Ok(server) => server,
        Err(reply) => return reply,
    };
    let value = word(asked, 2);
    match word(asked, 1) {
        "weight" => change_weight(asked, &server, value),
        "state" => {
            let state = match value {
                "ready" => State::Ready,
                "drain" => State::Drain,
                "maint" => State::Maintenance,
                _ => {
                    return refused(
                        "'set server <srv> state' expects 'ready', 'drain' and 'maint'.\n",
                    );
                }
            };
            set_state(asked, &server, state);
            Reply::Done
        }
        "addr" if value.is_empty() => {
            refused("set server <b>/<s> addr requires an address and optionally a port.\n")
        }
        "addr" => {
            let port = (word(asked, 3) == "port").then(|| word(asked, 4));
            change_address(asked, &server, value, port)
        }
        "fqdn" if value.is_empty() => refused("set server <b>/<s> fqdn requires a FQDN.\n"),
        "fqdn" => set_name(asked, &server, value),
        "name" if value.is_empty() => refused("set server <b>/<s> name requires a new name.\n"),
        "name" => rename(asked, &server, value),
        "agent" => set_health(asked, &server, Checker::Agent, value),
        "health" => set_health(asked, &server, Checker::Health, value),
        name => match Setting::named(name) {
            Some(setting) => server_settings::set(asked, &server, setting),
            None => refused(SET_SERVER_USAGE),
        },
    }
}

/// `set server <server> fqdn <name>`
fn set_name(asked: &Asked<'_>, server: &Found, name: &str) -> Reply {
    let Some(record) = server.record() else {
        return refused("No such server.\n");
    };
    if record.resolvers.is_none() {
        return refused("set server <b>/<s> fqdn failed because no resolution is configured.\n");
    }
    let before = record.fqdn.as_deref();
    if before.is_some_and(|before| before.starts_with('_')) {
        return refused("set server <b>/<s> fqdn failed because SRV resolution is configured.\n");
    }
    const BY: &str = "by 'stats socket command'";
    let backend = &asked.subjects.runtime_config.config.proxies[server.backend].name;
    match resolvers::Name::parse(name) {
        Ok(_) => {}
        Err(NameError::InvalidCharacter | NameError::TooLong) => {
            return Reply::Warned(format!("invalid fqdn '{name}' {BY}"));
        }
        Err(NameError::EmptyLabel | NameError::LabelTooLong) => {
            let own = &record.name;
            return Reply::Warned(format!("could not update {backend}/{own} FQDN {BY}"));
        }
    }
    let shared = &asked.subjects.shared;
    Reply::Warned(
        match shared.name_server(server.backend, server.place, name) {
            NameChange::Same => format!("no need to change the FDQN {BY}"),
            NameChange::Changed => {
                let own = &record.name;
                let before = before.unwrap_or("(null)");
                format!("{backend}/{own} changed its FQDN from {before} to {name} {BY}")
            }
        },
    )
}

fn change_address(asked: &Asked<'_>, server: &Found, addr: &str, port: Option<&str>) -> Reply {
    let Some(record) = server.record() else {
        return refused("No such server.\n");
    };
    let (address, text) = match moved(&record.address, addr, port) {
        Ok(moved) => moved,
        Err(text) => return Reply::Warned(text),
    };
    if address == record.address {
        return Reply::Warned("nothing changed".to_owned());
    }
    let subjects = asked.subjects;
    let shared = &subjects.shared;
    shared.move_server(server.backend, server.place, address);
    dynamic_cookie::refresh(asked, server.backend);
    subjects.workers.wake_all();
    Reply::Warned(format!("{text} by 'stats socket command'"))
}

/// A port: fixed, or an offset to the port that the client connected to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Port {
    Fixed(u16),
    Offset(i32),
}

impl Port {
    fn shown(self) -> String {
        match self {
            Port::Fixed(port) => port.to_string(),
            Port::Offset(offset) => format!("+{offset}"),
        }
    }

    /// Parses a port like HAProxy: a sign makes it an offset.
    fn read(text: &str) -> Option<Self> {
        let (number, _) = leading_number(text)?;
        Some(if text.starts_with(['+', '-']) {
            Port::Offset(i32::try_from(number).unwrap_or(0))
        } else {
            Port::Fixed(number as u16)
        })
    }
}

/// The server's new address, and the message about it.
///
/// # Errors
/// Why the address does not change.
fn moved(
    before: &ServerAddress,
    addr: &str,
    port: Option<&str>,
) -> Result<(ServerAddress, String), String> {
    let (old_ip, old_port) = match before {
        ServerAddress::Fixed(Addr::Inet(addr)) => (addr.ip(), Port::Fixed(addr.port())),
        ServerAddress::PortOffset { ip, offset } => (*ip, Port::Offset(*offset)),
        ServerAddress::Fixed(_) => {
            return Err(
                "Update for the current server address family is only supported through configuration file."
                    .to_owned(),
            );
        }
    };
    let Ok(ip) = addr.parse::<IpAddr>() else {
        return Err(format!("Invalid addr '{addr}'"));
    };
    let new_port = match port {
        None => old_port,
        Some(port) => {
            Port::read(port).ok_or_else(|| format!("problem converting port '{port}' to an int"))?
        }
    };
    let mut said = Vec::new();
    if ip != old_ip {
        said.push(format!("IP changed from '{old_ip}' to '{ip}'"));
    }
    if new_port != old_port {
        let (from, to) = (old_port.shown(), new_port.shown());
        said.push(format!("port changed from '{from}' to '{to}'"));
    }
    let address = match new_port {
        Port::Fixed(port) => ServerAddress::Fixed(Addr::Inet(SocketAddr::new(ip, port))),
        Port::Offset(offset) => ServerAddress::PortOffset { ip, offset },
    };
    Ok((address, said.join(", ")))
}

fn rename(asked: &Asked<'_>, server: &Found, name: &str) -> Reply {
    let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || b"_:.-".contains(&byte);
    if !name.bytes().all(is_valid) {
        return refused("Server name contains invalid characters.\n");
    }
    if name.len() >= NAME_BYTES_MAX {
        return refused("Server name too long.\n");
    }
    let subjects = asked.subjects;
    let (backend, place) = (server.backend, server.place);
    match subjects.shared.rename_server(backend, place, name) {
        Ok(()) => {
            subjects.workers.wake_all();
            Reply::Noted("Server name updated.\n".to_owned())
        }
        Err(RenameError::NotInMaintenance) => refused(
            "Server must be in maintenance mode to be renamed (set server <b>/<s> state maint).\n",
        ),
        Err(RenameError::Referenced) => refused(
            "Cannot rename: server's name is statically referenced (use-server, track, or sample argument).\n",
        ),
        Err(RenameError::NameTaken) => {
            refused("A server with the same name already exists in this backend.\n")
        }
        Err(RenameError::NotFound) => refused("No such server.\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let fixed = |text: &str| ServerAddress::Fixed(Addr::Inet(text.parse().expect("it is")));
        let at = fixed("127.0.0.1:80");
        assert_eq!(
            moved(&at, "127.0.0.2", None),
            Ok((
                fixed("127.0.0.2:80"),
                "IP changed from '127.0.0.1' to '127.0.0.2'".to_owned()
            ))
        );
        assert_eq!(
            moved(&at, "::1", Some("81")),
            Ok((
                fixed("[::1]:81"),
                "IP changed from '127.0.0.1' to '::1', port changed from '80' to '81'".to_owned()
            ))
        );
        let offset = moved(&at, "127.0.0.1", Some("-5")).expect("an offset");
        assert!(matches!(
            offset.0,
            ServerAddress::PortOffset { offset: -5, .. }
        ));
        assert_eq!(
            moved(&at, "127.0.0.1", None),
            Ok((at.clone(), String::new()))
        );
        assert!(moved(&at, "localhost", None).is_err(), "no name");
        assert!(moved(&at, "127.0.0.1", Some("x")).is_err());
        let unix = ServerAddress::Fixed(Addr::Unix(b"/x".as_slice().into()));
        assert!(moved(&unix, "127.0.0.1", None).is_err());
    }
}
