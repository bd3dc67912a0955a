//! Options of health checks and agents on `server` and `default-server` lines (manual §5.2).

use super::super::arguments::number;
use super::super::line::{Cursor, Parse};
use super::super::{Shared, values};
use super::rules::{check_address, check_proto};
use crate::model::{InitState, Observe, OnError, ServerOptions};
use std::time::Duration;

/// Options without arguments.
macro_rules! switches {
    ($($name:ident $($field:ident).+ = $value:expr;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`, with `-` for `_`.")]
        pub fn $name(options: &mut ServerOptions, _cursor: &mut Cursor<'_>, _shared: &mut Shared<'_>) -> Parse {
            options.checks.$($field).+ = $value;
            Ok(())
        }
    )*};
}
switches! {
    check enabled = true;
    no_check enabled = false;
    check_send_proxy send_proxy = true;
    no_check_send_proxy send_proxy = false;
    check_via_socks4 via_socks4 = true;
    agent_check agent.enabled = true;
    no_agent_check agent.enabled = false;
}

/// Options with a time of at least a millisecond.
macro_rules! delays {
    ($($name:ident $delay:ident => $($field:ident).+ = $value:expr;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`, with `-` for `_`.")]
        pub fn $name(options: &mut ServerOptions, cursor: &mut Cursor<'_>, shared: &mut Shared<'_>) -> Parse {
            let $delay = delay(cursor, shared)?;
            options.checks.$($field).+ = $value;
            Ok(())
        }
    )*};
}
delays! {
    inter delay => inter = delay;
    fastinter delay => fastinter = Some(delay);
    downinter delay => downinter = Some(delay);
    agent_inter delay => agent.inter = delay;
}

fn delay(cursor: &mut Cursor<'_>, shared: &mut Shared<'_>) -> Parse<Duration> {
    let name = cursor.last();
    let text = cursor.value("a delay")?;
    let time = shared.time(&cursor.line, cursor.at - 1, name)?;
    if time.is_zero() {
        return Err(cursor.fault(format!(
            "invalid value 0 for argument '{name}' of a server."
        )));
    }
    if values::is_suspicious_time(text) {
        let message = format!(
            "'{name} {text}' in a server is suspiciously small for a value in milliseconds. Please use an explicit unit \
             ('{text}ms') if that was the intent."
        );
        shared.settle(Err(cursor.fault(message).as_warning()));
    }
    Ok(time)
}

/// Options with a number above 0.
macro_rules! counts {
    ($($name:ident $field:ident;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`, with `-` for `_`.")]
        pub fn $name(options: &mut ServerOptions, cursor: &mut Cursor<'_>, _shared: &mut Shared<'_>) -> Parse {
            options.checks.$field = count(cursor)?;
            Ok(())
        }
    )*};
}
counts! {
    rise rise;
    fall fall;
    error_limit error_limit;
}

/// Parses a number and ignores the characters after its digits, like C's `atol`, which HAProxy uses
/// for these words.
fn count(cursor: &mut Cursor<'_>) -> Parse<u32> {
    /// Half of the maximum, so that the sum of two does not overflow.
    const MAX: i64 = i32::MAX as i64 / 2;
    let name = cursor.last();
    let count = number(cursor, name, 1, i64::MAX)?;
    Ok(count.min(MAX) as u32)
}

/// `port`
pub fn port(options: &mut ServerOptions, cursor: &mut Cursor<'_>, _: &mut Shared<'_>) -> Parse {
    options.checks.port = port_number(cursor)?;
    Ok(())
}

/// `agent-port`
pub fn agent_port(
    options: &mut ServerOptions,
    cursor: &mut Cursor<'_>,
    _: &mut Shared<'_>,
) -> Parse {
    options.checks.agent.port = port_number(cursor)?;
    Ok(())
}

fn port_number(cursor: &mut Cursor<'_>) -> Parse<u16> {
    let name = cursor.last();
    // As in HAProxy, only the lower 16 bits count.
    Ok(number(cursor, name, i64::MIN, i64::MAX)? as u16)
}

/// `addr`
pub fn addr(
    options: &mut ServerOptions,
    cursor: &mut Cursor<'_>,
    shared: &mut Shared<'_>,
) -> Parse {
    cursor.value("<ipv4|ipv6>")?;
    let addr = check_address(cursor, shared)
        .map_err(|message| cursor.fault(format!("'addr' : {message}.")))?;
    options.checks.addr = Some(addr);
    Ok(())
}

/// `agent-addr`
pub fn agent_addr(
    options: &mut ServerOptions,
    cursor: &mut Cursor<'_>,
    shared: &mut Shared<'_>,
) -> Parse {
    cursor.value("an address")?;
    let addr = check_address(cursor, shared).map_err(|_| {
        cursor.fault(format!(
            "parsing agent-addr failed. Check if '{}' is correct address.",
            cursor.last()
        ))
    })?;
    options.checks.agent.addr = Some(addr);
    Ok(())
}

/// `agent-send`
pub fn agent_send(
    options: &mut ServerOptions,
    cursor: &mut Cursor<'_>,
    _: &mut Shared<'_>,
) -> Parse {
    options.checks.agent.send = cursor.octets("a string")?;
    Ok(())
}

/// `check-proto`
pub fn proto(options: &mut ServerOptions, cursor: &mut Cursor<'_>, _: &mut Shared<'_>) -> Parse {
    let word = cursor.value("a MUX protocol")?;
    options.checks.proto = Some(match (check_proto(word), word) {
        (Some(proto), _) => proto,
        (None, "fcgi") => return Err(cursor.fault(super::super::not_yet("check-proto fcgi"))),
        (None, _) => {
            return Err(cursor.fault(format!("'check-proto' :  unknown MUX protocol '{word}'.")));
        }
    });
    Ok(())
}

/// `healthcheck`
pub fn section(options: &mut ServerOptions, cursor: &mut Cursor<'_>, _: &mut Shared<'_>) -> Parse {
    options.checks.section = Some(cursor.value("a section name")?.to_owned());
    Ok(())
}

/// `track`
pub fn track(options: &mut ServerOptions, cursor: &mut Cursor<'_>, _: &mut Shared<'_>) -> Parse {
    options.checks.track = Some(cursor.value("[<proxy>/]<server>")?.to_owned());
    Ok(())
}

/// `slowstart`
pub fn slowstart(
    options: &mut ServerOptions,
    cursor: &mut Cursor<'_>,
    shared: &mut Shared<'_>,
) -> Parse {
    cursor.value("a time")?;
    let time = shared.time(&cursor.line, cursor.at - 1, "slowstart")?;
    // As in HAProxy: whole seconds, rounded up.
    options.checks.slowstart = Duration::from_secs(time.as_millis().div_ceil(1000) as u64);
    Ok(())
}

/// One of the known words.
fn one_of<T: Copy>(cursor: &mut Cursor<'_>, known: &[(&str, T)]) -> Parse<T> {
    let name = cursor.last();
    let names: Vec<String> = known.iter().map(|(name, _)| format!("'{name}'")).collect();
    let (last, others) = names
        .split_last()
        .map_or((String::new(), String::new()), |(last, rest)| {
            (last.clone(), rest.join(", "))
        });
    let names = match others.as_str() {
        "" => last,
        _ => format!("{others} or {last}"),
    };
    let word = cursor.value(&format!("one of {names}"))?;
    let found = known.iter().find(|(name, _)| *name == word);
    found
        .map(|(_, value)| *value)
        .ok_or_else(|| cursor.fault(format!("'{name}' expects one of {names} but got '{word}'.")))
}

/// `init-state`
pub fn init_state(
    options: &mut ServerOptions,
    cursor: &mut Cursor<'_>,
    _: &mut Shared<'_>,
) -> Parse {
    let known = [
        ("fully-up", InitState::FullyUp),
        ("up", InitState::Up),
        ("down", InitState::Down),
        ("fully-down", InitState::FullyDown),
        ("none", InitState::Unset),
    ];
    options.checks.init_state = one_of(cursor, &known)?;
    Ok(())
}

/// `observe`
pub fn observe(options: &mut ServerOptions, cursor: &mut Cursor<'_>, _: &mut Shared<'_>) -> Parse {
    let known = [
        ("none", Observe::Nothing),
        ("layer4", Observe::Layer4),
        ("layer7", Observe::Layer7),
    ];
    options.checks.observe = one_of(cursor, &known)?;
    Ok(())
}

/// `on-error`
pub fn on_error(options: &mut ServerOptions, cursor: &mut Cursor<'_>, _: &mut Shared<'_>) -> Parse {
    let known = [
        ("fastinter", OnError::FastInter),
        ("fail-check", OnError::FailCheck),
        ("sudden-death", OnError::SuddenDeath),
        ("mark-down", OnError::MarkDown),
    ];
    options.checks.on_error = one_of(cursor, &known)?;
    Ok(())
}

/// `on-marked-down`
pub fn on_marked_down(
    options: &mut ServerOptions,
    cursor: &mut Cursor<'_>,
    _: &mut Shared<'_>,
) -> Parse {
    options.checks.ends_sessions_when_down = one_of(cursor, &[("shutdown-sessions", true)])?;
    Ok(())
}

/// `on-marked-up`
pub fn on_marked_up(
    options: &mut ServerOptions,
    cursor: &mut Cursor<'_>,
    _: &mut Shared<'_>,
) -> Parse {
    let known = [("shutdown-backup-sessions", true)];
    options.checks.ends_backup_sessions_when_up = one_of(cursor, &known)?;
    Ok(())
}
