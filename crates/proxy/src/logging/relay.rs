//! Relays messages of other programs to the targets of a section `log-forward` (manual §12.6).

use std::fmt;
use std::io::Write as _;
use std::net::IpAddr;
use std::sync::Arc;

use config::model::{HostStrategy, LogForward, LogTarget, LogWire};
use net::syslog::{MONTHS, Message, Time};
use net::{Addr, Now, WorkerId};
use sample::text::{push_padded, push_uint};
use sample::{Scope, Session};

use super::Logging;
use super::send::Site;
use super::wire::Dates;
use crate::evaluation::{Ambient, View};
use crate::runtime_config::{LogTargetId, RuntimeConfig};
use crate::shared::Shared;

/// The text of a message whose origin has no better one (RFC 3164 demands a host).
const NO_HOST: &[u8] = b"localhost";

/// Relays messages on one thread.
pub struct LogRelay {
    runtime_config: Arc<RuntimeConfig>,
    ambient: Ambient,
    logging: Logging,
    session: Session,
    host: Vec<u8>,
    line: Vec<u8>,
}

impl LogRelay {
    /// `seed`: the seed of its random numbers.
    #[must_use]
    pub fn new(runtime_config: Arc<RuntimeConfig>, shared: Arc<Shared>, seed: u64) -> LogRelay {
        let nobody = Addr::Unix(Arc::from(&b""[..]));
        let ambient = Ambient::new(shared, WorkerId(0), seed);
        LogRelay {
            logging: Logging::new(&runtime_config, &ambient),
            session: Session::new(Now::default(), nobody.clone(), nobody, u32::MAX, 0),
            runtime_config,
            ambient,
            host: Vec::new(),
            line: Vec::new(),
        }
    }

    /// Relays a message that a section received; `from` is the sender's address, where it has one.
    /// `send` gets the message for each target.
    pub fn relay(
        &mut self,
        section: usize,
        bytes: &[u8],
        from: Option<IpAddr>,
        now: Now,
        send: &mut dyn FnMut(LogTargetId, &[u8]),
    ) {
        let runtime_config = &*self.runtime_config;
        let Some(forward) = runtime_config.config.log_forwards.get(section) else {
            return;
        };
        self.ambient.shared.count_received_log();
        let message = message(forward, bytes, from, &mut self.host);
        let text = super::send::trimmed(message.text);
        if text.is_empty() {
            return;
        }
        let servers = self.ambient.shared.server_tables();
        let view = View::without_stream(runtime_config, &servers, &self.ambient, now);
        let session = &self.session;
        let site = Site {
            runtime_config,
            ambient: &self.ambient,
            now,
            with_bytes: &|bytes, work| {
                work(&Scope {
                    request_data: bytes,
                    ..Scope::without_stream(now, &view, session)
                });
            },
        };
        let places = runtime_config.forward_log_places(section);
        for (target, place) in forward.log.iter().zip(places) {
            let severity = message.priority.map(|priority| priority.severity);
            if severity.is_some_and(|severity| severity > target.level_max)
                || !self.logging.samples(target, place.number)
            {
                continue;
            }
            let Some(sink) = self.logging.sink(&site, target, place.sink, text) else {
                continue;
            };
            let dates = &mut self.logging.dates;
            dates.refresh(runtime_config, now);
            write(dates, now, target, &message, text, &mut self.line);
            send(sink, &self.line);
        }
    }
}

impl fmt::Debug for LogRelay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogRelay").finish_non_exhaustive()
    }
}

/// The message as the section reads it; `host` is memory for its host.
fn message<'a>(
    forward: &LogForward,
    bytes: &'a [u8],
    from: Option<IpAddr>,
    host: &'a mut Vec<u8>,
) -> Message<'a> {
    if forward.dont_parse {
        return Message::plain(bytes);
    }
    let mut message = Message::parse(bytes);
    let Some(from) = from else { return message };
    host.clear();
    match forward.host {
        HostStrategy::Keep => return message,
        HostStrategy::Fill if !message.host.is_empty() => return message,
        HostStrategy::Append if !message.host.is_empty() => {
            host.extend_from_slice(message.host);
            host.push(b',');
        }
        HostStrategy::Fill | HostStrategy::Append | HostStrategy::Replace => {}
    }
    // Writing to memory does not fail.
    let _ = write!(host, "{from}");
    message.host = host;
    message
}

/// The format of a message for a target that names none, as in HAProxy: the one that it came in.
fn own_format(message: &Message<'_>) -> LogWire {
    match message.time {
        Time::Nil | Time::Iso(_) if !message.host.is_empty() => LogWire::Rfc5424,
        _ if !message.host.is_empty() => LogWire::Rfc3164,
        _ if !message.tag.is_empty() => LogWire::Local,
        _ if message.priority.is_some() => LogWire::Priority,
        _ => LogWire::Raw,
    }
}

/// Writes a message in the format of a target.
fn write(
    dates: &Dates,
    now: Now,
    target: &LogTarget,
    message: &Message<'_>,
    text: &[u8],
    line: &mut Vec<u8>,
) {
    line.clear();
    let format = match target.format {
        LogWire::Default => own_format(message),
        format => format,
    };
    let level = message.priority.map_or(0, |priority| priority.severity);
    let level = level.max(target.level_min);
    let facility = message.priority.map(|priority| priority.facility);
    let facility = facility.unwrap_or(target.facility);
    let priority = match format {
        LogWire::Iso | LogWire::Raw => None,
        LogWire::Short | LogWire::Timed => Some(u64::from(level)),
        LogWire::Default
        | LogWire::Rfc3164
        | LogWire::Rfc5424
        | LogWire::Local
        | LogWire::Priority => Some(u64::from(facility) * 8 + u64::from(level)),
    };
    if let Some(priority) = priority {
        line.push(b'<');
        push_uint(line, priority);
        line.push(b'>');
    }
    match format {
        LogWire::Default | LogWire::Rfc3164 | LogWire::Local => {
            bsd_time(dates, message.time, line);
            if format == LogWire::Rfc3164 {
                line.extend_from_slice(or(message.host, NO_HOST));
                line.push(b' ');
            }
            tag(message, line);
        }
        LogWire::Rfc5424 => {
            line.extend_from_slice(b"1 ");
            match message.time {
                Time::Nil => line.extend_from_slice(b"- "),
                time => iso_time(dates, now, time, line),
            }
            for field in [
                message.host,
                message.tag,
                message.pid,
                message.id,
                message.sd,
            ] {
                line.extend_from_slice(or(field, b"-"));
                line.push(b' ');
            }
        }
        LogWire::Timed | LogWire::Iso => iso_time(dates, now, message.time, line),
        LogWire::Short | LogWire::Raw | LogWire::Priority => {}
    }
    let room = target.len.saturating_sub(1);
    line.truncate(room);
    let room = room - line.len();
    line.extend_from_slice(&text[..text.len().min(room)]);
    line.push(b'\n');
}

fn or<'a>(field: &'a [u8], instead: &'a [u8]) -> &'a [u8] {
    if field.is_empty() { instead } else { field }
}

/// `tag[pid]: `
fn tag(message: &Message<'_>, line: &mut Vec<u8>) {
    if message.tag.is_empty() {
        return;
    }
    line.extend_from_slice(message.tag);
    if !message.pid.is_empty() {
        line.push(b'[');
        line.extend_from_slice(message.pid);
        line.push(b']');
    }
    line.extend_from_slice(b": ");
}

/// `Nov 27 13:01:02 `: the time of the message without its offset, otherwise the local time.
fn bsd_time(dates: &Dates, time: Time<'_>, line: &mut Vec<u8>) {
    match time {
        Time::Bsd(time) => line.extend_from_slice(time),
        Time::Iso(time) => match month(time) {
            Some(month) => {
                line.extend_from_slice(MONTHS[month]);
                line.push(b' ');
                line.push(if time[8] == b'0' { b' ' } else { time[8] });
                line.push(time[9]);
                line.push(b' ');
                line.extend_from_slice(&time[11..19]);
            }
            None => line.extend_from_slice(dates.bsd()),
        },
        Time::Missing | Time::Nil => line.extend_from_slice(dates.bsd()),
    }
    line.push(b' ');
}

/// `2026-11-27T13:01:02.345678+01:00 `: the time of the message, otherwise the local time.
fn iso_time(dates: &Dates, now: Now, time: Time<'_>, line: &mut Vec<u8>) {
    match time {
        Time::Iso(time) => line.extend_from_slice(time),
        Time::Bsd(time) => match MONTHS.iter().position(|name| time.starts_with(name)) {
            Some(month) => {
                // A time of RFC 3164 has no year: the last one that does not make it a later month.
                let year = dates.year() - u64::from(dates.month() < month);
                push_padded(line, year, 4);
                line.push(b'-');
                push_padded(line, month as u64 + 1, 2);
                line.push(b'-');
                line.push(if time[4] == b' ' { b'0' } else { time[4] });
                line.push(time[5]);
                line.push(b'T');
                line.extend_from_slice(&time[7..15]);
                // The offset is not known (RFC 3339 §4.3).
                line.extend_from_slice(b"-00:00");
            }
            None => dates.precise(now, line),
        },
        Time::Missing | Time::Nil => dates.precise(now, line),
    }
    line.push(b' ');
}

/// The month of a time of RFC 5424, from 0. As in HAProxy, month 0 is January.
fn month(time: &[u8]) -> Option<usize> {
    let digit = |at: usize| usize::from(time[at].wrapping_sub(b'0'));
    let month = (10 * digit(5) + digit(6)).saturating_sub(1);
    (month < MONTHS.len()).then_some(month)
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::model::LogSink;

    fn target(format: LogWire) -> LogTarget {
        LogTarget {
            to: LogSink::Fd(1),
            len: 1024,
            format,
            facility: 16,
            level_max: 7,
            level_min: 0,
            sample: None,
            profile: None,
        }
    }

    fn written(format: LogWire, text: &str) -> String {
        let message = Message::parse(text.as_bytes());
        let mut line = Vec::new();
        let dates = Dates::fixed(b"Nov 27 13:01:02", b"2026-11-27T13:01:02+01:00");
        let now = Now::new(0, 345_678_000);
        write(
            &dates,
            now,
            &target(format),
            &message,
            message.text,
            &mut line,
        );
        String::from_utf8(line).expect("text")
    }

    const BSD: &str = "<34>Dec  1 22:14:15 h su[12]: x";
    const ISO: &str = "<34>1 2003-10-01T22:14:15.5Z h su 12 id [a b=\"c\"] x";
    const NIL: &str = "<34>1 - - - - - - x";

    #[test]
    fn without_a_format_a_message_keeps_its_own() {
        for text in [BSD, ISO, "<34>x", "x"] {
            assert_eq!(written(LogWire::Default, text), format!("{text}\n"));
        }
        assert_eq!(written(LogWire::Default, NIL), "<34>x\n");
    }

    #[test]
    fn formats_of_targets() {
        let cases = [
            (LogWire::Raw, BSD, "x"),
            (LogWire::Priority, BSD, "<34>x"),
            (LogWire::Priority, "x", "<128>x"),
            (LogWire::Short, BSD, "<2>x"),
            (LogWire::Local, BSD, "<34>Dec  1 22:14:15 su[12]: x"),
            (LogWire::Local, ISO, "<34>Oct  1 22:14:15 su[12]: x"),
            (LogWire::Local, "x", "<128>Nov 27 13:01:02 x"),
            (LogWire::Rfc3164, ISO, "<34>Oct  1 22:14:15 h su[12]: x"),
            (LogWire::Rfc3164, NIL, "<34>Nov 27 13:01:02 localhost x"),
            // December comes after November: it is that of the last year.
            (
                LogWire::Rfc5424,
                BSD,
                "<34>1 2025-12-01T22:14:15-00:00 h su 12 - - x",
            ),
            (LogWire::Rfc5424, NIL, NIL),
            (
                LogWire::Rfc5424,
                "x",
                "<128>1 2026-11-27T13:01:02.345678+01:00 - - - - - x",
            ),
            (LogWire::Iso, ISO, "2003-10-01T22:14:15.5Z x"),
            (LogWire::Timed, NIL, "<2>2026-11-27T13:01:02.345678+01:00 x"),
        ];
        for (format, text, expected) in cases {
            let expected = format!("{expected}\n");
            assert_eq!(written(format, text), expected, "{format:?} of {text}");
        }
    }

    #[test]
    fn hosts() {
        let mut forward = LogForward::new("f", "");
        let from = Some(IpAddr::from([10, 0, 0, 1]));
        let mut host = |strategy, text: &str, from| {
            forward.host = strategy;
            let mut memory = Vec::new();
            let message = message(&forward, text.as_bytes(), from, &mut memory);
            String::from_utf8(message.host.to_vec()).expect("text")
        };
        let cases = [
            (HostStrategy::Fill, "h", "10.0.0.1"),
            (HostStrategy::Replace, "10.0.0.1", "10.0.0.1"),
            (HostStrategy::Keep, "h", ""),
            (HostStrategy::Append, "h,10.0.0.1", "10.0.0.1"),
        ];
        for (strategy, with, without) in cases {
            assert_eq!(host(strategy, BSD, from), with, "{strategy:?}");
            assert_eq!(host(strategy, NIL, from), without, "{strategy:?}");
            assert_eq!(host(strategy, BSD, None), "h", "{strategy:?}");
        }
    }

    #[test]
    fn a_line_is_no_longer_than_its_target_allows() {
        let message = Message::parse(BSD.as_bytes());
        let dates = Dates::fixed(b"Nov 27 13:01:02", b"2026-11-27T13:01:02+01:00");
        let mut target = target(LogWire::Default);
        for len in [1, 5, 20, 30, 31] {
            target.len = len;
            let mut line = Vec::new();
            write(
                &dates,
                Now::default(),
                &target,
                &message,
                message.text,
                &mut line,
            );
            assert_eq!(line.len(), len);
            assert!(line.ends_with(b"\n"));
        }
    }
}
