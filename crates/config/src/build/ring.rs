//! Sections `ring` (manual §12.5), and references to them.

use super::address::{self, Names};
use super::line::{Cursor, Line, Parse, leading_integer};
use super::tls::server::option_without_streams;
use super::{Shared, did_you_mean, log_line, log_server, not_yet, unknown, values};
use crate::keywords::{self, Places, State, other};
use crate::model::{LogSink, LogTarget, LogWire, Ring, RingServer, ServerAddress};
use crate::tree::{Section, Tree};
use net::Addr;
use net::ring::Framing;
use std::time::Duration;

/// The ring that every process has.
const BUILT_IN: &str = "buf0";
/// Its size, bytes.
const BUILT_IN_BYTES: usize = 1 << 20;

/// The names of the rings, in the order of [`crate::model::Config::rings`].
pub fn names(tree: &Tree) -> Vec<String> {
    let sections = tree.sections.iter();
    let sections = sections.filter(|section| section.kind() == "ring");
    let names = sections.map(|section| {
        let name = section.name();
        name.map_or_else(String::new, |name| name.text.to_string())
    });
    [BUILT_IN.to_owned()].into_iter().chain(names).collect()
}

/// The ring that every process has (`buf0`).
pub fn built_in() -> Ring {
    Ring {
        description: "in-memory ring buffer".to_owned(),
        format: LogWire::Timed,
        ..Ring::new(BUILT_IN, BUILT_IN_BYTES)
    }
}

/// The index of the ring with this name, in the word taken last.
pub fn resolve(cursor: &Cursor<'_>, name: &str, shared: &Shared<'_>) -> Parse<usize> {
    let names = &shared.ring_names;
    let found = names.iter().position(|known| known == name);
    found.ok_or_else(|| {
        let hint = did_you_mean(name, names.iter().map(String::as_str));
        cursor.fault(format!("log : uses unknown ring named '{name}'{hint}."))
    })
}

/// Sets the format and the length of a target's messages to those of its ring, which take
/// precedence.
pub fn settle(target: &mut LogTarget, rings: &[Ring]) {
    let LogSink::Ring(ring) = target.to else {
        return;
    };
    let Some(ring) = rings.get(ring) else { return };
    target.format = ring.format;
    // One byte of a target's length is for the line feed.
    let own = ring.message_bytes_max.map(|bytes| bytes.saturating_add(1));
    target.len = own.map_or(target.len, |own| own.min(target.len));
}

/// Reads a section `ring`.
pub fn section(section: &Section, shared: &mut Shared<'_>) {
    let header = Line::new(&section.header);
    let mut ring = Ring::new(header.arg(1), shared.bufsize_bytes);
    let result = check_name(&header, shared);
    shared.settle(result);
    for line in section.statements.iter().map(Line::new) {
        let result = statement(&mut ring, &line, shared);
        shared.settle(result);
    }
    let fits = net::ring::Ring::message_bytes_max(ring.bytes_max);
    if let Some(bytes) = ring.message_bytes_max.filter(|bytes| *bytes > fits) {
        let message = format!(
            "ring '{}' event max length '{bytes}' exceeds max payload size, forced to '{fits}'.",
            ring.name
        );
        shared.settle(Err(header.fault(0, message).as_warning()));
        ring.message_bytes_max = Some(fits);
    }
    // A faulty section has a place too: names were collected before.
    shared.rings.push(ring);
}

fn check_name(header: &Line<'_>, shared: &Shared<'_>) -> Parse {
    let name = header.need(1, || "missing ring name.".to_owned())?;
    if let Some(bad) = values::bad_name_character(header.bytes(1)) {
        let message = format!("invalid ring name '{name}' (character '{bad}' is not permitted).");
        return Err(header.fault(1, message));
    }
    let is_known =
        matches!(name, "stdout" | "stderr") || shared.rings.iter().any(|known| known.name == name);
    if is_known {
        return Err(header.fault(1, format!("sink named '{name}' already exists.")));
    }
    header.at_most(1)
}

fn statement(ring: &mut Ring, line: &Line<'_>, shared: &mut Shared<'_>) -> Parse {
    match line.keyword() {
        "backing-file" => backing_file(ring, line, shared)?,
        "description" => {
            line.need(1, || "missing ring description text.".to_owned())?;
            line.at_most(1)?;
            line.arg(1).clone_into(&mut ring.description);
        }
        "format" => {
            let text = line.arg(1);
            let format = log_line::wire(text);
            ring.format =
                format.ok_or_else(|| line.fault(1, format!("unknown format '{text}'.")))?;
            line.at_most(1)?;
        }
        "maxlen" => {
            ring.message_bytes_max = Some(positive(line, leading_integer(line.arg(1)).parse())?);
        }
        "size" if ring.backing_file.is_some() => {
            let message = "cannot resize an already mapped file, please specify 'size' before 'backing-file'.";
            return Err(line.fault(0, message));
        }
        "size" => ring.bytes_max = positive(line, values::size(line.arg(1)))?,
        "server" => {
            let server = server(ring, line, shared)?;
            ring.servers.push(server);
        }
        "timeout" => timeout(ring, line, shared)?,
        word => {
            let table = other::RING;
            let row = keywords::find(table, word);
            return Err(match row.map(|row| row.state) {
                Some(State::NotYet) => line.fault(0, not_yet(word)),
                _ => unknown(line, "ring", table.iter().map(|row| row.name)),
            });
        }
    }
    Ok(())
}

/// `backing-file <path>`
fn backing_file(ring: &mut Ring, line: &Line<'_>, shared: &Shared<'_>) -> Parse {
    line.need(1, || {
        "'backing-file' expects <path> as argument.".to_owned()
    })?;
    let path = line.path(1);
    let name = &ring.name;
    if let Some(known) = &ring.backing_file {
        let known = known.display();
        let message =
            format!("'backing-file' already specified for ring '{name}' (was '{known}').");
        return Err(line.fault(1, message));
    }
    let mut others = shared.rings.iter();
    if let Some(other) = others.find(|other| other.backing_file.as_deref() == Some(path)) {
        let (path, other) = (path.display(), &other.name);
        let message = format!("'{path}' is the backing-file of ring '{other}' already.");
        return Err(line.fault(1, message));
    }
    ring.backing_file = Some(path.to_owned());
    line.at_most(1)
}

/// The number in word 1.
fn positive<E>(line: &Line<'_>, read: Result<usize, E>) -> Parse<usize> {
    let number = read.ok().filter(|number| *number > 0).ok_or_else(|| {
        let text = line.arg(1);
        line.fault(1, format!("invalid size '{text}' for new sink buffer."))
    })?;
    line.at_most(1)?;
    Ok(number)
}

/// `timeout connect|server <time>`
fn timeout(ring: &mut Ring, line: &Line<'_>, shared: &mut Shared<'_>) -> Parse {
    let name = line.arg(1);
    let field = match name {
        "connect" => &mut ring.timeout_connect,
        "server" => &mut ring.timeout_server,
        _ => {
            let message =
                format!("'timeout' expects 'connect' or 'server' as argument (got '{name}').");
            return Err(line.fault(1, message));
        }
    };
    let text = line.need(2, || {
        format!("'timeout {name}' expects <time> as argument.")
    })?;
    let time = values::whole_time(text).map_err(|bad| {
        line.fault(
            2,
            values::time_message(bad, text, &format!("timeout {name}")),
        )
    })?;
    // As in HAProxy, zero is no limit.
    *field = Some(time).filter(|time| *time != Duration::ZERO);
    shared.note_time(line, 2);
    line.at_most(2)
}

/// `server <name> <address>:<port> [log-proto legacy|octet-count]`
fn server(ring: &Ring, line: &Line<'_>, shared: &mut Shared<'_>) -> Parse<RingServer> {
    let missing = || "'server' expects <name> and <addr>[:<port>] as arguments.".to_owned();
    let name = line.need(1, missing)?;
    line.need(2, missing)?;
    if let Some(bad) = values::bad_name_character(line.bytes(1)) {
        let message = format!("character '{bad}' is not permitted in server name '{name}'.");
        return Err(line.fault(1, message));
    }
    if ring.servers.iter().any(|known| known.name == name) {
        let message = format!("server '{name}' has the same name as another server.");
        return Err(line.fault(1, message));
    }
    let title = format!("'server {}/{name}'", ring.name);
    let text = address::resolved(line, 2, shared, &title)?;
    let fault = |why: &str| line.fault(2, format!("{title} : {why}."));
    let address = match address::server(&text, Names::Resolve).map_err(|why| fault(&why))? {
        ServerAddress::Fixed(Addr::Inet(address)) => address,
        ServerAddress::Fixed(Addr::Unix(_)) => {
            return Err(fault(
                "UNIX sockets are not implemented here yet by this version",
            ));
        }
        ServerAddress::PortOffset { .. } => return Err(fault("missing port number")),
    };
    let mut server = RingServer {
        name: name.to_owned(),
        address,
        framing: Framing::LineFeed,
        tls: None,
    };
    let mut words = shared.tls.server.clone();
    let mut cursor = Cursor { line: *line, at: 3 };
    while !cursor.peek().is_empty() {
        match cursor.take() {
            "log-proto" => server.framing = log_server::framing(&mut cursor)?,
            word => match option_without_streams(word) {
                Some(keyword) => words.option(keyword, &mut cursor, shared)?,
                None => return Err(other_option(&cursor, word, &title)),
            },
        }
    }
    server.tls = words.finish_without_streams(&title, &line.span(1), shared);
    Ok(server)
}

/// The fault of an option that servers of rings do not take.
fn other_option(cursor: &Cursor<'_>, word: &str, title: &str) -> Box<super::line::Fault> {
    let is_known = keywords::find(keywords::server::KEYWORDS, word).is_some()
        || super::tls::find(word, Places::SERVER).is_some()
        || keywords::find_in(keywords::checks::OPTIONS, word, Places::SERVER).is_some();
    cursor.fault(if is_known {
        not_yet(&format!("server … {word} of a ring"))
    } else {
        format!("{title} : unknown keyword '{word}'.")
    })
}
