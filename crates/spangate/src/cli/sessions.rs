//! `show sess`, `shutdown session` and `shutdown sessions server`: streams, which each worker lists
//! a few at a time.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use config::anonymise::Anonymiser;
use net::{Addr, WorkerId};
use proxy::{Killed, Order, ServerTables, StreamView, StreamsAsked, StreamsPart};

use super::basic::duration;
use super::servers::{find_backend, find_server};
use super::{Asked, Command, Level, Reply, Subjects, command};

#[rustfmt::skip]
pub(super) const COMMANDS: &[Command] = &[
    command("show sess", "[help|<id>|all] [opts...]", Level::Operator, "show the streams, or all details of one", show),
    command("shutdown session", "<id>", Level::Admin, "end a stream", shutdown),
    command("shutdown sessions server", "<bk>/<srv>", Level::Admin, "end the streams of a server", shutdown_server),
];

/// Most streams in one answer of a worker.
const PART_STREAMS: usize = 64;
/// How long a worker may take to answer.
const ANSWER_TIME: Duration = Duration::from_secs(2);

const USAGE: &str = "Usage: show sess [<id> | all | help] [<options>*]
Dumps the active streams. Available selectors:
   <id>         dump only this stream identifier (0x...)
   all          dump all matching streams in large format
   help         show this message
Available options:
   show-uri     also display the request line, if available
   older <age>  only display streams older than <age> seconds
   server <b/s> only show streams attached to this backend+server
   backend <b>  only show streams attached to this backend
   frontend <f> only show streams attached to this frontend
Without any argument, all streams are dumped in a shorter format.
";

fn refused(text: &str) -> Reply {
    Reply::Refused(text.to_owned())
}

/// The streams to show, and the format.
#[derive(Clone, Copy, Debug, Default)]
struct Wanted {
    /// Only the stream with this number.
    id: Option<u64>,
    is_long: bool,
    shows_line: bool,
    older_than_ms: u64,
    of: Part,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    #[default]
    All,
    Frontend(usize),
    Backend(usize),
    Server(usize, usize),
}

impl Wanted {
    fn is(&self, stream: &StreamView) -> bool {
        let is_part = match self.of {
            Part::All => true,
            Part::Frontend(frontend) => stream.frontend == frontend,
            Part::Backend(backend) => stream.backend == Some(backend),
            Part::Server(backend, server) => {
                (stream.backend, stream.server) == (Some(backend), Some(server))
            }
        };
        is_part && self.id.is_none_or(|id| id == stream.id) && stream.age_ms >= self.older_than_ms
    }
}

/// The number of a stream, in the format of the output.
fn read_id(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn wanted(asked: &Asked<'_>) -> Result<Wanted, Reply> {
    let mut wanted = Wanted::default();
    let mut words = asked.rest.iter().copied().peekable();
    match words.peek().copied() {
        Some("help") => return Err(refused(USAGE)),
        Some("all") => {
            wanted.is_long = true;
            words.next();
        }
        Some(word) => {
            wanted.id = read_id(word);
            wanted.is_long = wanted.id.is_some();
            words.next_if(|_| wanted.is_long);
        }
        None => {}
    }
    while let Some(word) = words.next() {
        let of = match word {
            "show-uri" => {
                wanted.shows_line = true;
                continue;
            }
            "older" => {
                let age = words
                    .next()
                    .ok_or_else(|| refused("Expects a minimum age (in seconds by default).\n"))?;
                let age = duration(age, Duration::from_secs(1));
                let age = age.ok_or_else(|| refused("Invalid age.\n"))?;
                wanted.older_than_ms = age.as_millis() as u64;
                continue;
            }
            "server" => {
                let name = words
                    .next()
                    .ok_or_else(|| refused("Missing server name (<backend>/<server>).\n"))?;
                let server = find_server(asked, name)?;
                Part::Server(server.backend, server.place)
            }
            "backend" => {
                let name = words
                    .next()
                    .ok_or_else(|| refused("Missing backend name.\n"))?;
                let backend = find_backend(asked, name);
                Part::Backend(backend.ok_or_else(|| refused("No such backend.\n"))?.0)
            }
            "frontend" => {
                let name = words
                    .next()
                    .ok_or_else(|| refused("Missing frontend name.\n"))?;
                let mut proxies = asked.subjects.runtime_config.config.proxies.iter();
                let place = proxies
                    .position(|proxy| proxy.is_frontend && !proxy.is_removed && proxy.name == name);
                Part::Frontend(place.ok_or_else(|| refused("No such frontend.\n"))?)
            }
            _ => {
                return Err(Reply::Refused(format!(
                    "Unsupported option '{word}', try 'help' for more info.\n"
                )));
            }
        };
        if wanted.of != Part::All {
            return Err(refused(
                "Only one of backend, frontend or server may be set.\n",
            ));
        }
        wanted.of = of;
    }
    Ok(wanted)
}

fn show(asked: &Asked<'_>) -> Reply {
    let wanted = match wanted(asked) {
        Ok(wanted) => wanted,
        Err(reply) => return reply,
    };
    Reply::Parts(Box::new(Streams {
        subjects: Arc::clone(asked.subjects),
        tables: asked.subjects.shared.server_tables(),
        wanted,
        hide: asked.anonymiser,
        worker: WorkerId(0),
        from: Some(0),
        found: false,
    }))
}

/// The lines of the streams, worker by worker.
struct Streams {
    subjects: Arc<Subjects>,
    tables: Arc<ServerTables>,
    wanted: Wanted,
    /// Replaces names and addresses by hashes.
    hide: Anonymiser,
    worker: WorkerId,
    /// Where the current worker continues; None after the last worker.
    from: Option<u32>,
    found: bool,
}

impl Iterator for Streams {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let from = self.from?;
        let part = self.ask(from);
        match part.next {
            Some(next) => self.from = Some(next),
            None => {
                self.worker = WorkerId(self.worker.0 + 1);
                let is_there = (self.worker.0 as usize) < self.subjects.workers.count();
                self.from = is_there.then_some(0);
            }
        }
        let mut lines = String::new();
        let streams = part.streams.iter();
        for stream in streams.filter(|stream| self.wanted.is(stream)) {
            self.found = true;
            // Writing to memory does not fail.
            let _ = if self.wanted.is_long {
                self.long(stream, &mut lines)
            } else {
                self.short(stream, &mut lines)
            };
        }
        if self.from.is_none() && self.wanted.id.is_some() && !self.found {
            lines.push_str("Session not found.\n");
        }
        Some(lines.into_bytes())
    }
}

impl Streams {
    /// The next part of a worker's streams. Empty if the worker has ended or does not answer.
    fn ask(&self, from: u32) -> StreamsPart {
        let (reply, part) = mpsc::sync_channel(1);
        let order = Order::ShowStreams(StreamsAsked {
            from,
            most: PART_STREAMS,
            reply,
        });
        self.subjects.workers.tell_one(self.worker, order);
        part.recv_timeout(ANSWER_TIME).unwrap_or_default()
    }

    fn name(&self, proxy: usize) -> &str {
        &self.subjects.runtime_config.config.proxies[proxy].name
    }

    fn names(&self, stream: &StreamView) -> (Cow<'_, str>, Cow<'_, str>, Cow<'_, str>) {
        let backend = stream.backend;
        let mut servers = self.tables.servers(backend.unwrap_or(usize::MAX));
        let server = servers.find(|(place, _)| Some(*place) == stream.server);
        (
            self.hide.text(self.name(stream.frontend)),
            backend.map_or("<NONE>".into(), |backend| {
                self.hide.text(self.name(backend))
            }),
            server.map_or("<none>".into(), |(_, record)| self.hide.text(&record.name)),
        )
    }

    fn addr(&self, addr: &Addr) -> String {
        self.hide.address(&addr.to_string()).into_owned()
    }

    /// The request line, with hidden parts where the session asks for that.
    fn line(&self, stream: &StreamView) -> String {
        let line = String::from_utf8_lossy(&stream.request_line);
        self.hide.text(&line).escape_debug().to_string()
    }

    fn short(&self, stream: &StreamView, out: &mut String) -> std::fmt::Result {
        let (frontend, backend, server) = self.names(stream);
        let client = stream.client.as_ref();
        write!(
            out,
            "{:#x}: proto={} src={} fe={frontend} be={backend} srv={server} age={} phase={} rq[i={}] rp[i={}] exp={} rc={}",
            stream.id,
            proto(stream),
            client.map_or_else(|| "?".to_owned(), |addr| self.addr(addr)),
            human(stream.age_ms),
            stream.phase,
            stream.waiting.0,
            stream.waiting.1,
            stream.expires_ms.map_or_else(String::new, human),
            stream.retries,
        )?;
        if self.wanted.shows_line && !stream.request_line.is_empty() {
            write!(out, " uri=\"{}\"", self.line(stream))?;
        }
        writeln!(out)
    }

    fn long(&self, stream: &StreamView, out: &mut String) -> std::fmt::Result {
        let (frontend, backend, server) = self.names(stream);
        let addr = |addr: &Option<Addr>| {
            addr.as_ref()
                .map_or_else(|| "<none>".to_owned(), |addr| self.addr(addr))
        };
        let mode = if stream.is_http { "http" } else { "tcp" };
        writeln!(
            out,
            "{:#x}: worker={} proto={} source={} mode={mode}",
            stream.id,
            stream.worker.0,
            proto(stream),
            addr(&stream.client),
        )?;
        writeln!(
            out,
            "  phase={} age={} exp={} rc={} conn={}",
            stream.phase,
            human(stream.age_ms),
            stream
                .expires_ms
                .map_or_else(|| "<NEVER>".to_owned(), human),
            stream.retries,
            u8::from(stream.is_connected),
        )?;
        writeln!(out, "  frontend={frontend} addr={}", addr(&stream.local))?;
        writeln!(
            out,
            "  backend={backend} server={server} addr={}",
            addr(&stream.server_address)
        )?;
        writeln!(
            out,
            "  req=(i={} total={}) res=(i={} total={})",
            stream.waiting.0, stream.bytes_in, stream.waiting.1, stream.bytes_out,
        )?;
        if !stream.request_line.is_empty() {
            writeln!(out, "  request=\"{}\"", self.line(stream))?;
        }
        Ok(())
    }
}

/// The protocol of a stream's client.
fn proto(stream: &StreamView) -> &'static str {
    let Some(client) = &stream.client else {
        return "?";
    };
    match (client.ip().map(|ip| ip.is_ipv4()), stream.is_quic) {
        (Some(true), false) => "tcpv4",
        (Some(false), false) => "tcpv6",
        (Some(true), true) => "quic4",
        (Some(false), true) => "quic6",
        (None, _) => "unix_stream",
    }
}

/// A duration in its two largest units, as HAProxy shows it.
fn human(ms: u64) -> String {
    let seconds = ms / 1_000;
    match seconds {
        86_400.. => format!("{}d{}h", seconds / 86_400, seconds / 3_600 % 24),
        3_600.. => format!("{}h{}m", seconds / 3_600, seconds / 60 % 60),
        60.. => format!("{}m{}s", seconds / 60, seconds % 60),
        _ => format!("{seconds}s"),
    }
}

fn shutdown(asked: &Asked<'_>) -> Reply {
    let Some(id) = asked.rest.first().and_then(|word| read_id(word)) else {
        return refused("Session pointer expected (use 'show sess').\n");
    };
    let (sender, found) = mpsc::channel();
    let order = Order::Kill(Killed::Stream(id, sender));
    asked.subjects.workers.tell(&order);
    drop(order);
    match found.recv_timeout(ANSWER_TIME) {
        Ok(()) => Reply::Done,
        Err(_) => refused("No such session (use 'show sess').\n"),
    }
}

fn shutdown_server(asked: &Asked<'_>) -> Reply {
    let name = asked.rest.first().copied().unwrap_or_default();
    match find_server(asked, name) {
        Ok(server) => {
            let killed = Killed::Server(server.backend, server.place);
            asked.subjects.workers.tell(&Order::Kill(killed));
            Reply::Done
        }
        Err(reply) => reply,
    }
}

#[cfg(test)]
mod tests {
    use super::human;

    #[test]
    fn durations_in_two_units() {
        for (ms, text) in [
            (999, "0s"),
            (59_999, "59s"),
            (61_000, "1m1s"),
            (3_600_000, "1h0m"),
            (90_061_000, "1d1h"),
        ] {
            assert_eq!(human(ms), text);
        }
    }
}
