//! `server` and `default-server` lines (manual §5.2).

use super::address::Names;
use super::line::{Cursor, Line, Parse};
use super::proxy::ProxyBuild;
use super::tls::{self, TlsParser, server::ServerWords};
use super::{Shared, address, did_you_mean, log_line, tcp, values};
use crate::keywords::{self, Places, checks, server::KEYWORDS, tls::OPTIONS};
use crate::model::{Mode, Proto, Server, ServerOptions, Source};
use sample::Place;

/// Parses one option of a server line; its name was just taken.
pub type ServerParser = fn(&mut ServerOptions, &mut Cursor<'_>, &mut Shared<'_>) -> Parse;

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
    let title = format!("'server {}/{name}'", build.proxy.name);
    let written = &*address::resolved(line, 2, build.shared, &title)?;
    let mode = build.proxy.mode;
    let read = |names| match mode {
        Mode::Log => log_line::server(written, names),
        _ => address::server(written, names),
    };
    let mut address = read(Names::Resolve);
    let mut words = tls_words(build);
    let options = options(
        build,
        line,
        3,
        (build.default_server.clone(), &mut words),
        &title,
    );
    let mut ignored = None;
    if build.shared.settings.ignores_resolution_failures && address.is_err() {
        ignored = address.as_ref().err().cloned();
        address = read(Names::Ignore);
    }
    let address = address.map_err(|message| line.fault(2, format!("{title} : {message}.")))?;
    if let Some(message) = &ignored {
        let message = format!("{title} : {message}, disabling server.");
        build.shared.diagnostics.notice(&line.span(2), message);
    }
    let mut options = options?;
    options.disabled |= ignored.is_some();
    let (place, is_checked) = (line.span(1), options.checks.enabled);
    options.tls_words = words.finish(&title, &place, is_checked, build.shared);
    options.tcp.multipath = address::is_multipath(written);
    // As HAProxy: a lower bound that is not below the upper one replaces it.
    if options.minconn >= options.maxconn {
        options.maxconn = options.minconn;
        options.minconn = 0;
    }
    Ok(Server {
        name: name.to_owned(),
        address,
        takes_datagrams: build.proxy.mode == Mode::Log && log_line::is_datagram(written),
        options,
        origin: line.span(1).place(),
    })
}

/// What the TLS words of a line start from: those of `default-server`, or those of `global` before the line.
fn tls_words(build: &ProxyBuild<'_, '_>) -> ServerWords {
    let default = build.default_tls.clone();
    default.unwrap_or_else(|| build.shared.tls.server.clone())
}

/// Parses a `default-server` line.
pub fn default_server(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let options = build.default_server.clone();
    let mut words = tls_words(build);
    let options = self::options(build, line, 1, (options, &mut words), "'default-server'")?;
    if options.id != build.default_server.id {
        return Err(line.fault(
            0,
            "'default-server' : 'id' option is not accepted in default-server sections.",
        ));
    }
    build.default_server = options;
    build.default_tls = Some(words);
    Ok(())
}

fn options(
    build: &mut ProxyBuild<'_, '_>,
    line: &Line<'_>,
    at: usize,
    (mut options, words): (ServerOptions, &mut ServerWords),
    title: &str,
) -> Parse<ServerOptions> {
    let mut cursor = Cursor { line: *line, at };
    while !cursor.peek().is_empty() {
        let word = cursor.take();
        let shared = &mut *build.shared;
        let known = keywords::find(KEYWORDS, word);
        let of_tls = tls::find(word, Places::SERVER);
        let of_checks = keywords::find_in(checks::OPTIONS, word, Places::SERVER);
        // As in HAProxy, a bad option ends the line: nobody knows where the next one begins.
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
                Some(TlsParser::Server(parser)) => parser(words, &mut cursor, shared)?,
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
    Ok(options)
}

/// `no-check` and others that cancel what is never set.
pub fn already_off(
    _options: &mut ServerOptions,
    _cursor: &mut Cursor<'_>,
    _shared: &mut Shared<'_>,
) -> Parse {
    Ok(())
}

/// Options that are a word alone.
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
    disabled disabled = true;
    enabled disabled = false;
    send_proxy send_proxy.v1 = true;
    no_send_proxy send_proxy.v1 = false;
    send_proxy_v2 send_proxy.v2 = true;
    no_send_proxy_v2 send_proxy.v2 = false;
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

/// A number, where -1 is unlimited.
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

/// `guid`
pub fn guid(
    options: &mut ServerOptions,
    cursor: &mut Cursor<'_>,
    _shared: &mut Shared<'_>,
) -> Parse {
    options.guid = Some(values::guid(cursor)?);
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
    options.proto = Some(values::proto(cursor)?);
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
            "ssl" | "cert-cn" | "cert-key" | "cert-sig" | "ssl-cipher" => {
                return Err(cursor.fault(super::not_yet(&format!("proxy-v2-options {option}"))));
            }
            _ => {
                return Err(cursor.fault(format!(
                    "'proxy-v2-options' : parsing '{option}' failed, unknown option."
                )));
            }
        }
    }
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
    // At the end of a line the format is empty, as in HAProxy.
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

/// What follows `source`: `<addr>[:<port>[-<port>]] [interface <name>]`.
pub fn source_words(cursor: &mut Cursor<'_>, shared: &Shared<'_>) -> Parse<Option<Source>> {
    let text =
        cursor.value("<addr>[:<port>], and optionally 'usesrc' <addr>, and 'interface' <name>")?;
    let title = format!("'source {text}'");
    let written = address::resolved(&cursor.line, cursor.at - 1, shared, &title)?;
    let (addr, port_range) = address::single(&written)
        .map_err(|message| cursor.fault(format!("{title} : {message}.")))?;
    if port_range.is_some() {
        return Err(cursor.fault(super::not_yet("source … <port>-<port>")));
    }
    let mut source = Source {
        addr,
        interface: None,
    };
    loop {
        match cursor.peek() {
            "interface" => {
                cursor.take();
                source.interface = Some(cursor.value("an interface name")?.to_owned());
            }
            "usesrc" => return Err(cursor.line.fault(cursor.at, super::not_yet("usesrc"))),
            _ => return Ok(Some(source)),
        }
    }
}
