//! `set server` for the targets of a server's health checks and agent, the text for the agent, and
//! TLS.

use std::net::{IpAddr, SocketAddr};

use config::dynamic::leading_number;
use config::model::{ServerAddress, ServerOptions};
use net::Addr;
use proxy::{Checker, TlsSwitchError};
use resolvers::system::of_process;

use super::servers::Found;
use super::{Asked, Reply};

/// The setting that a command changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Setting {
    AgentAddr,
    AgentPort,
    AgentSend,
    CheckAddr,
    CheckPort,
    Ssl,
}

impl Setting {
    pub fn named(name: &str) -> Option<Self> {
        Some(match name {
            "agent-addr" => Setting::AgentAddr,
            "agent-port" => Setting::AgentPort,
            "agent-send" => Setting::AgentSend,
            "check-addr" => Setting::CheckAddr,
            "check-port" => Setting::CheckPort,
            "ssl" => Setting::Ssl,
            _ => return None,
        })
    }

    /// The checker whose address or port a command sets.
    fn checker(self) -> Option<Checker> {
        match self {
            Setting::AgentAddr | Setting::AgentPort => Some(Checker::Agent),
            Setting::CheckAddr | Setting::CheckPort => Some(Checker::Health),
            Setting::AgentSend | Setting::Ssl => None,
        }
    }
}

/// `set server <server> <setting> …`
pub(super) fn set(asked: &Asked<'_>, server: &Found, setting: Setting) -> Reply {
    let word = |place: usize| {
        asked
            .rest
            .get(place)
            .copied()
            .filter(|word| !word.is_empty())
    };
    let value = word(2);
    match (setting, setting.checker()) {
        (Setting::AgentAddr | Setting::CheckAddr, Some(checker)) => {
            let Some(addr) = value else {
                return Reply::Refused(format!(
                    "set server <b>/<s> {} requires an address and optionally a port.\n",
                    asked.rest[1]
                ));
            };
            let has_port = word(3) == Some("port");
            let port = has_port.then(|| word(4).unwrap_or_default());
            let wanted = TargetWords {
                addr: Some(addr),
                port,
            };
            set_target(asked, server, checker, &wanted)
        }
        (_, Some(checker)) => match value {
            None => Reply::Refused(format!(
                "set server <b>/<s> {} requires a port.\n",
                asked.rest[1]
            )),
            port => set_target(asked, server, checker, &TargetWords { addr: None, port }),
        },
        (Setting::AgentSend, None) => set_agent_send(asked, server),
        (_, None) => set_ssl(asked, server, value),
    }
}

/// Changes the target of a server's checks of one kind: an address, a port or both.
fn set_target(
    asked: &Asked<'_>,
    server: &Found,
    checker: Checker,
    wanted: &TargetWords<'_>,
) -> Reply {
    match read_target(asked, server, checker, wanted) {
        Ok(target) => {
            edit(asked, server, |options| {
                let checks = &mut options.checks;
                let (of_addr, of_port) = match checker {
                    Checker::Health => (&mut checks.addr, &mut checks.port),
                    Checker::Agent => (&mut checks.agent.addr, &mut checks.agent.port),
                };
                if let Some(ip) = target.ip {
                    *of_addr = Some(Addr::Inet(SocketAddr::new(ip, 0)));
                }
                *of_port = target.port.unwrap_or(*of_port);
            });
            Reply::Done
        }
        Err(warning) => Reply::Warned(warning),
    }
}

/// A new target of checks, as it was written.
struct TargetWords<'a> {
    addr: Option<&'a str>,
    port: Option<&'a str>,
}

/// A new target of checks; what is missing stays as it is.
struct Target {
    ip: Option<IpAddr>,
    port: Option<u16>,
}

fn read_target(
    asked: &Asked<'_>,
    server: &Found,
    checker: Checker,
    wanted: &TargetWords<'_>,
) -> Result<Target, String> {
    let shared = &asked.subjects.shared;
    let view = shared.server_view(server.backend, server.place);
    let (check, what) = match checker {
        Checker::Health => (view.check, "health"),
        Checker::Agent => (view.agent, "agent"),
    };
    if !(check.is_configured && check.is_enabled) {
        return Err(format!("{what} checks are not enabled on this server"));
    }
    let ip = match wanted.addr {
        None => None,
        Some(addr) => Some(read_ip(addr, checker).ok_or_else(|| format!("invalid addr '{addr}'"))?),
    };
    let port = match wanted.port {
        None => None,
        Some(port) => Some(read_port(port)?),
    };
    let is_mapped = server
        .record()
        .is_some_and(|record| matches!(record.address, ServerAddress::PortOffset { .. }));
    if checker == Checker::Health && port == Some(0) && is_mapped {
        return Err("can't unset 'port' since MAPPORTS is in use".to_owned());
    }
    Ok(Target { ip, port })
}

/// An agent's address may be a name, as in HAProxy.
fn read_ip(addr: &str, checker: Checker) -> Option<IpAddr> {
    match (addr.parse(), checker) {
        (Ok(ip), _) => Some(ip),
        (Err(_), Checker::Health) => None,
        (Err(_), Checker::Agent) => {
            let found = of_process().lookup_blocking(addr, 0).ok()?;
            found.first().map(SocketAddr::ip)
        }
    }
}

fn read_port(text: &str) -> Result<u16, String> {
    match leading_number(text) {
        Some((number, "")) => {
            u16::try_from(number).map_err(|_| "provided port is invalid".to_owned())
        }
        _ => Err("provided port is not an integer".to_owned()),
    }
}

fn set_agent_send(asked: &Asked<'_>, server: &Found) -> Reply {
    let shared = &asked.subjects.shared;
    let agent = shared.server_view(server.backend, server.place).agent;
    if !(agent.is_configured && agent.is_enabled) {
        return Reply::Refused("agent checks are not enabled on this server.\n".to_owned());
    }
    let text = asked.bytes.get(2).copied().unwrap_or_default();
    edit(asked, server, |options| {
        options.checks.agent.send = text.into();
    });
    Reply::Done
}

fn set_ssl(asked: &Asked<'_>, server: &Found, value: Option<&str>) -> Reply {
    let refused = |text: &str| Reply::Refused(text.to_owned());
    let on = match value {
        Some("on") => Some(true),
        Some("off") => Some(false),
        _ => None,
    };
    let subjects = asked.subjects;
    let shared = &subjects.shared;
    match subjects
        .runtime_config
        .switch_server_tls(shared, server.backend, server.place, on)
    {
        Ok(woken) => {
            subjects.workers.wake(&woken);
            Reply::Noted("server ssl setting updated.\n".to_owned())
        }
        Err(TlsSwitchError::Added) => {
            refused("'set server <srv> ssl' not supported on dynamic servers\n")
        }
        Err(TlsSwitchError::NotPrepared) => refused(
            "'set server <srv> ssl' cannot be set.  default-server should define ssl settings\n",
        ),
        Err(TlsSwitchError::NoSide) => refused("'set server <srv> ssl' expects 'on' or 'off'.\n"),
        Err(TlsSwitchError::Tls(_)) => Reply::Refused(format!(
            "failed to enable ssl for server {}.\n",
            asked.rest[0]
        )),
    }
}

fn edit(asked: &Asked<'_>, server: &Found, edit: impl FnOnce(&mut ServerOptions)) {
    let shared = &asked.subjects.shared;
    let woken = shared.edit_server(server.backend, server.place, edit);
    asked.subjects.workers.wake(&woken);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports() {
        assert_eq!(read_port("0"), Ok(0));
        assert_eq!(read_port("65535"), Ok(65535));
        for text in ["x", "", "8x"] {
            assert_eq!(
                read_port(text),
                Err("provided port is not an integer".to_owned()),
                "{text}"
            );
        }
        for text in ["65536", "-1", "99999999999999999999"] {
            assert_eq!(
                read_port(text),
                Err("provided port is invalid".to_owned()),
                "{text}"
            );
        }
    }

    #[test]
    fn addresses_of_checks_are_no_names() {
        let local: IpAddr = "127.0.0.1".parse().expect("an address");
        assert_eq!(read_ip("127.0.0.1", Checker::Health), Some(local));
        for text in ["localhost", "127.0.0.1:80", "/x", ""] {
            assert_eq!(read_ip(text, Checker::Health), None, "{text}");
        }
    }
}
