//! Keywords of the frontend's side.

use super::line::{Cursor, Line, Parse};
use super::order::Stage;
use super::proxy::ProxyBuild;
use super::{bind as bind_line, did_you_mean};
use crate::model::{BackendTarget, Capture, UseBackend};
use sample::Place;
use syntax::octets::Octets;

/// `backlog`
pub fn backlog(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    build.proxy.backlog = Some(Cursor { line: *line, at: 1 }.number(0..=i32::MAX as u32)?);
    line.at_most(1)
}

/// `max-session-srv-conns`
pub fn session_srv_conns(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    build.proxy.session_srv_conns_max =
        Cursor { line: *line, at: 1 }.number(0..=i32::MAX as u32)?;
    line.at_most(1)
}

/// `maxconn`
pub fn maxconn(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let value: u32 = Cursor { line: *line, at: 1 }.number(0..=i32::MAX as u32)?;
    build.proxy.maxconn = (value > 0).then_some(value);
    line.at_most(1)
}

/// `rate-limit sessions <rate>`
pub fn rate_limit(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    if line.arg(1) != "sessions" {
        let word = line.arg(1);
        return Err(line.fault(
            1,
            format!("'rate-limit' only supports 'sessions' (got '{word}')."),
        ));
    }
    let value: u32 = Cursor { line: *line, at: 2 }.number(0..=i32::MAX as u32)?;
    build.proxy.rate_limit_sessions = (value > 0).then_some(value);
    line.at_most_after(1, 1)
}

/// `bind`
pub fn bind(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    line.need(1, || {
        "'bind' expects {<path>|[addr1]:port1[-end1]}{,[addr]:port[-end]}... as arguments.".into()
    })?;
    for mut bind in bind_line::frontend_line(line, 1, build.shared)? {
        // After a previous configuration, ids are assigned when all places are known.
        if bind.id == 0 && build.shared.settings.previous.is_none() {
            bind.id = build.proxy.binds.len() as u32 + 1;
        }
        build.proxy.binds.push(bind);
    }
    Ok(())
}

/// `ssl-f-use`
pub fn ssl_f_use(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let certificates = super::tls::bind::ssl_f_use(line, build.shared)?;
    build.ssl_f_use.extend(certificates);
    Ok(())
}

/// `monitor-uri`
pub fn monitor_uri(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    line.need(1, || "'monitor-uri' expects an URI.".into())?;
    line.at_most(1)?;
    build.proxy.monitor_uri = Some(line.octets(1));
    build.proxy.monitor_uri_place = Some(build.shared.rule_place(line));
    Ok(())
}

/// `monitor fail if|unless <condition>`
pub fn monitor(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    if line.arg(1) != "fail" {
        return Err(line.fault(1, "'monitor' only supports 'fail'."));
    }
    let missing =
        || "'monitor fail' expects either 'if' or 'unless' followed by a condition.".into();
    line.need(2, missing)?;
    let condition = build.condition(line, 2, Place::FE_HTTP_REQUEST)?;
    build.proxy.monitor_fail.extend(condition);
    Ok(())
}

/// `default_backend`
pub fn default_backend(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let name = line.need(1, || "'default_backend' expects a backend name.".into())?;
    line.at_most(1)?;
    match backend(build, line, "default_backend", name) {
        Ok(index) => {
            build.proxy.default_backend = Some(index);
            build.proxy.default_backend_place = Some(build.shared.rule_place(line));
            build.missing_backend = None;
        }
        // It is a fault only if a frontend uses it.
        Err(fault) => build.missing_backend = Some(fault),
    }
    Ok(())
}

fn backend(build: &ProxyBuild<'_, '_>, line: &Line<'_>, keyword: &str, name: &str) -> Parse<usize> {
    build.shared.names.backend(name).ok_or_else(|| {
        let hint = did_you_mean(name, build.shared.names.backends());
        let dot = if hint.is_empty() { "." } else { "" };
        let of = if build.is_defaults() {
            String::new()
        } else {
            format!("Proxy '{}': ", build.proxy.name)
        };
        line.fault(
            1,
            format!("{of}unable to find required {keyword}: '{name}'{dot}{hint}"),
        )
    })
}

/// `use_backend <name> [if|unless <condition>]`
pub fn use_backend(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let name = line.need(1, || "'use_backend' expects a backend name.".into())?;
    if !matches!(line.arg(2), "" | "if" | "unless") {
        let word = line.arg(2);
        return Err(line.fault(2, format!("unexpected keyword '{word}' after switching rule, only 'if' and 'unless' are allowed.")));
    }
    let target = if name.contains('%') {
        BackendTarget::Dynamic(build.shared.plain_format(line, 1, Place::FE_USE_BACKEND)?)
    } else {
        let found = backend(build, line, "use_backend", name);
        // The condition reports its own faults.
        build.shared.settle(found.clone().map(|_| ()));
        BackendTarget::Static(found.unwrap_or_default())
    };
    build.placed(line, Stage::UseBackend, 1);
    let condition = build.condition(line, 2, Place::FE_USE_BACKEND)?;
    let place = build.shared.rule_place(line);
    build.proxy.use_backend.push(UseBackend {
        target,
        condition,
        place,
    });
    Ok(())
}

/// `capture request|response header <name> len <len>`
pub fn capture(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let (side, kind) = (line.arg(1), line.arg(2));
    if side == "cookie" {
        return super::cookie::capture(build, line);
    }
    if !matches!(side, "request" | "response") {
        return Err(line.fault(
            1,
            "'capture' expects 'cookie' or 'request header' or 'response header'.",
        ));
    }
    if kind != "header" || line.arg(3).is_empty() || line.arg(4) != "len" || line.arg(5).is_empty()
    {
        return Err(line.fault(
            2,
            format!("'capture {side}' expects 'header' <header_name> 'len' <len>."),
        ));
    }
    line.at_most_after(1, 4)?;
    let capture = Capture {
        header: line.octets(3),
        len: len(line, 5)?,
    };
    slots(build, side).push(capture);
    Ok(())
}

/// `declare capture request|response len <len>`
pub fn declare(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let side = line.arg(2);
    if line.arg(1) != "capture" || !matches!(side, "request" | "response") || line.arg(3) != "len" {
        return Err(line.fault(
            1,
            "'declare' only supports 'capture [request|response] len <len>'.",
        ));
    }
    line.need(4, || "'declare capture' : missing length.".into())?;
    line.at_most_after(2, 2)?;
    let capture = Capture {
        header: Octets::default(),
        len: len(line, 4)?,
    };
    slots(build, side).push(capture);
    Ok(())
}

/// Most bytes that a slot keeps. A message is shorter than the largest value, so this number does
/// not limit memory.
fn len(line: &Line<'_>, index: usize) -> Parse<usize> {
    let mut cursor = Cursor {
        line: *line,
        at: index,
    };
    cursor.number(1..=i32::MAX as usize)
}

fn slots<'b>(build: &'b mut ProxyBuild<'_, '_>, side: &str) -> &'b mut Vec<Capture> {
    match side {
        "request" => &mut build.proxy.capture_request,
        _ => &mut build.proxy.capture_response,
    }
}
