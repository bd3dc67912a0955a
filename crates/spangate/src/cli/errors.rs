//! `show errors`: the last request of each frontend and the last response of each backend that
//! break the protocol (management guide §9.3, §13.2).

use std::fmt::Write as _;
use std::sync::Arc;

use config::anonymise::Anonymiser;
use net::{Addr, Now};
use proxy::{Refused, Snapshot};

use super::stat::proxy_number;
use super::{Asked, Command, Level, Reply, Subjects, command};

pub(super) const COMMANDS: &[Command] = &[command(
    "show errors",
    "[<px>] [request|response]",
    Level::Operator,
    "show the last refused request and response of each proxy",
    show,
)];

/// Columns of a line of the hex dump.
const LINE_COLUMNS: usize = 79;

/// The messages to show.
#[derive(Clone, Copy)]
struct Wanted {
    /// The id of the proxy.
    proxy: Option<i64>,
    requests: bool,
    responses: bool,
}

fn show(asked: &Asked<'_>) -> Reply {
    let subjects = asked.subjects;
    let proxy = match asked.rest.first().map(|name| proxy_number(asked, name)) {
        Some(None) => return Reply::Refused("No such proxy.\n".to_owned()),
        Some(Some(number)) => Some(number).filter(|number| *number >= 0),
        None => None,
    };
    let kind = asked.rest.get(1);
    let wanted = Wanted {
        proxy,
        requests: kind != Some(&"response"),
        responses: kind != Some(&"request"),
    };
    let head = format!(
        "Total events captured on [{}] : {}\n",
        date(subjects, net::sys::now()),
        subjects.shared.refused_messages()
    );
    let hide = asked.anonymiser;
    let subjects = Arc::clone(subjects);
    let proxies = 0..subjects.runtime_config.config.proxies.len();
    let parts = proxies.map(move |place| of_proxy(&subjects, place, wanted, hide).into_bytes());
    Reply::Parts(Box::new(std::iter::once(head.into_bytes()).chain(parts)))
}

/// A time in the format of the logs.
fn date(subjects: &Subjects, at: Now) -> String {
    let zone = &subjects.runtime_config.process.local_time;
    let wall_ms = at.wall_ns / 1_000_000;
    let seconds = (wall_ms / 1_000) as i64;
    format!("{}.{:03}", zone.log_date(seconds), wall_ms % 1_000)
}

fn of_proxy(subjects: &Subjects, place: usize, wanted: Wanted, hide: Anonymiser) -> String {
    let proxies = &subjects.runtime_config.config.proxies;
    let mut out = String::new();
    let [request, response] = subjects.shared.last_refused(place);
    let request = request.filter(|_| wanted.requests);
    let response = response.filter(|_| wanted.responses);
    for snapshot in [request, response].into_iter().flatten() {
        let other = match snapshot.what {
            Refused::Request(backend) => backend,
            Refused::Response(frontend, _) => Some(frontend),
        };
        let is_of = |place: usize| wanted.proxy == Some(i64::from(proxies[place].id));
        if wanted.proxy.is_none() || is_of(place) || other.is_some_and(is_of) {
            // Writing to memory does not fail.
            let _ = write_one(subjects, place, &snapshot, hide, &mut out);
        }
    }
    out
}

fn write_one(
    subjects: &Subjects,
    place: usize,
    snapshot: &Snapshot,
    hide: Anonymiser,
    out: &mut String,
) -> std::fmt::Result {
    let proxies = &subjects.runtime_config.config.proxies;
    let named = |place: usize| {
        format!(
            "{} (#{})",
            hide.text(&proxies[place].name),
            proxies[place].id
        )
    };
    let nobody = || "<NONE> (#-1)".to_owned();
    write!(out, " \n[{}]", date(subjects, snapshot.at))?;
    let own = named(place);
    let mut server = nobody();
    match snapshot.what {
        Refused::Request(backend) => {
            let backend = backend.map_or_else(nobody, named);
            write!(out, " frontend {own}: invalid request\n  backend {backend}")?;
        }
        Refused::Response(frontend, of_backend) => {
            let tables = subjects.shared.server_tables();
            let mut servers = tables.servers(place);
            if let Some((_, record)) = servers.find(|(server, _)| Some(*server) == of_backend) {
                server = format!("{} (#{})", hide.text(&record.name), record.id);
            }
            let frontend = named(frontend);
            write!(
                out,
                " backend {own}: invalid response\n  frontend {frontend}"
            )?;
        }
    }
    let client = match &snapshot.client {
        Some(Addr::Inet(addr)) => {
            let ip = addr.ip().to_string();
            format!("{}:{}", hide.ip(&ip), addr.port())
        }
        _ => "unix:0".to_owned(),
    };
    let len = snapshot.bytes.len();
    let size = subjects.runtime_config.config.global.tune.bufsize_bytes;
    writeln!(
        out,
        ", server {server}, event #{}, src {client}\n  buffer starts at 0 (including 0 out), {} free,\n  len {len}, wraps at {size}, error at position {}\n  H1 message refused: {}\n  ",
        snapshot.event,
        size.saturating_sub(len),
        snapshot.position(),
        snapshot.error,
    )?;
    // What clients and servers sent is shown only without `set anon`.
    if !hide.hides() {
        write_bytes(&snapshot.bytes, out);
    }
    Ok(())
}

/// Writes bytes in lines that begin with their offset, and with `+` where a line of the message
/// continues.
fn write_bytes(bytes: &[u8], out: &mut String) {
    let mut begins = true;
    let mut at = 0;
    while at < bytes.len() {
        let mark = if begins { ' ' } else { '+' };
        let start = out.len();
        // Writing to memory does not fail.
        let _ = write!(out, "  {at:05}{mark} ");
        begins = false;
        while let Some(&byte) = bytes.get(at) {
            let shown = escaped(byte);
            if out.len() - start + shown.len() > LINE_COLUMNS {
                break;
            }
            out.push_str(&shown);
            at += 1;
            if byte == b'\n' {
                begins = true;
                break;
            }
        }
        out.push('\n');
    }
}

/// A byte of a message or of a key, escaped like HAProxy does.
pub(super) fn escaped(byte: u8) -> String {
    match byte {
        b'\t' => "\\t".to_owned(),
        b'\n' => "\\n".to_owned(),
        b'\r' => "\\r".to_owned(),
        0x1b => "\\e".to_owned(),
        b'\\' => "\\\\".to_owned(),
        b' '..=b'~' => char::from(byte).to_string(),
        _ => format!("\\x{byte:02X}"),
    }
}

#[cfg(test)]
mod tests {
    use super::write_bytes;

    fn written(bytes: &[u8]) -> String {
        let mut out = String::new();
        write_bytes(bytes, &mut out);
        out
    }

    #[test]
    fn bytes_stand_in_lines_with_their_places() {
        assert_eq!(
            written(b"GET /\x01\xff \\ HTTP/1.1\r\nhost:\ta\r\n"),
            "  00000  GET /\\x01\\xFF \\\\ HTTP/1.1\\r\\n\n  00020  host:\\ta\\r\\n\n"
        );
        assert_eq!(written(b""), "");
    }

    #[test]
    fn a_long_line_goes_on() {
        let long = written(&[b'x'; 100]);
        let lines: Vec<&str> = long.lines().collect();
        assert_eq!(lines[0], format!("  00000  {}", "x".repeat(70)));
        assert_eq!(lines[1], format!("  00070+ {}", "x".repeat(30)));
    }
}
