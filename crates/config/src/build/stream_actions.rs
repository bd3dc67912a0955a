//! Actions that HTTP rules and TCP rules have in common: marks, log level, place in the queues (manual §4.4).

use super::Shared;
use super::line::{Cursor, Parse};
use super::log_line::LEVELS;
use crate::model::{LogLevel, Number, Side, StreamAction};
use sample::Place;

/// The actions as parsers of both kinds of rules.
macro_rules! actions {
    ($($doc:literal $name:ident $parse:expr;)*) => {
        /// For `http-request` and its kin.
        pub mod http {
            use super::*;
            use super::super::proxy::ProxyBuild;
            use crate::model::HttpAction;
            $(
                #[doc = $doc]
                pub fn $name(build: &mut ProxyBuild<'_, '_>, cursor: &mut Cursor<'_>, place: Place) -> Parse<HttpAction> {
                    $parse(build.shared, cursor, place).map(HttpAction::Stream)
                }
            )*
        }

        /// For `tcp-request` and its kin.
        pub mod tcp {
            use super::*;
            use super::super::proxy::ProxyBuild;
            use crate::model::TcpAction;
            $(
                #[doc = $doc]
                pub fn $name(build: &mut ProxyBuild<'_, '_>, cursor: &mut Cursor<'_>, place: Place) -> Parse<TcpAction> {
                    $parse(build.shared, cursor, place).map(TcpAction::Stream)
                }
            )*
        }
    };
}
actions! {
    "`set-fc-mark <mark>|<expr>`" set_fc_mark |shared, cursor, place| Ok(StreamAction::SetMark(Side::Client, number(shared, cursor, place)?));
    "`set-bc-mark <mark>|<expr>`" set_bc_mark |shared, cursor, place| Ok(StreamAction::SetMark(Side::Server, number(shared, cursor, place)?));
    "`set-fc-tos <tos>|<expr>`" set_fc_tos |shared, cursor, place| Ok(StreamAction::SetTos(Side::Client, number(shared, cursor, place)?));
    "`set-bc-tos <tos>|<expr>`" set_bc_tos |shared, cursor, place| Ok(StreamAction::SetTos(Side::Server, number(shared, cursor, place)?));
    "`set-log-level <level>|silent`" set_log_level |_: &mut Shared<'_>, cursor, _: Place| log_level(cursor).map(StreamAction::SetLogLevel);
    "`set-priority-class <expr>`" set_priority_class |shared, cursor, place| expr(shared, cursor, place).map(StreamAction::SetPriorityClass);
    "`set-priority-offset <expr>`" set_priority_offset |shared, cursor, place| expr(shared, cursor, place).map(StreamAction::SetPriorityOffset);
}

/// What may follow `silent-drop`.
pub fn rst_ttl(cursor: &mut Cursor<'_>) -> Parse<Option<u8>> {
    if cursor.peek() != "rst-ttl" {
        return Ok(None);
    }
    cursor.take();
    let text = cursor.value("a value from 1 to 255")?;
    match integer(text).and_then(|ttl| u8::try_from(ttl).ok()) {
        Some(ttl @ 1..) => Ok(Some(ttl)),
        _ => Err(cursor.fault("valid rst-ttl values are [1-255].")),
    }
}

fn expr(shared: &mut Shared<'_>, cursor: &mut Cursor<'_>, place: Place) -> Parse<sample::Expr> {
    let (expr, next) = shared.expr(&cursor.line, cursor.at, place)?;
    cursor.at = next;
    Ok(expr)
}

fn number(shared: &mut Shared<'_>, cursor: &mut Cursor<'_>, place: Place) -> Parse<Number> {
    match integer(cursor.peek()) {
        Some(number) => {
            cursor.take();
            Ok(Number::Fixed(number))
        }
        None => expr(shared, cursor, place).map(Number::Computed),
    }
}

/// As C reads it: `0x` before hexadecimal digits, `0` before octal ones.
fn integer(text: &str) -> Option<u32> {
    let hex = text.strip_prefix("0x").or(text.strip_prefix("0X"));
    match (hex, text.strip_prefix('0')) {
        (Some(digits), _) => u32::from_str_radix(digits, 16).ok(),
        (None, Some(digits)) if !digits.is_empty() => u32::from_str_radix(digits, 8).ok(),
        _ => text.parse().ok(),
    }
}

fn log_level(cursor: &mut Cursor<'_>) -> Parse<LogLevel> {
    let word = cursor.value("exactly 1 argument (log level name or 'silent')")?;
    let severity = LEVELS.iter().position(|level| *level == word);
    match severity {
        _ if word == "silent" => Ok(LogLevel::Silent),
        Some(severity) => Ok(LogLevel::Severity(severity as u8)),
        None => Err(cursor
            .fault("'set-log-level' expects exactly 1 argument (log level name or 'silent').")),
    }
}
