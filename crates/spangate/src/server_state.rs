//! Files with the state of servers (management guide §9.3 "show servers state"; manual §3.1
//! server-state-file): one process writes the file, the next one starts from it.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

use config::model::{Config, InitAddr, Proxy, Server, ServerAddress, StateFrom};
use net::Addr;
use proxy::{Checker, ServerChange, ServerRecord, Shared};

use crate::{notice, warning};

/// The only version of the format.
pub(crate) const VERSION: &str = "1";
/// The names of the fields, in their order.
pub(crate) const FIELDS: &str = "be_id be_name srv_id srv_name srv_addr srv_op_state srv_admin_state srv_uweight srv_iweight srv_time_since_last_change srv_check_status srv_check_result srv_check_health srv_check_state srv_agent_state bk_f_forced_id srv_f_forced_id srv_fqdn srv_port srvrecord srv_use_ssl srv_check_port srv_check_addr srv_agent_addr srv_agent_port";
/// The least number of fields on a line: those of version 1. Later ones follow them.
const FIELDS_MIN: usize = 20;
const FIELDS_MAX: usize = 25;
/// Most bytes of a file.
const FILE_BYTES_MAX: u64 = 256 << 20;
/// Most bytes of a line, as in HAProxy.
const LINE_BYTES_MAX: usize = 2000;

/// Flags of `srv_admin_state`.
const FORCED_MAINTENANCE: u32 = 0x01;
const CONFIGURED_MAINTENANCE: u32 = 0x04;
const FORCED_DRAIN: u32 = 0x08;
/// A user gave the server another name to resolve.
const RENAMED: u32 = 0x40;
/// Flags that a file does not set: inherited, unresolved.
const NOT_KEPT: u32 = 0x02 | 0x10 | 0x20;
/// What stands for a value that is absent.
const ABSENT: &str = "-";

/// Flags of a check: the configuration has it, and it is enabled.
const CHECK_CONFIGURED: i64 = 0x02;
const CHECK_BITS: i64 = CHECK_CONFIGURED | 0x04;

/// A server's state in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    stopped: bool,
    admin: u32,
    weight: u32,
    initial_weight: u32,
    ip: Option<IpAddr>,
    port: Option<u16>,
    /// The name that was resolved, and the service.
    fqdn: Option<String>,
    service: Option<String>,
    /// The configuration had checks, and the user stopped them.
    stopped_checks: bool,
    stopped_agent: bool,
}

/// By the names of backend and server: the fields from `srv_addr` on.
type Lines = HashMap<(String, String), Vec<String>>;

/// Why a file is not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unusable {
    Empty,
    Version,
    /// The line's number; the line after the version is 1.
    CorruptLine(usize),
}

/// Parses the text of a file. `backend`: only lines with this name are kept.
fn read_text(text: &str, backend: Option<&str>) -> Result<Lines, Unusable> {
    let mut lines = text.split_inclusive('\n');
    match lines.next() {
        None => return Err(Unusable::Empty),
        Some(version) if version.trim_end_matches('\n') == VERSION && version.ends_with('\n') => {}
        Some(_) => return Err(Unusable::Version),
    }
    let mut found = Lines::new();
    for (line, number) in lines.zip(1..) {
        if !line.ends_with('\n') || line.len() > LINE_BYTES_MAX {
            return Err(Unusable::CorruptLine(number));
        }
        let mut fields = line
            .split([' ', '\t', '\n'])
            .filter(|field| !field.is_empty());
        let fields: Vec<&str> = fields.by_ref().take(FIELDS_MAX).collect();
        match fields.first() {
            None => continue,
            Some(first) if first.starts_with('#') => continue,
            Some(_) if fields.len() < FIELDS_MIN => return Err(Unusable::CorruptLine(number)),
            Some(_) if backend.is_some_and(|backend| backend != fields[1]) => continue,
            Some(_) => {}
        }
        let name = (fields[1].to_owned(), fields[3].to_owned());
        let rest = fields[4..].iter().map(|&field| field.to_owned());
        found.entry(name).or_insert_with(|| rest.collect());
    }
    Ok(found)
}

/// Parses the fields from `srv_addr` on.
///
/// # Errors
/// Every fault, in HAProxy's words.
fn read_fields(fields: &[String]) -> Result<Line, String> {
    let mut wrong = String::new();
    let mut number = |place: usize, name: &str, is_valid: &dyn Fn(i64) -> bool| {
        let text = fields.get(place).map_or("", String::as_str);
        let value = text.parse::<i64>().ok().filter(|value| is_valid(*value));
        if value.is_none() {
            wrong.push_str(&format!(", invalid {name} value '{text}'"));
        }
        value.unwrap_or(0)
    };
    let state = number(1, "srv_op_state", &|value| (0..=3).contains(&value));
    let admin = number(2, "srv_admin_state", &|value| {
        let Ok(value) = u32::try_from(value) else {
            return false;
        };
        let kept = value & !NOT_KEPT;
        let is_drain = kept & FORCED_DRAIN != 0 && kept & FORCED_MAINTENANCE != 0;
        !is_drain
            && kept & !(FORCED_MAINTENANCE | CONFIGURED_MAINTENANCE | FORCED_DRAIN | RENAMED) == 0
    });
    let weight = number(3, "srv_uweight", &|value| (0..=256).contains(&value));
    let initial_weight = number(4, "srv_iweight", &|value| (0..=256).contains(&value));
    number(5, "srv_last_time_change", &|_| true);
    number(6, "srv_check_status", &|value| (0..64).contains(&value));
    number(7, "srv_check_result", &|value| (0..=4).contains(&value));
    number(8, "srv_check_health", &|_| true);
    let check_state = number(9, "srv_check_state", &|value| value & !0x1f == 0);
    let agent_state = number(10, "srv_agent_state", &|value| value & !0x1f == 0);
    number(11, "bk_f_forced_id", &|value| (0..=1).contains(&value));
    number(12, "srv_f_forced_id", &|value| (0..=1).contains(&value));
    let port = number(14, "srv_port", &|value| u16::try_from(value).is_ok());
    let name = |place: usize| {
        let text = fields.get(place).filter(|text| *text != ABSENT);
        text.cloned()
    };
    if wrong.is_empty() {
        Ok(Line {
            stopped: state == 0,
            admin: admin as u32 & !NOT_KEPT,
            weight: weight as u32,
            initial_weight: initial_weight as u32,
            ip: fields.first().and_then(|text| text.parse().ok()),
            port: u16::try_from(port).ok(),
            fqdn: name(13),
            service: name(15),
            stopped_checks: check_state & CHECK_BITS == CHECK_CONFIGURED,
            stopped_agent: agent_state & CHECK_BITS == CHECK_CONFIGURED,
        })
    } else {
        Err(wrong)
    }
}

/// The changes from the server's configured state to its state in the file. Where the configuration
/// has changed since the file was written, the configuration wins.
fn changes(line: &Line, server: &ServerRecord) -> Vec<ServerChange> {
    let mut changes = Vec::new();
    if line.stopped && line.admin & (FORCED_MAINTENANCE | CONFIGURED_MAINTENANCE) == 0 {
        changes.push(ServerChange::Down(true));
    }
    let was_disabled = line.admin & CONFIGURED_MAINTENANCE != 0;
    let was_in_maintenance = line.admin & FORCED_MAINTENANCE != 0;
    let in_maintenance = if was_disabled == server.disabled {
        // The configured state is unchanged, so the user's last command wins.
        was_in_maintenance
    } else {
        server.disabled
    };
    if in_maintenance != server.disabled {
        changes.push(ServerChange::Maintenance(in_maintenance));
    }
    let drained = line.admin & FORCED_DRAIN != 0;
    // Not if the drain came from a configured weight of 0 and the configuration now has another
    // weight.
    if drained && !in_maintenance && (line.initial_weight > 0 || server.weight == 0) {
        changes.push(ServerChange::Drain(true));
    }
    if line.stopped_checks && server.checks.enabled {
        changes.push(ServerChange::Checks(Checker::Health, false));
    }
    if line.stopped_agent && server.checks.agent.enabled {
        changes.push(ServerChange::Checks(Checker::Agent, false));
    }
    if line.initial_weight == server.weight && line.weight != server.weight {
        changes.push(ServerChange::Weight(line.weight));
    }
    changes
}

/// The server's address with the port from the file, and with the address that its name had, where
/// `init-addr` takes the last one.
fn moved(line: &Line, server: &ServerRecord) -> Option<ServerAddress> {
    let last = line
        .ip
        .filter(|ip| !ip.is_unspecified() && takes_last(line, server));
    let address = match &server.address {
        ServerAddress::Fixed(Addr::Inet(addr)) => {
            let port = line.port.unwrap_or(addr.port());
            inet(last.unwrap_or(addr.ip()), port)
        }
        // A service has a port too.
        ServerAddress::PortOffset { .. } if line.service.is_some() => inet(last?, line.port?),
        address @ ServerAddress::PortOffset { .. } => address.with_ip(last?)?,
        ServerAddress::Fixed(_) => return None,
    };
    (address != server.address).then_some(address)
}

fn inet(ip: IpAddr, port: u16) -> ServerAddress {
    ServerAddress::Fixed(Addr::Inet(SocketAddr::new(ip, port)))
}

/// Whether the file has the last address of the server's name, and `init-addr` prefers it to the
/// one that the server has.
fn takes_last(line: &Line, server: &Server) -> bool {
    let Some(name) = &server.fqdn else {
        return false;
    };
    let is_same = line.fqdn.as_ref() == Some(name)
        || line.service.as_ref() == Some(name)
        || renamed(line, server).is_some();
    let methods = match &*server.init_addr {
        [] => &[InitAddr::Last][..],
        methods => methods,
    };
    let is_better = |method: &InitAddr| match method {
        InitAddr::Last => true,
        InitAddr::Libc => !server.unresolved,
        InitAddr::None | InitAddr::Ip(_) => true,
    };
    let first = methods.iter().find(|method| is_better(method));
    is_same && first == Some(&InitAddr::Last)
}

/// The host that the service of the server had, if it is the same service.
fn host_of_service<'l>(line: &'l Line, server: &Server) -> Option<&'l str> {
    let is_same = line.service.is_some() && line.service == server.fqdn;
    line.fqdn.as_deref().filter(|_| is_same)
}

/// The name that a user gave the server, if it still may have one.
fn renamed<'l>(line: &'l Line, server: &Server) -> Option<&'l str> {
    let is_service = line.service.is_some();
    let may_have = line.admin & RENAMED != 0 && server.resolvers.is_some() && !is_service;
    line.fqdn.as_deref().filter(|_| may_have)
}

fn path(config: &Config, name: &Path) -> PathBuf {
    // An absolute path is used as it is.
    let base = config.global.server_state_base.as_deref();
    base.map_or_else(|| name.to_owned(), |base| base.join(name))
}

fn read_file(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?
        .take(FILE_BYTES_MAX)
        .read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The owner of a file.
enum Origin<'a> {
    Global,
    /// The file of one proxy, by its name.
    Local(&'a str),
}

impl Origin<'_> {
    /// The beginning of messages, and their name for the file.
    fn names(&self) -> (String, &'static str) {
        match self {
            Origin::Global => ("config: ".to_owned(), "global server state file"),
            Origin::Local(proxy) => (format!("Proxy '{proxy}': "), "server state file"),
        }
    }
}

/// The lines of a file; faults are reported.
fn load(path: &Path, origin: &Origin<'_>) -> Option<Lines> {
    let (begin, what) = origin.names();
    let shown = path.display();
    let text = match read_file(path) {
        Ok(text) => text,
        Err(error) => {
            let why = net::sys::plain_error(&error);
            let text = format!("{begin}Can't open {what} '{shown}': {why}");
            match error.kind() {
                io::ErrorKind::NotFound => notice(&text),
                _ => warning(&text),
            }
            return None;
        }
    };
    let backend = match origin {
        Origin::Global => None,
        Origin::Local(proxy) => Some(*proxy),
    };
    match read_text(&text, backend) {
        Ok(lines) => return Some(lines),
        Err(Unusable::Empty) => notice(&format!("{begin}Empty {what} '{shown}'.")),
        Err(Unusable::Version) => warning(&format!(
            "{begin}Can't get version of the {what} '{shown}'."
        )),
        Err(Unusable::CorruptLine(line)) => {
            warning(&format!(
                "{begin}corrupted {what} '{shown}' at line {line}."
            ));
        }
    }
    None
}

/// The files, read before the process drops its rights.
#[derive(Debug, Default)]
pub(crate) struct States {
    global: Lines,
    /// The file of each backend, by its index.
    local: HashMap<usize, Lines>,
}

impl States {
    /// Reads the files that the configuration names; faults are reported.
    pub fn read(config: &Config) -> Self {
        let mut states = States::default();
        if let Some(name) = &config.global.server_state_file {
            let lines = load(&path(config, name), &Origin::Global);
            states.global = lines.unwrap_or_default();
        }
        for (place, proxy) in config.proxies.iter().enumerate() {
            if !is_loaded(proxy) || proxy.state_from != StateFrom::Local {
                continue;
            }
            let own = proxy.state_file_name.as_deref();
            let path = path(config, own.unwrap_or(Path::new(proxy.name.as_str())));
            if let Some(lines) = load(&path, &Origin::Local(&proxy.name)) {
                states.local.insert(place, lines);
            }
        }
        states
    }

    /// Sets the servers to the states in the files.
    pub fn apply(mut self, config: &Config, shared: &Shared) {
        let tables = shared.server_tables();
        for (backend, proxy) in config
            .proxies
            .iter()
            .enumerate()
            .filter(|(_, proxy)| is_loaded(proxy))
        {
            let lines = match proxy.state_from {
                StateFrom::Nowhere => continue,
                StateFrom::Global => &mut self.global,
                StateFrom::Local => match self.local.get_mut(&backend) {
                    Some(lines) => lines,
                    None => continue,
                },
            };
            for (place, server) in tables.servers(backend) {
                let name = (proxy.name.to_string(), server.name.clone());
                let Some(fields) = lines.remove(&name) else {
                    continue;
                };
                match read_fields(&fields) {
                    Ok(line) => {
                        for change in changes(&line, server) {
                            // No worker has to be woken: none runs yet.
                            drop(shared.change_server(backend, place, change));
                        }
                        if let Some(address) = moved(&line, server) {
                            shared.move_server(backend, place, address);
                        }
                        if let Some(name) = renamed(&line, server) {
                            shared.name_server(backend, place, name);
                        }
                        if let Some(host) = host_of_service(&line, server) {
                            shared.host_server(backend, place, host);
                        }
                    }
                    Err(wrong) => warning(&format!(
                        "server-state application failed for server '{}/{}'{wrong}",
                        proxy.name, server.name
                    )),
                }
            }
            if proxy.state_from == StateFrom::Local {
                for (backend, server) in lines.keys() {
                    warning(&format!(
                        "Proxy '{backend}': can't find server '{server}' in backend '{backend}'"
                    ));
                }
            }
        }
    }
}

/// Whether a file may hold the state of a proxy's servers.
fn is_loaded(proxy: &Proxy) -> bool {
    proxy.is_backend && !proxy.disabled && !proxy.servers.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "3 be 1 s1 127.0.0.1 2 0 5 10 7 1 0 0 0 0 0 0 - 8080 - 0 0 - - 0\n";

    #[test]
    fn files_and_what_makes_them_unusable() {
        let text = format!("1\n# {FIELDS}\n\n{LINE}");
        let lines = read_text(&text, None).expect("a file");
        let fields = &lines[&("be".to_owned(), "s1".to_owned())];
        let line = read_fields(fields).expect("a line");
        let wanted = Line {
            stopped: false,
            admin: 0,
            weight: 5,
            initial_weight: 10,
            ip: Some(IpAddr::from([127, 0, 0, 1])),
            port: Some(8080),
            fqdn: None,
            service: None,
            stopped_checks: false,
            stopped_agent: false,
        };
        assert_eq!(line, wanted);
        assert!(read_text(&text, Some("other")).expect("a file").is_empty());
        assert_eq!(read_text("", None), Err(Unusable::Empty));
        assert_eq!(read_text("2\n", None), Err(Unusable::Version));
        assert_eq!(read_text("1", None), Err(Unusable::Version));
        assert_eq!(
            read_text("1\n3 be 1 s1\n", None),
            Err(Unusable::CorruptLine(1))
        );
        assert_eq!(
            read_text(&format!("1\n#\n{}", LINE.trim_end()), None),
            Err(Unusable::CorruptLine(2)),
            "its end is missing"
        );
        let long = format!("1\n{}\n", "x ".repeat(LINE_BYTES_MAX));
        assert_eq!(read_text(&long, None), Err(Unusable::CorruptLine(1)));
    }

    #[test]
    fn everything_that_is_wrong_in_a_line_is_told() {
        let fields = |text: &str| -> Vec<String> { text.split(' ').map(str::to_owned).collect() };
        let good = "127.0.0.1 2 0 5 10 7 1 0 0 0 0 0 0 - 8080 - 0 0 - - 0";
        assert!(read_fields(&fields(good)).is_ok());
        let bad = "127.0.0.1 9 9 300 x 7 1 0 0 99 0 0 2 - 80800 -";
        assert_eq!(
            read_fields(&fields(bad)).expect_err("much"),
            ", invalid srv_op_state value '9', invalid srv_admin_state value '9', invalid srv_uweight value '300', \
             invalid srv_iweight value 'x', invalid srv_check_state value '99', invalid srv_f_forced_id value '2', \
             invalid srv_port value '80800'"
        );
        for (admin, is_valid) in [
            ("1", true),
            ("4", true),
            ("5", true),
            ("12", true),
            ("9", false),
            ("32", true),
            ("64", true),
            ("-1", false),
        ] {
            let text = good.replacen("2 0", &format!("2 {admin}"), 1);
            assert_eq!(read_fields(&fields(&text)).is_ok(), is_valid, "{admin}");
        }
    }
}
