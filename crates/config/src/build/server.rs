//! `server` and `default-server` lines (manual §5.2).

use super::address::Names;
use super::line::{Cursor, Line, Parse};
use super::proxy::ProxyBuild;
use super::tls::{self, TlsParser, server::ServerWords};
use super::{Shared, address, did_you_mean, log_line, names, tcp, values};
use crate::keywords::{self, Places, checks, server::KEYWORDS, tls::OPTIONS};
use crate::model::{
    ForeignSource, HashKey, InitAddr, Mode, Proto, Proxy, Server, ServerAddress, ServerOptions,
    ServerTarget, Source, SourcePorts,
};
use net::Addr;
use sample::Place;
use std::borrow::Cow;
use std::sync::Arc;

/// Parses one option of a server line, after its name was taken.
pub type ServerParser = fn(&mut ServerOptions, &mut Cursor<'_>, &mut Shared<'_>) -> Parse;

/// The settings of a line, from which other lines can start.
#[derive(Clone, Debug, Default)]
pub struct Preset {
    options: ServerOptions,
    words: ServerWords,
}

/// The address of a server line.
struct Written<'l> {
    line: Line<'l>,
    /// The index of the word.
    at: usize,
    bytes: Cow<'l, [u8]>,
    title: String,
}

/// The result of a server's address.
struct Found {
    address: ServerAddress,
    unresolved: bool,
    /// The name, where there is one.
    fqdn: Option<String>,
}

/// Parses a `server` line.
pub fn server(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse<Server> {
    let missing = || "'server' expects <name> and <addr>[:<port>] as arguments.".to_owned();
    let name = line.need(1, missing)?;
    if let Some(bad) = values::bad_name_character(line.bytes(1)) {
        return Err(line.fault(
            1,
            format!("character '{bad}' is not permitted in server name '{name}'."),
        ));
    }
    line.need(2, missing)?;
    one_server(build, line, name, 2)
}

/// Parses a `server-template` line: several servers with different names.
pub fn server_template(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse<Vec<Server>> {
    let missing = || {
        "'server-template' expects <prefix> <nb | range> <addr>[:<port>] as arguments.".to_owned()
    };
    let prefix = line.need(1, missing)?;
    let numbers = line.need(2, missing)?;
    line.need(3, missing)?;
    if let Some(bad) = values::bad_name_character(line.bytes(1)) {
        let message =
            format!("character '{bad}' is not permitted in server-template prefix '{prefix}'.");
        return Err(line.fault(1, message));
    }
    if names::template_numbers(numbers).is_none() {
        let message = format!("Wrong server-template number or range arg '{numbers}'.");
        return Err(line.fault(2, message));
    }
    let mut names = names::template_names(prefix, numbers).into_iter();
    let mut servers = Vec::new();
    if let Some(name) = names.next() {
        servers.push(one_server(build, line, &name, 3)?);
    }
    for name in names {
        let first = &servers[0];
        let mut options = first.options.clone();
        // An id can be used only once.
        options.id = build.default_server.id;
        let other = Server {
            name,
            address: first.address.clone(),
            unresolved: first.unresolved,
            fqdn: first.fqdn.clone(),
            resolvers: first.resolvers,
            is_removed: false,
            is_named: false,
            takes_datagrams: first.takes_datagrams,
            is_quic: first.is_quic,
            options,
            words_hash: first.words_hash,
            origin: first.origin.clone(),
        };
        servers.push(other);
    }
    Ok(servers)
}

/// A server whose address is word `at` of its line.
fn one_server(
    build: &mut ProxyBuild<'_, '_>,
    line: &Line<'_>,
    name: &str,
    at: usize,
) -> Parse<Server> {
    let title = format!("'server {}/{name}'", build.proxy.name);
    let mut written = Written {
        line: *line,
        at,
        bytes: address::resolved(line, at, build.shared, &title)?,
        title,
    };
    let over_quic = address::without_quic(&written.bytes);
    let is_quic = over_quic.is_some();
    if let Some(bare) = over_quic {
        written.bytes = bare.into();
    }
    let (preset, after) = from(build, line, at + 1, unnamed(build))?;
    let preset = options(build, line, after, preset, &written.title);
    // A bad address is reported before a bad option, a name without an address after it.
    let methods = match &preset {
        Ok(preset) => init_methods(&preset.options),
        Err(_) => vec![InitAddr::None],
    };
    let found = find_address(build, &written, methods)?;
    let preset = preset?;
    let resolvers = find_resolvers(build, line, name, &preset.options)?;
    build.server_presets.insert(name.to_owned(), preset.clone());
    let mut options = preset.options;
    let (place, is_checked) = (line.span(1), options.checks.enabled);
    let mut words = preset.words;
    if is_quic {
        super::quic::check_server(build, &written.line.span(written.at), name, &found.address)?;
        words.begin_quic(&written.title, &written.line.span(written.at), build.shared);
    }
    options.tls_words = words.finish(&written.title, &place, is_checked, build.shared);
    options.tcp.multipath = address::is_multipath(&written.bytes);
    // As in HAProxy, a `minconn` that is not below `maxconn` replaces it.
    if options.minconn >= options.maxconn {
        options.maxconn = options.minconn;
        options.minconn = 0;
    }
    Ok(Server {
        name: name.to_owned(),
        address: found.address,
        unresolved: found.unresolved,
        fqdn: found.fqdn,
        resolvers,
        is_removed: false,
        is_named: false,
        takes_datagrams: build.proxy.mode == Mode::Log && log_line::is_datagram(&written.bytes),
        is_quic,
        options,
        words_hash: words_hash(build, line),
        origin: line.span(1).place(),
    })
}

/// See [`Server::words_hash`].
fn words_hash(build: &ProxyBuild<'_, '_>, line: &Line<'_>) -> u128 {
    let mut hash = xxhash_rust::xxh3::Xxh3::new();
    let mut add = |word: &[u8]| {
        hash.update(word);
        // No word has it.
        hash.update(b"\n");
    };
    for word in line.texts(0) {
        add(word.as_bytes());
    }
    let before = build.proxy.default_server_lines.iter();
    before.for_each(|line| line.iter().for_each(|word| add(word)));
    hash.digest128()
}

/// The methods of `init-addr` for a server. A name that is resolved while the process runs may be
/// unknown at the start.
fn init_methods(options: &ServerOptions) -> Vec<InitAddr> {
    match &*options.init_addr {
        [] if options.resolve.section.is_some() => {
            vec![InitAddr::Last, InitAddr::Libc, InitAddr::None]
        }
        [] => vec![InitAddr::Last, InitAddr::Libc],
        methods => methods.to_vec(),
    }
}

/// The index of the section `resolvers` that a server names.
fn find_resolvers(
    build: &ProxyBuild<'_, '_>,
    line: &Line<'_>,
    server: &str,
    options: &ServerOptions,
) -> Parse<Option<usize>> {
    let Some(section) = &options.resolve.section else {
        return Ok(None);
    };
    let mut known = build.shared.resolvers.iter();
    match known.position(|known| known.name == *section) {
        Some(index) => Ok(Some(index)),
        // The lines of an added server are parsed alone, without the sections.
        None if build.shared.settings.is_added_server => Ok(None),
        None => {
            let (kind, proxy) = (build.kind, &build.proxy.name);
            let message = format!(
                "{kind} '{proxy}', server '{server}': unable to find required resolvers '{section}'"
            );
            Err(line.fault(0, message))
        }
    }
}

/// Determines the address of a server. A name is resolved with these methods of `init-addr`.
fn find_address(
    build: &mut ProxyBuild<'_, '_>,
    written: &Written<'_>,
    mut methods: Vec<InitAddr>,
) -> Parse<Found> {
    let mode = build.proxy.mode;
    let read = |names| match mode {
        Mode::Log => log_line::server(&written.bytes, names),
        _ => address::server(&written.bytes, names),
    };
    let fault = |message: &str| {
        let title = &written.title;
        written
            .line
            .fault(written.at, format!("{title} : {message}."))
    };
    // Without a name, there is nothing to resolve.
    let unnamed = read(Names::Ignore).map_err(|message| fault(&message))?;
    if let Ok(address) = read(Names::Refuse) {
        return Ok(Found {
            address,
            unresolved: false,
            fqdn: None,
        });
    }
    let fqdn = address::host_name(&written.bytes);
    let is_service = fqdn.as_deref().is_some_and(|name| name.starts_with('_'));
    let found = |address| Found {
        address,
        unresolved: false,
        fqdn: fqdn.clone(),
    };
    if build.shared.settings.ignores_resolution_failures {
        methods.push(InitAddr::None);
    }
    let mut failed: Option<String> = None;
    let mut tell = |failed: &Option<String>, what: &str| {
        if let Some(failed) = failed {
            let message = format!("{} : {failed}, {what}.", written.title);
            let span = written.line.span(written.at);
            build.shared.diagnostics.notice(&span, message);
        }
    };
    for method in methods {
        match method {
            // The state of an earlier process is applied later, and the system's resolver has no
            // records of services.
            InitAddr::Last => {}
            InitAddr::Libc if is_service => {}
            InitAddr::Libc => match read(Names::Resolve) {
                Ok(address) => return Ok(found(address)),
                Err(message) => failed = Some(message),
            },
            InitAddr::Ip(ip) => {
                tell(&failed, "falling back to configured address");
                let address = read(Names::Replace(ip)).map_err(|message| fault(&message))?;
                return Ok(found(address));
            }
            InitAddr::None => {
                tell(&failed, "disabling server");
                return Ok(Found {
                    unresolved: true,
                    ..found(unnamed)
                });
            }
        }
    }
    let why = failed.unwrap_or_else(|| "no method found to resolve address".to_owned());
    Err(fault(&why))
}

/// The initial TLS words of a line: those of `default-server`, or those of `global` before the
/// line.
fn tls_words(build: &ProxyBuild<'_, '_>) -> ServerWords {
    let default = build.default_tls.clone();
    default.unwrap_or_else(|| build.shared.tls.server.clone())
}

/// `default-server` without a name.
fn unnamed(build: &ProxyBuild<'_, '_>) -> Preset {
    Preset {
        options: build.default_server.clone(),
        words: tls_words(build),
    }
}

/// The defaults, without any `default-server`.
fn unset(build: &ProxyBuild<'_, '_>) -> Preset {
    Preset {
        options: ServerOptions::default(),
        words: build.shared.tls.server.clone(),
    }
}

/// `from <origin>`, if it is at word `at`: the settings from which the line starts, and the index
/// where it continues.
fn from(
    build: &ProxyBuild<'_, '_>,
    line: &Line<'_>,
    at: usize,
    otherwise: Preset,
) -> Parse<(Preset, usize)> {
    if line.arg(at) != "from" {
        return Ok((otherwise, at));
    }
    let origin = line.need(at + 1, || "from: missing value.".to_owned())?;
    let own = |proxy: &str| proxy.is_empty() || build.proxy.name == *proxy;
    let elsewhere = || super::not_yet("from another backend");
    let preset = match origin.split_once(':') {
        None if origin == "none" => unset(build),
        Some(("be", proxy)) if own(proxy) => unnamed(build),
        Some(("be", proxy)) if build.shared.names.backend(proxy).is_none() => {
            let message = format!("from: unknown backend instance '{proxy}'.");
            return Err(line.fault(at + 1, message));
        }
        Some(("be", _)) => return Err(line.fault(at + 1, elsewhere())),
        Some(("srv", server)) => {
            let name = match server.split_once('/') {
                Some((proxy, name)) if own(proxy) => name,
                Some(_) => return Err(line.fault(at + 1, elsewhere())),
                None => server,
            };
            let known = build.named_defaults.get(name);
            let Some(known) = known.or_else(|| build.server_presets.get(name)) else {
                let message = format!(
                    "from: unable to find server '{name}' in proxy '{}'.",
                    build.proxy.name
                );
                return Err(line.fault(at + 1, message));
            };
            let mut known = known.clone();
            known.options.id = 0;
            known
        }
        _ => {
            let message = format!("invalid '{origin}' value for 'from' keyword.");
            return Err(line.fault(at + 1, message));
        }
    };
    match line.arg(at + 2) {
        "from" => Err(line.fault(at + 2, "'from' keyword can only be specified once.")),
        _ => Ok((preset, at + 2)),
    }
}

/// Parses a `default-server` line.
pub fn default_server(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let (name, at) = match line.arg(1) {
        "name" => {
            let missing = || "default-server name: missing value.".to_owned();
            (Some(line.need(2, missing)?.to_owned()), 3)
        }
        _ => (None, 1),
    };
    if let Some(name) = &name
        && let Some(server) = build
            .proxy
            .servers
            .iter()
            .find(|server| server.name == *name)
    {
        let message = format!(
            "default-server name '{name}' conflicts with server defined at {}.",
            server.origin
        );
        return Err(line.fault(2, message));
    }
    let so_far = match &name {
        None => unnamed(build),
        Some(name) => {
            let known = build.named_defaults.get(name).cloned();
            known.unwrap_or_else(|| unset(build))
        }
    };
    let (start, at) = from(build, line, at, so_far)?;
    let id = start.options.id;
    let preset = self::options(build, line, at, start, "'default-server'")?;
    if preset.options.id != id {
        return Err(line.fault(
            0,
            "'default-server' : 'id' option is not accepted in default-server sections.",
        ));
    }
    match name {
        None => {
            build.default_server = preset.options;
            build.default_tls = Some(preset.words);
        }
        Some(name) => {
            build.named_defaults.insert(name, preset);
        }
    }
    Ok(())
}

/// Marks the servers that other lines name: expressions (given here), `use-server` and `track`.
pub fn mark_named(proxies: &mut [Proxy], by_expressions: &[(u32, u32)]) {
    let by_expressions = by_expressions.iter();
    let mut named: Vec<(usize, usize)> = by_expressions
        .map(|(proxy, server)| (*proxy as usize, *server as usize))
        .collect();
    for (place, proxy) in proxies.iter().enumerate() {
        let targets = proxy.use_server.iter().map(|rule| &rule.target);
        named.extend(targets.filter_map(|target| match target {
            ServerTarget::Static(server) => Some((place, *server)),
            ServerTarget::Dynamic(_) => None,
        }));
        named.extend(
            proxy
                .servers
                .iter()
                .filter_map(|server| server.checks.tracked),
        );
    }
    for (proxy, server) in named {
        let server = proxies
            .get_mut(proxy)
            .and_then(|proxy| proxy.servers.get_mut(server));
        // Servers are not shared before the proxies are complete, so `get_mut` succeeds.
        if let Some(server) = server.and_then(Arc::get_mut) {
            server.is_named = true;
        }
    }
}

fn options(
    build: &mut ProxyBuild<'_, '_>,
    line: &Line<'_>,
    at: usize,
    start: Preset,
    title: &str,
) -> Parse<Preset> {
    let Preset {
        mut options,
        mut words,
    } = start;
    let mut cursor = Cursor { line: *line, at };
    while !cursor.peek().is_empty() {
        let word = cursor.take();
        let shared = &mut *build.shared;
        let known = keywords::find(KEYWORDS, word);
        let of_tls = tls::find(word, Places::SERVER);
        let of_checks = keywords::find_in(checks::OPTIONS, word, Places::SERVER);
        // As in HAProxy, a bad option ends the line, because the start of the next option is
        // unknown.
        match (known, of_tls, of_checks) {
            (Some(keyword), _, _) => {
                if let Some(parser) = shared.use_of(keyword, "server", &mut cursor)? {
                    parser(&mut options, &mut cursor, shared)?;
                }
            }
            (None, Some(keyword), _) => match shared.use_of(keyword, "server", &mut cursor)? {
                Some(TlsParser::Shared(parser)) => {
                    parser(&mut words.words, &mut cursor, shared)?;
                }
                Some(TlsParser::Server(parser)) => parser(&mut words, &mut cursor, shared)?,
                Some(TlsParser::Bind(_) | TlsParser::Nothing) | None => {}
            },
            (None, None, Some(keyword)) => {
                if let Some(parser) = shared.use_of(keyword, "server", &mut cursor)? {
                    parser(&mut options, &mut cursor, shared)?;
                }
            }
            (None, None, None) => {
                let names = KEYWORDS.iter().map(|k| k.name);
                let of_tls = OPTIONS
                    .iter()
                    .filter(|row| row.places.intersects(Places::SERVER));
                let others = of_tls.map(|row| row.name);
                let others = others.chain(checks::OPTIONS.iter().map(|row| row.name));
                let hint = did_you_mean(word, names.chain(others));
                let end = match line.keyword() {
                    "default-server" => ". Hint: no address was expected for this server.",
                    _ => ".",
                };
                return Err(cursor.fault(format!("{title} : unknown keyword '{word}'{hint}{end}")));
            }
        }
    }
    Ok(Preset { options, words })
}

/// Options without arguments.
macro_rules! switches {
    ($($name:ident $($field:ident).+ = $value:literal;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`, with `-` for `_`.")]
        pub fn $name(options: &mut ServerOptions, _cursor: &mut Cursor<'_>, _shared: &mut Shared<'_>) -> Parse {
            options.$($field).+ = $value;
            Ok(())
        }
    )*};
}
switches! {
    backup backup = true;
    no_backup backup = false;
    non_stick non_stick = true;
    stick non_stick = false;
    disabled disabled = true;
    enabled disabled = false;
    send_proxy send_proxy.v1 = true;
    no_send_proxy send_proxy.v1 = false;
    send_proxy_v2 send_proxy.v2 = true;
    no_send_proxy_v2 send_proxy.v2 = false;
    tfo tfo = true;
    strict_maxconn strict_maxconn = true;
    no_tfo tfo = false;
}

/// Options with one number.
macro_rules! numbers {
    ($($name:ident $range:expr;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`, with `-` for `_`.")]
        pub fn $name(options: &mut ServerOptions, cursor: &mut Cursor<'_>, _shared: &mut Shared<'_>) -> Parse {
            options.$name = cursor.number($range)?;
            Ok(())
        }
    )*};
}
numbers! {
    id 1..=i32::MAX as u32;
    maxconn 0..=i32::MAX as u32;
    minconn 0..=i32::MAX as u32;
    maxqueue 0..=i32::MAX as u32;
    weight 0..=256;
}

/// A number; -1 means unlimited.
fn or_unlimited(cursor: &mut Cursor<'_>) -> Parse<Option<u32>> {
    let number: i32 = cursor.number(-1..=i32::MAX)?;
    Ok(u32::try_from(number).ok())
}

/// `cookie`
pub fn cookie(
    options: &mut ServerOptions,
    cursor: &mut Cursor<'_>,
    _shared: &mut Shared<'_>,
) -> Parse {
    options.cookie = Some(cursor.octets("<value>")?);
    Ok(())
}

/// `redir`
pub fn redir(
    options: &mut ServerOptions,
    cursor: &mut Cursor<'_>,
    _shared: &mut Shared<'_>,
) -> Parse {
    options.redir = Some(cursor.octets("<prefix>")?);
    Ok(())
}

/// `max-reuse`
pub fn max_reuse(
    options: &mut ServerOptions,
    cursor: &mut Cursor<'_>,
    _shared: &mut Shared<'_>,
) -> Parse {
    options.max_reuse = or_unlimited(cursor)?;
    Ok(())
}

/// `pool-max-conn`
pub fn pool_max_conn(
    options: &mut ServerOptions,
    cursor: &mut Cursor<'_>,
    _shared: &mut Shared<'_>,
) -> Parse {
    options.pool_max_conn = or_unlimited(cursor)?;
    Ok(())
}

/// `pool-purge-delay`
pub fn pool_purge_delay(
    options: &mut ServerOptions,
    cursor: &mut Cursor<'_>,
    shared: &mut Shared<'_>,
) -> Parse {
    cursor.value("a delay")?;
    options.pool_purge_delay = shared.time(&cursor.line, cursor.at - 1, "pool-purge-delay")?;
    Ok(())
}

/// `idle-ping`
pub fn idle_ping(
    options: &mut ServerOptions,
    cursor: &mut Cursor<'_>,
    shared: &mut Shared<'_>,
) -> Parse {
    cursor.value("a time")?;
    let time = shared.time(&cursor.line, cursor.at - 1, "idle-ping")?;
    options.idle_ping = Some(time).filter(|time| !time.is_zero());
    Ok(())
}

/// `cc`
pub fn cc(options: &mut ServerOptions, cursor: &mut Cursor<'_>, _shared: &mut Shared<'_>) -> Parse {
    options.tcp.congestion = Some(tcp::congestion(cursor)?);
    Ok(())
}

/// `namespace`
pub fn namespace(
    options: &mut ServerOptions,
    cursor: &mut Cursor<'_>,
    _shared: &mut Shared<'_>,
) -> Parse {
    if cursor.peek() == "*" {
        return Err(cursor.fault(super::not_yet("namespace *")));
    }
    options.tcp.namespace = Some(tcp::namespace(cursor)?);
    Ok(())
}

/// `socks4 <addr>:<port>`
pub fn socks4(
    options: &mut ServerOptions,
    cursor: &mut Cursor<'_>,
    shared: &mut Shared<'_>,
) -> Parse {
    let text = cursor.value("<addr>:<port>")?;
    let title = format!("'socks4 {text}'");
    let written = address::resolved(&cursor.line, cursor.at - 1, shared, &title)?;
    let fault = |message: String| cursor.fault(format!("{title} : {message}."));
    match address::single(&written).map_err(fault)? {
        (addr, None) if addr.port() > 0 => options.socks4 = Some(addr),
        _ => return Err(fault(format!("missing port number: '{text}'"))),
    }
    Ok(())
}

/// `tcp-md5sig`
pub fn tcp_md5sig(
    options: &mut ServerOptions,
    cursor: &mut Cursor<'_>,
    _shared: &mut Shared<'_>,
) -> Parse {
    options.tcp.md5_key = Some(tcp::md5_key(cursor)?);
    Ok(())
}

/// `tcp-ut`
pub fn tcp_ut(
    options: &mut ServerOptions,
    cursor: &mut Cursor<'_>,
    _shared: &mut Shared<'_>,
) -> Parse {
    options.tcp.user_timeout_ms = tcp::user_timeout(cursor)?;
    Ok(())
}

/// `proto`
pub fn proto(
    options: &mut ServerOptions,
    cursor: &mut Cursor<'_>,
    _shared: &mut Shared<'_>,
) -> Parse {
    options.proto = values::proto(cursor)?;
    options.quic.is_required = options.proto.is_none();
    Ok(())
}

/// `ws`
pub fn ws(options: &mut ServerOptions, cursor: &mut Cursor<'_>, _shared: &mut Shared<'_>) -> Parse {
    options.ws = match cursor.value("'auto', 'h1' or 'h2'")? {
        "auto" => None,
        "h1" => Some(Proto::H1),
        "h2" => Some(Proto::H2),
        _ => return Err(cursor.fault("'ws' has to be 'auto', 'h1' or 'h2'.")),
    };
    Ok(())
}

/// `init-addr`
pub fn init_addr(
    options: &mut ServerOptions,
    cursor: &mut Cursor<'_>,
    _shared: &mut Shared<'_>,
) -> Parse {
    /// HAProxy's limit: as many as fit in the bits of its field.
    const METHODS_MAX: usize = 10;
    let mut methods = Vec::new();
    for word in cursor.value("a list of methods")?.split(',') {
        let method = match word {
            "" => continue,
            "last" => InitAddr::Last,
            "libc" => InitAddr::Libc,
            "none" => InitAddr::None,
            _ => match word.parse() {
                Ok(_) if methods.iter().any(|known| matches!(known, InitAddr::Ip(_))) => {
                    return Err(cursor.fault(format!(
                        "'init-addr' : initial address already specified, cannot add '{word}'."
                    )));
                }
                Ok(ip) => InitAddr::Ip(ip),
                Err(_) => {
                    return Err(cursor.fault(format!(
                        "'init-addr' : unknown init-addr method '{word}', supported methods are 'libc', 'last', 'none'."
                    )));
                }
            },
        };
        if methods.len() == METHODS_MAX {
            return Err(cursor.fault(format!(
                "'init-addr' : too many init-addr methods when trying to add '{word}'"
            )));
        }
        methods.push(method);
    }
    options.init_addr = methods;
    Ok(())
}

/// `hash-key`
pub fn hash_key(
    options: &mut ServerOptions,
    cursor: &mut Cursor<'_>,
    _shared: &mut Shared<'_>,
) -> Parse {
    options.hash_key = match cursor.value("a kind of key")? {
        "id" => HashKey::Id,
        "id32" => HashKey::Id32,
        "guid" => HashKey::Guid,
        "addr" => HashKey::Addr,
        "addr-port" => HashKey::AddrPort,
        _ => {
            return Err(
                cursor.fault("'hash-key' has to be 'id', 'id32', 'guid', 'addr', or 'addr-port'.")
            );
        }
    };
    Ok(())
}

/// `guid`
pub fn guid(
    options: &mut ServerOptions,
    cursor: &mut Cursor<'_>,
    _shared: &mut Shared<'_>,
) -> Parse {
    values::guid(cursor)?;
    options.guid = Some(cursor.line.octets(cursor.at - 1));
    Ok(())
}

/// `from` and `name` after other options.
pub fn misplaced(
    _options: &mut ServerOptions,
    cursor: &mut Cursor<'_>,
    _shared: &mut Shared<'_>,
) -> Parse {
    let word = cursor.last();
    Err(cursor.fault(format!("'{word}' has to stand before the other options.")))
}

/// `pool-conn-name`
pub fn pool_conn_name(
    options: &mut ServerOptions,
    cursor: &mut Cursor<'_>,
    shared: &mut Shared<'_>,
) -> Parse {
    options.pool_conn_name = Some(shared.next_expr(cursor, Place::BE_SERVER_SOURCE)?);
    Ok(())
}

/// `proxy-v2-options`
pub fn proxy_v2_options(
    options: &mut ServerOptions,
    cursor: &mut Cursor<'_>,
    _shared: &mut Shared<'_>,
) -> Parse {
    for option in cursor.value("a list of options")?.split(',') {
        match option {
            "unique-id" => options.send_proxy.unique_id = true,
            "crc32c" => options.send_proxy.crc32c = true,
            "authority" => options.send_proxy.authority = true,
            "ssl" => {}
            "cert-cn" => options.send_proxy.cert_cn = true,
            "cert-key" => options.send_proxy.cert_key = true,
            "cert-sig" => options.send_proxy.cert_sig = true,
            "ssl-cipher" => options.send_proxy.ssl_cipher = true,
            _ => {
                return Err(cursor.fault(format!(
                    "'proxy-v2-options' : parsing '{option}' failed, unknown option."
                )));
            }
        }
        let is_of_tls = !matches!(option, "unique-id" | "crc32c" | "authority");
        options.send_proxy.ssl |= is_of_tls;
    }
    Ok(())
}

/// `send-proxy-v2-ssl`, `send-proxy-v2-ssl-cn`
pub fn send_proxy_v2_ssl(
    options: &mut ServerOptions,
    cursor: &mut Cursor<'_>,
    _shared: &mut Shared<'_>,
) -> Parse {
    let send = &mut options.send_proxy;
    (send.v2, send.ssl) = (true, true);
    send.cert_cn |= cursor.last() == "send-proxy-v2-ssl-cn";
    Ok(())
}

/// `no-send-proxy-v2-ssl`, `no-send-proxy-v2-ssl-cn`
pub fn no_send_proxy_v2_ssl(
    options: &mut ServerOptions,
    cursor: &mut Cursor<'_>,
    _shared: &mut Shared<'_>,
) -> Parse {
    let send = &mut options.send_proxy;
    (send.v2, send.ssl) = (false, false);
    send.cert_cn &= cursor.last() != "no-send-proxy-v2-ssl-cn";
    Ok(())
}

/// `set-proxy-v2-tlv-fmt(<id>) <format>`
pub fn set_proxy_v2_tlv_fmt(
    options: &mut ServerOptions,
    cursor: &mut Cursor<'_>,
    shared: &mut Shared<'_>,
) -> Parse {
    let word = cursor.last();
    let inside = word
        .split_once('(')
        .and_then(|(_, rest)| rest.strip_suffix(')'));
    let kind =
        inside.and_then(
            |text| match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
                Some(hex) => u8::from_str_radix(hex, 16).ok(),
                None => text.parse().ok(),
            },
        );
    let Some(kind) = kind else {
        return Err(cursor.fault(format!(
            "'{word}' : expects a TLV type from 0 to 255 between parentheses."
        )));
    };
    // At the end of a line, the format is empty, as in HAProxy.
    cursor.take();
    let place = Place::BE_HTTP_REQUEST | Place::BE_TCP_REQUEST;
    let format = shared.plain_format(&cursor.line, cursor.at - 1, place)?;
    options.send_proxy.tlvs.push((kind, format));
    Ok(())
}

/// `source`
pub fn source(
    options: &mut ServerOptions,
    cursor: &mut Cursor<'_>,
    shared: &mut Shared<'_>,
) -> Parse {
    options.source = source_words(cursor, shared)?;
    Ok(())
}

/// The words after `source`: `<addr>[:<port>[-<port>]] [usesrc <which>] [interface <name>]`, the
/// last two in any order.
pub fn source_words(cursor: &mut Cursor<'_>, shared: &mut Shared<'_>) -> Parse<Option<Source>> {
    let text =
        cursor.value("<addr>[:<port>], and optionally 'usesrc' <addr>, and 'interface' <name>")?;
    let (addr, ports) = source_address(cursor, &format!("'source {text}'"), shared)?;
    let mut source = Source {
        addr,
        ports: ports.map(|(first, last)| Arc::new(SourcePorts::new(first, last))),
        foreign: None,
        interface: None,
    };
    loop {
        match cursor.peek() {
            "interface" => {
                cursor.take();
                source.interface = Some(cursor.value("an interface name")?.to_owned());
            }
            "usesrc" => {
                cursor.take();
                source.foreign = Some(foreign_source(cursor, shared)?);
            }
            _ => return Ok(Some(source)),
        }
    }
}

/// The address in the word that was just taken, and its port range.
fn source_address(
    cursor: &Cursor<'_>,
    title: &str,
    shared: &Shared<'_>,
) -> Parse<(Addr, Option<(u16, u16)>)> {
    let written = address::resolved(&cursor.line, cursor.at - 1, shared, title)?;
    address::single(&written).map_err(|message| cursor.fault(format!("{title} : {message}.")))
}

/// The words after `usesrc`.
fn foreign_source(cursor: &mut Cursor<'_>, shared: &mut Shared<'_>) -> Parse<ForeignSource> {
    if cursor.peek().starts_with("hdr_ip(") {
        let expr = shared.next_expr(cursor, Place::BE_SERVER_SOURCE)?;
        return Ok(ForeignSource::Header(expr));
    }
    Ok(
        match cursor.value("<addr>[:<port>], 'client', 'clientip', or 'hdr_ip(name,#)'")? {
            "client" => ForeignSource::Client,
            "clientip" => ForeignSource::ClientIp,
            text => {
                let title = format!("'usesrc {text}'");
                match source_address(cursor, &title, shared)? {
                    (addr, None) => ForeignSource::Addr(addr),
                    (_, Some(_)) => {
                        let message = format!("{title} : port range not allowed here.");
                        return Err(cursor.fault(message));
                    }
                }
            }
        },
    )
}
