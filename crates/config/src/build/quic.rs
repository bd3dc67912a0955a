//! `tune.quic.*` and related keywords (manual §3.2), and the options of `bind` (§5.1) and `server` lines
//! (§5.2) for QUIC.

use super::Shared;
use super::global::GlobalBuild;
use super::line::{Cursor, Fault, Line, Parse, leading_integer};
use super::proxy::ProxyBuild;
use super::values;
use crate::diagnostic::Severity;
use crate::keywords::arguments::{Args, ON_OFF};
use crate::model::{
    Bind, Mode, Proxy, QuicCongestion, QuicSide, Server, ServerAddress, ServerOptions,
};
use crate::tree::Span;

/// Bounds of a congestion window, bytes.
const WINDOW_BYTES_MIN: usize = 10 << 10;
const WINDOW_BYTES_MAX: usize = 4 << 30;

/// `cluster-secret`
pub fn secret(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    check(build, line, &Args::Word)?;
    build.global.quic.secret = Some(line.octets(1));
    line.at_most(1)
}

/// `tune.quic.listen`
pub fn listen(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    build.global.quic.listens = is_on(build, line)?;
    line.at_most(1)
}

/// `harden.reject-privileged-ports.quic`
pub fn privileged(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    // HAProxy reads one word only.
    build.global.quic.rejects_privileged = is_on(build, line)?;
    Ok(())
}

/// What a keyword is about: connections with clients, or with servers.
fn side<'b>(build: &'b mut GlobalBuild<'_, '_>, line: &Line<'_>) -> &'b mut QuicSide {
    let quic = &mut build.global.quic;
    if line.keyword().starts_with("tune.quic.be.") {
        &mut quic.servers
    } else {
        &mut quic.clients
    }
}

/// `tune.quic.fe.tx.udp-gso`, `tune.quic.be.tx.udp-gso`
pub fn gso(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    side(build, line).joins_datagrams = is_on(build, line)?;
    line.at_most(1)
}

/// `tune.quic.fe.max-idle-timeout`, `tune.quic.be.max-idle-timeout`
pub fn idle(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    check(build, line, &Args::Time)?;
    side(build, line).idle = values::time(line.arg(1)).ok();
    line.at_most(1)
}

/// `tune.quic.fe.stream.max-concurrent`, `…max-total`, `tune.quic.fe.sec.retry-threshold`; of both
/// sides `sec.glitches-threshold` and `stream.data-ratio`
pub fn number(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let name = line.keyword();
    let args = match name {
        "tune.quic.fe.stream.data-ratio" | "tune.quic.be.stream.data-ratio" => Args::Number(1, 100),
        _ => Args::Own(super::threads::not_zero),
    };
    check(build, line, &args)?;
    // HAProxy reads a negative number as a very large one.
    let number = leading_integer(line.arg(1)).parse::<i64>().ok();
    let number = number.map(|number| u32::try_from(number).unwrap_or(u32::MAX));
    let quic = &mut build.global.quic;
    let value = match name {
        "tune.quic.fe.stream.max-concurrent" => &mut quic.streams_max,
        "tune.quic.fe.stream.max-total" => &mut quic.total_streams_max,
        "tune.quic.fe.sec.retry-threshold" => &mut quic.retry_threshold,
        "tune.quic.fe.sec.glitches-threshold" => &mut quic.clients.glitches_max,
        "tune.quic.be.sec.glitches-threshold" => &mut quic.servers.glitches_max,
        "tune.quic.be.stream.data-ratio" => &mut quic.servers.data_percent,
        _ => &mut quic.clients.data_percent,
    };
    *value = number;
    line.at_most(1)
}

/// `stream.rxbuf` and `cc.max-win-size` of both sides
pub fn size(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let is_window = line.keyword().ends_with(".cc.max-win-size");
    let least = if is_window { WINDOW_BYTES_MIN } else { 1 };
    check(build, line, &Args::Size(least))?;
    let bytes = values::size(line.arg(1)).ok();
    let bytes = bytes.map(|bytes| u32::try_from(bytes).unwrap_or(u32::MAX));
    let side = side(build, line);
    if is_window {
        side.window_bytes = bytes;
    } else {
        side.rxbuf_bytes = bytes;
    }
    line.at_most(1)
}

/// `quic-cc-algo` of a `bind` line
pub fn congestion(bind: &mut Bind, cursor: &mut Cursor<'_>) -> Parse {
    let (algorithm, window_bytes) = control(cursor)?;
    bind.quic.congestion = algorithm;
    bind.quic.window_bytes = window_bytes.or(bind.quic.window_bytes);
    Ok(())
}

/// `quic-cc-algo` of a `server` line
pub fn server_congestion(
    options: &mut ServerOptions,
    cursor: &mut Cursor<'_>,
    _shared: &mut Shared<'_>,
) -> Parse {
    let (algorithm, window_bytes) = control(cursor)?;
    options.quic.congestion = algorithm;
    options.quic.window_bytes = window_bytes.or(options.quic.window_bytes);
    Ok(())
}

/// `cubic|newreno|bbr|nocc[([<window>][,])]`
fn control(cursor: &mut Cursor<'_>) -> Parse<(QuicCongestion, Option<u32>)> {
    let text = cursor.value("a congestion control algorithm")?;
    let (_, rest) = text.split_once('(').unwrap_or((text, ""));
    let algorithm = algorithm(text, cursor)?;
    let (arguments, _) = rest.split_once(')').unwrap_or((rest, ""));
    let (window, others) = arguments.split_once(',').unwrap_or((arguments, ""));
    if !others.is_empty() {
        return Err(cursor.fault(format!("'{text}' : the window is the only argument.")));
    }
    if window.is_empty() {
        return Ok((algorithm, None));
    }
    let bytes = values::size(window).ok();
    let bytes = bytes.filter(|bytes| (WINDOW_BYTES_MIN..=WINDOW_BYTES_MAX).contains(bytes));
    let Some(bytes) = bytes else {
        return Err(cursor.fault(format!(
            "'{text}' : should be greater than 10k and smaller than 4g."
        )));
    };
    Ok((algorithm, Some(u32::try_from(bytes).unwrap_or(u32::MAX))))
}

/// The algorithm before the parentheses of `quic-cc-algo`.
fn algorithm(text: &str, cursor: &Cursor<'_>) -> Parse<QuicCongestion> {
    match text.split('(').next() {
        Some("cubic") => Ok(QuicCongestion::Cubic),
        Some("newreno") => Ok(QuicCongestion::NewReno),
        Some("bbr") => Ok(QuicCongestion::Bbr),
        Some("nocc") => Ok(QuicCongestion::None),
        _ => Err(cursor.fault(format!("'{text}' : unknown control congestion algorithm."))),
    }
}

/// `quic-force-retry`
pub fn force_retry(bind: &mut Bind, _cursor: &mut Cursor<'_>) -> Parse {
    bind.quic.forces_retry = true;
    Ok(())
}

/// What a `server` line with QUIC must have, whose address is at this place.
pub fn check_server(
    build: &ProxyBuild<'_, '_>,
    place: &Span,
    name: &str,
    address: &ServerAddress,
) -> Parse {
    let refused = |message: String| Err(Fault::new(place.clone(), message));
    let what = format!("QUIC is experimental for server '{name}'");
    if !build.shared.settings.is_added_server
        && let Some(message) = build.shared.refuses_experimental(&what)
    {
        return refused(message);
    }
    if address.ip().is_none() {
        return refused(format!("'server {name}' : QUIC needs an IP address."));
    }
    Ok(())
}

/// Reports what server lines with QUIC of a proxy cannot have.
pub fn check_servers(proxy: &Proxy, shared: &mut Shared<'_>) {
    for server in &proxy.servers {
        if let Some(why) = refusal(proxy, server) {
            let message = format!(
                "backend '{}' : server '{}' at [{}]: a server {why}.",
                proxy.name, server.name, server.origin
            );
            shared.diagnostics.add(Severity::Alert, None, message);
        }
    }
}

/// Why a server cannot be over QUIC, or must be.
fn refusal(proxy: &Proxy, server: &Server) -> Option<&'static str> {
    if !server.is_quic {
        let is_required = server.quic.is_required;
        return is_required.then_some("without QUIC cannot have 'proto quic'");
    }
    let checks = server.checks.enabled;
    let words = server.options.tls_words.as_deref();
    let checks_without_tls = words.is_some_and(|words| words.check.ssl == Some(false));
    match server.proto {
        Some(_) => Some("over QUIC cannot have this 'proto', because it speaks HTTP/3"),
        None if proxy.mode != Mode::Http => Some("over QUIC needs 'mode http'"),
        None if server.send_proxy.is_on() => Some("over QUIC cannot have 'send-proxy'"),
        None if server.socks4.is_some() => Some("over QUIC cannot have 'socks4'"),
        None if checks && checks_without_tls => {
            Some("over QUIC cannot have checks with 'no-check-ssl'")
        }
        None if checks && server.checks.send_proxy => {
            Some("over QUIC cannot have checks with 'check-send-proxy'")
        }
        None => None,
    }
}

fn is_on(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse<bool> {
    check(build, line, &ON_OFF)?;
    Ok(line.arg(1) == "on")
}

fn check(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>, args: &Args) -> Parse {
    let mut cursor = Cursor { line: *line, at: 1 };
    args.check(&mut cursor, line.keyword(), build.shared)
}
