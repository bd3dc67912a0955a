//! Actions that change the timeouts and the retries of a stream (manual §4.4).

use super::http_rules::HttpParser;
use super::line::{Cursor, Parse};
use super::proxy::ProxyBuild;
use super::values::{self, Bad};
use crate::model::{Amount, HttpAction, TcpAction, TimeoutKind};
use sample::Place;

/// Most retries that a rule may set.
const RETRIES_MAX: u32 = 100;

/// `set-timeout client|connect|queue|server|tarpit|tunnel <time>|<expr>`
pub fn set_timeout(
    build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    place: Place,
) -> Parse<HttpAction> {
    for at in [cursor.at, cursor.at + 1] {
        cursor
            .line
            .need(at, || "expects exactly 2 arguments.".into())?;
    }
    let name = cursor.take();
    let kind = match name {
        "client" => TimeoutKind::Client,
        "connect" => TimeoutKind::Connect,
        "queue" => TimeoutKind::Queue,
        "server" => TimeoutKind::Server,
        "tarpit" => TimeoutKind::Tarpit,
        "tunnel" => TimeoutKind::Tunnel,
        _ => {
            return Err(cursor.fault(format!(
                "'set-timeout' rule supports 'client'/'connect'/'queue'/'server'/'tarpit'/'tunnel' (got '{name}')."
            )));
        }
    };
    let missing = match kind {
        TimeoutKind::Tarpit => None,
        TimeoutKind::Client => (!build.proxy.is_frontend).then_some("frontend"),
        _ => (!build.proxy.is_backend).then_some("backend"),
    };
    if let Some(missing) = missing {
        return Err(cursor.fault(format!(
            "'{}' has no {missing} capability.",
            build.proxy.name
        )));
    }
    let text = cursor.peek();
    let amount = match values::time(text) {
        Ok(time) if time.is_zero() => {
            return Err(cursor.line.fault(
                cursor.at,
                format!("null value is not valid for a 'set-timeout {name}' rule."),
            ));
        }
        Ok(time) => {
            cursor.take();
            build.shared.note_time(&cursor.line, cursor.at - 1);
            Amount::Fixed(time.as_millis() as u32)
        }
        Err(Bad::Overflow) => {
            let message = format!(
                "timer overflow in argument '{text}' to rule 'set-timeout {name}' (maximum value is 2147483647 ms or ~24.8 days)."
            );
            return Err(cursor.line.fault(cursor.at, message));
        }
        Err(Bad::Underflow) => {
            let message = format!(
                "timer underflow in argument '{text}' to rule 'set-timeout {name}' (minimum value is 1 ms)."
            );
            return Err(cursor.line.fault(cursor.at, message));
        }
        Err(Bad::Character(_)) => Amount::Expr(build.shared.next_expr(cursor, place)?),
    };
    Ok(HttpAction::SetTimeout { kind, amount })
}

/// `set-retries <number>|<expr>` of `http-request`
pub fn set_retries(
    build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    place: Place,
) -> Parse<HttpAction> {
    Ok(HttpAction::SetRetries(retries(build, cursor, place)?))
}

/// `set-retries <number>|<expr>` of `tcp-request content`
pub fn set_retries_tcp(
    build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    place: Place,
) -> Parse<TcpAction> {
    Ok(TcpAction::SetRetries(retries(build, cursor, place)?))
}

fn retries(build: &mut ProxyBuild<'_, '_>, cursor: &mut Cursor<'_>, place: Place) -> Parse<Amount> {
    const EXPECTED: &str = "expects an expression or an integer between 1 and 100.";
    let set = cursor.line.keyword();
    let text = cursor.line.need(cursor.at, || {
        "expects exactly 1 argument (an expression or an integer between 1 and 100).".into()
    })?;
    if build.is_defaults() {
        let message = format!("'{set}' is not allowed in 'defaults' sections.");
        return Err(cursor.fault(message));
    }
    if !build.proxy.is_backend {
        let message = format!("'{set}' only available in backend or listen section.");
        return Err(cursor.fault(message));
    }
    match text.parse::<i64>() {
        Ok(number) => match u32::try_from(number) {
            Ok(number) if number <= RETRIES_MAX => {
                cursor.take();
                Ok(Amount::Fixed(number))
            }
            _ => Err(cursor.line.fault(cursor.at, EXPECTED)),
        },
        Err(_) => build.shared.next_expr(cursor, place).map(Amount::Expr),
    }
}

/// `disable-l7-retry`
pub const DISABLE_L7_RETRY: HttpParser = |_, _, _| Ok(HttpAction::DisableL7Retry);
