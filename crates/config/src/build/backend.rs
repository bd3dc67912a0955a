//! Keywords of the backend's side.

use super::line::{Cursor, Line, Parse};
use super::proxy::ProxyBuild;
use super::server as server_line;
use crate::model::{
    BackendTarget, Balance, DRAWS_DEFAULT, HashAffinity, HashFunction, HashMethod, HashType,
    HttpReuse, Proxy, Server,
};
use sample::Place;
use std::sync::Arc;
use syntax::octets::{Octets, readable};

/// `server`
pub fn server(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let server = server_line::server(build, line)?;
    add_server(build, line, server)
}

/// `server-template`
pub fn server_template(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    for server in server_line::server_template(build, line)? {
        add_server(build, line, server)?;
    }
    Ok(())
}

fn add_server(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>, mut server: Server) -> Parse {
    let index = build.proxy.servers.len();
    let known = *build
        .server_names
        .entry(server.name.clone())
        .or_insert(index);
    if let Some(twin) = build.proxy.servers.get(known) {
        let message = format!(
            "{}, another server named '{}' was already defined at {}, please use distinct names.",
            build.title(),
            server.name,
            twin.origin
        );
        return Err(line.fault(1, message));
    }
    // After a previous configuration, ids are assigned when the places of all servers are known.
    if server.id == 0 && build.shared.settings.previous.is_none() {
        server.options.id = build.proxy.servers.len() as u32 + 1;
    }
    build.proxy.servers.push(Arc::new(server));
    Ok(())
}

/// `default-server`
pub fn default_server(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    line.need(1, || {
        "'default-server' expects options as arguments.".into()
    })?;
    server_line::default_server(build, line)?;
    build.proxy.default_server_lines.push(words(line).into());
    Ok(())
}

/// The words of a line.
fn words(line: &Line<'_>) -> Vec<Octets> {
    let words = line.bytes_from(0).into_iter();
    words.map(Octets::from).collect()
}

/// `fullconn`
pub fn fullconn(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    build.proxy.fullconn = Some(Cursor { line: *line, at: 1 }.number(0..=i32::MAX as u32)?);
    line.at_most(1)
}

/// `http-send-name-header`
pub fn send_name_header(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    const RESERVED: &[&str] = &["host", "content-length", "transfer-encoding", "connection"];
    let name = line.need(1, || {
        "'http-send-name-header' requires a header string.".into()
    })?;
    if RESERVED.contains(&name.to_ascii_lowercase().as_str()) {
        let message = format!(
            "'{}' cannot be used as header name for 'http-send-name-header' directive.",
            line.arg(1)
        );
        return Err(line.fault(1, message));
    }
    build.proxy.send_name_header = Some(line.bytes(1).to_ascii_lowercase().into());
    line.at_most(1)
}

/// `max-keep-alive-queue`
pub fn max_keep_alive_queue(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let value: i32 = Cursor { line: *line, at: 1 }.number(-1..=i32::MAX)?;
    build.proxy.max_keep_alive_queue = u32::try_from(value).ok();
    line.at_most(1)
}

/// `retries`
pub fn retries(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    build.proxy.retries = Cursor { line: *line, at: 1 }.number(0..=i32::MAX as u32)?;
    line.at_most(1)
}

/// `source`
pub fn source(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let mut cursor = Cursor { line: *line, at: 1 };
    build.proxy.source = server_line::source_words(&mut cursor, build.shared)?;
    match cursor.peek() {
        "" => Ok(()),
        _ => Err(line.fault(
            cursor.at,
            "'source' only supports optional keywords 'interface' and 'usesrc'.",
        )),
    }
}

/// `http-reuse`
pub fn http_reuse(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    build.proxy.http_reuse = match line.arg(1) {
        "never" => HttpReuse::Never,
        "safe" => HttpReuse::Safe,
        "aggressive" => HttpReuse::Aggressive,
        "always" => HttpReuse::Always,
        _ => {
            return Err(line.fault(
                1,
                "'http-reuse' only supports 'never', 'safe', 'aggressive', 'always'.",
            ));
        }
    };
    line.at_most(1)
}

/// `hash-balance-factor`
pub fn hash_balance_factor(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let name = line.keyword();
    let text = line.need(1, || format!("'{name}' expects an integer argument."))?;
    let factor: u32 = text
        .parse()
        .map_err(|_| line.fault(1, format!("'{name}' expects an integer argument.")))?;
    if (1..=100).contains(&factor) {
        return Err(line.fault(1, format!("'{name}' must be 0 or greater than 100.")));
    }
    build.proxy.hash_balance_factor = factor;
    line.at_most(1)
}

/// `hash-preserve-affinity`
pub fn hash_preserve_affinity(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let name = line.keyword();
    build.proxy.hash_affinity = match line.need(1, || {
        format!("'{name}' needs a keyword to specify when to preserve hash affinity")
    })? {
        "always" => HashAffinity::Always,
        "maxconn" => HashAffinity::Maxconn,
        "maxqueue" => HashAffinity::Maxqueue,
        word => return Err(line.fault(1, format!("'{name}': unknown keyword '{word}'"))),
    };
    line.at_most(1)
}

/// `hash-type <method> [<function>] [<modifier>]`
pub fn hash_type(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let mut method = HashMethod::Map;
    match line.arg(1) {
        "map-based" => {}
        "consistent" => method = HashMethod::Ring,
        "avalanche" => {
            return Err(line.fault(1, "experimental feature 'hash-type avalanche' is not supported anymore, please use 'hash-type map-based sdbm avalanche' instead."));
        }
        _ => return Err(line.fault(1, "'hash-type' only supports 'consistent' and 'map-based'.")),
    }
    let function = match line.arg(2) {
        "" | "sdbm" => HashFunction::Sdbm,
        "djb2" => HashFunction::Djb2,
        "wt6" => HashFunction::Wt6,
        "crc32" => HashFunction::Crc32,
        "none" => HashFunction::None,
        _ => return Err(line.fault(
            2,
            "'hash-type' only supports 'sdbm', 'djb2', 'crc32', 'wt6' or 'none' hash functions.",
        )),
    };
    let avalanche = match line.arg(3) {
        // As in HAProxy, a ring hash without a function is mixed.
        "" => method == HashMethod::Ring && line.arg(2).is_empty(),
        "avalanche" => true,
        _ => {
            return Err(line.fault(
                3,
                "'hash-type' only supports 'avalanche' as a modifier for hash functions.",
            ));
        }
    };
    build.proxy.hash_type = HashType {
        method,
        function,
        avalanche,
    };
    line.at_most(3)
}

/// `balance rdp-cookie[(<name>)]`
fn rdp_cookie(
    build: &mut ProxyBuild<'_, '_>,
    line: &Line<'_>,
    name: Option<&[u8]>,
) -> Parse<Balance> {
    let name = name.unwrap_or(b"mstshash");
    if name.is_empty() {
        return Err(line.fault(1, "rdp-cookie : missing cookie name."));
    }
    let fetch = [b"req.rdp_cookie(", name, b")"].concat();
    let compiler = &mut build.shared.compiler;
    let found = compiler.expr(&[fetch], Place::BE_HTTP_REQUEST | Place::BE_TCP_REQUEST);
    let (expr, _) = found.map_err(|error| line.expr_fault(1, &error, "'balance rdp-cookie'"))?;
    Ok(Balance::Hash(expr))
}

/// `balance <algorithm> [<arguments>]`
pub fn balance(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let name = line.arg(1);
    let bare = name.split('(').next().unwrap_or_default();
    let argument = line.inside_parentheses(1);
    if bare.is_empty() {
        build.proxy.balance = Balance::default();
        return Ok(());
    }
    if let Some(plain) = Balance::plain(bare) {
        build.proxy.balance = plain;
        // HAProxy ignores further words here.
        return Ok(());
    }
    build.proxy.balance = match bare {
        "random" => {
            let draws = draws(line, argument)?;
            Balance::Random { draws }
        }
        "uri" => uri(line)?,
        "url_param" => url_param(line)?,
        "hdr" => hdr(line, argument)?,
        "hash" => {
            let (expr, next) =
                build
                    .shared
                    .expr(line, 2, Place::BE_HTTP_REQUEST | Place::BE_TCP_REQUEST)?;
            line.at_most(next - 1)?;
            Balance::Hash(expr)
        }
        "log-hash" => {
            line.need(2, || "balance log-hash requires a converter list.".into())?;
            line.at_most(2)?;
            let key = build.shared.compiler.message_key(line.bytes(2));
            Balance::LogHash(key.map_err(|error| {
                line.expr_fault(2, &error, "converter list of 'balance log-hash'")
            })?)
        }
        "rdp-cookie" => rdp_cookie(build, line, argument)?,
        _ => {
            return Err(line.fault(
                1,
                "balance only supports 'roundrobin', 'static-rr', 'leastconn', 'source', 'uri', 'url_param', 'hash', 'hdr(name)', \
                 'rdp-cookie(name)', 'log-hash' and 'sticky' options.",
            ));
        }
    };
    Ok(())
}

fn draws(line: &Line<'_>, argument: Option<&[u8]>) -> Parse<u32> {
    match argument {
        None => Ok(DRAWS_DEFAULT),
        Some(text) => match readable(text).to_string().parse() {
            Ok(draws @ 1..) => Ok(draws),
            _ => Err(line.fault(1, "'random' expects a positive integer argument.")),
        },
    }
}

fn uri(line: &Line<'_>) -> Parse<Balance> {
    let (mut whole, mut len, mut depth, mut path_only) = (false, None, None, false);
    let mut cursor = Cursor { line: *line, at: 2 };
    while !cursor.peek().is_empty() {
        match cursor.take() {
            "len" => len = Some(cursor.number(1..=i32::MAX as usize)?),
            "depth" => depth = Some(cursor.number(1..=i32::MAX as usize)?),
            "whole" => whole = true,
            "path-only" => path_only = true,
            word => {
                return Err(cursor.fault(format!(
                    "balance uri only accepts parameters 'len', 'depth', 'path-only', and 'whole' (got '{word}')."
                )));
            }
        }
    }
    Ok(Balance::Uri {
        whole,
        len,
        depth,
        path_only,
    })
}

fn url_param(line: &Line<'_>) -> Parse<Balance> {
    line.need(2, || {
        "balance url_param requires an URL parameter name.".into()
    })?;
    let name = line.octets(2);
    let check_post = match line.arg(3) {
        "" => false,
        "check_post" => true,
        _ => return Err(line.fault(3, "balance url_param only accepts check_post modifier.")),
    };
    // HAProxy accepts a number of bytes to wait for, which has no effect.
    line.at_most(4)?;
    Ok(Balance::UrlParam { name, check_post })
}

fn hdr(line: &Line<'_>, argument: Option<&[u8]>) -> Parse<Balance> {
    let name = argument.filter(|name| !name.is_empty());
    let name = name
        .ok_or_else(|| line.fault(1, "balance hdr(name) requires an http header field name."))?
        .into();
    let use_domain_only = match line.arg(2) {
        "" => false,
        "use_domain_only" => true,
        _ => {
            return Err(line.fault(
                2,
                "balance hdr(name) only accepts 'use_domain_only' modifier.",
            ));
        }
    };
    line.at_most(2)?;
    Ok(Balance::Hdr {
        name,
        use_domain_only,
    })
}

/// Marks the backends that rules and expressions name.
pub fn mark_named(proxies: &mut [Proxy], by_expressions: &[u32]) {
    let mut named: Vec<usize> = by_expressions.iter().map(|place| *place as usize).collect();
    for proxy in proxies.iter() {
        named.extend(proxy.default_backend);
        let targets = proxy.use_backend.iter().map(|rule| &rule.target);
        named.extend(targets.filter_map(|target| match target {
            BackendTarget::Static(backend) => Some(*backend),
            BackendTarget::Dynamic(_) => None,
        }));
    }
    for place in named {
        // The compiler's placeholders for `defaults` sections are not proxies.
        if let Some(proxy) = proxies.get_mut(place) {
            proxy.is_named = true;
        }
    }
}
