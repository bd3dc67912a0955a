//! `stats …` of a proxy: its statistics page (manual §4.2 stats).

use std::sync::Arc;

use super::line::{Line, Parse};
use super::proxy::ProxyBuild;
use super::{http_rules, not_yet, values};
use crate::keywords::Places;
use crate::model::{HttpAction, HttpRule, StatsPage};
use sample::Place;

/// Parses one of the words after `stats`.
type Parser = fn(&mut ProxyBuild<'_, '_>, &Line<'_>) -> Parse;

/// The words after `stats`.
const WORDS: &[(&str, Parser)] = &[
    ("admin", admin),
    ("auth", auth),
    ("enable", enable),
    ("hide-version", hide_version),
    ("http-request", http_request),
    ("realm", realm),
    ("refresh", refresh),
    ("scope", scope),
    ("show-desc", show_desc),
    ("show-legends", show_legends),
    ("show-modules", show_modules),
    ("show-node", show_node),
    ("show-version", show_version),
    ("uri", uri),
];

/// `stats`
pub fn stats(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    // A section's own settings replace all those of its `defaults`.
    if std::mem::take(&mut build.stats_inherited) {
        build.proxy.stats = None;
    }
    let word = line.arg(1);
    let Some((_, parser)) = WORDS.iter().find(|(name, _)| *name == word) else {
        let what = match word {
            "" => "missing keyword in 'stats'".to_owned(),
            _ => format!("unknown stats parameter '{word}'"),
        };
        return Err(line.fault(
            1,
            format!("{what}, expects 'admin', 'uri', 'realm', 'auth', 'scope', 'enable', 'hide-version', 'show-node', 'show-desc' , 'show-legends' or 'show-version'."),
        ));
    };
    parser(build, line)
}

impl ProxyBuild<'_, '_> {
    /// The page of this proxy; created if there is none.
    fn stats_page(&mut self) -> &mut StatsPage {
        Arc::make_mut(self.proxy.stats.get_or_insert_default())
    }
}

fn enable(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let place = build.shared.rule_place(line);
    build.stats_page().place.get_or_insert(place);
    Ok(())
}

fn uri(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    line.need(2, || "'uri' needs an URI prefix.".into())?;
    let place = build.shared.rule_place(line);
    let page = build.stats_page();
    page.uri = line.octets(2);
    page.place = Some(place);
    Ok(())
}

fn realm(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    line.need(2, || "'realm' needs an realm name.".into())?;
    build.stats_page().realm = Some(line.octets(2));
    Ok(())
}

fn auth(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    line.need(2, || "'auth' needs a user:password account.".into())?;
    let (user, password) = account(line.bytes(2));
    let page = build.stats_page();
    if page.users.iter().any(|(known, _)| **known == *user) {
        let name = String::from_utf8_lossy(user);
        let message = format!("uri auth: ignoring duplicated user '{name}'.");
        return Err(line.fault(2, message).as_warning());
    }
    page.users.push((user.into(), password.into()));
    Ok(())
}

/// The user and the password of `<user>:<password>`.
pub fn account(written: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b':', written) {
        Some(colon) => (&written[..colon], &written[colon + 1..]),
        None => (written, b""),
    }
}

fn scope(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    line.need(2, || "'scope' needs a proxy name.".into())?;
    let name = line.octets(2);
    let page = build.stats_page();
    if !page.scope.contains(&name) {
        page.scope.push(name);
    }
    Ok(())
}

fn refresh(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let text = line.arg(2);
    let fault = |bad| {
        line.fault(2, match bad {
            values::Bad::Overflow => format!("timer overflow in argument <{text}> to stats refresh interval, maximum value is 2147483647 s (~68 years)."),
            values::Bad::Underflow => format!("timer underflow in argument <{text}> to stats refresh interval, minimum non-null value is 1 s."),
            values::Bad::Character(bad) => format!("unexpected character '{bad}' in argument to stats refresh interval."),
        })
    };
    let seconds = values::seconds(text).map_err(fault)?;
    build.stats_page().refresh_s = seconds;
    Ok(())
}

fn hide_version(build: &mut ProxyBuild<'_, '_>, _line: &Line<'_>) -> Parse {
    if build.proxy.stats.is_some() {
        build.stats_page().shows_version = false;
    }
    Ok(())
}

fn show_version(build: &mut ProxyBuild<'_, '_>, _line: &Line<'_>) -> Parse {
    build.stats_page().shows_version = true;
    Ok(())
}

fn show_legends(build: &mut ProxyBuild<'_, '_>, _line: &Line<'_>) -> Parse {
    build.stats_page().shows_legends = true;
    Ok(())
}

fn show_modules(build: &mut ProxyBuild<'_, '_>, _line: &Line<'_>) -> Parse {
    build.stats_page().shows_modules = true;
    Ok(())
}

fn show_node(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let name = line.arg(2);
    let is_good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if !name.chars().all(is_good) {
        return Err(line.fault(
            2,
            "'stats show-node' invalid node name - should be a stringwith digits(0-9), letters(A-Z, a-z), hyphen(-) or underscode(_).",
        ));
    }
    let name = Some(name).filter(|name| !name.is_empty());
    build.stats_page().node = Some(name.map(|name| name.as_bytes().into()));
    Ok(())
}

fn show_desc(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    let own = (line.count() > 2).then(|| line.joined(2));
    if own.is_none() && build.global.description.is_none() {
        let message = "'show-desc' requires a parameter or 'desc' to be set in the global section.";
        return Err(line.fault(1, message).as_warning());
    }
    build.stats_page().description = Some(own);
    Ok(())
}

fn admin(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    if build.is_defaults() {
        return Err(line.fault(1, "'stats admin' not allowed in 'defaults' section."));
    }
    if !matches!(line.arg(2), "if" | "unless") {
        return Err(line.fault(
            2,
            "'stats admin' requires either 'if' or 'unless' followed by a condition.",
        ));
    }
    let place = build.place(Place::FE_HTTP_REQUEST, Place::BE_HTTP_REQUEST);
    if let Some(condition) = build.condition(line, 2, place)? {
        build.stats_page().admin.push(Arc::new(condition));
    }
    Ok(())
}

fn http_request(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    if build.is_defaults() {
        return Err(line.fault(0, "'stats' not allowed in 'defaults' section."));
    }
    let place = build.place(Place::FE_HTTP_REQUEST, Place::BE_HTTP_REQUEST);
    let rule = http_rules::rule_at(build, line, 2, Places::HTTP_REQUEST, place)?;
    if let Some(rule) = &rule
        && waits(rule)
    {
        let name = format!("stats http-request {}", line.arg(2));
        return Err(line.fault(2, not_yet(&name)));
    }
    let last = build.stats_page().http_request.last();
    let is_last = last.is_some_and(|rule| rule.condition.is_none());
    if let Some(rule) = rule {
        build.stats_page().http_request.push(Arc::new(rule));
    }
    if is_last {
        Err(line
            .fault(
                0,
                "previous 'stats' action has no condition attached, further entries are NOOP.",
            )
            .as_warning())
    } else {
        Ok(())
    }
}

/// Whether an action suspends the rules, which is not possible for the page's rules.
fn waits(rule: &HttpRule) -> bool {
    matches!(
        rule.action,
        HttpAction::Tarpit(_)
            | HttpAction::WaitForBody { .. }
            | HttpAction::WaitForHandshake
            | HttpAction::Resolve(_)
            | HttpAction::Pause(_)
    )
}
