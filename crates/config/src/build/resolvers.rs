//! Sections `resolvers` (manual §5.3.2), and the options of servers that name one (manual §5.2).

use super::address::{self, Parsed, Ports};
use super::line::{Cursor, Line, Parse, leading_integer};
use super::{Shared, unknown, values};
use crate::keywords::{self, State, other};
use crate::model::{Family, Nameserver, Resolve, Resolvers, ServerOptions};
use crate::tree::Section;
use ::resolvers::{LineFault, LineWarning};
use sample::Place;
use std::net::SocketAddr;
use std::time::Duration;

/// The size of the header of a message, the least payload that can be announced.
const PAYLOAD_BYTES_MIN: i64 = 12;
/// The system's configuration of name servers.
const RESOLV_CONF: &str = "/etc/resolv.conf";
/// Most bytes that are read of it.
const RESOLV_CONF_BYTES_MAX: u64 = 64 << 10;
/// The section that is made of it where a configuration has none of this name.
const DEFAULT_SECTION: &str = "default";

/// Reads a section `resolvers`.
pub fn section(section: &Section, shared: &mut Shared<'_>) {
    let header = Line::new(&section.header);
    let name = match header.need(1, || "missing name for resolvers section.".to_owned()) {
        Ok(name) => name.to_owned(),
        Err(fault) => return shared.settle(Err(fault)),
    };
    if let Some(bad) = values::bad_name_character(header.bytes(1)) {
        let message = format!("character '{bad}' is not permitted in 'resolvers' name '{name}'.");
        return shared.settle(Err(header.fault(1, message)));
    }
    if let Some(known) = shared.resolvers.iter().find(|known| known.name == name) {
        let place = known.origin.as_deref().unwrap_or_default();
        let message =
            format!("resolvers '{name}' has same name as another resolvers (declared at {place}).");
        return shared.settle(Err(header.fault(1, message)));
    }
    let mut resolvers = Resolvers::new(&name, Some(header.span(0).place()));
    for line in section.statements.iter().map(Line::new) {
        let result = statement(&mut resolvers, &line, shared);
        shared.settle(result);
    }
    // A line that was refused is enough to say.
    let is_empty = |line: &Line<'_>| !matches!(line.keyword(), "nameserver" | "parse-resolv-conf");
    if section
        .statements
        .iter()
        .map(Line::new)
        .all(|line| is_empty(&line))
    {
        let message = format!("resolvers '{name}' has no nameservers configured!");
        shared.settle(Err(header.fault(0, message).as_warning()));
    }
    shared.resolvers.push(resolvers);
}

/// Adds the section `default` where the configuration has none: the name servers of the system.
/// Without a usable file there is none, as in HAProxy.
pub fn add_default(shared: &mut Shared<'_>) {
    if shared
        .resolvers
        .iter()
        .any(|known| known.name == DEFAULT_SECTION)
    {
        return;
    }
    let Ok(text) = read_resolv_conf() else { return };
    let mut resolvers = Resolvers::new(DEFAULT_SECTION, None);
    add_system(&mut resolvers, &text, &mut |_| {});
    if !resolvers.nameservers.is_empty() {
        shared.resolvers.push(resolvers);
    }
}

fn statement(resolvers: &mut Resolvers, line: &Line<'_>, shared: &mut Shared<'_>) -> Parse {
    match line.keyword() {
        "nameserver" => nameserver(resolvers, line, shared),
        "parse-resolv-conf" => {
            // As in HAProxy, more words are ignored.
            parse_resolv_conf(resolvers, line, shared)
        }
        "hold" => hold(resolvers, line, shared),
        "timeout" => timeout(resolvers, line, shared),
        "resolve_retries" => {
            let text = line.need(1, || {
                "'resolve_retries' expects <nb> as argument.".to_owned()
            })?;
            // As in HAProxy, other text is 0.
            resolvers.retries = leading_integer(text).parse().unwrap_or(0);
            line.at_most(1)
        }
        "accepted_payload_size" => {
            let missing = || "'accepted_payload_size' expects <nb> as argument.".to_owned();
            let text = line.need(1, missing)?;
            let bytes: i64 = leading_integer(text).parse().unwrap_or(0);
            let range = PAYLOAD_BYTES_MIN..=i64::from(u16::MAX);
            resolvers.payload_bytes_max = match u16::try_from(bytes) {
                Ok(bytes) if range.contains(&i64::from(bytes)) => bytes,
                _ => {
                    let message = format!(
                        "'accepted_payload_size' must be between {} and {} inclusive (was {text}).",
                        range.start(),
                        range.end(),
                    );
                    return Err(line.fault(1, message));
                }
            };
            line.at_most(1)
        }
        word => Err(
            match keywords::find(other::RESOLVERS, word).map(|row| row.state) {
                Some(State::Removed(instead)) => line.fault(0, instead),
                _ => unknown(
                    line,
                    "resolvers",
                    other::RESOLVERS.iter().map(|row| row.name),
                ),
            },
        ),
    }
}

/// `nameserver <name> <address>[:port]`
fn nameserver(resolvers: &mut Resolvers, line: &Line<'_>, shared: &mut Shared<'_>) -> Parse {
    let missing = || "'nameserver' expects <name> and <addr>[:<port>] as arguments.".to_owned();
    let name = line.need(1, missing)?;
    line.need(2, missing)?;
    if let Some(bad) = values::bad_name_character(line.bytes(1)) {
        let message = format!("character '{bad}' is not permitted in server name '{name}'.");
        return Err(line.fault(1, message));
    }
    if resolvers.nameservers.iter().any(|known| known.name == name) {
        let message = format!("nameserver '{name}' has same name as another nameserver.");
        return Err(line.fault(1, message));
    }
    let title = format!("'nameserver {name}'");
    let written = &*address::resolved(line, 2, shared, &title)?;
    let fault = |why: String| line.fault(2, format!("{title} : {why}."));
    let (text, is_stream) = socket_kind(written);
    let found = address::parse(&text, address::Names::Resolve).map_err(fault)?;
    let Parsed::Inet(ip, Ports::Range(port, last)) = found else {
        let text = line.arg(2);
        return Err(fault(match found {
            Parsed::Inet(..) => format!("missing port specification in '{text}'"),
            Parsed::Unix(_) | Parsed::Fd(_) => {
                format!("'{text}' is no address of a network, which this version needs here")
            }
        }));
    };
    if port == 0 {
        return Err(fault(format!(
            "invalid port '0' specified for '{}'",
            line.arg(2)
        )));
    }
    if port != last {
        return Err(fault(format!(
            "port range not allowed here in '{}'",
            line.arg(2)
        )));
    }
    resolvers.nameservers.push(Nameserver {
        name: name.to_owned(),
        address: SocketAddr::new(ip, port),
        is_stream,
    });
    if line.count() > 3 {
        let message = "options of a nameserver are known but not implemented yet by this version.";
        return Err(line.fault(3, message));
    }
    Ok(())
}

/// The address without the prefix that decides between UDP and TCP, and whether it is TCP: UDP
/// without such a prefix.
fn socket_kind(written: &[u8]) -> (Vec<u8>, bool) {
    const PREFIXES: [(&[u8], &[u8], bool); 8] = [
        (b"udp@", b"", false),
        (b"udp4@", b"ipv4@", false),
        (b"udp6@", b"ipv6@", false),
        (b"dgram+", b"", false),
        (b"tcp@", b"", true),
        (b"tcp4@", b"ipv4@", true),
        (b"tcp6@", b"ipv6@", true),
        (b"stream+", b"", true),
    ];
    for (prefix, family, is_stream) in PREFIXES {
        if let Some(rest) = written.strip_prefix(prefix) {
            return ([family, rest].concat(), is_stream);
        }
    }
    (written.to_vec(), false)
}

/// `parse-resolv-conf`
fn parse_resolv_conf(resolvers: &mut Resolvers, line: &Line<'_>, shared: &mut Shared<'_>) -> Parse {
    let Ok(text) = read_resolv_conf() else {
        return Err(line.fault(0, format!("failed to open {RESOLV_CONF}.")));
    };
    let mut tell = |message: String| {
        shared.settle(Err(line.fault(0, message).as_warning()));
    };
    add_system(resolvers, &text, &mut tell);
    Ok(())
}

fn read_resolv_conf() -> std::io::Result<String> {
    let bytes = files::read(RESOLV_CONF, RESOLV_CONF_BYTES_MAX)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Adds the name servers of a text in the format of resolv.conf(5), named by their addresses.
fn add_system(resolvers: &mut Resolvers, text: &str, tell: &mut dyn FnMut(String)) {
    let found = ::resolvers::parse_resolv_conf(text);
    for LineWarning { line, fault } in found.warnings {
        let why = match fault {
            LineFault::NoAddress => "nameserver line is missing address.".to_owned(),
            LineFault::NotAnAddress(address) => {
                format!("address '{address}' could not be recognized, nameserver will be excluded.")
            }
            LineFault::Duplicate(address) => duplicate(&address),
            LineFault::TooMany => {
                "too many nameservers, those from here on will be excluded.".to_owned()
            }
        };
        tell(format!("parsing [{RESOLV_CONF}:{line}] : {why}"));
    }
    for found in found.nameservers {
        let mut known = resolvers.nameservers.iter();
        if known.any(|known| known.name == found.name) {
            let why = duplicate(&found.name);
            tell(format!("parsing [{RESOLV_CONF}] : {why}"));
            continue;
        }
        resolvers.nameservers.push(Nameserver {
            name: found.name,
            address: found.address,
            is_stream: false,
        });
    }
}

fn duplicate(address: &str) -> String {
    format!(
        "generated name for {RESOLV_CONF} nameserver '{address}' conflicts with another nameserver, \
         it appears to be a duplicate and will be excluded."
    )
}

/// `hold <status> <period>`
fn hold(resolvers: &mut Resolvers, line: &Line<'_>, shared: &mut Shared<'_>) -> Parse {
    let event = line.arg(1);
    let missing = || {
        "'hold' expects an <event> and a <time> as arguments: <event> can be either 'valid', 'nx', \
         'refused', 'timeout', 'obsolete', or 'other'."
            .to_owned()
    };
    line.need(2, missing)?;
    let hold = &mut resolvers.hold;
    let field = match event {
        "nx" => &mut hold.nx,
        "refused" => &mut hold.refused,
        "timeout" => &mut hold.timeout,
        "other" => &mut hold.other,
        "valid" => &mut hold.valid,
        "obsolete" => &mut hold.obsolete,
        _ => {
            let message = format!(
                "'hold' unknown <event>: '{event}', expects either 'nx', 'timeout', 'valid', 'obsolete' or 'other'."
            );
            return Err(line.fault(1, message));
        }
    };
    *field = time(line, shared)?;
    line.at_most(2)
}

/// `timeout resolve|retry <time>`
fn timeout(resolvers: &mut Resolvers, line: &Line<'_>, shared: &mut Shared<'_>) -> Parse {
    let event = line.arg(1);
    let field = match event {
        "resolve" => &mut resolvers.timeout_resolve,
        "retry" => &mut resolvers.timeout_retry,
        _ => {
            let got = match event {
                "" => String::new(),
                event => format!(" got '{event}'"),
            };
            let message =
                format!("'timeout' expects 'retry' or 'resolve' and <time> as arguments{got}.");
            return Err(line.fault(1, message));
        }
    };
    line.need(2, || {
        format!("'timeout {event}' expects <time> as argument.")
    })?;
    *field = time(line, shared)?;
    line.at_most(2)
}

/// The time in word 2 of a line.
fn time(line: &Line<'_>, shared: &mut Shared<'_>) -> Parse<Duration> {
    let text = line.arg(2);
    let name = format!("{} {}", line.keyword(), line.arg(1));
    let time = values::whole_time(text)
        .map_err(|bad| line.fault(2, values::time_message(bad, text, &name)))?;
    if values::is_suspicious_time(text) {
        let message = format!(
            "'{name} {text}' looks suspiciously small for a value in milliseconds. Please use an explicit unit \
             ('{text}ms') if that was the intent."
        );
        shared.settle(Err(line.fault(2, message).as_warning()));
    }
    Ok(time)
}

/// `resolvers`
pub fn section_name(
    options: &mut ServerOptions,
    cursor: &mut Cursor<'_>,
    _shared: &mut Shared<'_>,
) -> Parse {
    options.resolve.section = Some(cursor.value("<id>")?.to_owned());
    Ok(())
}

/// `resolve-prefer`
pub fn resolve_prefer(
    options: &mut ServerOptions,
    cursor: &mut Cursor<'_>,
    _shared: &mut Shared<'_>,
) -> Parse {
    options.resolve.prefer = Some(match cursor.value("either ipv4 or ipv6")? {
        "ipv4" => Family::V4,
        "ipv6" => Family::V6,
        _ => {
            return Err(cursor.fault("'resolve-prefer' expects either ipv4 or ipv6 as argument."));
        }
    });
    Ok(())
}

/// `resolve-net <network>[,<network>]…`
pub fn resolve_net(
    options: &mut ServerOptions,
    cursor: &mut Cursor<'_>,
    _shared: &mut Shared<'_>,
) -> Parse {
    /// HAProxy's limit.
    const NETWORKS_MAX: usize = 5;
    let text = cursor.value("a list of networks")?;
    let mut networks = Vec::new();
    for part in text.split(',') {
        let network = address::network(part)
            .ok_or_else(|| cursor.fault(format!("'resolve-net' invalid network '{part}'.")))?;
        networks.push(network);
    }
    if networks.len() > NETWORKS_MAX {
        let message = format!("'resolve-net' exceed {NETWORKS_MAX} networks.");
        return Err(cursor.fault(message));
    }
    options.resolve.networks = networks;
    Ok(())
}

/// `resolve-opts <option>[,<option>]…`
pub fn resolve_opts(
    options: &mut ServerOptions,
    cursor: &mut Cursor<'_>,
    _shared: &mut Shared<'_>,
) -> Parse {
    for word in cursor.take().split(',') {
        match word {
            // As in HAProxy, the list may be missing.
            "" => {}
            "allow-dup-ip" => options.resolve.allows_duplicates = true,
            "prevent-dup-ip" => options.resolve.allows_duplicates = false,
            "ignore-weight" => options.resolve.ignores_weight = true,
            _ => {
                return Err(cursor.fault(format!(
                    "'resolve-opts' : unknown resolve-opts option '{word}', supported methods are 'allow-dup-ip', \
                     'ignore-weight', and 'prevent-dup-ip'."
                )));
            }
        }
    }
    Ok(())
}

/// `do-resolve(<variable>,<resolvers>[,ipv4|ipv6]) <expression>`; its name was taken.
pub fn do_resolve(
    shared: &mut Shared<'_>,
    cursor: &mut Cursor<'_>,
    place: Place,
) -> Parse<Resolve> {
    let word = cursor.last();
    let wrong = |cursor: &Cursor<'_>, why: &str| {
        cursor.fault(format!(
            "Can't parse '{word}'{why}. Expects 'do-resolve(<varname>,<resolvers>[,<options>]) <expr>'. \
             Available options are 'ipv4' and 'ipv6'."
        ))
    };
    let inside = word
        .split_once('(')
        .and_then(|(_, rest)| rest.strip_suffix(')'));
    let mut parts = inside.unwrap_or_default().split(',');
    let (Some(variable), Some(section)) = (parts.next(), parts.next()) else {
        return Err(wrong(cursor, ""));
    };
    let mut prefer = None;
    for option in parts {
        prefer = Some(match option {
            "ipv4" => Family::V4,
            "ipv6" => Family::V6,
            _ => return Err(wrong(cursor, "")),
        });
    }
    let var = shared.compiler.var(variable);
    let var = var.map_err(|error| wrong(cursor, &format!(" : {}", error.message)))?;
    let expr = shared.next_expr(cursor, place)?;
    let known = shared
        .resolvers
        .iter()
        .position(|known| known.name == section);
    let section = known.ok_or_else(|| {
        cursor.fault(format!(
            "Can't find resolvers section '{section}' for do-resolve action."
        ))
    })?;
    Ok(Resolve {
        var,
        section,
        prefer,
        expr,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_systems_name_servers() {
        let mut resolvers = Resolvers::new("x", None);
        let mut told = Vec::new();
        let text = "# comment\nsearch a.b\nnameserver 127.0.0.53\n nameserver 9.9.9.9\nnameserver\nnameservers 1.1.1.1\n\
                    nameserver ::1 # x\nnameserver fe80::1%eth0\nnameserver\t127.0.0.53\nnameserver 10.0.0.1\n";
        resolvers.nameservers.push(Nameserver {
            name: "10.0.0.1".to_owned(),
            address: "10.0.0.2:53".parse().unwrap(),
            is_stream: false,
        });
        add_system(&mut resolvers, text, &mut |message| told.push(message));
        let found: Vec<String> = resolvers
            .nameservers
            .iter()
            .map(|each| each.address.to_string())
            .collect();
        assert_eq!(found, ["10.0.0.2:53", "127.0.0.53:53", "[::1]:53"]);
        let expected = [
            "parsing [/etc/resolv.conf:5] : nameserver line is missing address",
            "parsing [/etc/resolv.conf:8] : address 'fe80::1%eth0' could not be recognized",
            "parsing [/etc/resolv.conf:9] : generated name for /etc/resolv.conf nameserver '127.0.0.53'",
            "generated name for /etc/resolv.conf nameserver '10.0.0.1' conflicts",
        ];
        assert_eq!(told.len(), expected.len(), "{told:?}");
        for (told, expected) in told.iter().zip(expected) {
            assert!(told.contains(expected), "{told}");
        }
    }

    #[test]
    fn prefixes_of_name_servers() {
        let cases: [(&str, &str, bool); 6] = [
            ("10.0.0.1:53", "10.0.0.1:53", false),
            ("udp4@10.0.0.1:53", "ipv4@10.0.0.1:53", false),
            ("tcp@10.0.0.1:53", "10.0.0.1:53", true),
            ("tcp6@[::1]:53", "ipv6@[::1]:53", true),
            ("stream+ipv4@10.0.0.1:53", "ipv4@10.0.0.1:53", true),
            ("ipv6@[::1]:53", "ipv6@[::1]:53", false),
        ];
        for (written, text, is_stream) in cases {
            let expected = (text.as_bytes().to_vec(), is_stream);
            assert_eq!(socket_kind(written.as_bytes()), expected, "{written}");
        }
    }
}
