//! `show quic`: QUIC connections, which each worker lists a few at a time.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use config::anonymise::Anonymiser;
use net::WorkerId;
use proxy::{
    Order, QuicParameters, QuicReport, QuicStage, QuicStreamReport, QuicView, QuicsAsked, QuicsPart,
};

use super::{Asked, Command, Level, Reply, Subjects, command};

pub(super) const COMMANDS: &[Command] = &[command(
    "show quic",
    "[help|<format>] [<filter>]",
    Level::Operator,
    "show the QUIC connections",
    show,
)];

/// Most connections in one answer of a worker.
const PART_CONNECTIONS: usize = 64;
/// How long a worker may take to answer.
const ANSWER_TIME: Duration = Duration::from_secs(2);
/// How wide the first column of a line is, and how much of a frontend's name it has.
const FIRST_COLUMN: usize = 36;
const NAME_CHARS_MAX: usize = 12;
/// The longest connection id (RFC 9000 §17.2).
const ID_BYTES_MAX: usize = 20;

const HEADER: &str = "# conn/frontend                     state   in_flight infl_p lost_p         \
                      Local Address           Foreign Address      local & remote CIDs\n";

const USAGE: &str = "Usage: show quic [help|<format>] [<filter>]
Shows QUIC connections of clients. Formats:
  oneline    one line per connection (default)
  stream     one line per stream
  full       everything that is known of each connection
  <fields>   some of it: a list with commas of 'tp', 'sock', 'pktns', 'cc', 'mux'
  help       this text
Filters:
  all        also connections that are closing
  clo        only connections that are closing
  be         connections to servers
  <id>       only the connection with this number (0x...)
";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Line,
    Streams,
    Full(Fields),
}

/// Parts of the format `full`. Nothing is known of the spaces of packet numbers (`pktns`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Fields {
    has_parameters: bool,
    has_socket: bool,
    has_congestion: bool,
    has_streams: bool,
}

impl Fields {
    const ALL: Fields = Fields {
        has_parameters: true,
        has_socket: true,
        has_congestion: true,
        has_streams: true,
    };

    /// Reads a list with commas. None if the first word is no field.
    fn read(list: &str) -> Result<Option<Fields>, Reply> {
        let mut fields = Fields::default();
        for (index, word) in list.split(',').enumerate() {
            match word {
                "pktns" => {}
                "tp" => fields.has_parameters = true,
                "sock" => fields.has_socket = true,
                "cc" => fields.has_congestion = true,
                "mux" => fields.has_streams = true,
                _ if index == 0 && !list.contains(',') => return Ok(None),
                _ => return Err(refused("Invalid field, use 'help' for more options.\n")),
            }
        }
        Ok(Some(fields))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Filter {
    Active,
    All,
    Closing,
    Servers,
    Id(u64),
}

impl Filter {
    fn admits(self, view: &QuicView) -> bool {
        let closes = matches!(view.report.stage, QuicStage::Closing | QuicStage::Draining);
        match self {
            Filter::Active => !closes && !view.is_to_server,
            Filter::All => true,
            Filter::Closing => closes && !view.is_to_server,
            Filter::Servers => view.is_to_server,
            Filter::Id(id) => view.id == id,
        }
    }
}

fn refused(text: &str) -> Reply {
    Reply::Refused(text.to_owned())
}

/// The format and the filter of a command.
fn wanted(words: &[&str]) -> Result<(Format, Filter), Reply> {
    let mut words = words.iter().copied().peekable();
    let mut format = match words.peek().copied() {
        Some("help") => return Err(refused(USAGE)),
        Some("oneline") => Some(Format::Line),
        Some("stream") => Some(Format::Streams),
        Some("full") => Some(Format::Full(Fields::ALL)),
        Some(word) => Fields::read(word)?.map(Format::Full),
        None => None,
    };
    if format.is_some() {
        words.next();
    }
    let filter = match words.next() {
        None => Filter::Active,
        Some("all") => Filter::All,
        Some("clo") => Filter::Closing,
        Some("be") => Filter::Servers,
        Some(word) => match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
            Some(digits) => {
                let id = u64::from_str_radix(digits, 16);
                Filter::Id(id.map_err(|_| refused("Invalid connection number.\n"))?)
            }
            None => return Err(refused("Invalid argument, use 'help' for more options.\n")),
        },
    };
    if matches!(filter, Filter::Id(_)) {
        format.get_or_insert(Format::Full(Fields::ALL));
    }
    Ok((format.unwrap_or(Format::Line), filter))
}

fn show(asked: &Asked<'_>) -> Reply {
    let (format, filter) = match wanted(asked.rest) {
        Ok(wanted) => wanted,
        Err(reply) => return reply,
    };
    Reply::Parts(Box::new(Connections {
        subjects: Arc::clone(asked.subjects),
        format,
        filter,
        hide: asked.anonymiser,
        worker: WorkerId(0),
        from: Some(0),
        is_begun: false,
    }))
}

/// The lines of the connections, worker by worker.
struct Connections {
    subjects: Arc<Subjects>,
    format: Format,
    filter: Filter,
    /// Replaces names and addresses by hashes.
    hide: Anonymiser,
    worker: WorkerId,
    /// Where the current worker continues; None after the last worker.
    from: Option<usize>,
    is_begun: bool,
}

impl Iterator for Connections {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let from = self.from?;
        let part = self.ask(from);
        self.from = part.next.or_else(|| {
            self.worker = WorkerId(self.worker.0 + 1);
            let is_there = (self.worker.0 as usize) < self.subjects.workers.count();
            is_there.then_some(0)
        });
        let mut lines = String::new();
        if !std::mem::replace(&mut self.is_begun, true) && self.format == Format::Line {
            lines.push_str(HEADER);
        }
        let views = part.connections.iter();
        for view in views.filter(|view| self.filter.admits(view)) {
            // Writing to memory does not fail.
            let _ = match self.format {
                Format::Line => self.line(view, &mut lines),
                Format::Streams => streams(view, &mut lines),
                Format::Full(fields) => self.full(view, fields, &mut lines),
            };
        }
        Some(lines.into_bytes())
    }
}

impl Connections {
    /// The next part of a worker's connections. Empty if the worker has ended or does not answer.
    fn ask(&self, from: usize) -> QuicsPart {
        let (with_streams, with_parameters) = match self.format {
            Format::Line => (false, false),
            Format::Streams => (true, false),
            Format::Full(fields) => (fields.has_streams, fields.has_parameters),
        };
        let (reply, part) = mpsc::sync_channel(1);
        let order = Order::ShowQuics(QuicsAsked {
            from,
            most: PART_CONNECTIONS,
            with_streams,
            with_parameters,
            reply,
        });
        self.subjects.workers.tell_one(self.worker, order);
        part.recv_timeout(ANSWER_TIME).unwrap_or_default()
    }

    /// An address and its port, in columns if nothing is hidden.
    fn addr(&self, address: &SocketAddr) -> String {
        let written = address.to_string();
        let hidden = self.hide.address(&written);
        if hidden != written {
            return format!("{hidden:>21}");
        }
        format!("{:>15}:{:<5}", address.ip().to_string(), address.port())
    }

    fn line(&self, view: &QuicView, out: &mut String) -> std::fmt::Result {
        let proxies = &self.subjects.runtime_config.config.proxies;
        let name = proxies.get(view.proxy).map_or("", |proxy| &proxy.name);
        let name = self.hide.text(name);
        let name: String = name.chars().take(NAME_CHARS_MAX).collect();
        let first = format!("{:#x}[{:02}]/{name}", view.id, view.worker.0);
        let report = &view.report;
        let state = match report.stage {
            QuicStage::Handshake => "HDSHK",
            QuicStage::Open => "ESTAB",
            QuicStage::Closing => "CLOSE",
            QuicStage::Draining => "DRAIN",
        };
        writeln!(
            out,
            "{first:<width$} {state}   {:>9} {:>6} {:>6}   {}   {} {} {}",
            "-",
            "-",
            report.lost_packets,
            self.addr(&view.local),
            self.addr(&view.peer),
            hexadecimal(&report.local_id),
            hexadecimal(&report.peer_id),
            width = FIRST_COLUMN - 1,
        )
    }

    fn full(&self, view: &QuicView, fields: Fields, out: &mut String) -> std::fmt::Result {
        let report = &view.report;
        writeln!(
            out,
            "* {:#x}[{:02}]: scid={} dcid={}",
            view.id,
            view.worker.0,
            padded(&report.local_id),
            padded(&report.peer_id),
        )?;
        if let Some(sides) = &view.parameters {
            let [local, peer] = &**sides;
            parameters("loc", local, out)?;
            parameters("rem", peer, out)?;
        }
        let state = match report.stage {
            QuicStage::Handshake => "handshake",
            QuicStage::Open => "opened",
            QuicStage::Closing => "closing",
            QuicStage::Draining => "draining",
        };
        let mux = match report.stage {
            QuicStage::Handshake => "null",
            QuicStage::Open if view.is_used => "ready",
            QuicStage::Open | QuicStage::Closing | QuicStage::Draining => "released",
        };
        writeln!(out, "  st={state:<16} mux={mux}")?;
        if fields.has_socket {
            let addr = |address| self.addr(address).trim().to_owned();
            writeln!(
                out,
                "  fd=-1               local_addr={} foreign_addr={}",
                addr(&view.local),
                addr(&view.peer),
            )?;
        }
        if fields.has_congestion {
            congestion(report, out)?;
        }
        events(report, out)?;
        if fields.has_streams && mux == "ready" {
            requests(view, out)?;
        }
        writeln!(out)
    }
}

/// The transport parameters of a side.
fn parameters(side: &str, of: &QuicParameters, out: &mut String) -> std::fmt::Result {
    write!(out, "  {side}. TPs:")?;
    for (name, id) in [
        ("odcid", &of.original_id),
        ("iscid", &of.initial_id),
        ("rscid", &of.retry_id),
    ] {
        if let Some(id) = id {
            write!(out, " {name}={}", hexadecimal(id))?;
        }
    }
    writeln!(
        out,
        "\n    midle_timeout={}ms mudp_payload_sz={} ack_delay_exp={} mack_delay={}ms act_cid_limit={}",
        of.idle_ms, of.payload_bytes, of.ack_delay_exponent, of.ack_delay_ms, of.ids_max,
    )?;
    writeln!(
        out,
        "    md={} msd_bidi_l={} msd_bidi_r={} msd_uni={} ms_bidi={} ms_uni={}",
        of.data_bytes,
        of.bidi_local_bytes,
        of.bidi_remote_bytes,
        of.uni_bytes,
        of.bidi_streams,
        of.uni_streams,
    )?;
    match (of.stays, of.has_reset_token) {
        (true, true) => writeln!(out, "    (no_act_migr,stless_rst_tok)"),
        (true, false) => writeln!(out, "    (no_act_migr)"),
        (false, true) => writeln!(out, "    (stless_rst_tok)"),
        (false, false) => Ok(()),
    }
}

/// Round trips in milliseconds, the window, and packets.
fn congestion(report: &QuicReport, out: &mut String) -> std::fmt::Result {
    writeln!(
        out,
        "  srtt={:<4}  rttvar=-    rttmin={:<4} ptoc=-\n  cwnd={:<6}            cwnd_last_max=-\n  \
         sentbytes={:<12} sentbytesgso=-            sentpkts={}\n  lostpkts={:<6}        reorderedpkts=-",
        report.rtt.as_millis(),
        report.rtt_min.as_millis(),
        report.window_bytes,
        report.sent_bytes,
        report.sent_packets,
        report.lost_packets,
    )
}

/// Counters that are shown if they are not 0.
fn events(report: &QuicReport, out: &mut String) -> std::fmt::Result {
    let counters = [
        ("migrdone", report.migrations),
        ("datablocked", report.blocked.data),
        ("sdatablocked", report.blocked.stream_data),
        ("sblockebidi", report.blocked.streams_bidi),
        ("sblockeduni", report.blocked.streams_uni),
    ];
    let mut any = false;
    for (name, count) in counters.into_iter().filter(|(_, count)| *count > 0) {
        any = true;
        write!(out, " {name}={count:<6}")?;
    }
    if any { writeln!(out) } else { Ok(()) }
}

/// The requests of a connection, and all its streams.
fn requests(view: &QuicView, out: &mut String) -> std::fmt::Result {
    let report = &view.report;
    writeln!(
        out,
        "  qcc=- flags=- sc={requests} hreq={requests} bwnd={}/{}",
        report.queued_bytes,
        report.window_bytes,
        requests = report.requests,
    )?;
    for stream in &view.streams {
        let state = state(stream);
        writeln!(
            out,
            "    qcs=- id={} flags=- st={state} rxb={}(-) rxoff=- txb={} txoff=-(-) msd=-",
            stream.id, stream.ahead_bytes, stream.queued_bytes,
        )?;
    }
    Ok(())
}

/// The state of a stream, of which one direction or both are open.
fn state(stream: &QuicStreamReport) -> &'static str {
    match (stream.receives, stream.sends) {
        (true, true) => "OPN",
        (true, false) => "HCL",
        (false, true) => "HCR",
        (false, false) => "CLO",
    }
}

/// The streams of requests, one a line.
fn streams(view: &QuicView, out: &mut String) -> std::fmt::Result {
    let streams = view.streams.iter();
    for stream in streams.filter(|stream| stream.is_bidirectional()) {
        writeln!(
            out,
            "{:#x}.{:04}: - age=- tx=[{},-] rxb={}(-)/- qcs[{}]",
            view.id,
            stream.id,
            stream.queued_bytes,
            stream.ahead_bytes,
            state(stream),
        )?;
    }
    Ok(())
}

fn hexadecimal(id: &[u8]) -> String {
    if id.is_empty() {
        return "-".to_owned();
    }
    id.iter().fold(String::new(), |mut text, byte| {
        // Writing to memory does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// An id, filled up to the longest one.
fn padded(id: &[u8]) -> String {
    let missing = ID_BYTES_MAX.saturating_sub(id.len());
    let digits = if id.is_empty() {
        String::new()
    } else {
        hexadecimal(id)
    };
    digits + &"..".repeat(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(Format, Filter), String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        wanted(&words).map_err(|reply| match reply {
            Reply::Refused(text) => text,
            _ => String::new(),
        })
    }

    #[test]
    fn formats_and_filters() {
        let socket = Fields {
            has_socket: true,
            ..Fields::default()
        };
        for (text, wanted) in [
            ("", (Format::Line, Filter::Active)),
            ("all", (Format::Line, Filter::All)),
            ("oneline clo", (Format::Line, Filter::Closing)),
            ("stream be", (Format::Streams, Filter::Servers)),
            ("full", (Format::Full(Fields::ALL), Filter::Active)),
            ("pktns,sock", (Format::Full(socket), Filter::Active)),
            (
                "tp,sock,cc,mux",
                (Format::Full(Fields::ALL), Filter::Active),
            ),
            ("0xAb", (Format::Full(Fields::ALL), Filter::Id(0xab))),
            ("oneline 0X1", (Format::Line, Filter::Id(1))),
        ] {
            assert_eq!(read(text), Ok(wanted), "{text}");
        }
        for (text, wanted) in [
            ("help", "Usage: show quic"),
            ("x", "Invalid argument"),
            ("full x", "Invalid argument"),
            ("sock,x", "Invalid field"),
            ("x,sock", "Invalid field"),
            ("0xg", "Invalid connection number"),
        ] {
            let shown = read(text).expect_err(text);
            assert!(shown.starts_with(wanted), "{text}: {shown}");
        }
    }
}
