//! Sections `peers` and `localpeer` (manual §3.1, §11.2).

use ::tables::{Definition, KeyType};
use net::Addr;
use std::net::SocketAddr;

use super::address::{self, Names, Parsed, Ports};
use super::bind::{self, Template};
use super::global::GlobalBuild;
use super::line::{Cursor, Line, Parse, leading_integer};
use super::server::ServerParser;
use super::tls::bind::finish_proxy;
use super::tls::server::{ServerWords, option_without_streams};
use super::{Shared, did_you_mean, tables, unknown, values};
use crate::diagnostic::Severity;
use crate::keywords::{self, Keyword, Places, checks, other, server, tls};
use crate::model::{Bind, Config, Peer, Peers, ServerOptions, ServerTls};
use crate::tree::Section;

/// The variable with the name of this process among its peers.
pub const LOCAL_PEER: &str = "HAPROXY_LOCALPEER";

/// `localpeer`
pub fn local_peer(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    line.at_most(1)?;
    // The reader has set the variable.
    line.need(1, || {
        "'localpeer' expects a name as an argument.".to_owned()
    })?;
    if build.shared.settings.has_local_peer {
        let message =
            "'localpeer' ignored since it is already set by using the '-L' command line argument.";
        return Err(line.fault(0, message));
    }
    Ok(())
}

/// A section while its lines are read.
struct Reading<'a, 'd> {
    shared: &'a mut Shared<'d>,
    peers: Peers,
    /// The name of this process.
    local: String,
    /// The settings of `default-bind`.
    template: Template,
    has_bind_line: bool,
    has_peer_line: bool,
    /// The settings of `default-server`.
    defaults: PeerOptions,
}

/// The options of a `server` line.
#[derive(Clone)]
struct PeerOptions {
    shard: u32,
    tls: ServerWords,
    /// Options of balancing, checks and names, which have no effect on peers.
    unused: ServerOptions,
}

/// Options of servers that change the connections of a peer in HAProxy.
const OF_CONNECTIONS: [&str; 14] = [
    "cc",
    "namespace",
    "proto",
    "proxy-v2-options",
    "send-proxy",
    "send-proxy-v2",
    "send-proxy-v2-ssl",
    "send-proxy-v2-ssl-cn",
    "set-proxy-v2-tlv-fmt*",
    "socks4",
    "source",
    "tcp-md5sig",
    "tcp-ut",
    "tfo",
];

/// Options of the TLS of health checks.
const OF_CHECKS: [&str; 5] = [
    "check-alpn",
    "check-sni",
    "check-sni-auto",
    "check-ssl",
    "no-check-sni-auto",
];

/// Reads a section `peers`.
pub fn section(section: &Section, shared: &mut Shared<'_>) {
    let header = Line::new(&section.header);
    let result = header.need(1, || "missing name for peers section.".to_owned());
    let result = result.and_then(|name| header.at_most(1).map(|()| name.to_owned()));
    let name = match result {
        Ok(name) => name,
        Err(fault) => return shared.settle(Err(fault)),
    };
    if let Some(bad) = values::bad_name_character(header.bytes(1)) {
        let message = format!("character '{bad}' is not permitted in 'peers' name '{name}'.");
        return shared.settle(Err(header.fault(1, message)));
    }
    if let Some(known) = shared.peers.iter().find(|known| known.name == name) {
        let message = format!(
            "peers section '{name}' has the same name as another peers section declared at {}.",
            known.origin
        );
        return shared.settle(Err(header.fault(1, message)));
    }
    let local = shared.environment.get(LOCAL_PEER).unwrap_or_default();
    let local = String::from_utf8_lossy(local).into_owned();
    let template = Template::new(shared);
    let defaults = PeerOptions {
        shard: 0,
        tls: shared.tls.server.clone(),
        unused: ServerOptions::default(),
    };
    let mut reading = Reading {
        shared,
        peers: Peers {
            name,
            is_disabled: false,
            peers: Vec::new(),
            bind: None,
            shards: 0,
            origin: header.span(0).place(),
        },
        local,
        template,
        has_bind_line: false,
        has_peer_line: false,
        defaults,
    };
    for line in section.statements.iter().map(Line::new) {
        let result = reading.statement(&line);
        reading.shared.settle(result);
    }
    reading.finish(&header);
}

impl Reading<'_, '_> {
    fn statement(&mut self, line: &Line<'_>) -> Parse {
        match line.keyword() {
            "bind" => self.bind(line),
            "default-bind" => {
                self.template.options(line, 1, self.shared)?;
                Ok(())
            }
            "default-server" => {
                self.defaults = self.options(line, 1)?;
                Ok(())
            }
            "peer" | "server" => self.peer(line),
            "shards" => self.shards(line),
            "table" => tables::section_table(&self.peers, line, self.shared),
            "disabled" | "enabled" => {
                line.at_most(0)?;
                self.peers.is_disabled = line.keyword() == "disabled";
                Ok(())
            }
            word => match keywords::find(other::PEERS, word) {
                Some(keyword) => super::parser_of(keyword, line, 0, self.shared).map(drop),
                None => Err(unknown(
                    line,
                    "peers",
                    other::PEERS.iter().map(|row| row.name),
                )),
            },
        }
    }

    fn bind(&mut self, line: &Line<'_>) -> Parse {
        if self.has_peer_line {
            return Err(line.fault(0, "mixing \"peer\" and \"bind\" line is forbidden"));
        }
        if let Some(known) = &self.peers.bind {
            return Err(line.fault(0, second_listener(known)));
        }
        self.has_bind_line = true;
        let binds = bind::line_from(line, 1, &self.template, self.shared)?;
        self.listen(line, 1, binds)
    }

    /// Takes the listener of a line, whose address is word `at`.
    fn listen(&mut self, line: &Line<'_>, at: usize, mut binds: Vec<Bind>) -> Parse {
        let (Some(bind), None) = (binds.pop(), binds.pop()) else {
            let message = "Only one listener per \"peers\" section is authorized. Multiple listening addresses or port \
                           range are not supported.";
            return Err(line.fault(at, message));
        };
        let missing = [
            (bind.accept_proxy, "accept-proxy"),
            (bind.proto.is_some(), "proto"),
            (bind.maxconn.is_some(), "maxconn"),
        ];
        if let Some((_, word)) = missing.iter().find(|(is_set, _)| *is_set) {
            return Err(line.fault(0, super::not_yet(&format!("peers: bind … {word}"))));
        }
        self.peers.bind = Some(bind);
        Ok(())
    }

    fn peer(&mut self, line: &Line<'_>) -> Parse {
        let is_peer = line.keyword() == "peer";
        let missing = || {
            format!(
                "'{}' expects <name> and <addr>[:<port>] as arguments.",
                line.keyword()
            )
        };
        let name = line.need(1, missing)?;
        if let Some(bad) = values::bad_name_character(line.bytes(1)) {
            let message = format!("character '{bad}' is not permitted in server name '{name}'.");
            return Err(line.fault(1, message));
        }
        let is_local = name == self.local;
        if is_peer {
            if self.has_bind_line {
                return Err(line.fault(0, "mixing \"peer\" and \"bind\" line is forbidden"));
            }
            self.has_peer_line = true;
        }
        if let Some(known) = self.peers.peers.iter().find(|known| known.name == name) {
            let message = if is_local {
                format!(
                    "'{} {name}' : local peer name already referenced at {}. {name}",
                    line.keyword(),
                    known.origin
                )
            } else {
                format!(
                    "Peer section '{}' [{}]: another peer named '{name}' was already defined at line {}, please use \
                     distinct names.",
                    self.local,
                    line.span(0).place(),
                    known.origin
                )
            };
            return Err(line.fault(1, message));
        }
        let mut peer = Peer {
            name: name.to_owned(),
            is_local,
            address: None,
            shard: 0,
            tls: None,
            origin: line.span(0).place(),
        };
        let title = format!("'{} {name}'", line.keyword());
        if is_local && !is_peer {
            // Its address is that of the `bind` line.
            let options = self.options(line, 2)?;
            peer.tls = options.tls(&title, line, self.shared);
            self.peers.peers.push(peer);
            return Ok(());
        }
        if line.arg(2).is_empty() {
            let message =
                format!("{title} : ignoring invalid peer definition (missing address:port)");
            return Err(line.fault(2, message).as_warning());
        }
        peer.address = Some(self.address(line)?);
        let options = self.options(line, 3)?;
        if options.has_ignored() {
            let message =
                format!("{title} : init_addr, resolvers, check and agent are ignored for peers.");
            self.shared.settle(Err(line.fault(1, message).as_warning()));
        }
        peer.shard = options.shard;
        peer.tls = options.tls(&title, line, self.shared);
        if is_local {
            if let Some(known) = &self.peers.bind {
                return Err(line.fault(0, second_listener(known)));
            }
            let binds = bind::addresses(line, 2, &self.template, self.shared)?;
            self.listen(line, 2, binds)?;
        }
        self.peers.peers.push(peer);
        Ok(())
    }

    /// The address in word 2.
    fn address(&self, line: &Line<'_>) -> Parse<Addr> {
        let title = format!("'{} {}'", line.keyword(), line.arg(1));
        let text = &*address::resolved(line, 2, self.shared, &title)?;
        let fault = |why: String| line.fault(2, format!("{title} : {why}."));
        match address::parse(text, Names::Resolve).map_err(fault)? {
            Parsed::Inet(ip, Ports::Range(port, last)) if port == last => {
                Ok(Addr::Inet(SocketAddr::new(ip, port)))
            }
            Parsed::Unix(address) => Ok(address),
            Parsed::Inet(_, Ports::Range(..) | Ports::Offset(_)) => {
                let text = line.arg(2);
                Err(fault(format!("port range not allowed here in '{text}'")))
            }
            Parsed::Inet(_, Ports::None) | Parsed::Fd(_) => {
                let text = line.arg(2);
                Err(fault(format!("missing port specification in '{text}'")))
            }
        }
    }

    /// The options of a `server` line from word `at` on.
    fn options(&mut self, line: &Line<'_>, at: usize) -> Parse<PeerOptions> {
        let mut options = self.defaults.clone();
        let mut cursor = Cursor { line: *line, at };
        while !cursor.peek().is_empty() {
            let word = cursor.take();
            if word == "shard" {
                // As in HAProxy, other text is 0.
                options.shard = leading_integer(cursor.take()).parse().unwrap_or(0);
                continue;
            }
            if let Some(keyword) = option_without_streams(word) {
                options.tls.option(keyword, &mut cursor, self.shared)?;
                continue;
            }
            if let Some(keyword) = without_effect(word) {
                if let Some(parser) = self.shared.use_of(keyword, "server", &mut cursor)? {
                    parser(&mut options.unused, &mut cursor, self.shared)?;
                }
                continue;
            }
            if let Some(keyword) = super::tls::find(word, Places::SERVER)
                && OF_CHECKS.contains(&word)
            {
                let mut unused = ServerWords::default();
                unused.option(keyword, &mut cursor, self.shared)?;
                continue;
            }
            let names = || {
                let all = server::KEYWORDS.iter().map(|row| row.name);
                all.chain(tls::OPTIONS.iter().map(|row| row.name))
                    .chain(checks::OPTIONS.iter().map(|row| row.name))
            };
            if names().any(|known| known == word) {
                let words = format!("peers: {} … {word}", line.keyword());
                return Err(cursor.fault(super::not_yet(&words)));
            }
            let hint = did_you_mean(word, names());
            return Err(cursor.fault(format!(
                "'{} {}' : unknown keyword '{word}'{hint}.",
                line.keyword(),
                line.arg(1)
            )));
        }
        Ok(options)
    }

    fn shards(&mut self, line: &Line<'_>) -> Parse {
        let text = line.need(1, || "'shards' : missing value".to_owned())?;
        let Ok(count) = text.parse::<i32>() else {
            let message = format!("'shards' : expects an integer argument, found '{text}'");
            return Err(line.fault(1, message));
        };
        let Some(count) = u32::try_from(count).ok().filter(|count| *count > 0) else {
            let message = "'shards' : expects a strictly positive integer argument";
            return Err(line.fault(1, message));
        };
        self.peers.shards = count;
        line.at_most(1)
    }

    fn finish(mut self, header: &Line<'_>) {
        let name = self.peers.name.clone();
        let warn = |shared: &mut Shared<'_>, message: String| {
            shared.settle(Err(header.fault(0, message).as_warning()));
        };
        let has_local = self.peers.peers.iter().any(|peer| peer.is_local);
        if !self.peers.is_disabled && !has_local {
            let message = format!(
                "Removing incomplete section 'peers {name}' (no peer named '{}').",
                self.local
            );
            warn(self.shared, message);
        }
        let shards = self.peers.shards;
        for peer in self.peers.peers.iter_mut().filter(|peer| peer.shard > 0) {
            if peer.is_local {
                let peer = &peer.name;
                let message =
                    format!("Peers section '{name}': shard ignored for '{peer}' local peer");
                warn(self.shared, message);
            } else if peer.shard > shards {
                let message = format!(
                    "Peers section '{name}': shard ignored for '{}' local peer because {} shard value is greater than the \
                     section number of shards ({shards})",
                    peer.name, peer.shard
                );
                warn(self.shared, message);
            } else {
                continue;
            }
            peer.shard = 0;
        }
        self.finish_tls();
        self.shared.peers.push(self.peers);
    }

    /// Checks the certificates of the listener, and that the next process can connect to it.
    fn finish_tls(&mut self) {
        let section = &mut self.peers;
        let (Some(bind), false) = (&mut section.bind, section.is_disabled) else {
            return;
        };
        let title = format!("peers {}", section.name);
        finish_proxy(&title, std::slice::from_mut(bind), &[], self.shared);
        let Some(local) = section.peers.iter().find(|peer| peer.is_local) else {
            return;
        };
        let kinds = match (bind.tls.is_some(), local.tls.is_some()) {
            (true, false) => "a SSL listener and a non-SSL server",
            (false, true) => "a non-SSL listener and a SSL server",
            (true, true) | (false, false) => return,
        };
        let message = format!(
            "Peers section '{}': local peer have {kinds} configured at line {}.",
            section.name, local.origin
        );
        let diagnostics = &mut self.shared.diagnostics;
        diagnostics.add(Severity::Warning, None, message);
    }
}

/// An option of servers that has no effect on a peer.
fn without_effect(word: &str) -> Option<&'static Keyword<ServerParser>> {
    keywords::find(server::KEYWORDS, word)
        .filter(|keyword| !OF_CONNECTIONS.contains(&keyword.name))
        .or_else(|| keywords::find_in(checks::OPTIONS, word, Places::SERVER))
}

impl PeerOptions {
    /// Whether an option without effect promises something: a state of the peer, or the lookup of
    /// its name.
    fn has_ignored(&self) -> bool {
        let ServerOptions {
            checks,
            init_addr,
            resolve,
            ..
        } = &self.unused;
        checks.enabled || checks.agent.enabled || !init_addr.is_empty() || resolve.section.is_some()
    }

    /// TLS of the peer of a line; none for plain connections.
    fn tls(self, title: &str, line: &Line<'_>, shared: &mut Shared<'_>) -> Option<Box<ServerTls>> {
        self.tls
            .finish_without_streams(title, &line.span(1), shared)
    }
}

fn second_listener(known: &Bind) -> String {
    format!(
        "One listener per \"peers\" section is authorized but another is already configured at [{}].",
        known.origin
    )
}

/// Checks what tables name: sections `peers` and other tables.
pub fn check_tables(config: &Config, shared: &mut Shared<'_>) {
    for table in &config.tables {
        let of = table.definition();
        let is_of_section = of.wire_name.is_some();
        if let Some(section) = &of.peers
            && !config.peers.iter().any(|known| known.name == *section)
            && !is_of_section
        {
            let message = format!(
                "Proxy '{}': unable to find sync peers '{section}'.",
                of.name
            );
            shared.diagnostics.add(Severity::Alert, None, message);
        }
        if let Err(why) = check_write_to(of, config) {
            let message = if is_of_section {
                format!("failed to initialize '{}' stick-table: {why}.", of.name)
            } else {
                format!(
                    "Proxy '{}': failed to initialize stick-table: {why}.",
                    of.name
                )
            };
            shared.diagnostics.add(Severity::Alert, None, message);
        }
    }
}

fn check_write_to(of: &Definition, config: &Config) -> Result<(), String> {
    let Some(name) = &of.write_to else {
        return Ok(());
    };
    let mut tables = config.tables.iter().map(|table| table.definition());
    let Some(other) = tables.find(|other| other.name == *name) else {
        return Err(format!("write-to: table '{name}' doesn't exist"));
    };
    if other.write_to.is_some() {
        return Err(format!(
            "write-to: table '{name}' is already used as a source table"
        ));
    }
    if other.key != of.key {
        return Err(format!(
            "write-to: cannot mix table types ('{name}' has '{}' type and '{}' has '{}' type)",
            other.key.name(),
            of.name,
            of.key.name()
        ));
    }
    // HAProxy counts the NUL byte of texts.
    let size = |of: &Definition| of.key_bytes + u32::from(of.key == KeyType::String);
    if other.key_bytes != of.key_bytes {
        return Err(format!(
            "write-to: cannot mix key sizes ('{name}' has '{}' key_size and '{}' has '{}' key_size)",
            size(other),
            of.name,
            size(of)
        ));
    }
    Ok(())
}
