//! What a line of a proxy adds to: a setting of which the last line wins, or a list. Different
//! keywords may share a setting.

use crate::build::values;
use crate::keywords::{Keyword, Places, State, filters, options, proxy, timeouts};
use crate::tree::{Prefix, Statement};
use std::collections::HashMap;
use std::sync::LazyLock;

use super::item::key_of;

/// Where a line belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Slot {
    Acl,
    Listener,
    /// `server`, `server-template` and `default-server`, which depend on each other.
    Server,
    /// Each line counts.
    List(String),
    /// The last line wins.
    Setting(String),
}

/// A keyword whose lines form a list.
struct ListRow {
    keyword: &'static str,
    /// The first argument, if other lines of the keyword are in other lists.
    argument: &'static str,
    list: &'static str,
}

const fn list(keyword: &'static str) -> ListRow {
    with(keyword, "", keyword)
}

const fn with(keyword: &'static str, argument: &'static str, list: &'static str) -> ListRow {
    ListRow {
        keyword,
        argument,
        list,
    }
}

const LISTS: &[ListRow] = &[
    with("compression", "algo", "compression algo"),
    with("compression", "algo-res", "compression algo"),
    with("compression", "type", "compression type"),
    with("compression", "type-req", "compression type-req"),
    with("compression", "type-res", "compression type"),
    list("errorfiles"),
    list("filter"),
    list("force-be-switch"),
    list("force-persist"),
    list("http-after-response"),
    list("http-check"),
    list("http-request"),
    list("http-response"),
    list("ignore-persist"),
    list("log"),
    list("log-steps"),
    with("monitor", "fail", "monitor fail"),
    list("quic-initial"),
    list("redirect"),
    list("ssl-f-use"),
    with("stats", "admin", "stats admin"),
    with("stats", "auth", "stats auth"),
    with("stats", "http-request", "stats http-request"),
    with("stats", "scope", "stats scope"),
    with("stick", "store-response", "stick store-response"),
    list("stick"),
    list("tcp-check"),
    with("tcp-request", "connection", "tcp-request connection"),
    with("tcp-request", "content", "tcp-request content"),
    with("tcp-request", "session", "tcp-request session"),
    with("tcp-response", "content", "tcp-response content"),
    list("use-server"),
    list("use_backend"),
];

/// Lists whose order does not matter.
const UNORDERED: &[&str] = &[
    "compression type",
    "compression type-req",
    "force-be-switch",
    "force-persist",
    "ignore-persist",
    "log",
    "log-steps",
    "monitor fail",
    "stats admin",
    "stats auth",
    "stats scope",
];

/// Lists in which own lines of a section replace those of its `defaults`.
const REPLACED: &[&str] = &["http-check", "tcp-check"];

/// Keywords whose first argument is a part of the setting's name.
const FAMILIES: &[&str] = &[
    "capture",
    "compression",
    "email-alert",
    "external-check",
    "monitor",
    "option",
    "persist",
    "rate-limit",
    "stats",
    "tcp-request",
    "tcp-response",
    "timeout",
];

/// Options and keywords that set the same thing: the first word is the option, the second the
/// setting. The lines are compared as a whole.
const SHARED: &[(&str, &str)] = &[
    ("external-check", HEALTH_CHECK),
    ("http-keep-alive", CONNECTION_MODE),
    ("http-server-close", CONNECTION_MODE),
    ("httpchk", HEALTH_CHECK),
    ("httpclose", CONNECTION_MODE),
    ("httplog", LOG_FORMAT),
    ("httpslog", LOG_FORMAT),
    ("ldap-check", HEALTH_CHECK),
    ("mysql-check", HEALTH_CHECK),
    ("pgsql-check", HEALTH_CHECK),
    ("redis-check", HEALTH_CHECK),
    ("smtpchk", HEALTH_CHECK),
    ("spop-check", HEALTH_CHECK),
    ("ssl-hello-chk", HEALTH_CHECK),
    ("tcp-check", HEALTH_CHECK),
    ("tcplog", LOG_FORMAT),
];

const CONNECTION_MODE: &str = "connection mode";
const HEALTH_CHECK: &str = "health check";
const LOG_FORMAT: &str = "log-format";

/// Older names.
const ALIASES: &[(&str, &str)] = &[
    (
        "option accept-invalid-http-request",
        "option accept-unsafe-violations-in-http-request",
    ),
    (
        "option accept-invalid-http-response",
        "option accept-unsafe-violations-in-http-response",
    ),
    ("timeout handshake", "timeout client-hs"),
];

/// Lines that say what is the case without them.
const NO_CHANGE: &[&[&str]] = &[
    &["balance", "random"],
    &["http-reuse", "safe"],
    &["mode", "tcp"],
    &["option", "http-keep-alive"],
    &["option", "http-restrict-req-hdr-names", "preserve"],
    &["option", "redispatch", "0"],
    &["retries", "3"],
];

/// The keywords of a proxy section, of options and of timeouts, by their names.
struct Tables {
    proxy: HashMap<&'static str, Known>,
    options: HashMap<&'static str, Known>,
    timeouts: HashMap<&'static str, Known>,
    filters: HashMap<&'static str, Known>,
}

#[derive(Clone, Copy)]
struct Known {
    places: Places,
    has_effect: bool,
}

static TABLES: LazyLock<Tables> = LazyLock::new(|| Tables {
    proxy: known(proxy::KEYWORDS),
    options: known(options::KEYWORDS),
    timeouts: known(timeouts::KEYWORDS),
    filters: known(filters::KEYWORDS),
});

fn known<P: Copy>(table: &[Keyword<P>]) -> HashMap<&'static str, Known> {
    let row = |keyword: &Keyword<P>| Known {
        places: keyword.places,
        has_effect: !matches!(keyword.state, State::NoEffect(_)),
    };
    table
        .iter()
        .map(|keyword| (keyword.name, row(keyword)))
        .collect()
}

/// Whether a line has an effect in a proxy with these capabilities. A keyword that is unknown has
/// one.
pub(super) fn has_effect(statement: &Statement, capability: Places) -> bool {
    let applies = |known: Option<&Known>| {
        known.is_none_or(|known| known.has_effect && known.places.intersects(capability))
    };
    let keyword = statement.keyword();
    let argument = statement.arg(1);
    let by_argument = match keyword {
        "option" => applies(TABLES.options.get(argument)),
        "timeout" => applies(TABLES.timeouts.get(argument)),
        "filter" => TABLES
            .filters
            .get(argument)
            .is_none_or(|known| known.has_effect),
        _ => true,
    };
    by_argument && applies(TABLES.proxy.get(keyword))
}

/// Where a line of a proxy belongs.
pub(super) fn slot(statement: &Statement) -> Slot {
    let (keyword, argument) = (statement.keyword(), statement.arg(1));
    match keyword {
        "acl" => return Slot::Acl,
        "bind" => return Slot::Listener,
        "server" | "server-template" | "default-server" => return Slot::Server,
        // Slots of `declare capture` and of captured headers have common numbers.
        "capture" if argument != "cookie" => return Slot::List(format!("capture {argument}")),
        "declare" => return Slot::List(format!("capture {}", statement.arg(2))),
        "errorfile" | "errorloc" | "errorloc302" | "errorloc303" => {
            return Slot::Setting(format!("error page {argument}"));
        }
        "http-error" => return Slot::Setting(format!("error page {}", statement.arg(2))),
        "enabled" => return Slot::Setting("disabled".to_owned()),
        _ => {}
    }
    let is_it = |row: &&ListRow| {
        row.keyword == keyword && (row.argument.is_empty() || row.argument == argument)
    };
    if let Some(row) = LISTS.iter().find(is_it) {
        return Slot::List(row.list.to_owned());
    }
    if keyword == "option"
        && let Some((_, setting)) = SHARED.iter().find(|(option, _)| *option == argument)
    {
        return Slot::Setting((*setting).to_owned());
    }
    if !FAMILIES.contains(&keyword) {
        return Slot::Setting(keyword.to_owned());
    }
    let name = format!("{keyword} {argument}");
    let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
    Slot::Setting(alias.map_or(name, |(_, meant)| (*meant).to_owned()))
}

/// Whether own lines replace those of `defaults`.
pub(super) fn is_replaced(list: &str) -> bool {
    REPLACED.contains(&list)
}

/// Whether lines of a list may change places without an effect.
pub(super) fn is_unordered(list: &str) -> bool {
    UNORDERED.contains(&list)
}

/// The value of a line as a setting, in one form for all ways to write it; None if it is the
/// default.
pub(super) fn value(setting: &str, statement: &Statement) -> Option<Vec<u8>> {
    if statement.prefix == Prefix::None && is_default(statement) {
        return None;
    }
    let is_time = statement.keyword() == "timeout" || setting.ends_with(" inspect-delay");
    if is_time && let Ok(time) = values::time(statement.arg(2)) {
        return (!time.is_zero()).then(|| time.as_micros().to_be_bytes().to_vec());
    }
    // A switch is on, whichever of its names sets it.
    let is_switch = setting.starts_with("option ") && statement.words.len() == 2;
    let mut key = if is_switch {
        Vec::new()
    } else {
        key_of(&statement.words)
    };
    if statement.prefix != Prefix::None {
        key.push(1);
    }
    Some(key)
}

fn is_default(statement: &Statement) -> bool {
    NO_CHANGE.iter().any(|line| {
        line.len() == statement.words.len()
            && line
                .iter()
                .zip(&statement.words)
                .all(|(known, word)| word.text == **known)
    })
}

/// The effect of `no` or `default` before an option on the setting that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Negated {
    /// The setting has its default again.
    Reset,
    /// The same, if this option is the one that is set.
    ResetIfSame,
    /// It is a value of its own.
    Value,
}

/// The effect of a line with a prefix.
pub(super) fn negated(setting: &str, statement: &Statement) -> Negated {
    if setting == CONNECTION_MODE {
        Negated::ResetIfSame
    } else if setting == "option abortonclose" && statement.prefix == Prefix::No {
        // Without it, the mode decides.
        Negated::Value
    } else {
        Negated::Reset
    }
}

/// The kinds of settings of a section with this header.
pub(super) fn capability(kind: &str) -> Places {
    match kind {
        "frontend" => Places::FRONTEND,
        "backend" => Places::BACKEND,
        _ => Places::FRONTEND.or(Places::BACKEND),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keywords;

    #[test]
    fn every_row_names_a_keyword() {
        let lists = LISTS.iter().map(|row| row.keyword);
        for name in lists.chain(FAMILIES.iter().copied()) {
            assert!(keywords::find(proxy::KEYWORDS, name).is_some(), "{name}");
        }
        for (name, _) in SHARED {
            assert!(keywords::find(options::KEYWORDS, name).is_some(), "{name}");
        }
        for list in UNORDERED.iter().chain(REPLACED) {
            assert!(LISTS.iter().any(|row| row.list == *list), "{list}");
        }
    }
}
