//! `tcp-request` and `tcp-response` rules (manual §4.2, §4.4).

use super::line::{Cursor, Line, Parse};
use super::order::Stage;
use super::proxy::ProxyBuild;
use super::{Shared, did_you_mean};
use crate::keywords::actions::{self, ActionParser};
use crate::keywords::{self, Places};
use crate::model::{Capture, Proto, TcpAction, TcpRule};
use sample::Place;
use std::sync::Arc;
use std::time::Duration;
use syntax::octets::Octets;

/// Parses an action, after its name was taken.
pub type TcpParser = fn(&mut ProxyBuild<'_, '_>, &mut Cursor<'_>, Place) -> Parse<TcpAction>;

/// `tcp-request`
pub fn request(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let title = build.title();
    match line.arg(1) {
        "" => Err(line.fault(1, format!("missing argument for 'tcp-request' in {title}."))),
        "inspect-delay" => {
            build.proxy.tcp_request_inspect_delay = inspect_delay(build.shared, line, &title)?;
            Ok(())
        }
        "connection" => {
            frontend_only(build, line)?;
            let rule = rule(
                build,
                line,
                Places::TCP_CONNECTION,
                Place::FE_TCP_CONNECTION,
            )?;
            build.placed(line, Stage::Connection, 2);
            push(rule, &mut build.proxy.tcp_request_connection)
        }
        "session" => {
            frontend_only(build, line)?;
            let rule = rule(build, line, Places::TCP_SESSION, Place::FE_TCP_SESSION)?;
            build.placed(line, Stage::Session, 2);
            push(rule, &mut build.proxy.tcp_request_session)
        }
        "content" => {
            let place = build.place(Place::FE_TCP_REQUEST, Place::BE_TCP_REQUEST);
            let rule = rule(build, line, Places::TCP_CONTENT, place)?;
            build.placed(line, Stage::Content, 2);
            push(rule, &mut build.proxy.tcp_request_content)
        }
        word => {
            let hint = did_you_mean(
                word,
                ["connection", "session", "content", "inspect-delay"].into_iter(),
            );
            Err(line.fault(
                1,
                format!("'tcp-request' expects 'inspect-delay', 'connection', 'session' or 'content' in {title} (got '{word}'){hint}."),
            ))
        }
    }
}

/// `tcp-response`
pub fn response(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let title = build.title();
    match line.arg(1) {
        "inspect-delay" => {
            build.proxy.tcp_response_inspect_delay = inspect_delay(build.shared, line, &title)?;
            Ok(())
        }
        "content" => {
            let rule = rule(build, line, Places::TCP_RESPONSE, Place::BE_TCP_RESPONSE)?;
            push(rule, &mut build.proxy.tcp_response_content)
        }
        word => Err(line.fault(
            1,
            format!(
                "'tcp-response' expects 'inspect-delay' or 'content' in {title} (got '{word}')."
            ),
        )),
    }
}

fn frontend_only(build: &ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    if build.proxy.is_frontend {
        Ok(())
    } else {
        Err(line.fault(
            1,
            format!(
                "tcp-request {} is not allowed because {} is not a frontend.",
                line.arg(1),
                build.title()
            ),
        ))
    }
}

fn inspect_delay(shared: &mut Shared<'_>, line: &Line<'_>, title: &str) -> Parse<Option<Duration>> {
    let name = format!("{} inspect-delay", line.keyword());
    line.need(2, || {
        format!("'{name}' expects a positive delay in milliseconds, in {title}.")
    })?;
    let time = shared.time(line, 2, &name)?;
    line.at_most_after(1, 1)?;
    Ok((!time.is_zero()).then_some(time))
}

fn push(rule: Option<TcpRule>, rules: &mut Vec<Arc<TcpRule>>) -> Parse {
    rules.extend(rule.map(Arc::new));
    Ok(())
}

fn rule(
    build: &mut ProxyBuild<'_, '_>,
    line: &Line<'_>,
    rules: Places,
    place: Place,
) -> Parse<Option<TcpRule>> {
    let mut cursor = Cursor { line: *line, at: 2 };
    // The default action is `accept`.
    let name = match cursor.peek() {
        "" | "if" | "unless" => "accept",
        _ => cursor.take(),
    };
    let Some(keyword) = keywords::find_in(actions::KEYWORDS, name, rules) else {
        let hint = did_you_mean(name, actions::of(rules).map(|k| k.name));
        let set = line.texts(0)[..2].join(" ");
        return Err(cursor.fault(format!(
            "'{set}' : unknown action '{name}' in {}{hint}.",
            build.title()
        )));
    };
    let action = match keyword.state.parser().and_then(ActionParser::tcp) {
        Some(parser) => Some(parser(build, &mut cursor, place)?),
        None => {
            super::without_parser(keyword, &mut cursor, build.shared)?;
            None
        }
    };
    let condition = build.condition(line, cursor.at, place)?;
    Ok(action.map(|action| TcpRule {
        action,
        condition,
        place: build.shared.rule_place(line),
    }))
}

/// Actions without arguments.
macro_rules! plain {
    ($($name:ident $action:ident;)*) => {$(
        #[doc = concat!("`", stringify!($name), "`, with `-` for `_`.")]
        pub fn $name(_build: &mut ProxyBuild<'_, '_>, _cursor: &mut Cursor<'_>, _place: Place) -> Parse<TcpAction> {
            Ok(TcpAction::$action)
        }
    )*};
}
plain! {
    accept Accept;
    reject Reject;
    close Close;
}

/// `capture <sample> len <length>`
pub fn capture(
    build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    place: Place,
) -> Parse<TcpAction> {
    if !build.proxy.is_frontend {
        return Err(cursor.fault(format!("{} has no frontend capability.", build.title())));
    }
    let expr = build.shared.next_expr(cursor, place)?;
    if cursor.take() != "len" {
        return Err(cursor.fault("a positive 'len' argument is mandatory."));
    }
    let len = cursor.number(1..=65535)?;
    let slots = &mut build.proxy.capture_request;
    slots.push(Capture {
        header: Octets::default(),
        len,
    });
    let slot = slots.len() - 1;
    Ok(TcpAction::Capture { expr, slot })
}

/// `use-service <service>`: no service but those of Lua takes a connection.
pub fn use_service(
    _build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    _place: Place,
) -> Parse<TcpAction> {
    Err(match cursor.value("a service name")? {
        "prometheus-exporter" => {
            cursor.fault("Prometheus exporter service only available on 'http-request' rulesets.")
        }
        name if name.starts_with("lua.") => {
            cursor.fault(super::not_yet(&format!("use-service {name}")))
        }
        name => cursor.fault(format!("unknown service name '{name}'.")),
    })
}

/// `switch-mode http [proto <name>]`
pub fn switch_mode(
    build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    _place: Place,
) -> Parse<TcpAction> {
    if !build.proxy.is_frontend {
        return Err(cursor.fault(format!(
            "'tcp-request switch-mode' not allowed because {} has no frontend capability.",
            build.title()
        )));
    }
    let mode = cursor.value("a mode")?;
    if mode != "http" {
        return Err(cursor.fault(format!(
            "'tcp-request switch-mode' expects a valid mode (got '{mode}')."
        )));
    }
    let mut proto = None;
    if cursor.peek() == "proto" {
        cursor.take();
        proto = match cursor.value("a protocol")? {
            "h1" => Some(Proto::H1),
            "h2" => Some(Proto::H2),
            name => {
                return Err(cursor.fault(format!(
                    "'tcp-request switch-mode': 'proto' expects a valid MUX protocol, if specified (got '{name}')."
                )));
            }
        };
    }
    Ok(TcpAction::SwitchMode(proto))
}

/// `expect-proxy layer4`
pub fn expect_proxy(
    build: &mut ProxyBuild<'_, '_>,
    cursor: &mut Cursor<'_>,
    _place: Place,
) -> Parse<TcpAction> {
    match cursor.take() {
        "layer4" => Ok(TcpAction::ExpectProxy),
        word => {
            let message = format!(
                "'tcp-request connection expect-proxy' only supports 'layer4' in {} (got '{word}').",
                build.title()
            );
            Err(cursor.fault(message))
        }
    }
}
