//! `show fd`: the open descriptors, with what they are to the proxy.

use std::collections::HashMap;
use std::fs;
use std::net::SocketAddr;
use std::os::fd::RawFd;

use config::model::BindAddress;
use net::Addr;
use net::sys;

use super::{Asked, Command, Level, Reply, command};

pub(super) const COMMANDS: &[Command] = &[command(
    "show fd",
    "[-!plcfbs]* [num]",
    Level::Operator,
    "show open descriptors: pipes, listeners, connections of frontends and backends",
    show,
)];

/// The kinds of descriptors that may be selected, as bits.
const PIPE: u8 = 1;
const LISTENER: u8 = 2;
const FRONTEND: u8 = 4;
const BACKEND: u8 = 8;
/// Files, and sockets without a connection.
const OTHER: u8 = 16;
const ALL: u8 = PIPE | LISTENER | FRONTEND | BACKEND | OTHER;

/// The arguments of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wanted {
    kinds: u8,
    fd: Option<RawFd>,
}

impl Wanted {
    /// `[-!plcfbs]* [<group>/[<fd>]|<fd>]`; none for an unknown letter. There is one group of
    /// threads, so that its number selects nothing.
    fn read(words: &[&str]) -> Option<Wanted> {
        let (mut kinds, mut fd) = (0, None);
        for word in words {
            if word.starts_with(|first: char| first.is_ascii_digit() || first == '/') {
                let number = word.split_once('/').map_or(*word, |(_, number)| number);
                fd = number.parse().ok();
                continue;
            }
            let mut adds = true;
            for letter in word.bytes() {
                let kind = match letter {
                    b'-' | b'!' => {
                        adds = !adds;
                        continue;
                    }
                    b'p' => PIPE,
                    b'l' => LISTENER,
                    b'c' => FRONTEND | BACKEND,
                    b'f' => FRONTEND,
                    b'b' | b's' => BACKEND,
                    _ => return None,
                };
                if adds {
                    kinds |= kind;
                } else {
                    let from = if kinds == 0 { ALL } else { kinds };
                    kinds = from & !kind;
                }
            }
        }
        let kinds = if kinds == 0 { ALL } else { kinds };
        Some(Wanted { kinds, fd })
    }
}

/// An open descriptor.
struct Open {
    fd: RawFd,
    /// The file or socket, as the system names it.
    target: String,
}

/// The addresses of the listeners, with the name of their frontend.
#[derive(Default)]
struct Listeners {
    addresses: HashMap<Addr, String>,
    /// Those that listen on every address.
    ports: HashMap<u16, String>,
}

impl Listeners {
    fn of(asked: &Asked<'_>) -> Listeners {
        let config = &asked.subjects.runtime_config.config;
        let mut listeners = Listeners::default();
        for (frontend, addr) in asked.subjects.frontends.addresses() {
            let name = asked.anonymiser.text(&config.proxies[frontend].name);
            listeners.add(addr, &name);
        }
        for bind in &config.global.stats_sockets {
            if let BindAddress::Addr(addr) = &bind.address {
                listeners.add(addr.clone(), "GLOBAL");
            }
        }
        listeners
    }

    fn add(&mut self, addr: Addr, frontend: &str) {
        match addr {
            Addr::Inet(inet) if inet.ip().is_unspecified() => {
                self.ports.insert(inet.port(), frontend.to_owned());
            }
            addr => {
                self.addresses.insert(addr, frontend.to_owned());
            }
        }
    }

    /// The frontend that listens on an address.
    fn frontend(&self, local: &Addr) -> Option<&str> {
        let by_port = |inet: &SocketAddr| self.ports.get(&inet.port());
        let known = self.addresses.get(local).or_else(|| match local {
            Addr::Inet(inet) => by_port(inet),
            Addr::Unix(_) => None,
        });
        known.map(String::as_str)
    }
}

fn show(asked: &Asked<'_>) -> Reply {
    let Some(wanted) = Wanted::read(asked.rest) else {
        return Reply::Refused("Invalid FD type\n".to_owned());
    };
    let Some(open) = open_descriptors() else {
        return Reply::Refused("The descriptors cannot be listed.\n".to_owned());
    };
    let listeners = Listeners::of(asked);
    let hide = asked.anonymiser;
    let shown = |addr: &Addr| hide.address(&addr.to_string()).into_owned();
    let selected = open
        .into_iter()
        .filter(|one| wanted.fd.is_none_or(|fd| fd == one.fd));
    let line = |Open { fd, target }: Open| {
        let (kind, details) = if target.starts_with("pipe:") {
            (PIPE, String::new())
        } else if target.starts_with("socket:") {
            socket(fd, &listeners, shown)
        } else {
            (OTHER, String::new())
        };
        let selected = wanted.kinds & kind != 0;
        selected.then(|| format!("{fd:>7} : {target}{details}\n"))
    };
    Reply::Dump(selected.filter_map(line).collect())
}

/// All descriptors of the process, in order; none if the system does not list them.
fn open_descriptors() -> Option<Vec<Open>> {
    let entries = fs::read_dir("/proc/self/fd").ok()?;
    let mut all: Vec<Open> = entries
        .flatten()
        .filter_map(|entry| {
            let target = fs::read_link(entry.path()).ok()?;
            Some(Open {
                fd: entry.file_name().to_str()?.parse().ok()?,
                target: target.to_string_lossy().escape_debug().to_string(),
            })
        })
        .collect();
    all.sort_unstable_by_key(|one| one.fd);
    Some(all)
}

/// The kind of a socket, and what the line says about it. Another thread may close the socket in
/// the meantime; it is then of no kind.
fn socket(fd: RawFd, listeners: &Listeners, shown: impl Fn(&Addr) -> String) -> (u8, String) {
    let Ok(local) = sys::local_addr(fd).map(published) else {
        return (OTHER, String::new());
    };
    let frontend = listeners.frontend(&local);
    let is = |name| sys::option(fd, libc::SOL_SOCKET, name);
    if is(libc::SO_ACCEPTCONN).is_ok_and(|value| value != 0) {
        let name = frontend.unwrap_or("<none>");
        return (LISTENER, format!(" l.fe={name} addr={}", shown(&local)));
    }
    let is_stream = is(libc::SO_TYPE).is_ok_and(|kind| kind == libc::SOCK_STREAM);
    match (sys::peer_addr(fd), frontend) {
        (Ok(peer), Some(name)) if is_stream => {
            let (peer, local) = (shown(&peer), shown(&local));
            (FRONTEND, format!(" fe={name} src={peer} dst={local}"))
        }
        (Ok(Addr::Inet(peer)), None) if is_stream => {
            let (peer, local) = (shown(&Addr::Inet(peer)), shown(&local));
            (BACKEND, format!(" sv={peer} src={local}"))
        }
        (Ok(_) | Err(_), _) => (OTHER, String::new()),
    }
}

/// The address under which clients know a socket: a path is bound under another name, which ends
/// with the process id and `.tmp`, and then renamed.
fn published(addr: Addr) -> Addr {
    let Addr::Unix(path) = &addr else {
        return addr;
    };
    let renamed = path.strip_suffix(b".tmp").and_then(|path| {
        let dot = path.iter().rposition(|byte| *byte == b'.')?;
        let (path, pid) = (&path[..dot], &path[dot + 1..]);
        (!pid.is_empty() && pid.iter().all(u8::is_ascii_digit)).then_some(path)
    });
    renamed.map(|path| Addr::Unix(path.into())).unwrap_or(addr)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_select_kinds() {
        let kinds = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            Wanted::read(&words).map(|wanted| wanted.kinds)
        };
        assert_eq!(kinds(""), Some(ALL));
        assert_eq!(kinds("pl"), Some(PIPE | LISTENER));
        assert_eq!(kinds("!f"), Some(ALL & !FRONTEND));
        assert_eq!(kinds("c!f"), kinds("b"));
        assert_eq!(kinds("s"), kinds("b"));
        assert_eq!(
            kinds("-p f"),
            Some(ALL & !PIPE),
            "a word ends the inversion"
        );
        assert_eq!(kinds("x"), None);
    }

    #[test]
    fn a_socket_has_the_name_that_clients_use() {
        let unix = |path: &str| Addr::Unix(path.as_bytes().into());
        assert_eq!(published(unix("/run/s.sock.12.tmp")), unix("/run/s.sock"));
        for same in ["/run/s.sock", "/run/s.tmp", "/run/s.x.tmp", "/run/s..tmp"] {
            assert_eq!(published(unix(same)), unix(same));
        }
    }

    #[test]
    fn a_number_selects_a_descriptor() {
        let fd = |word: &str| Wanted::read(&["l", word]).map(|wanted| wanted.fd);
        assert_eq!(fd("7"), Some(Some(7)));
        assert_eq!(fd("1/7"), Some(Some(7)));
        assert_eq!(fd("/7"), Some(Some(7)));
        assert_eq!(fd("1/"), Some(None));
        assert_eq!(fd("7x"), Some(None));
    }
}
