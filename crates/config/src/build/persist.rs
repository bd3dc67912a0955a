//! Persistence without cookies, and the conditions for retries (manual §4.2).

use super::did_you_mean;
use super::line::{Line, Parse};
use super::proxy::ProxyBuild;
use crate::model::{PersistRule, RetryOn, ServerTarget, UseServer};
use sample::{Condition, Place};

/// `use-server <server> if|unless <condition>`
pub fn use_server(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let name = line.need(1, || "'use-server' expects a server name.".into())?;
    let condition = condition(build, line, 2, Place::BE_USE_SERVER)?;
    let target = if name.contains('%') {
        ServerTarget::Dynamic(build.shared.log_format(line, 1, Place::BE_USE_SERVER)?)
    } else {
        ServerTarget::Static(server(build, line, name)?)
    };
    let place = build.shared.rule_place(line);
    let rule = UseServer {
        target,
        condition,
        place,
    };
    build.proxy.use_server.push(rule);
    Ok(())
}

fn server(build: &ProxyBuild<'_, '_>, line: &Line<'_>, name: &str) -> Parse<usize> {
    let servers = build.shared.names.servers(&build.proxy.name);
    let found = servers
        .iter()
        .position(|server| server == name && !name.is_empty());
    found.ok_or_else(|| {
        let names = servers.iter().map(String::as_str);
        let hint = did_you_mean(name, names.filter(|name| !name.is_empty()));
        let message = format!(
            "{} : unable to find server '{name}' referenced in a 'use-server' rule.{hint}",
            build.title()
        );
        line.fault(1, message)
    })
}

/// `force-persist if|unless <condition>`
pub fn force(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    rule(build, line, true)
}

/// `ignore-persist if|unless <condition>`
pub fn ignore(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    rule(build, line, false)
}

fn rule(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>, force: bool) -> Parse {
    let condition = condition(build, line, 1, Place::BE_TCP_REQUEST)?;
    let place = build.shared.rule_place(line);
    let rule = PersistRule {
        force,
        condition,
        place,
    };
    build.proxy.persist_rules.push(rule);
    Ok(())
}

/// `force-be-switch if|unless <condition>`
pub fn force_be_switch(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let condition = condition(build, line, 1, Place::FE_TCP_REQUEST)?;
    build.proxy.force_be_switch.push(condition);
    Ok(())
}

/// `be-unpublished`
pub fn unpublished(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    build.proxy.unpublished = true;
    line.at_most(0)
}

/// A condition, which must exist.
fn condition(
    build: &mut ProxyBuild<'_, '_>,
    line: &Line<'_>,
    at: usize,
    place: Place,
) -> Parse<Condition> {
    let required = || {
        let message = format!(
            "'{}' requires either 'if' or 'unless' followed by a condition.",
            line.keyword()
        );
        line.fault(at, message)
    };
    if !matches!(line.arg(at), "if" | "unless") {
        return Err(required());
    }
    build.condition(line, at, place)?.ok_or_else(required)
}

/// The default name of the RDP cookie.
const RDP_COOKIE: &str = "msts";

/// `persist rdp-cookie[(<name>)]`
pub fn persist(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let method = line.need(1, || "missing persist method.".into())?;
    let Some(rest) = method.strip_prefix("rdp-cookie") else {
        return Err(line.fault(1, "unknown persist method."));
    };
    let inside = line.bytes(1)["rdp-cookie".len()..].strip_prefix(b"(");
    let inside = inside.and_then(|rest| Some(&rest[..memchr::memchr(b')', rest)?]));
    let name = match (rest, inside) {
        ("", _) => RDP_COOKIE.into(),
        (_, Some(name)) if !name.is_empty() => name.into(),
        _ => {
            return Err(line.fault(1, "persist rdp-cookie(name)' requires an rdp cookie name."));
        }
    };
    line.at_most_after(1, 0)?;
    build.proxy.rdp_cookie = Some(name);
    Ok(())
}

/// The statuses that `retry-on` may name, and those that `all-retryable-errors` includes.
const STATUSES: &[u16] = &[401, 403, 404, 408, 421, 425, 429, 500, 501, 502, 503, 504];
const RETRYABLE_STATUSES: &[u16] = &[500, 502, 503, 504];

/// `retry-on <event> …`
pub fn retry_on(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    line.need(1, || {
        "'retry-on' needs at least one keyword to specify when to retry".into()
    })?;
    let mut events = RetryOn {
        conn_failure: false,
        ..RetryOn::default()
    };
    for at in 1..line.count() {
        match line.arg(at) {
            "none" if line.count() == 2 => {}
            "none" => return Err(line.fault(at, "'retry-on' 'none' keyword only usable alone")),
            "conn-failure" => events.conn_failure = true,
            "empty-response" => events.empty_response = true,
            "junk-response" => events.junk_response = true,
            "response-timeout" => events.response_timeout = true,
            // Spangate sends no early data that a server could refuse.
            "0rtt-rejected" => {}
            "all-retryable-errors" => {
                events.conn_failure = true;
                events.empty_response = true;
                events.junk_response = true;
                events.response_timeout = true;
                events.statuses.extend_from_slice(RETRYABLE_STATUSES);
            }
            word => match word.parse().ok().filter(|status| STATUSES.contains(status)) {
                Some(status) => events.statuses.push(status),
                None => {
                    return Err(line.fault(at, format!("'retry-on': unknown keyword '{word}'")));
                }
            },
        }
    }
    build.proxy.retry_on = events;
    Ok(())
}
