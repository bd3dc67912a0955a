//! A message in its target's wire format (RFC 3164, RFC 5424, manual §4.2 `log … format`).

use std::io::{self, Write};

use config::model::{LogTarget, LogWire};
use net::Now;
use sample::text::{Date, MONTHS, push_padded, push_uint};

use crate::running::Running;

/// `+00:00`
const ZONE_BYTES: usize = 6;

/// Texts that change once a second, kept.
#[derive(Debug, Default)]
pub(super) struct Dates {
    second: u64,
    /// `Nov 20 13:01:02`, local time.
    bsd: Vec<u8>,
    /// `2026-11-20T13:01:02+00:00`, local time.
    iso: Vec<u8>,
    /// By the targets' numbers: what went before the last message.
    heads: Vec<Head>,
}

/// A head that lasts a second.
#[derive(Debug, Default)]
struct Head {
    second: u64,
    level: u8,
    text: Vec<u8>,
}

/// What goes before a message.
pub(super) struct Header<'a> {
    /// Severity, already within the target's bounds.
    pub level: u8,
    /// The program's name.
    pub tag: &'a [u8],
    /// Structured data; empty for none.
    pub sd: &'a [u8],
    /// The target's number, where its tag is always the same.
    pub steady: Option<usize>,
}

impl Dates {
    /// Puts a message for a target into `line`.
    pub fn write(
        &mut self,
        running: &Running,
        target: &LogTarget,
        header: &Header<'_>,
        now: Now,
        text: &[u8],
        line: &mut Vec<u8>,
    ) {
        self.refresh(running, now);
        line.clear();
        // A head with the time in microseconds is another one each time.
        let precise = matches!(
            target.format,
            LogWire::Rfc5424 | LogWire::Timed | LogWire::Iso
        );
        match header.steady.filter(|_| !precise) {
            Some(number) => self.steady_head(running, target, header, now, number, line),
            None => self.head(running, target, header, now, line),
        }
        let room = target.len.saturating_sub(line.len() + 1);
        line.extend_from_slice(&text[..text.len().min(room)]);
        line.push(b'\n');
    }

    /// The head of a message, from the last one where that is the same.
    fn steady_head(
        &mut self,
        running: &Running,
        target: &LogTarget,
        header: &Header<'_>,
        now: Now,
        number: usize,
        line: &mut Vec<u8>,
    ) {
        if let Some(head) = self.heads.get(number)
            && (head.second, head.level) == (self.second, header.level)
        {
            return line.extend_from_slice(&head.text);
        }
        self.head(running, target, header, now, line);
        if self.heads.len() <= number {
            self.heads.resize_with(number + 1, Head::default);
        }
        let head = &mut self.heads[number];
        (head.second, head.level) = (self.second, header.level);
        head.text.clear();
        head.text.extend_from_slice(line);
    }

    fn head(
        &self,
        running: &Running,
        target: &LogTarget,
        header: &Header<'_>,
        now: Now,
        line: &mut Vec<u8>,
    ) {
        let global = &running.config.global;
        let pid = running.process.pid;
        let level = header.level;
        let tag = header.tag;
        let hostname = global.log_send_hostname.as_deref().map(|name| match name {
            b"" => running.process.hostname.as_bytes(),
            name => name,
        });
        let priority = match target.format {
            LogWire::Iso | LogWire::Raw => None,
            LogWire::Short | LogWire::Timed => Some(level.into()),
            _ => Some(u64::from(target.facility) * 8 + u64::from(level)),
        };
        if let Some(priority) = priority {
            line.push(b'<');
            push_uint(line, priority);
            line.push(b'>');
        }
        match target.format {
            LogWire::Default | LogWire::Rfc3164 | LogWire::Local => {
                line.extend_from_slice(&self.bsd);
                line.push(b' ');
                let hostname = match target.format {
                    LogWire::Default => hostname,
                    LogWire::Rfc3164 => Some(hostname.unwrap_or(b"localhost")),
                    _ => None,
                };
                if let Some(name) = hostname {
                    line.extend_from_slice(name);
                    line.push(b' ');
                }
                line.extend_from_slice(tag);
                line.push(b'[');
                push_uint(line, u64::from(pid));
                line.extend_from_slice(b"]: ");
            }
            LogWire::Rfc5424 => {
                line.extend_from_slice(b"1 ");
                self.precise(now, line);
                line.push(b' ');
                line.extend_from_slice(hostname.unwrap_or(b"-"));
                line.push(b' ');
                line.extend_from_slice(tag);
                line.push(b' ');
                push_uint(line, u64::from(pid));
                line.extend_from_slice(b" - ");
                match header.sd {
                    b"" => line.push(b'-'),
                    sd => line.extend_from_slice(sd),
                }
                line.push(b' ');
            }
            LogWire::Short | LogWire::Raw | LogWire::Priority => {}
            LogWire::Timed | LogWire::Iso => {
                self.precise(now, line);
                line.push(b' ');
            }
        }
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
