//! `quic-initial` rules (manual §4.2, §4.4).

use std::sync::Arc;

use sample::Place;

use super::line::{Cursor, Line, Parse};
use super::order::Stage;
use super::proxy::ProxyBuild;
use super::{did_you_mean, log_profile};
use crate::keywords::actions::{self, ActionParser};
use crate::keywords::{self, Places};
use crate::model::{Mode, QuicAction, QuicRule};

/// Parses an action, after its name was taken.
pub type QuicParser = fn(&mut ProxyBuild<'_, '_>, &mut Cursor<'_>) -> Parse<QuicAction>;

/// `quic-initial <action> [if|unless <condition>]`
pub fn quic_initial(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    if build.proxy.mode != Mode::Http {
        let title = build.title();
        return Err(line.fault(
            0,
            format!("'quic-initial' needs 'mode http', which {title} does not have here."),
        ));
    }
    let mut cursor = Cursor { line: *line, at: 1 };
    let name = cursor.take();
    let Some(keyword) = keywords::find_in(actions::KEYWORDS, name, Places::QUIC_INITIAL) else {
        let names = || actions::of(Places::QUIC_INITIAL).map(|keyword| keyword.name);
        let hint = did_you_mean(name, names());
        let all: Vec<String> = names().map(|name| format!("'{name}'")).collect();
        let got = match name {
            "" => "nothing".to_owned(),
            name => format!("'{name}'"),
        };
        return Err(line.fault(
            1,
            format!(
                "'quic-initial' expects one of {}, got {got}{hint}.",
                all.join(", ")
            ),
        ));
    };
    let action = match keyword.state.parser().and_then(ActionParser::quic) {
        Some(parser) => Some(parser(build, &mut cursor)?),
        None => {
            super::without_parser(keyword, &mut cursor, build.shared)?;
            None
        }
    };
    // The facts of `tcp-request connection`. Only the addresses are known, but HAProxy gives no
    // further warnings.
    let condition = build.condition(line, cursor.at, Place::FE_TCP_CONNECTION)?;
    build.placed(line, Stage::QuicInitial, 1);
    let rule = action.map(|action| QuicRule {
        action,
        condition,
        place: build.shared.rule_place(line),
    });
    build.proxy.quic_initial.extend(rule.map(Arc::new));
    Ok(())
}

/// Actions without arguments.
macro_rules! plain {
    ($($name:ident $action:ident $keyword:literal;)*) => {$(
        #[doc = concat!("`", $keyword, "`")]
        pub fn $name(_build: &mut ProxyBuild<'_, '_>, _cursor: &mut Cursor<'_>) -> Parse<QuicAction> {
            Ok(QuicAction::$action)
        }
    )*};
}
plain! {
    accept Accept "accept";
    dgram_drop Drop "dgram-drop";
    reject Reject "reject";
    send_retry SendRetry "send-retry";
}

/// `do-log [profile <name>]`
pub fn do_log(build: &mut ProxyBuild<'_, '_>, cursor: &mut Cursor<'_>) -> Parse<QuicAction> {
    let profile = log_profile::option(cursor, build.shared)?;
    Ok(QuicAction::DoLog { profile })
}
