//! Which effects a process can take over while it runs. One table: a keyword or a section that is
//! not in it has the default of its kind.

use crate::tree::Statement;

/// Whether an effect needs a restart of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Applies {
    /// The process can take it over and keep its connections.
    InPlace,
    /// Only a new process has it. The text is the reason, as a clause.
    Restart(&'static str),
}

use Applies::{InPlace, Restart};

const GLOBAL: Applies = Restart("the process reads it once, at its start");
const SET_UP: Applies = Restart("the section is set up once, at the start");
const SOCKET: Applies = Restart("it is set when the socket is opened");
const EXPORTER: Applies = Restart("its exporter is created at the start");

/// A row of the table.
struct Row {
    /// The kind of a section, a keyword, or a keyword with its first argument.
    name: &'static str,
    applies: Applies,
}

const fn row(name: &'static str, applies: Applies) -> Row {
    Row { name, applies }
}

/// Sections other than `global` and proxies. The default is a restart.
const SECTIONS: &[Row] = &[
    row("collector", SET_UP),
    row("crt-store", InPlace),
    row("dashboard", SET_UP),
    row("healthcheck", InPlace),
    row("http-errors", InPlace),
    row("log-forward", SET_UP),
    row("log-profile", InPlace),
    row("mailers", InPlace),
    row("peers", SET_UP),
    row("resolvers", InPlace),
    row("ring", SET_UP),
    row("userlist", InPlace),
];

/// Keywords of `global`. The default is a restart.
const GLOBALS: &[Row] = &[
    // Only while files are read.
    row("ca-base", InPlace),
    row("crt-base", InPlace),
    row("default-path", InPlace),
    row("expose-deprecated-directives", InPlace),
    row("expose-experimental-directives", InPlace),
    row("key-base", InPlace),
    row("zero-warning", InPlace),
    // Read while the process runs.
    row("description", InPlace),
    row("grace", InPlace),
    row("hard-stop-after", InPlace),
    row("log", InPlace),
    row("log-send-hostname", InPlace),
    row("log-tag", InPlace),
    row("max-spread-checks", InPlace),
    row("maxconnrate", InPlace),
    row("maxsessrate", InPlace),
    row("maxsslrate", InPlace),
    row("node", InPlace),
    row("spread-checks", InPlace),
    // Only when the TLS settings of lines are made.
    row("issuers-chain-path", InPlace),
    row("ssl-default-bind-ciphers", InPlace),
    row("ssl-default-bind-ciphersuites", InPlace),
    row("ssl-default-bind-client-sigalgs", InPlace),
    row("ssl-default-bind-curves", InPlace),
    row("ssl-default-bind-options", InPlace),
    row("ssl-default-bind-sigalgs", InPlace),
    row("ssl-default-server-ciphers", InPlace),
    row("ssl-default-server-ciphersuites", InPlace),
    row("ssl-default-server-client-sigalgs", InPlace),
    row("ssl-default-server-curves", InPlace),
    row("ssl-default-server-options", InPlace),
    row("ssl-default-server-sigalgs", InPlace),
    row("ssl-load-extra-del-ext", InPlace),
    row("ssl-load-extra-files", InPlace),
    row("ssl-server-verify", InPlace),
    row("ssl-skip-self-issued-ca", InPlace),
];

/// Lines of proxies. The default is in place.
const PROXIES: &[Row] = &[
    row("filter opentelemetry", EXPORTER),
    row(
        "mode",
        Restart("the mode of a proxy stays the same while it exists"),
    ),
    row("option tracing", EXPORTER),
];

/// Options of a `bind` line that stays. The default is in place.
const LISTENERS: &[Row] = &[
    row("backlog", SOCKET),
    row("defer-accept", SOCKET),
    row("gid", SOCKET),
    row("group", SOCKET),
    row("interface", SOCKET),
    row("mode", SOCKET),
    row("mss", SOCKET),
    row("namespace", SOCKET),
    row("tfo", SOCKET),
    row("transparent", SOCKET),
    row("uid", SOCKET),
    row("user", SOCKET),
    row("v4v6", SOCKET),
    row("v6only", SOCKET),
];

fn find(table: &[Row], name: &str, default: Applies) -> Applies {
    let found = table.iter().find(|row| row.name == name);
    found.map_or(default, |row| row.applies)
}

impl Applies {
    /// Both effects: a restart if one of them needs it.
    #[must_use]
    pub fn and(self, other: Applies) -> Applies {
        match self {
            InPlace => other,
            Restart(_) => self,
        }
    }
}

/// A section of this kind, other than `global` and proxies.
pub(super) fn section(kind: &str) -> Applies {
    find(SECTIONS, kind, GLOBAL)
}

/// A keyword of `global`.
pub(super) fn global(keyword: &str) -> Applies {
    find(GLOBALS, keyword, GLOBAL)
}

/// A line of a proxy.
pub(super) fn proxy_line(statement: &Statement) -> Applies {
    let keyword = statement.keyword();
    let longer = format!("{keyword} {}", statement.arg(1));
    find(PROXIES, &longer, find(PROXIES, keyword, InPlace))
}

/// An option of a `bind` line.
pub(super) fn listener_option(option: &str) -> Applies {
    find(LISTENERS, option, InPlace)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keywords::{self, bind, global, other, proxy};

    #[test]
    fn every_row_names_a_keyword() {
        for row in SECTIONS {
            assert!(
                keywords::find(other::SECTIONS, row.name).is_some(),
                "{}",
                row.name
            );
        }
        for row in GLOBALS {
            assert!(
                keywords::find(global::KEYWORDS, row.name).is_some(),
                "{}",
                row.name
            );
        }
        for row in PROXIES {
            let keyword = row.name.split(' ').next().unwrap_or_default();
            assert!(
                keywords::find(proxy::KEYWORDS, keyword).is_some(),
                "{}",
                row.name
            );
        }
        for row in LISTENERS {
            assert!(
                keywords::find(bind::KEYWORDS, row.name).is_some(),
                "{}",
                row.name
            );
        }
    }
}
