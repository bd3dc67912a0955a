//! `tune.quic.*` and related keywords (manual §3.2), and the options of `bind` for QUIC (§5.1).

use super::global::GlobalBuild;
use super::line::{Cursor, Line, Parse, leading_integer};
use super::values;
use crate::keywords::arguments::{Args, ON_OFF};
use crate::model::{Bind, QuicCongestion};

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

/// `tune.quic.fe.tx.udp-gso`
pub fn gso(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    build.global.quic.joins_datagrams = is_on(build, line)?;
    line.at_most(1)
}

/// `tune.quic.fe.max-idle-timeout`
pub fn idle(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    check(build, line, &Args::Time)?;
    build.global.quic.idle = values::time(line.arg(1)).ok();
    line.at_most(1)
}

/// `tune.quic.fe.stream.max-concurrent`, `…max-total`, `tune.quic.fe.sec.retry-threshold`,
/// `…glitches-threshold`, `tune.quic.fe.stream.data-ratio`
pub fn number(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let name = line.keyword();
    let args = match name {
        "tune.quic.fe.stream.data-ratio" => Args::Number(1, 100),
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
        "tune.quic.fe.sec.glitches-threshold" => &mut quic.glitches_max,
        _ => &mut quic.data_percent,
    };
    *value = number;
    line.at_most(1)
}

/// `tune.quic.fe.stream.rxbuf`, `tune.quic.fe.cc.max-win-size`
pub fn size(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let is_window = line.keyword() == "tune.quic.fe.cc.max-win-size";
    let least = if is_window { WINDOW_BYTES_MIN } else { 1 };
    check(build, line, &Args::Size(least))?;
    let bytes = values::size(line.arg(1)).ok();
    let bytes = bytes.map(|bytes| u32::try_from(bytes).unwrap_or(u32::MAX));
    let quic = &mut build.global.quic;
    if is_window {
        quic.window_bytes = bytes;
    } else {
        quic.rxbuf_bytes = bytes;
    }
    line.at_most(1)
}

/// `quic-cc-algo cubic|newreno|bbr|nocc[(<window>)]`
pub fn congestion(bind: &mut Bind, cursor: &mut Cursor<'_>) -> Parse {
    let text = cursor.value("a congestion control algorithm")?;
    let (_, rest) = text.split_once('(').unwrap_or((text, ""));
    bind.quic.congestion = algorithm(text, cursor)?;
    // HAProxy has further arguments, which have no meaning here.
    let window = rest.split([',', ')']).next().unwrap_or_default();
    if window.is_empty() {
        return Ok(());
    }
    let bytes = values::size(window).ok();
    let bytes = bytes.filter(|bytes| (WINDOW_BYTES_MIN..=WINDOW_BYTES_MAX).contains(bytes));
    let Some(bytes) = bytes else {
        return Err(cursor.fault(format!(
            "'{text}' : should be greater than 10k and smaller than 4g."
        )));
    };
    bind.quic.window_bytes = Some(u32::try_from(bytes).unwrap_or(u32::MAX));
    Ok(())
}

/// The algorithm before the parentheses of `quic-cc-algo`.
pub fn algorithm(text: &str, cursor: &Cursor<'_>) -> Parse<QuicCongestion> {
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

fn is_on(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>) -> Parse<bool> {
    check(build, line, &ON_OFF)?;
    Ok(line.arg(1) == "on")
}

fn check(build: &mut GlobalBuild<'_, '_>, line: &Line<'_>, args: &Args) -> Parse {
    let mut cursor = Cursor { line: *line, at: 1 };
    args.check(&mut cursor, line.keyword(), build.shared)
}
