//! Writes messages in the wire format of a target (RFC 3164, RFC 5424, manual §4.2 `log … format`).

use config::model::{LogTarget, LogWire};
use net::Now;
use sample::text::{push_padded, push_uint};

use crate::runtime_config::RuntimeConfig;

/// `Nov 20 13:01:02` (RFC 3164 §4.1.2).
const BSD: &str = "%b %e %H:%M:%S";
/// `2026-11-20T13:01:02+00:00` (RFC 5424 §6.2.3).
const ISO: &str = "%Y-%m-%dT%H:%M:%S%:z";
/// The length of the part before the UTC offset, bytes.
const MOMENT_BYTES: usize = 19;

/// Cached texts that change once per second.
#[derive(Debug, Default)]
pub(super) struct Dates {
    second: u64,
    /// `Nov 20 13:01:02`, local time.
    bsd: Vec<u8>,
    /// `2026-11-20T13:01:02+00:00`, local time.
    iso: Vec<u8>,
    /// By target number: the header of the last message.
    heads: Vec<Head>,
}

/// A header that is valid for one second.
#[derive(Debug, Default)]
struct Head {
    second: u64,
    level: u8,
    text: Vec<u8>,
}

/// The parts of a message's header.
pub(super) struct Header<'a> {
    /// Severity, already within the target's bounds.
    pub level: u8,
    /// The program's name.
    pub tag: &'a [u8],
    /// Structured data; empty for none.
    pub sd: &'a [u8],
    /// The target's number, if its tag never changes.
    pub steady: Option<usize>,
}

impl Dates {
    /// Writes a message for a target into `line`.
    pub fn write(
        &mut self,
        runtime_config: &RuntimeConfig,
        target: &LogTarget,
        header: &Header<'_>,
        now: Now,
        text: &[u8],
        line: &mut Vec<u8>,
    ) {
        self.refresh(runtime_config, now);
        line.clear();
        // A header with microseconds differs for each message.
        let precise = matches!(
            target.format,
            LogWire::Rfc5424 | LogWire::Timed | LogWire::Iso
        );
        match header.steady.filter(|_| !precise) {
            Some(number) => self.steady_head(runtime_config, target, header, now, number, line),
            None => self.head(runtime_config, target, header, now, line),
        }
        let room = target.len.saturating_sub(line.len() + 1);
        line.extend_from_slice(&text[..text.len().min(room)]);
        line.push(b'\n');
    }

    /// Writes the header, which is cached from the last message if it is the same.
    fn steady_head(
        &mut self,
        runtime_config: &RuntimeConfig,
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
        self.head(runtime_config, target, header, now, line);
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
        runtime_config: &RuntimeConfig,
        target: &LogTarget,
        header: &Header<'_>,
        now: Now,
        line: &mut Vec<u8>,
    ) {
        let global = &runtime_config.config.global;
        let pid = runtime_config.process.pid;
        let level = header.level;
        let tag = header.tag;
        let hostname = global.log_send_hostname.as_deref().map(|name| match name {
            b"" => runtime_config.process.hostname.as_bytes(),
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
    pub fn precise(&self, now: Now, line: &mut Vec<u8>) {
        let (moment, zone) = self.iso.split_at(MOMENT_BYTES.min(self.iso.len()));
        line.extend_from_slice(moment);
        line.push(b'.');
        push_padded(line, now.wall_ns / 1000 % 1_000_000, 6);
        line.extend_from_slice(zone);
    }

    /// The local time as in RFC 3164, as of the last refresh.
    pub fn bsd(&self) -> &[u8] {
        &self.bsd
    }

    /// The local year, as of the last refresh.
    pub fn year(&self) -> u64 {
        number(self.iso.get(..4))
    }

    /// The local month from 0, as of the last refresh.
    pub fn month(&self) -> usize {
        (number(self.iso.get(5..7)) as usize).saturating_sub(1)
    }

    /// A time that does not change.
    #[cfg(test)]
    pub fn fixed(bsd: &[u8], iso: &[u8]) -> Dates {
        Dates {
            bsd: bsd.to_vec(),
            iso: iso.to_vec(),
            ..Dates::default()
        }
    }

    /// Renders the texts of the current second.
    pub fn refresh(&mut self, runtime_config: &RuntimeConfig, now: Now) {
        let second = now.wall_ns / 1_000_000_000;
        if second == self.second && !self.bsd.is_empty() {
            return;
        }
        self.second = second;
        self.bsd.clear();
        self.iso.clear();
        let local_time = &runtime_config.process.local_time;
        local_time.write(&mut self.bsd, second as i64, BSD);
        local_time.write(&mut self.iso, second as i64, ISO);
    }
}

/// The number that digits are; 0 without digits.
fn number(digits: Option<&[u8]>) -> u64 {
    let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}
