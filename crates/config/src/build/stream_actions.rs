//! Actions that HTTP rules and TCP rules share: addresses, marks, variables, log level, priority in
//! the queues (manual §4.4).

use super::line::{Cursor, Parse};
use super::log_line::LEVELS;
use super::{Shared, log_profile};
use crate::keywords::actions::ActionParser;
use crate::model::{AddressPart, LogLevel, Number, Side, StreamAction};
use sample::Place;

/// Defines the actions as parsers for both kinds of rules: the function that parses the words, and
/// the resulting `Action`.
macro_rules! actions {
    ($($doc:literal $name:ident $parse:expr => $action:expr;)*) => {$(
        #[doc = $doc]
        pub const $name: ActionParser = ActionParser::Both(
            |build, cursor, place| {
                use crate::model::HttpAction as Action;
                $parse(build.shared, cursor, place).map($action)
            },
            |build, cursor, place| {
                use crate::model::TcpAction as Action;
                $parse(build.shared, cursor, place).map($action)
            },
        );
    )*};
}
actions! {
    "`do-log [profile <name>]`" DO_LOG |shared: &mut Shared<'_>, cursor, _: Place| log_profile::option(cursor, shared) => |profile| Action::DoLog { profile };
    "`do-resolve(<variable>,<resolvers>[,ipv4|ipv6]) <expression>`" DO_RESOLVE super::resolvers::do_resolve => Action::Resolve;
    "`set-fc-mark <mark>|<expr>`" SET_FC_MARK number => |mark| Action::Stream(StreamAction::SetMark(Side::Client, mark));
    "`set-bc-mark <mark>|<expr>`" SET_BC_MARK number => |mark| Action::Stream(StreamAction::SetMark(Side::Server, mark));
    "`set-fc-tos <tos>|<expr>`" SET_FC_TOS number => |tos| Action::Stream(StreamAction::SetTos(Side::Client, tos));
    "`set-bc-tos <tos>|<expr>`" SET_BC_TOS number => |tos| Action::Stream(StreamAction::SetTos(Side::Server, tos));
    "`set-dst <expr>`" SET_DST Shared::next_expr => |expr| Action::Stream(StreamAction::SetAddress(AddressPart::DestinationIp, expr));
    "`set-dst-port <expr>`" SET_DST_PORT Shared::next_expr => |expr| Action::Stream(StreamAction::SetAddress(AddressPart::DestinationPort, expr));
    "`set-src <expr>`" SET_SRC Shared::next_expr => |expr| Action::Stream(StreamAction::SetAddress(AddressPart::SourceIp, expr));
    "`set-src-port <expr>`" SET_SRC_PORT Shared::next_expr => |expr| Action::Stream(StreamAction::SetAddress(AddressPart::SourcePort, expr));
    "`set-log-level <level>|silent`" SET_LOG_LEVEL |_: &mut Shared<'_>, cursor, _: Place| log_level(cursor) => |level| Action::Stream(StreamAction::SetLogLevel(level));
    "`set-priority-class <expr>`" SET_PRIORITY_CLASS Shared::next_expr => |expr| Action::Stream(StreamAction::SetPriorityClass(expr));
    "`set-priority-offset <expr>`" SET_PRIORITY_OFFSET Shared::next_expr => |expr| Action::Stream(StreamAction::SetPriorityOffset(expr));
    "`set-var(<name>[,<condition>…]) <expr>`" SET_VAR Shared::set_var => Action::Var;
    "`set-var-fmt(<name>[,<condition>…]) <format>`" SET_VAR_FMT Shared::set_var_fmt => Action::Var;
    "`unset-var(<name>)`" UNSET_VAR |shared: &mut Shared<'_>, cursor, _: Place| shared.unset_var(cursor) => Action::Var;
    "`silent-drop [rst-ttl <ttl>]`" SILENT_DROP |_: &mut Shared<'_>, cursor, _: Place| rst_ttl(cursor) => |rst_ttl| Action::SilentDrop { rst_ttl };
}

/// The optional argument of `silent-drop`.
fn rst_ttl(cursor: &mut Cursor<'_>) -> Parse<Option<u8>> {
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

fn number(shared: &mut Shared<'_>, cursor: &mut Cursor<'_>, place: Place) -> Parse<Number> {
    match integer(cursor.peek()) {
        Some(number) => {
            cursor.take();
            Ok(Number::Fixed(number))
        }
        None => shared.next_expr(cursor, place).map(Number::Computed),
    }
}

/// An integer in C's syntax: `0x` before hexadecimal digits, `0` before octal ones.
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
