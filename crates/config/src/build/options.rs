//! `option …` (manual §4.2): the switches, and the options with arguments.

use super::address::network;
use super::line::{Cursor, Line, Parse};
use super::logging::{Source, set_format};
use super::proxy::ProxyBuild;
use crate::keywords::options::Setter;
use crate::model::{
    ConnectionMode, ForwardFor, Forwarded, ForwardedHost, ForwardedNode, NamePolicy, Options,
};
use crate::tree::Prefix;
use sample::Place;

/// Parses an option with arguments; the words after its name begin at 2.
pub type OptionParser = fn(&mut ProxyBuild<'_, '_>, &Line<'_>) -> Parse;

/// Sets an option.
pub fn set(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>, setter: Setter) -> Parse {
    let field = match setter {
        Setter::Own(parser) => return parser(build, line),
        Setter::Switch(field) | Setter::HttpSwitch(field) => field,
    };
    line.at_most_after(1, 0)?;
    *field(&mut build.proxy.options) = match line.prefix() {
        Prefix::None => true,
        Prefix::No => false,
        Prefix::Default => *field(&mut Options::default()),
    };
    Ok(())
}

/// Refuses `no` and `default` like HAProxy.
fn no_prefix(line: &Line<'_>) -> Parse {
    match line.prefix() {
        Prefix::None => Ok(()),
        _ => Err(line.fault(
            1,
            format!(
                "negation/default is not supported for option '{}'.",
                line.arg(1)
            ),
        )),
    }
}

/// `option httpclose`
pub fn close(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    connection(build, line, ConnectionMode::Close)
}

/// `option http-server-close`
pub fn server_close(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    connection(build, line, ConnectionMode::ServerClose)
}

/// `option http-keep-alive`
pub fn keep_alive(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    connection(build, line, ConnectionMode::KeepAlive)
}

/// Sets a connection mode. The modes override each other; `no` cancels only the mode that is set.
fn connection(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>, mode: ConnectionMode) -> Parse {
    line.at_most_after(1, 0)?;
    match line.prefix() {
        Prefix::None => build.proxy.connection_mode = mode,
        Prefix::No if build.proxy.connection_mode == mode => {
            build.proxy.connection_mode = ConnectionMode::default()
        }
        Prefix::No => {}
        Prefix::Default => return no_prefix(line),
    }
    Ok(())
}

/// `option abortonclose`; without it, the mode decides.
pub fn abortonclose(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    line.at_most_after(1, 0)?;
    build.proxy.options.abortonclose = match line.prefix() {
        Prefix::None => Some(true),
        Prefix::No => Some(false),
        Prefix::Default => None,
    };
    Ok(())
}

/// `option accept-invalid-http-request`, `option accept-invalid-http-response`: old names.
pub fn accept_invalid(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    no_prefix(line)?;
    line.at_most_after(1, 0)?;
    let name = line.arg(1);
    let is_request = name.ends_with("request");
    let options = &mut build.proxy.options;
    let (flag, new) = if is_request {
        let flag = &mut options.accept_unsafe_violations_in_http_request;
        (flag, "accept-unsafe-violations-in-http-request")
    } else {
        let flag = &mut options.accept_unsafe_violations_in_http_response;
        (flag, "accept-unsafe-violations-in-http-response")
    };
    *flag = true;
    let message =
        format!("option '{name}' is deprecated. please use 'option {new}' if absolutely needed.");
    Err(line.fault(1, message).as_warning())
}

/// `option tcpka`
pub fn tcpka(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    no_prefix(line)?;
    line.at_most_after(1, 0)?;
    build.proxy.options.clitcpka |= build.proxy.is_frontend;
    build.proxy.options.srvtcpka |= build.proxy.is_backend;
    Ok(())
}

/// `option http-restrict-req-hdr-names preserve|delete|reject`
pub fn restrict_names(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    const EXPECTED: &str =
        "option 'http-restrict-req-hdr-names' expects 'preserve', 'reject' or 'delete' option.";
    no_prefix(line)?;
    line.at_most_after(1, 1)?;
    let word = line.need(2, || format!("missing parameter. {EXPECTED}"))?;
    build.proxy.options.http_restrict_req_hdr_names = match word {
        "preserve" => NamePolicy::Preserve,
        "delete" => NamePolicy::Delete,
        "reject" => NamePolicy::Reject,
        _ => return Err(line.fault(2, format!("invalid parameter '{word}'. {EXPECTED}"))),
    };
    Ok(())
}

/// `option redispatch [<interval>]`
pub fn redispatch(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    build.proxy.options.redispatch = match (line.prefix(), line.arg(2)) {
        (Prefix::None, "") => Some(-1),
        (Prefix::None, text) => {
            let interval: i32 = text.parse().map_err(|_| {
                line.fault(
                    2,
                    format!("'option redispatch' expects an integer, got '{text}'."),
                )
            })?;
            (interval != 0).then_some(interval)
        }
        _ => None,
    };
    line.at_most_after(1, 1)
}

/// `option httplog [clf]`
pub fn httplog(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let clf = clf(line)?;
    set_format(
        build,
        if clf { Source::HttpClf } else { Source::Http },
        line,
    );
    Ok(())
}

/// `option tcplog [clf]`
pub fn tcplog(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let clf = clf(line)?;
    set_format(build, if clf { Source::TcpClf } else { Source::Tcp }, line);
    Ok(())
}

/// `option httpslog`
pub fn httpslog(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    no_prefix(line)?;
    line.at_most_after(1, 0)?;
    set_format(build, Source::Https, line);
    Ok(())
}

fn clf(line: &Line<'_>) -> Parse<bool> {
    no_prefix(line)?;
    let clf = match line.arg(2) {
        "" => false,
        "clf" => true,
        _ => {
            return Err(line.fault(
                2,
                format!("keyword '{}' only supports option 'clf'.", line.arg(1)),
            ));
        }
    };
    line.at_most_after(1, 1)?;
    Ok(clf)
}

/// `option forwardfor [except <net>] [header <name>] [if-none]`
pub fn forwardfor(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    build.proxy.forwardfor = forward(line, "X-Forwarded-For", true)?;
    Ok(())
}

/// `option originalto [except <net>] [header <name>]`
pub fn originalto(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    build.proxy.originalto = forward(line, "X-Original-To", false)?;
    Ok(())
}

fn forward(line: &Line<'_>, header: &str, has_if_none: bool) -> Parse<Option<ForwardFor>> {
    if line.prefix() != Prefix::None {
        line.at_most_after(1, 0)?;
        return Ok(None);
    }
    let mut forward = ForwardFor {
        header: header.into(),
        except: None,
        if_none: false,
    };
    let mut cursor = Cursor { line: *line, at: 2 };
    while !cursor.peek().is_empty() {
        match cursor.take() {
            "except" => {
                let text = cursor.value("<address>[/mask]")?;
                let net = network(text).ok_or_else(|| {
                    cursor.fault(format!(
                        "'{}' : '{text}' is not an address[/mask].",
                        line.arg(1)
                    ))
                })?;
                forward.except = Some(net);
            }
            "header" => forward.header = cursor.octets("<header_name>")?,
            "if-none" if has_if_none => forward.if_none = true,
            word => {
                let known = if has_if_none {
                    "'except', 'header' and 'if-none'"
                } else {
                    "'except' and 'header'"
                };
                return Err(cursor.fault(format!(
                    "'{}' only supports optional values: {known} (got '{word}').",
                    line.arg(1)
                )));
            }
        }
    }
    Ok(Some(forward))
}

/// `option forwarded [proto] [host|host-expr …] [by|by-expr …] [by_port|by_port-expr …] [for …]
/// [for_port …]` (RFC 7239)
pub fn forwarded(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    if line.prefix() != Prefix::None {
        build.proxy.forwarded = None;
        return Ok(());
    }
    let mut forwarded = Forwarded {
        proto: false,
        host: None,
        by: None,
        by_port: None,
        for_: None,
        for_port: None,
    };
    if line.count() == 2 {
        forwarded.proto = true;
        forwarded.for_ = Some(ForwardedNode::Default);
    }
    let mut at = 2;
    while at < line.count() {
        let word = line.arg(at);
        at += 1;
        let node = match word.strip_suffix("-expr") {
            Some(_) => {
                let (expr, next) = build.shared.expr(line, at, Place::BE_HTTP_REQUEST)?;
                at = next;
                Some(expr)
            }
            None => None,
        };
        let node_or_default = |expr| match expr {
            Some(expr) => ForwardedNode::Expr(expr),
            None => ForwardedNode::Default,
        };
        match word.strip_suffix("-expr").unwrap_or(word) {
            "proto" if node.is_none() => forwarded.proto = true,
            "host" => {
                forwarded.host = Some(node.map_or(ForwardedHost::Default, ForwardedHost::Expr))
            }
            "by" => forwarded.by = Some(node_or_default(node)),
            "by_port" => forwarded.by_port = Some(node_or_default(node)),
            "for" => forwarded.for_ = Some(node_or_default(node)),
            "for_port" => forwarded.for_port = Some(node_or_default(node)),
            _ => {
                return Err(line.fault(
                    at - 1,
                    format!(
                        "'option forwarded' only supports optional values: 'proto', 'host', 'host-expr', 'by', 'by-expr', 'by_port', \
                         'by_port-expr', 'for', 'for-expr', 'for_port', 'for_port-expr' (got '{word}')."
                    ),
                ));
            }
        }
    }
    build.proxy.forwarded = Some(forwarded);
    Ok(())
}

/// `option use-small-buffers [queue] [l7-retries] [check]`
pub fn small_buffers(cursor: &mut Cursor<'_>) -> Parse {
    while !cursor.peek().is_empty() {
        let word = cursor.take();
        if !matches!(word, "queue" | "l7-retries" | "check") {
            let message = format!(
                "invalid parameter '{word}'. option 'use-small-buffers' expects 'queue', 'l7-retries' or 'check' value."
            );
            return Err(cursor.fault(message));
        }
    }
    Ok(())
}
