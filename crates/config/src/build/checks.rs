//! Arguments of what describes health checks, which do not exist yet: enough to refuse what HAProxy refuses (manual §4.2
//! `http-check`, `tcp-check`, `option httpchk`; §5.2).

use super::Shared;
use super::address;
use super::line::{Cursor, Parse};

/// An option that a rule may have, and how many words follow it.
type Words = &'static [(&'static str, u8)];

const CONNECT: Words = &[
    ("default", 0),
    ("port", 1),
    ("addr", 1),
    ("proto", 1),
    ("comment", 1),
    ("send-proxy", 0),
    ("via-socks4", 0),
    ("linger", 0),
    ("ssl", 0),
    ("sni", 1),
    ("alpn", 1),
    ("pool-conn-name", 1),
    ("reuse-pool", 0),
    ("check-pool-conn-name", 1),
];
const HTTP_SEND: Words = &[
    ("meth", 1),
    ("uri", 1),
    ("uri-lf", 1),
    ("ver", 1),
    ("hdr", 2),
    ("body", 1),
    ("body-lf", 1),
    ("comment", 1),
];
const EXPECT: Words = &[
    ("min-recv", 1),
    ("comment", 1),
    ("ok-status", 1),
    ("error-status", 1),
    ("tout-status", 1),
    ("on-success", 1),
    ("on-error", 1),
    ("status-code", 1),
];
const HTTP_MATCHES: &[&str] = &[
    "string",
    "rstring",
    "string-lf",
    "status",
    "rstatus",
    "hdr",
    "fhdr",
];
const TCP_MATCHES: &[&str] = &[
    "string",
    "rstring",
    "string-lf",
    "binary",
    "rbinary",
    "binary-lf",
    "custom",
];

/// `http-check …`
pub fn http_check(cursor: &mut Cursor<'_>) -> Parse {
    let name = "http-check";
    match cursor.take() {
        "disable-on-404" | "send-state" => Ok(()),
        "comment" => cursor.value("a string").map(drop),
        "connect" => options(cursor, CONNECT),
        "send" => options(cursor, HTTP_SEND),
        "expect" => expect(cursor, HTTP_MATCHES),
        word if variable(word) => assignment(cursor),
        word => Err(cursor.fault(format!(
            "'{name}' only supports 'disable-on-404', 'comment', 'connect', 'send', 'expect', 'send-state', 'set-var', \
             'set-var-fmt' and 'unset-var' (got '{word}')."
        ))),
    }
}

/// `tcp-check …`
pub fn tcp_check(cursor: &mut Cursor<'_>) -> Parse {
    let name = "tcp-check";
    match cursor.take() {
        "comment" => cursor.value("a string").map(drop),
        "connect" => options(cursor, CONNECT),
        "send" | "send-lf" | "send-binary" | "send-binary-lf" => {
            cursor.value("a string")?;
            options(cursor, &[("comment", 1)])
        }
        "expect" => expect(cursor, TCP_MATCHES),
        word if variable(word) => assignment(cursor),
        word => Err(cursor.fault(format!(
            "'{name}' only supports 'comment', 'connect', 'send', 'send-lf', 'send-binary', 'send-binary-lf', 'expect', \
             'set-var', 'set-var-fmt' and 'unset-var' (got '{word}')."
        ))),
    }
}

fn variable(word: &str) -> bool {
    ["set-var(", "set-var-fmt(", "unset-var("]
        .iter()
        .any(|action| word.starts_with(action))
        && word.ends_with(')')
}

/// What follows an action on a variable.
fn assignment(cursor: &mut Cursor<'_>) -> Parse {
    if cursor.last().starts_with("unset-var") {
        return Ok(());
    }
    cursor.value("an expression")?;
    // Converters may stand in words of their own.
    while !cursor.peek().is_empty() {
        cursor.take();
    }
    Ok(())
}

/// Options in any order.
fn options(cursor: &mut Cursor<'_>, known: Words) -> Parse {
    while !cursor.peek().is_empty() {
        let word = cursor.take();
        let Some((_, words)) = known.iter().find(|(name, _)| *name == word) else {
            let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            return Err(cursor.fault(format!("expects {} (got '{word}').", names.join(", "))));
        };
        take(cursor, word, *words)?;
    }
    Ok(())
}

fn take(cursor: &mut Cursor<'_>, name: &str, words: u8) -> Parse {
    for _ in 0..words {
        cursor
            .line
            .need(cursor.at, || format!("'{name}' expects an argument."))?;
        cursor.take();
    }
    Ok(())
}

/// `expect [<option> …] [!] <match> <pattern> […]`
fn expect(cursor: &mut Cursor<'_>, matches: &[&str]) -> Parse {
    loop {
        let word = cursor.take();
        if let Some((name, words)) = EXPECT.iter().find(|(name, _)| *name == word) {
            take(cursor, name, *words)?;
        } else if word == "!" {
            continue;
        } else if matches!(word, "hdr" | "fhdr") && matches.contains(&word) {
            return header(cursor);
        } else if word == "custom" && matches.contains(&word) {
            return end(cursor);
        } else if matches.contains(&word) {
            cursor.value("a pattern")?;
            return end(cursor);
        } else {
            return Err(cursor.fault(format!(
                "'expect' only supports {} (got '{word}').",
                matches.join(", ")
            )));
        }
    }
}

/// `hdr name [-m <method>] <name> [value [-m <method>] <value>]`
fn header(cursor: &mut Cursor<'_>) -> Parse {
    for what in ["name", "name-lf"] {
        if cursor.peek() == what {
            cursor.take();
            method(cursor)?;
            cursor.value("a header name")?;
        }
    }
    while matches!(cursor.peek(), "value" | "value-lf" | "full") {
        cursor.take();
        if cursor.last() != "full" {
            method(cursor)?;
            cursor.value("a value")?;
        }
    }
    end(cursor)
}

fn method(cursor: &mut Cursor<'_>) -> Parse {
    if cursor.peek() != "-m" {
        return Ok(());
    }
    cursor.take();
    match cursor.take() {
        "str" | "beg" | "end" | "sub" | "reg" => Ok(()),
        word => Err(cursor.fault(format!("unsupported matching method '{word}'."))),
    }
}

fn end(cursor: &Cursor<'_>) -> Parse {
    match cursor.peek() {
        "" => Ok(()),
        word => Err(cursor.line.fault(
            cursor.at,
            format!("cannot handle unexpected argument '{word}'."),
        )),
    }
}

/// `external-check command <command>|path <path>`
pub fn external(cursor: &mut Cursor<'_>) -> Parse {
    match cursor.take() {
        "command" | "path" => cursor.value("an argument").map(drop),
        word => Err(cursor.fault(format!(
            "'external-check' only supports 'command' and 'path' (got '{word}')."
        ))),
    }
}

/// `option httpchk [[<method>] <uri> [<version> [<host>]]]`
pub fn http(cursor: &mut Cursor<'_>) -> Parse {
    up_to(cursor, 4);
    match cursor.last().contains(['\r', '\n']) {
        true => Err(cursor.fault(
            "hiding headers or body at the end of the version string is unsupported. Use 'http-check send' directive instead.",
        )),
        false => Ok(()),
    }
}

/// `option smtpchk [EHLO|HELO <domain>]`
pub fn smtp(cursor: &mut Cursor<'_>) -> Parse {
    up_to(cursor, 2);
    Ok(())
}

fn up_to(cursor: &mut Cursor<'_>, words: usize) {
    for _ in 0..words {
        if !cursor.peek().is_empty() {
            cursor.take();
        }
    }
}

/// `option mysql-check [user <name> [post-41|pre-41]]`
pub fn mysql(cursor: &mut Cursor<'_>) -> Parse {
    if cursor.peek().is_empty() {
        return Ok(());
    }
    user(cursor)?;
    match cursor.peek() {
        "" => Ok(()),
        "post-41" | "pre-41" => {
            cursor.take();
            Ok(())
        }
        word => Err(cursor.line.fault(
            cursor.at,
            format!(
                "keyword 'mysql-check' only supports option 'post-41' and 'pre-41' (got '{word}')."
            ),
        )),
    }
}

/// `option pgsql-check user <name>`
pub fn pgsql(cursor: &mut Cursor<'_>) -> Parse {
    user(cursor)
}

fn user(cursor: &mut Cursor<'_>) -> Parse {
    let name = cursor.last();
    match cursor.take() {
        "user" => cursor.value("<username>").map(drop),
        word => Err(cursor.fault(format!(
            "'{name}' expects 'user <username>' (got '{word}')."
        ))),
    }
}

/// `type <kind> […]` of a section `healthcheck`
pub fn kind(cursor: &mut Cursor<'_>) -> Parse {
    match cursor.take() {
        "httpchk" => http(cursor),
        "smtpchk" => smtp(cursor),
        "mysql-check" => mysql(cursor),
        "pgsql-check" => pgsql(cursor),
        "tcp-check" | "redis-check" | "ldap-check" | "spop-check" | "ssl-hello-chk" => Ok(()),
        "" => Err(cursor.fault("'type' expects a healthcheck type.")),
        word => Err(cursor.fault(format!(
            "unknown healthcheck type '{word}' (expects 'tcp-check', 'httpchk', 'ssl-hello-chk', 'smtpchk', 'pgsql-check', \
             'redis-check', 'mysql-check', 'ldap-check' and 'spop-check')."
        ))),
    }
}

/// An address without a port.
pub fn address(cursor: &mut Cursor<'_>, shared: &Shared<'_>) -> Parse {
    let name = cursor.last();
    let text = cursor.value("<ipv4|ipv6>")?;
    // HAProxy's resolver takes a number for an IPv4 address.
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(());
    }
    let title = format!("'{name}'");
    let written = address::resolved(&cursor.line, cursor.at - 1, shared, &title)?;
    address::single(&written)
        .map(drop)
        .map_err(|message| cursor.fault(format!("{title} : {message}.")))
}

/// A list of networks.
pub fn networks(cursor: &mut Cursor<'_>) -> Parse {
    let text = cursor.value("a list of networks")?;
    match text
        .split(',')
        .find(|part| address::network(part).is_none())
    {
        Some(part) => Err(cursor.fault(format!("'resolve-net' invalid network '{part}'."))),
        None => Ok(()),
    }
}

/// `quic-cc-algo cubic|newreno|bbr|nocc[(<arguments>)]`
pub fn quic_algorithm(cursor: &mut Cursor<'_>) -> Parse {
    let text = cursor.value("a congestion control algorithm")?;
    match text.split('(').next() {
        Some("cubic" | "newreno" | "bbr" | "nocc") => Ok(()),
        _ => Err(cursor.fault(format!("'{text}' : unknown control congestion algorithm."))),
    }
}
