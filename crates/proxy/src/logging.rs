//! Access logs: one line a stream, in each target's wire format (manual §8.2, RFC 3164, RFC 5424).

use std::io::{self, Write};

use config::model::{LogLevel, LogTarget, LogWire, Proxy};
use net::{ConnId, Driver, Now};
use sample::text::{Date, MONTHS, push_padded, push_uint};

use crate::engine::{Core, Cx};
use crate::running::Running;
use crate::stream::Stream;

/// Severity of an ordinary line, and of an error's under `option log-separate-errors`.
const INFO: u8 = 6;
const ERROR: u8 = 3;

/// The name that lines carry where `log-tag` gives none.
const DEFAULT_TAG: &str = "haproxy";

/// `+00:00`
const ZONE_BYTES: usize = 6;

/// Texts that change once a second, kept.
#[derive(Debug, Default)]
pub(crate) struct Logging {
    second: u64,
    /// `Nov 20 13:01:02`, local time.
    bsd: Vec<u8>,
    /// `2026-11-20T13:01:02+00:00`, local time.
    iso: Vec<u8>,
    line: Vec<u8>,
    /// Lines so far, for `%lc` and sampling.
    count: u64,
}

impl Core {
    /// Writes a stream's line to every target of its frontend, once.
    pub fn log_stream<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) {
        if std::mem::replace(&mut stream.logged, true) {
            return;
        }
        let proxy = cx.running.proxy(stream.frontend);
        if proxy.log.is_empty() {
            return;
        }
        let is_error = is_error(stream);
        let null = stream.txn.bytes_in == 0 && !stream.txn.is_http;
        if (proxy.options.dontlog_normal && !is_error) || (proxy.options.dontlognull && null) {
            return;
        }
        if stream.log_level == Some(LogLevel::Silent) {
            return;
        }
        // A request that was not read never became a stream in HAProxy: its line is that of a failed connection.
        let unread = stream.txn.is_http && stream.txn.request_line.is_empty();
        let failed = proxy.error_log_format.as_ref().filter(|_| unread);
        let Some(format) = failed.or(proxy.log_format.as_ref()) else {
            return;
        };
        self.logging.count += 1;
        stream.txn.log_number = self.logging.count;
        stream.txn.log_origin = sample::LogOrigin::Close;
        let mut text = std::mem::take(&mut self.log_buffer);
        text.clear();
        self.render(cx, stream, format, &mut text);
        let severity = match stream.log_level {
            Some(LogLevel::Severity(severity)) => severity,
            _ if is_error && proxy.options.log_separate_errors => ERROR,
            _ => INFO,
        };
        self.log_text(cx, stream.frontend, severity, text);
    }

    /// Writes the line of a connection that failed before it became a session: why, or what `error-log-format` says
    /// (manual §8.2.5). `silent`: nothing had come of it, which `option dontlognull` passes over.
    pub fn log_failed_session<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        conn: ConnId,
        why: &str,
        silent: bool,
    ) {
        let Some(session) = self.conns.session(conn) else {
            return;
        };
        let (frontend, bind) = (session.frontend as usize, session.bind as usize);
        let proxy = cx.running.proxy(frontend);
        if proxy.log.is_empty() || (silent && proxy.options.dontlognull) {
            return;
        }
        let mut text = std::mem::take(&mut self.log_buffer);
        text.clear();
        let format = proxy.error_log_format.as_ref();
        if let Some(format) = format.or(cx.running.session_prefix.as_ref()) {
            self.with_session(cx, conn, |scope| format.render(scope, &mut text));
        }
        if format.is_none() {
            let line = &proxy.binds[bind];
            text.push(b'/');
            match &line.name {
                Some(name) => text.extend_from_slice(name.as_bytes()),
                None => text.extend_from_slice(line.id.to_string().as_bytes()),
            }
            text.extend_from_slice(b": ");
            text.extend_from_slice(why.as_bytes());
        }
        let severity = match proxy.options.log_separate_errors {
            true => ERROR,
            false => INFO,
        };
        self.logging.count += 1;
        self.log_text(cx, frontend, severity, text);
    }

    /// Writes a line to every target of a frontend that takes it.
    fn log_text<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        frontend: usize,
        severity: u8,
        text: Vec<u8>,
    ) {
        let proxy = cx.running.proxy(frontend);
        let ids = &cx.running.log_ids[frontend];
        for (target, id) in proxy.log.iter().zip(ids) {
            if target.takes(severity, self.logging.count) {
                self.logging
                    .write(cx.running, proxy, target, severity, cx.driver.now(), &text);
                cx.driver.log(*id, &self.logging.line);
            }
        }
        self.log_buffer = text;
    }
}

/// What `option dontlog-normal` and `log-separate-errors` call an error (manual §8.1).
fn is_error(stream: &Stream) -> bool {
    let txn = &stream.txn;
    txn.redispatched
        || txn.retries > 0
        || !matches!(txn.termination[0], 0 | b'L')
        || (txn.is_http && txn.status >= 500)
}

/// Whether a target takes a line of this severity and number.
trait Takes {
    fn takes(&self, severity: u8, number: u64) -> bool;
}

impl Takes for LogTarget {
    fn takes(&self, severity: u8, number: u64) -> bool {
        if severity > self.level_max {
            return false;
        }
        let Some(sample) = &self.sample else {
            return true;
        };
        let place = ((number - 1) % u64::from(sample.size.max(1))) as u32 + 1;
        sample
            .ranges
            .iter()
            .any(|(low, high)| (*low..=*high).contains(&place))
    }
}

impl Logging {
    /// Puts a message for a target into `line`.
    fn write(
        &mut self,
        running: &Running,
        proxy: &Proxy,
        target: &LogTarget,
        severity: u8,
        now: Now,
        text: &[u8],
    ) {
        self.refresh(running, now);
        let global = &running.config.global;
        let tag = proxy
            .log_tag
            .as_deref()
            .or(global.log_tag.as_deref())
            .unwrap_or(DEFAULT_TAG);
        let pid = running.process.pid;
        let level = severity.max(target.level_min);
        let hostname = global.log_send_hostname.as_deref().map(|name| match name {
            "" => running.process.hostname.as_str(),
            name => name,
        });
        let mut line = std::mem::take(&mut self.line);
        line.clear();
        let priority = match target.format {
            LogWire::Iso | LogWire::Raw => None,
            LogWire::Short | LogWire::Timed => Some(level.into()),
            _ => Some(u64::from(target.facility) * 8 + u64::from(level)),
        };
        if let Some(priority) = priority {
            line.push(b'<');
            push_uint(&mut line, priority);
            line.push(b'>');
        }
        match target.format {
            LogWire::Default | LogWire::Rfc3164 | LogWire::Local => {
                line.extend_from_slice(&self.bsd);
                line.push(b' ');
                let hostname = match target.format {
                    LogWire::Default => hostname,
                    LogWire::Rfc3164 => Some(hostname.unwrap_or("localhost")),
                    _ => None,
                };
                if let Some(name) = hostname {
                    line.extend_from_slice(name.as_bytes());
                    line.push(b' ');
                }
                line.extend_from_slice(tag.as_bytes());
                line.push(b'[');
                push_uint(&mut line, u64::from(pid));
                line.extend_from_slice(b"]: ");
            }
            LogWire::Rfc5424 => {
                line.extend_from_slice(b"1 ");
                self.precise(now, &mut line);
                line.push(b' ');
                line.extend_from_slice(hostname.unwrap_or("-").as_bytes());
                line.push(b' ');
                line.extend_from_slice(tag.as_bytes());
                line.push(b' ');
                push_uint(&mut line, u64::from(pid));
                line.extend_from_slice(b" - - ");
            }
            LogWire::Short | LogWire::Raw | LogWire::Priority => {}
            LogWire::Timed | LogWire::Iso => {
                self.precise(now, &mut line);
                line.push(b' ');
            }
        }
        let room = target.len.saturating_sub(line.len() + 1);
        line.extend_from_slice(&text[..text.len().min(room)]);
        line.push(b'\n');
        self.line = line;
    }

    /// `2026-11-20T13:01:02.345678+00:00`
    fn precise(&self, now: Now, line: &mut Vec<u8>) {
        let (moment, zone) = self.iso.split_at(self.iso.len() - ZONE_BYTES);
        line.extend_from_slice(moment);
        line.push(b'.');
        push_padded(line, now.wall_ns / 1000 % 1_000_000, 6);
        line.extend_from_slice(zone);
    }

    fn refresh(&mut self, running: &Running, now: Now) {
        let offset = i64::from(running.process.utc_offset_seconds);
        let second = now.wall_ns / 1_000_000_000;
        if second == self.second && !self.bsd.is_empty() {
            return;
        }
        self.second = second;
        let local = Date::from_unix(second as i64 + offset);
        self.bsd.clear();
        self.iso.clear();
        // Writing to memory does not fail.
        let _ = write_bsd(local, &mut self.bsd);
        let _ = write_iso(local, offset, &mut self.iso);
    }
}

/// `Nov 20 13:01:02` (RFC 3164 §4.1.2).
fn write_bsd(date: Date, out: &mut impl Write) -> io::Result<()> {
    let month = MONTHS[date.month as usize - 1];
    write!(
        out,
        "{month} {:>2} {:02}:{:02}:{:02}",
        date.day, date.hour, date.minute, date.second
    )
}

/// `2026-11-20T13:01:02+00:00` (RFC 5424 §6.2.3).
fn write_iso(date: Date, offset: i64, out: &mut impl Write) -> io::Result<()> {
    let sign = if offset < 0 { '-' } else { '+' };
    let offset = offset.abs();
    write!(
        out,
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}{sign}{:02}:{:02}",
        date.year,
        date.month,
        date.day,
        date.hour,
        date.minute,
        date.second,
        offset / 3600,
        offset / 60 % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        let iso = |seconds, offset| {
            let mut out = Vec::new();
            write_iso(Date::from_unix(seconds), offset, &mut out).map(|()| out)
        };
        let bsd = |seconds| {
            let mut out = Vec::new();
            write_bsd(Date::from_unix(seconds), &mut out).map(|()| out)
        };
        assert_eq!(iso(0, 0).unwrap(), b"1970-01-01T00:00:00+00:00");
        assert_eq!(
            iso(951_782_400, -5400).unwrap(),
            b"2000-02-29T00:00:00-01:30"
        );
        assert_eq!(bsd(1_793_625_662).unwrap(), b"Nov  2 13:21:02");
    }
}
