//! `log <target> …` lines (manual §4.2 `log`).

use super::address::{self, Names, Parsed, Ports};
use super::line::{Cursor, Line, Parse};
use super::{Shared, log_profile, ring};
use crate::model::{LogSample, LogSink, LogStreamOptions, LogTarget, LogWire, ServerAddress};
use net::Addr;
use std::net::SocketAddr;
use syntax::octets::readable;

/// The default maximum length of a line.
const DEFAULT_LEN: usize = 1024;
const SYSLOG_PORT: u16 = 514;

const FACILITIES: &[&str] = &[
    "kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "auth2",
    "ftp", "ntp", "audit", "alert", "cron2", "local0", "local1", "local2", "local3", "local4",
    "local5", "local6", "local7",
];
/// The names of the syslog severities, by their number.
pub const LEVELS: &[&str] = &[
    "emerg", "alert", "crit", "err", "warning", "notice", "info", "debug",
];
const WIRES: &[(&str, LogWire)] = &[
    ("local", LogWire::Local),
    ("rfc3164", LogWire::Rfc3164),
    ("rfc5424", LogWire::Rfc5424),
    ("priority", LogWire::Priority),
    ("short", LogWire::Short),
    ("timed", LogWire::Timed),
    ("iso", LogWire::Iso),
    ("raw", LogWire::Raw),
];

/// The format with this name.
pub fn wire(name: &str) -> Option<LogWire> {
    let found = WIRES.iter().find(|(known, _)| *known == name);
    found.map(|(_, wire)| *wire)
}

/// Parses the words after `log`, other than `global`.
pub fn target(line: &Line<'_>, shared: &Shared<'_>) -> Parse<LogTarget> {
    let mut cursor = Cursor { line: *line, at: 1 };
    line.need(2, || {
        "log : expects <address> and <facility> as arguments.".into()
    })?;
    let to = sink(&mut cursor, shared)?;
    let format = if matches!(to, LogSink::Fd(_)) {
        LogWire::Raw
    } else {
        LogWire::Default
    };
    let mut target = LogTarget {
        to,
        len: DEFAULT_LEN,
        format,
        facility: 0,
        level_max: 7,
        level_min: 0,
        sample: None,
        profile: None,
    };
    loop {
        match cursor.take() {
            "len" => {
                let text = cursor.value("a length")?;
                target.len = match text.parse() {
                    Ok(len @ 80..=65535) => len,
                    _ => {
                        return Err(cursor.fault(format!(
                            "log : invalid log length '{text}', must be between 80 and 65535."
                        )));
                    }
                };
            }
            "format" => {
                let text = cursor.value("a format")?;
                let unknown = || cursor.fault(format!("log : unknown log format '{text}'."));
                target.format = wire(text).ok_or_else(unknown)?;
            }
            "sample" => target.sample = Some(sample(&mut cursor)?),
            "profile" => {
                cursor.value("a log-profile")?;
                target.profile = Some(log_profile::resolve(&cursor, shared)?);
            }
            _ => {
                cursor.at -= 1;
                break;
            }
        }
    }
    target.facility = named(&mut cursor, FACILITIES, "log facility")?;
    if !cursor.peek().is_empty() {
        target.level_max = named(&mut cursor, LEVELS, "optional log level")?;
    }
    if !cursor.peek().is_empty() {
        target.level_min = named(&mut cursor, LEVELS, "optional minimum log level")?;
    }
    match cursor.peek() {
        "" => Ok(target),
        word => Err(line.fault(
            cursor.at,
            format!("log : cannot handle unexpected argument '{word}'."),
        )),
    }
}

fn named(cursor: &mut Cursor<'_>, names: &[&str], what: &str) -> Parse<u8> {
    let word = cursor.take();
    let hint = super::did_you_mean(word, names.iter().copied());
    names
        .iter()
        .position(|name| *name == word)
        .map(|n| n as u8)
        .ok_or_else(|| cursor.fault(format!("log : unknown {what} '{word}'{hint}.")))
}

fn sink(cursor: &mut Cursor<'_>, shared: &Shared<'_>) -> Parse<LogSink> {
    let text = cursor.take();
    match text {
        "stdout" => return Ok(LogSink::Fd(1)),
        "stderr" => return Ok(LogSink::Fd(2)),
        _ => {}
    }
    if let Some(name) = text.strip_prefix("backend@") {
        let backend = shared.names.backend(name);
        return backend.map(LogSink::Backend).ok_or_else(|| {
            let hint = super::did_you_mean(name, shared.names.backends());
            cursor.fault(format!("log : uses unknown log backend '{name}'{hint}."))
        });
    }
    if let Some(name) = text.strip_prefix("ring@") {
        return ring::resolve(cursor, name, shared).map(LogSink::Ring);
    }
    let parsed = datagram(
        &address::resolved(&cursor.line, cursor.at - 1, shared, "log")?,
        Names::Resolve,
    )
    .map_err(|message| cursor.fault(format!("log : {message}.")))?;
    let (ip, port) = match parsed {
        Parsed::Fd(fd) => return Ok(LogSink::Fd(fd)),
        Parsed::Unix(addr) => return Ok(LogSink::Udp(addr)),
        Parsed::Inet(ip, Ports::None) => (ip, SYSLOG_PORT),
        Parsed::Inet(ip, Ports::Range(low, high)) if low == high => (ip, low),
        Parsed::Inet(..) => {
            return Err(cursor.fault(format!(
                "log : port range or offset not allowed here in '{text}'."
            )));
        }
    };
    let addr = SocketAddr::new(ip, port);
    Ok(if text.starts_with("tcp") {
        LogSink::Tcp {
            address: addr,
            options: LogStreamOptions::default(),
        }
    } else {
        LogSink::Udp(Addr::Inet(addr))
    })
}

/// Whether a server of a backend in `mode log` receives datagrams.
pub fn is_datagram(text: &[u8]) -> bool {
    ["udp", "unix@", "uxdg@", "abns@"]
        .iter()
        .any(|family| text.starts_with(family.as_bytes()))
}

/// The address of a server of a backend in `mode log`.
pub fn server(text: &[u8], names: Names) -> Result<ServerAddress, String> {
    match datagram(text, names)? {
        Parsed::Unix(addr) if is_datagram(text) => Ok(ServerAddress::Fixed(addr)),
        Parsed::Inet(ip, Ports::Range(low, high)) if low == high => {
            Ok(ServerAddress::Fixed(Addr::Inet(SocketAddr::new(ip, low))))
        }
        _ => Err(format!("missing port number: '{}'", readable(text))),
    }
}

/// Datagrams are the default of log targets.
pub fn datagram(text: &[u8], names: Names) -> Result<Parsed, String> {
    let at = memchr::memchr(b'@', text).unwrap_or_default();
    let family: &[u8] = match &text[..at] {
        // An address of either family.
        b"udp" => b"tcp",
        b"udp4" => b"ipv4",
        b"udp6" => b"ipv6",
        b"uxdg" => b"unix",
        _ => return address::parse(text, names),
    };
    address::parse(&[family, &text[at..]].concat(), names)
}

/// `sample <ranges>:<size>`, as `1,3-4:10`.
fn sample(cursor: &mut Cursor<'_>) -> Parse<LogSample> {
    let text = cursor.value("<ranges>:<size>")?;
    let Some((ranges, size)) = text.split_once(':') else {
        return Err(cursor.fault("log : Missing sample size."));
    };
    let bad = || cursor.fault(format!("log : invalid sample '{text}'."));
    let size: u32 = size.parse().ok().filter(|&size| size > 0).ok_or_else(bad)?;
    let mut all = Vec::new();
    for range in ranges.split(',') {
        let (low, high) = range.split_once('-').unwrap_or((range, range));
        let (low, high): (u32, u32) = (
            low.parse().map_err(|_| bad())?,
            high.parse().map_err(|_| bad())?,
        );
        if low == 0 || low > high {
            return Err(bad());
        }
        all.push((low, high));
    }
    all.sort_unstable();
    if all.windows(2).any(|pair| pair[0].1 >= pair[1].0) {
        return Err(cursor.fault(format!("log : sample ranges are overlapping in '{text}'.")));
    }
    match all.last() {
        Some(&(_, high)) if high > size => {
            Err(cursor.fault(format!("log : sample size {size} should be greater or equal to the maximum of the high ranges limits.")))
        }
        _ => Ok(LogSample { ranges: all, size }),
    }
}
