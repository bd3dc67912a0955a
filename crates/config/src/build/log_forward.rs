//! Sections `log-forward` (manual §12.6).

use super::address::{self, Names, Parsed, Ports};
use super::line::{Cursor, Line, Parse, leading_integer};
use super::tls::bind::finish_proxy;
use super::{Shared, bind, did_you_mean, log_line, not_yet, unknown, values};
use crate::keywords::{self, Places, other};
use crate::model::{Bind, BindAddress, DgramBind, Global, HostStrategy, LogForward};
use crate::tree::{Prefix, Tree};
use net::Addr;
use std::net::SocketAddr;
use std::time::Duration;

/// The options that are on or off.
const OPTIONS: [&str; 3] = ["assume-rfc6587-ntf", "dont-parse-log", "host"];

/// Builds every section. Their targets name backends, so this is done after the proxies' names are
/// known.
pub fn build(tree: &Tree, global: &Global, shared: &mut Shared<'_>) -> Vec<LogForward> {
    let mut forwards: Vec<LogForward> = Vec::new();
    let sections = tree.sections.iter();
    for section in sections.filter(|section| section.kind() == "log-forward") {
        let header = Line::new(&section.header);
        let result = check_name(&header, &forwards, shared);
        shared.settle(result);
        let mut forward = LogForward::new(header.arg(1), &header.span(0).place());
        for line in section.statements.iter().map(Line::new) {
            let result = statement(&mut forward, &line, global, shared);
            shared.settle(result);
        }
        finish_proxy(&forward.name, &mut forward.binds, &[], shared);
        forwards.push(forward);
    }
    forwards
}

fn check_name(header: &Line<'_>, before: &[LogForward], shared: &Shared<'_>) -> Parse {
    let name = header.need(1, || "missing name for log-forward section.".to_owned())?;
    header.at_most(1)?;
    if let Some(bad) = values::bad_name_character(header.bytes(1)) {
        let message = format!("character '{bad}' is not permitted in 'log-forward' name '{name}'.");
        return Err(header.fault(1, message));
    }
    if let Some(twin) = before.iter().find(|known| known.name == name) {
        let message = format!(
            "log-forward section '{name}' has the same name as another log-forward section declared at {}.",
            twin.origin
        );
        return Err(header.fault(1, message));
    }
    if let Some(twin) = shared.names.origin_of(name) {
        let message = format!(
            "log forward section '{name}' has the same name as a proxy declared at {twin}."
        );
        return Err(header.fault(1, message));
    }
    Ok(())
}

fn statement(
    forward: &mut LogForward,
    line: &Line<'_>,
    global: &Global,
    shared: &mut Shared<'_>,
) -> Parse {
    match line.keyword() {
        "backlog" => forward.backlog = Some(integer(line)?),
        "bind" => binds(forward, line, shared)?,
        "dgram-bind" => dgram_bind(forward, line, shared)?,
        "log" => log(forward, line, global, shared)?,
        "maxconn" => forward.maxconn = integer(line)?,
        "option" => option(forward, line)?,
        "timeout" => timeout(forward, line, shared)?,
        _ => {
            let names = other::LOG_FORWARD.iter().map(|row| row.name);
            return Err(unknown(line, "log-forward", names));
        }
    }
    Ok(())
}

/// The integer in word 1. As in HAProxy, other text is 0.
fn integer(line: &Line<'_>) -> Parse<u32> {
    let text = line.need(1, || {
        format!("'{}' expects an integer argument.", line.keyword())
    })?;
    line.at_most(1)?;
    Ok(leading_integer(text).parse().unwrap_or(0))
}

/// `bind`
fn binds(forward: &mut LogForward, line: &Line<'_>, shared: &mut Shared<'_>) -> Parse {
    line.need(1, || {
        "'bind' expects {<path>|[addr1]:port1[-end1]}{,[addr]:port[-end]}... as arguments.".into()
    })?;
    for bind in bind::line(line, 1, shared)? {
        if let Some(word) = unsupported(&bind) {
            let at = (2..line.count()).find(|at| line.arg(*at) == word);
            let message = not_yet(&format!("bind … {word} of a log-forward"));
            return Err(line.fault(at.unwrap_or(0), message));
        }
        forward.binds.push(bind);
    }
    Ok(())
}

/// An option of a bind line that a receiver of logs cannot apply.
fn unsupported(bind: &Bind) -> Option<&'static str> {
    let options = [
        ("accept-proxy", bind.accept_proxy),
        ("proto", bind.proto.is_some()),
        ("maxconn", bind.maxconn.is_some()),
    ];
    let mut used = options.into_iter().filter(|(_, is_used)| *is_used);
    used.next().map(|(word, _)| word)
}

/// `dgram-bind <address>[,<address>]… [name <name>] [interface <interface>]`
fn dgram_bind(forward: &mut LogForward, line: &Line<'_>, shared: &mut Shared<'_>) -> Parse {
    line.need(1, || {
        "'dgram-bind' expects an address as argument.".to_owned()
    })?;
    let written = address::resolved(line, 1, shared, "'dgram-bind'")?;
    let fault = |why: String| line.fault(1, format!("'dgram-bind' : {why}."));
    let known = forward.dgram_binds.len();
    let mut add = |address| {
        forward.dgram_binds.push(DgramBind {
            address,
            interface: None,
            origin: line.span(1).place(),
        });
    };
    for part in written.split(|byte| *byte == b',') {
        match log_line::datagram(part, Names::Resolve).map_err(fault)? {
            Parsed::Inet(ip, Ports::Range(low, high)) => (low..=high).for_each(|port| {
                add(BindAddress::Addr(Addr::Inet(SocketAddr::new(ip, port))));
            }),
            Parsed::Fd(fd) => add(BindAddress::Fd(fd)),
            Parsed::Inet(_, Ports::None) => return Err(fault("missing port number".to_owned())),
            Parsed::Inet(_, Ports::Offset(_)) => {
                return Err(fault("port offset not allowed here".to_owned()));
            }
            Parsed::Unix(_) => {
                let why = "UNIX sockets are not implemented here yet by this version";
                return Err(fault(why.to_owned()));
            }
        }
    }
    if let Some(interface) = dgram_options(line)? {
        for bind in &mut forward.dgram_binds[known..] {
            bind.interface = Some(interface.clone());
        }
    }
    Ok(())
}

/// Reads the options of a `dgram-bind` line from word 2 on: the interface, if one is given. A name
/// has no effect, as in HAProxy: these sockets have no statistics.
fn dgram_options(line: &Line<'_>) -> Parse<Option<String>> {
    let mut interface = None;
    let mut cursor = Cursor { line: *line, at: 2 };
    while !cursor.peek().is_empty() {
        let word = cursor.take();
        let is_known = keywords::find(keywords::bind::KEYWORDS, word).is_some()
            || super::tls::find(word, Places::BIND).is_some();
        match word {
            "name" => drop(cursor.value("<name>")?),
            "interface" => interface = Some(cursor.value("<interface>")?.to_owned()),
            _ if is_known => return Err(cursor.fault(not_yet(&format!("dgram-bind … {word}")))),
            _ => {
                let names = keywords::bind::KEYWORDS.iter().map(|row| row.name);
                let hint = did_you_mean(word, names);
                let message = format!("unknown keyword '{word}' in 'log-forward' section{hint}.");
                return Err(cursor.fault(message));
            }
        }
    }
    Ok(interface)
}

/// `log global`, `log <target> …`, `no log`
fn log(
    forward: &mut LogForward,
    line: &Line<'_>,
    global: &Global,
    shared: &mut Shared<'_>,
) -> Parse {
    if line.prefix() != Prefix::None {
        line.at_most(0)
            .map_err(|_| line.fault(1, "'no log' does not expect arguments."))?;
        forward.log.clear();
        return Ok(());
    }
    if line.arg(1) == "global" && line.count() == 2 {
        forward.log.extend(global.log.iter().cloned());
    } else {
        forward.log.push(log_line::target(line, shared)?);
    }
    if forward.log.iter().any(|target| target.profile.is_some()) {
        return Err(line.fault(0, not_yet("log … profile of a log-forward")));
    }
    Ok(())
}

/// `timeout client <time>`
fn timeout(forward: &mut LogForward, line: &Line<'_>, shared: &mut Shared<'_>) -> Parse {
    let name = line.arg(1);
    if name != "client" {
        let message = format!("unknown keyword 'timeout {name}' in log-forward section.");
        return Err(line.fault(1, message));
    }
    let text = line.need(2, || "missing timeout client value.".to_owned())?;
    let time = values::whole_time(text)
        .map_err(|bad| line.fault(2, values::time_message(bad, text, "timeout client")))?;
    // As in HAProxy, zero is no limit.
    forward.timeout_client = Some(time).filter(|time| *time != Duration::ZERO);
    shared.note_time(line, 2);
    line.at_most(2)
}

/// `option assume-rfc6587-ntf|dont-parse-log`, `option host <strategy>`; `no` and `default` restore
/// the default.
fn option(forward: &mut LogForward, line: &Line<'_>) -> Parse {
    let name = line.need(1, || "'option' expects an option name.".to_owned())?;
    let is_on = line.prefix() == Prefix::None;
    match name {
        "assume-rfc6587-ntf" => forward.assume_lines = is_on,
        "dont-parse-log" => forward.dont_parse = is_on,
        "host" => {
            let strategy = match line.arg(2) {
                "replace" => HostStrategy::Replace,
                "fill" => HostStrategy::Fill,
                "keep" => HostStrategy::Keep,
                "append" => HostStrategy::Append,
                _ => {
                    let message = "option 'host' expects {replace|fill|keep|append}.";
                    return Err(line.fault(2, message));
                }
            };
            forward.host = if is_on {
                strategy
            } else {
                HostStrategy::default()
            };
            return line.at_most(2);
        }
        _ => {
            let hint = did_you_mean(name, OPTIONS.into_iter());
            let message = format!("unknown option '{name}' in log-forward section{hint}.");
            return Err(line.fault(1, message));
        }
    }
    line.at_most(1)
}
