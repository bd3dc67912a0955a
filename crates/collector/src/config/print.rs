//! `components` and `print-config`: what is built in, and a configuration as it is read.

use std::fmt::Write as _;

use super::components::{Entry, Parse, Role};
use super::diagnostic::{At, Diagnostic, Notes};
use super::source::{self, Node, Outside, Value};

/// The text in the place of a secret, as in the Collector.
const REDACTED: &str = "[REDACTED]";
/// Parts of keys whose values are secrets.
const SECRET_KEYS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "secret",
    "api_key",
    "apikey",
    "access_key",
    "private_key",
    "key_pem",
    "credential",
    "authorization",
    "cookie",
];
/// Keys whose values are secrets; other keys may have them as a part.
const SECRET_NAMES: &[&str] = &[
    "token",
    "auth_token",
    "access_token",
    "api_token",
    "bearer_token",
    "inline",
];
/// Keys of maps and lists all of whose values are secrets.
const SECRET_MAPS: &[&str] = &["headers"];

/// How a configuration is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// JSON, and not YAML.
    pub is_json: bool,
    /// Secrets are written, too.
    pub shows_secrets: bool,
}

/// The configuration of several sources as one: merged, with what `${…}` stands for. It need not be
/// valid.
///
/// # Errors
/// Why it cannot be read.
pub fn config(
    sources: &[&str],
    outside: Outside<'_>,
    style: Style,
) -> Result<String, Vec<Diagnostic>> {
    let notes = Notes::default();
    if sources.is_empty() {
        notes.error(At::default(), "there is no configuration: name a file");
    }
    let root = source::tree(sources, outside, &notes);
    let root = root.filter(|_| !notes.has_errors());
    let Some(mut root) = root else {
        return Err(notes.into_diagnostics());
    };
    if !style.shows_secrets {
        redact(&mut root, false);
    }
    let mut out = String::new();
    if style.is_json {
        json(&root, 0, &mut out);
        out.push('\n');
    } else {
        yaml(&root, 0, &mut out);
    }
    Ok(out)
}

/// All kinds of components that are built in, as YAML: their names and signals.
#[must_use]
pub fn components(version: &str) -> String {
    let mut out = format!(
        "buildinfo:\n    command: spangate\n    description: Spangate, the collector\n    version: {version}\n"
    );
    let is_built_in = |entry: &&Entry| {
        let is_kafka = entry.names.iter().any(|name| name.text == "kafka");
        // Its entries are there in any build, so that it is refused by name.
        let is_absent = is_kafka && !cfg!(feature = "kafka");
        !is_absent && !matches!(entry.parse, Parse::LeftOut(_) | Parse::Refused(_))
    };
    for role in Role::ALL {
        let _ = writeln!(out, "{}:", role.key());
        for entry in role.entries().iter().filter(is_built_in) {
            for name in entry.names {
                let _ = writeln!(out, "    - name: {}", name.text);
                let signals = super::docs::signals(entry);
                if !signals.is_empty() {
                    let signals = signals.iter().map(|words| words.replace(' ', "-"));
                    let _ = writeln!(
                        out,
                        "      signals: [{}]",
                        signals.collect::<Vec<_>>().join(", ")
                    );
                }
            }
        }
    }
    let schemes = ["env", "file", "yaml"].map(|scheme| format!("    - scheme: {scheme}\n"));
    let _ = write!(out, "providers:\n{}", schemes.concat());
    out
}

/// Puts something else in the place of secrets. Secrets are told by their keys, and those in URLs by
/// their place.
fn redact(node: &mut Node, is_secret: bool) {
    match &mut node.value {
        Value::Map(entries) => {
            for (key, value) in entries {
                let key = key.text.to_ascii_lowercase();
                let holds = |part: &&str| key.contains(*part);
                let is_key = SECRET_KEYS.iter().any(holds) && !key.ends_with("_file");
                let is_name = SECRET_NAMES.contains(&key.as_str());
                let is_map = SECRET_MAPS.contains(&key.as_str());
                redact(value, is_secret || is_key || is_name || is_map);
            }
        }
        Value::List(items) => items.iter_mut().for_each(|item| redact(item, is_secret)),
        Value::Null => {}
        Value::Text(text) if !is_secret => {
            if let Some(without) = without_userinfo(text) {
                *text = without;
            }
        }
        // A number may be a password.
        value if is_secret => *value = Value::Text(REDACTED.to_owned()),
        _ => {}
    }
}

/// A URL without the name and the password that stand in it (RFC 3986 section 3.2.1).
fn without_userinfo(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let (userinfo, _) = authority.rsplit_once('@')?;
    let rest = rest.get(userinfo.len()..)?;
    Some(format!("{scheme}://{REDACTED}{rest}"))
}

/// Columns of a level.
const LEVEL: usize = 4;

fn indent(column: usize, out: &mut String) {
    out.extend(std::iter::repeat_n(' ', column));
}

/// Writes what stands behind a key or a dash, with the end of the line. Blocks begin at a column.
fn yaml(node: &Node, column: usize, out: &mut String) {
    match &node.value {
        Value::Map(entries) if !entries.is_empty() => {
            for (place, (key, value)) in entries.iter().enumerate() {
                if place > 0 || !out.ends_with("- ") {
                    indent(column, out);
                }
                plain_or_quoted(&key.text, out);
                out.push(':');
                yaml_value(value, column + LEVEL, out);
            }
        }
        Value::List(items) if !items.is_empty() => {
            for item in items {
                indent(column, out);
                out.push_str("- ");
                match &item.value {
                    Value::Map(entries) if !entries.is_empty() => yaml(item, column + 2, out),
                    Value::List(_) => {
                        json(item, usize::MAX, out);
                        out.push('\n');
                    }
                    _ => {
                        scalar(item, out);
                        out.push('\n');
                    }
                }
            }
        }
        _ => {
            scalar(node, out);
            out.push('\n');
        }
    }
}

fn yaml_value(node: &Node, column: usize, out: &mut String) {
    let is_block = match &node.value {
        Value::Map(entries) => !entries.is_empty(),
        Value::List(items) => !items.is_empty(),
        _ => false,
    };
    if is_block {
        out.push('\n');
        return yaml(node, column, out);
    }
    out.push(' ');
    scalar(node, out);
    out.push('\n');
}

/// Writes a value that is no block.
fn scalar(node: &Node, out: &mut String) {
    match &node.value {
        Value::Text(text) => scalar_text(text, out),
        _ => json(node, usize::MAX, out),
    }
}

/// Writes a text. A dollar is doubled, so that what is printed can be read again; those of keys stand
/// for nothing.
fn scalar_text(text: &str, out: &mut String) {
    plain_or_quoted(&text.replace('$', "$$"), out);
}

/// Writes a text plain where it stays a text, and else in quotes.
fn plain_or_quoted(text: &str, out: &mut String) {
    let mut bytes = text.bytes();
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_./-+$@%".contains(&byte);
    let begins = bytes
        .next()
        .is_some_and(|byte| byte.is_ascii_alphabetic() || b"_/$".contains(&byte));
    let words = [
        "null", "true", "false", "yes", "no", "on", "off", "y", "n", "inf", "nan",
    ];
    let is_word = words.iter().any(|word| text.eq_ignore_ascii_case(word));
    if begins && bytes.all(is_plain) && !is_word {
        out.push_str(text);
    } else {
        json_text(text, out);
    }
}

/// Writes JSON; at column [`usize::MAX`] on one line.
fn json(node: &Node, column: usize, out: &mut String) {
    let line = |column: usize, out: &mut String| {
        if column != usize::MAX {
            out.push('\n');
            indent(column, out);
        }
    };
    let deeper = column.saturating_add(LEVEL);
    match &node.value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => drop(write!(out, "{value}")),
        Value::Int(value) => drop(write!(out, "{value}")),
        // JSON has no word for these.
        Value::Float(value) if !value.is_finite() => drop(write!(out, "\"{value}\"")),
        Value::Float(value) => drop(write!(out, "{value:?}")),
        Value::Text(text) => json_text(&text.replace('$', "$$"), out),
        Value::List(items) => {
            out.push('[');
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    out.push_str(if column == usize::MAX { ", " } else { "," });
                }
                line(deeper, out);
                json(item, deeper, out);
            }
            if !items.is_empty() {
                line(column, out);
            }
            out.push(']');
        }
        Value::Map(entries) => {
            out.push('{');
            for (place, (key, value)) in entries.iter().enumerate() {
                if place > 0 {
                    out.push_str(if column == usize::MAX { ", " } else { "," });
                }
                line(deeper, out);
                json_text(&key.text, out);
                out.push_str(": ");
                json(value, deeper, out);
            }
            if !entries.is_empty() {
                line(column, out);
            }
            out.push('}');
        }
    }
}

fn json_text(text: &str, out: &mut String) {
    out.push_str(&serde_json::Value::from(text).to_string());
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: Style = Style {
        is_json: false,
        shows_secrets: true,
    };

    fn printed(text: &str, style: Style) -> String {
        let outside = Outside {
            variable: &|name| (name == "X").then(|| "of x".to_owned()),
            read_file: &|_| Err(String::new()),
        };
        config(&[&format!("yaml:{text}")], outside, style).expect("a configuration")
    }

    const TEXT: &str = "
receivers: { otlp: { protocols: { grpc: , http: { endpoint: '${env:X}' } } }, empty: {}, none: [] }
exporters:
  otlp:
    endpoint: https://user:pw@host:1/p@th
    headers: { x-token: abc, n: 5 }
    list: [ { a: 1, token: t }, [1, 'x y'], 'true', 1.5, 'a$$b', on ]
  basic: { client_auth: { username: u, password: 12345, password_file: /p }, number: '007' }
";

    #[test]
    fn a_configuration_is_printed_as_it_is_read_and_reads_as_printed() {
        let first = printed(TEXT, BOTH);
        assert_eq!(
            first,
            "receivers:
    otlp:
        protocols:
            grpc: null
            http:
                endpoint: \"of x\"
    empty: {}
    none: []
exporters:
    otlp:
        endpoint: \"https://user:pw@host:1/p@th\"
        headers:
            x-token: abc
            \"n\": 5
        list:
            - a: 1
              token: t
            - [1, \"x y\"]
            - \"true\"
            - 1.5
            - a$$b
            - \"on\"
    basic:
        client_auth:
            username: u
            password: 12345
            password_file: /p
        number: \"007\"
"
        );
        assert_eq!(printed(&first, BOTH), first);
        let json = Style {
            is_json: true,
            ..BOTH
        };
        let as_json = printed(TEXT, json);
        assert!(
            as_json.starts_with("{\n    \"receivers\": {\n        \"otlp\": {"),
            "{as_json}"
        );
        assert_eq!(printed(&as_json, BOTH), first);
    }

    #[test]
    fn secrets_are_not_printed_unless_asked_for() {
        let style = Style {
            shows_secrets: false,
            ..BOTH
        };
        let text = printed(TEXT, style);
        for shown in [
            "endpoint: \"https://[REDACTED]@host:1/p@th\"",
            "x-token: \"[REDACTED]\"",
            "\"n\": \"[REDACTED]\"",
            "token: \"[REDACTED]\"",
            "password: \"[REDACTED]\"",
            "password_file: /p",
            "username: u",
        ] {
            assert!(text.contains(shown), "{shown}: {text}");
        }
        for secret in ["abc", "12345", "pw@", "token: t\n"] {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
    }

    #[test]
    fn components_are_those_that_are_built_in() {
        let text = components("1.2.3");
        for line in [
            "    version: 1.2.3\n",
            "receivers:\n",
            "    - name: otlp\n      signals: [traces, metrics, logs]\n",
            "    - name: tail_sampling\n      signals: [traces]\n",
            "    - scheme: env\n",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert!(!text.contains("queued_retry"), "it is left out");
        let mut notes = Vec::new();
        let rules = syntax::yaml::Rules {
            bytes_max: 1 << 20,
            depth_max: 64,
            empty_is_absent: false,
        };
        assert!(syntax::yaml::parse(&text, &rules, &mut notes).is_some());
        assert!(notes.is_empty(), "{notes:?}");
    }
}
