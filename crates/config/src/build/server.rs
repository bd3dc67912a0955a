//! `server` and `default-server` lines (manual §5.2).

use super::line::{Cursor, Line, Parse};
use super::proxy::ProxyBuild;
use super::{address, did_you_mean, log_line, option_without_parser, values};
use crate::keywords::{self, Places, checks, server::KEYWORDS, tls};
use crate::model::{Mode, SendProxy, Server, Source};
use crate::tree::{Prefix, Statement};
use sample::Place;
use std::time::Duration;
use syntax::octets::Octets;

/// Parses one option of a server line; its name was just taken.
pub type ServerParser = fn(&mut Draft, &mut Cursor<'_>) -> Parse;

/// Options of a server before it has a name; what `default-server` keeps.
#[derive(Clone, Debug)]
pub struct Draft {
    id: u32,
    weight: u32,
    maxconn: u32,
    minconn: u32,
    maxqueue: u32,
    cookie: Option<Octets>,
    redir: Option<Octets>,
    backup: bool,
    disabled: bool,
    v1: bool,
    v2: bool,
    v2_options: V2Options,
    /// Type, and the statement and word of the format.
    tlvs: Vec<(u8, Statement, usize)>,
    source: Option<Source>,
    pool_max_conn: Option<u32>,
    pool_purge_delay: Duration,
    max_reuse: Option<u32>,
}

#[derive(Clone, Copy, Debug, Default)]
struct V2Options {
    unique_id: bool,
    crc32c: bool,
    authority: bool,
}

impl Default for Draft {
    fn default() -> Self {
        Draft {
            id: 0,
            weight: 1,
            maxconn: 0,
            minconn: 0,
            maxqueue: 0,
            cookie: None,
            redir: None,
            backup: false,
            disabled: false,
            v1: false,
            v2: false,
            v2_options: V2Options::default(),
            tlvs: Vec::new(),
            source: None,
            pool_max_conn: None,
            pool_purge_delay: Duration::from_secs(5),
            max_reuse: None,
        }
    }
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
    let written = line.bytes(2);
    let title = format!("'server {}/{name}'", build.proxy.name);
    let address = match build.proxy.mode {
        Mode::Log => log_line::server(written),
        _ => address::server(written),
    };
    let draft = options(build, line, 3, build.default_server.clone(), &title);
    let address = address.map_err(|message| line.fault(2, format!("{title} : {message}.")))?;
    let draft = draft?;
    let send_proxy = send_proxy_of(build, &draft)?;
    Ok(Server {
        name: name.to_owned(),
        id: draft.id,
        address,
        takes_datagrams: build.proxy.mode == Mode::Log && log_line::is_datagram(written),
        weight: draft.weight,
        // As HAProxy: a lower bound that is not below the upper one replaces it.
        maxconn: draft.maxconn.max(draft.minconn),
        minconn: if draft.minconn < draft.maxconn {
            draft.minconn
        } else {
            0
        },
        maxqueue: draft.maxqueue,
        cookie: draft.cookie,
        redir: draft.redir,
        backup: draft.backup,
        disabled: draft.disabled,
        send_proxy,
        source: draft.source,
        pool_max_conn: draft.pool_max_conn,
        pool_purge_delay: draft.pool_purge_delay,
        max_reuse: draft.max_reuse,
        origin: line.span(1).place(),
    })
}

/// Parses a `default-server` line.
pub fn default_server(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let draft = build.default_server.clone();
    let draft = options(build, line, 1, draft, "'default-server'")?;
    if draft.id != build.default_server.id {
        return Err(line.fault(
            0,
            "'default-server' : 'id' option is not accepted in default-server sections.",
        ));
    }
    build.default_server = draft;
    Ok(())
}

fn options(
    build: &mut ProxyBuild<'_, '_>,
    line: &Line<'_>,
    at: usize,
    mut draft: Draft,
    title: &str,
) -> Parse<Draft> {
    let mut cursor = Cursor { line: *line, at };
    while !cursor.peek().is_empty() {
        let word = cursor.take();
        let shared_row = [tls::OPTIONS, checks::OPTIONS]
            .into_iter()
            .find_map(|table| keywords::find_in(table, word, Places::SERVER));
        let shared = &mut build.shared;
        let result = match (keywords::find(KEYWORDS, word), shared_row) {
            (Some(keyword), _) => match keyword.state.parser() {
                Some(parser) => parser(&mut draft, &mut cursor),
                None => option_without_parser(keyword, "server", &mut cursor, shared),
            },
            (None, Some(keyword)) => option_without_parser(keyword, "server", &mut cursor, shared),
            (None, None) => {
                let names = KEYWORDS.iter().map(|k| k.name);
                let others = tls::OPTIONS.iter().chain(checks::OPTIONS);
                let others = others.filter(|row| row.places.intersects(Places::SERVER));
                let hint = did_you_mean(word, names.chain(others.map(|row| row.name)));
                return Err(cursor.fault(format!("{title} : unknown keyword '{word}'{hint}.")));
            }
        };
        build.shared.settle(result);
    }
    Ok(draft)
}

fn send_proxy_of(build: &mut ProxyBuild<'_, '_>, draft: &Draft) -> Parse<SendProxy> {
    // A v2 header wins where both are asked for, as in HAProxy.
    match (draft.v2, draft.v1) {
        (false, false) => Ok(SendProxy::No),
        (false, true) => Ok(SendProxy::V1),
        (true, _) => {
            let mut tlvs = Vec::new();
            for (kind, statement, word) in &draft.tlvs {
                let line = Line::new(statement);
                let place = Place::BE_HTTP_REQUEST | Place::BE_TCP_REQUEST;
                tlvs.push((*kind, build.shared.plain_format(&line, *word, place)?));
            }
            let V2Options {
                unique_id,
                crc32c,
                authority,
            } = draft.v2_options;
            Ok(SendProxy::V2 {
                unique_id,
                crc32c,
                authority,
                tlvs,
            })
        }
    }
}

/// `no-check` and others that cancel what is never set.
pub fn already_off(_draft: &mut Draft, _cursor: &mut Cursor<'_>) -> Parse {
    Ok(())
}

/// Options that are a word alone.
macro_rules! switches {
    ($($name:ident $field:ident $value:literal;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`, with `-` for `_`.")]
        pub fn $name(draft: &mut Draft, _cursor: &mut Cursor<'_>) -> Parse {
            draft.$field = $value;
            Ok(())
        }
    )*};
}
switches! {
    backup backup true;
    no_backup backup false;
    disabled disabled true;
    enabled disabled false;
    send_proxy v1 true;
    no_send_proxy v1 false;
    send_proxy_v2 v2 true;
    no_send_proxy_v2 v2 false;
}

/// Options with one number.
macro_rules! numbers {
    ($($name:ident $range:expr;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`, with `-` for `_`.")]
        pub fn $name(draft: &mut Draft, cursor: &mut Cursor<'_>) -> Parse {
            draft.$name = cursor.number($range)?;
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
pub fn cookie(draft: &mut Draft, cursor: &mut Cursor<'_>) -> Parse {
    draft.cookie = Some(cursor.octets("<value>")?);
    Ok(())
}

/// `redir`
pub fn redir(draft: &mut Draft, cursor: &mut Cursor<'_>) -> Parse {
    draft.redir = Some(cursor.octets("<prefix>")?);
    Ok(())
}

/// `max-reuse`
pub fn max_reuse(draft: &mut Draft, cursor: &mut Cursor<'_>) -> Parse {
    draft.max_reuse = or_unlimited(cursor)?;
    Ok(())
}

/// `pool-max-conn`
pub fn pool_max_conn(draft: &mut Draft, cursor: &mut Cursor<'_>) -> Parse {
    draft.pool_max_conn = or_unlimited(cursor)?;
    Ok(())
}

/// `pool-purge-delay`
pub fn pool_purge_delay(draft: &mut Draft, cursor: &mut Cursor<'_>) -> Parse {
    let text = cursor.value("a delay")?;
    let time = values::whole_time(text)
        .map_err(|bad| cursor.fault(values::time_message(bad, text, "pool-purge-delay")))?;
    draft.pool_purge_delay = time;
    Ok(())
}

/// `proto`
pub fn proto(_draft: &mut Draft, cursor: &mut Cursor<'_>) -> Parse {
    match cursor.value("a protocol")? {
        "h1" | "none" => Ok(()),
        word => Err(cursor.fault(super::not_yet(&format!("proto {word}")))),
    }
}

/// `proxy-v2-options`
pub fn proxy_v2_options(draft: &mut Draft, cursor: &mut Cursor<'_>) -> Parse {
    for option in cursor.value("a list of options")?.split(',') {
        match option {
            "unique-id" => draft.v2_options.unique_id = true,
            "crc32c" => draft.v2_options.crc32c = true,
            "authority" => draft.v2_options.authority = true,
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
pub fn set_proxy_v2_tlv_fmt(draft: &mut Draft, cursor: &mut Cursor<'_>) -> Parse {
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
    let statement = Statement {
        words: cursor.line.words().to_vec(),
        prefix: Prefix::None,
    };
    draft.tlvs.push((kind, statement, cursor.at - 1));
    Ok(())
}

/// `source`
pub fn source(draft: &mut Draft, cursor: &mut Cursor<'_>) -> Parse {
    draft.source = source_words(cursor)?;
    Ok(())
}

/// What follows `source`: `<addr>[:<port>[-<port>]] [interface <name>]`.
pub fn source_words(cursor: &mut Cursor<'_>) -> Parse<Option<Source>> {
    let text =
        cursor.value("<addr>[:<port>], and optionally 'usesrc' <addr>, and 'interface' <name>")?;
    let (addr, port_range) = address::single(cursor.line.bytes(cursor.at - 1))
        .map_err(|message| cursor.fault(format!("'source {text}' : {message}.")))?;
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

/// `weight` and others are made by the macros above.
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_starts_with_haproxys_defaults() {
        let draft = Draft::default();
        assert_eq!(
            (draft.weight, draft.pool_purge_delay, draft.max_reuse),
            (1, Duration::from_secs(5), None)
        );
    }
}
