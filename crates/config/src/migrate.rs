//! Rewrites the lines of old files that HAProxy no longer accepts (`--migrate`).
//!
//! Only lines with such a directive change; all other bytes of a file stay. A line whose
//! replacement cannot be derived stays too, and is named.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::condition::BuildInfo;
use crate::environment::Environment;
use crate::keywords::{self, State, global, options, other, proxy};
use crate::reader::{self, Input};
use crate::tree::{Section, Source, Statement};

/// A file after the rewrite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// Its text.
    pub text: Vec<u8>,
    /// What was done, in the order of its lines.
    pub changes: Vec<Change>,
}

/// An old line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Its file and its number, counted from 1.
    pub place: String,
    /// What happened to it.
    pub action: Action,
}

/// What happens to an old line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// It became these lines.
    Rewritten(Vec<String>),
    /// It was removed: it has no meaning any more.
    Removed,
    /// The last line had no end.
    Ended,
    /// It stays, because its replacement cannot be derived: the reason or the advice.
    Left(String),
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.action {
            Action::Rewritten(lines) => write!(f, "{}: now: {}", self.place, lines.join(" | ")),
            Action::Removed => write!(f, "{}: removed", self.place),
            Action::Ended => write!(f, "{}: the last line was not ended", self.place),
            Action::Left(why) => write!(f, "{}: left as it is: {why}", self.place),
        }
    }
}

/// A range of physical lines that changes.
struct Edit {
    lines: Range<u32>,
    action: Action,
}

/// Rewrites one file.
#[must_use]
pub fn migrate(input: &Input, build: &BuildInfo) -> Migrated {
    let sections: Vec<&str> = other::SECTIONS.iter().map(|section| section.name).collect();
    let options = reader::Options {
        sections: &sections,
        build,
    };
    // Variables of the process must not end up in the file.
    let files = std::slice::from_ref(input);
    let (tree, _) = reader::read(files, &options, &mut Environment::new());
    let mut edits = Vec::new();
    for section in &tree.sections {
        edits.extend(of_header(section));
        edits.extend(
            section
                .statements
                .iter()
                .filter_map(|statement| of_line(section, statement)),
        );
    }
    apply(input, edits)
}

/// `listen <name> <address>`: the address becomes a `bind` line.
fn of_header(section: &Section) -> Option<Edit> {
    if !matches!(section.kind(), "frontend" | "listen") {
        return None;
    }
    let words = &section.header.words;
    let extra = words.get(2).filter(|word| word.text.as_str() != "from")?;
    let source = &extra.span.source;
    let written = written(source, extra.span.line, extra.span.start, extra.span.end)?;
    let line = source.line(extra.span.line);
    let head = String::from_utf8_lossy(line.get(..extra.span.start as usize)?);
    let rest = words[3..].iter().map(|word| word.text.as_str());
    let bind: Vec<&str> = ["bind", &written].into_iter().chain(rest).collect();
    Some(Edit {
        lines: lines_of(&section.header)?,
        action: Action::Rewritten(vec![
            head.trim_end().to_owned(),
            format!("    {}", bind.join(" ")),
        ]),
    })
}

fn of_line(section: &Section, statement: &Statement) -> Option<Edit> {
    let lines = lines_of(statement)?;
    let edit = |action| {
        Some(Edit {
            lines: lines.clone(),
            action,
        })
    };
    let action = match section.kind() {
        "global" => of_global(statement)?,
        "defaults" | "frontend" | "backend" | "listen" => of_proxy(statement)?,
        _ => return None,
    };
    let has_variables = (lines.start..lines.end).any(|line| {
        let source = &statement.words[0].span.source;
        source.line(line).contains(&b'$')
    });
    match action {
        Action::Rewritten(_) if has_variables => edit(Action::Left(
            "it has variables, whose values the new line would contain".to_owned(),
        )),
        Action::Rewritten(new) => {
            let indent = indent(statement);
            edit(Action::Rewritten(
                new.into_iter()
                    .map(|line| format!("{indent}{line}"))
                    .collect(),
            ))
        }
        other => edit(other),
    }
}

fn of_global(statement: &Statement) -> Option<Action> {
    let row = keywords::find(global::KEYWORDS, statement.keyword())?;
    // The removed settings of `global` say how work is divided, which no longer needs a setting.
    matches!(row.state, State::Removed(_)).then_some(Action::Removed)
}

fn of_proxy(statement: &Statement) -> Option<Action> {
    let words: Vec<&str> = statement
        .words
        .iter()
        .map(|word| word.text.as_str())
        .collect();
    match words[..] {
        ["option", "forceclose"] => {
            return Some(Action::Rewritten(vec!["option httpclose".to_owned()]));
        }
        ["option", "http-tunnel"] => return Some(Action::Removed),
        ["option", "httpchk", ..] => return of_httpchk(&words[2..]),
        ["option", name, ..] => {
            let row = keywords::find(options::KEYWORDS, name)?;
            return match row.state {
                State::Removed(why) => Some(Action::Left(format!("'option {why}"))),
                _ => None,
            };
        }
        _ => {}
    }
    let row = keywords::find(proxy::KEYWORDS, words[0])?;
    let State::Removed(why) = row.state else {
        return None;
    };
    let new = row.instead.and_then(|write| write(&words[1..]));
    Some(match new {
        Some(line) => Action::Rewritten(vec![line]),
        None => Action::Left(why.to_owned()),
    })
}

/// `option httpchk <method> <uri> <version>\r\n<name>: <value>…`: headers at the end of the version
/// become `http-check send`.
fn of_httpchk(words: &[&str]) -> Option<Action> {
    let [method, uri, rest @ ..] = words else {
        return None;
    };
    let rest = rest.join(" ");
    let mut parts = rest.split("\r\n");
    let version = parts.next()?;
    let mut send = format!(
        "http-check send meth {method} uri {uri} ver {}",
        version.trim()
    );
    let mut has_fields = false;
    for part in parts.by_ref() {
        if part.is_empty() {
            break;
        }
        has_fields = true;
        match part.split_once(':') {
            Some((name, value)) => {
                let value = crate::build::legacy::quoted(value.trim());
                send.push_str(&format!(" hdr {} {value}", name.trim()));
            }
            None => return Some(Action::Left(format!("'{part}' is no header"))),
        }
    }
    if !has_fields {
        return None;
    }
    let body = parts.collect::<Vec<_>>().join("\r\n");
    if !body.is_empty() {
        send.push_str(&format!(" body {}", crate::build::legacy::quoted(&body)));
    }
    Some(Action::Rewritten(vec!["option httpchk".to_owned(), send]))
}

/// The physical lines of a statement.
fn lines_of(statement: &Statement) -> Option<Range<u32>> {
    let (first, last) = (statement.words.first()?, statement.words.last()?);
    // `no option x` begins before its first word, on the same line.
    Some(first.span.line..last.span.line + 1)
}

/// The white space before a statement.
fn indent(statement: &Statement) -> String {
    let span = &statement.words[0].span;
    let line = span.source.line(span.line);
    let count = line
        .iter()
        .take_while(|byte| byte.is_ascii_whitespace())
        .count();
    String::from_utf8_lossy(&line[..count]).into_owned()
}

/// A word as it is written.
fn written(source: &Arc<Source>, line: u32, start: u32, end: u32) -> Option<String> {
    let bytes = source.line(line).get(start as usize..end as usize)?;
    Some(String::from_utf8_lossy(bytes).into_owned())
}

fn apply(input: &Input, edits: Vec<Edit>) -> Migrated {
    let lines: Vec<&[u8]> = input.text.split_inclusive(|byte| *byte == b'\n').collect();
    let (mut text, mut changes, mut next) = (Vec::with_capacity(input.text.len()), Vec::new(), 0);
    for edit in edits {
        let first = (edit.lines.start as usize).saturating_sub(1);
        let end = (edit.lines.end as usize).saturating_sub(1).min(lines.len());
        if first < next || first >= end {
            continue;
        }
        text.extend(lines[next..first].concat());
        match &edit.action {
            Action::Rewritten(new) => {
                for line in new {
                    text.extend_from_slice(line.as_bytes());
                    text.push(b'\n');
                }
            }
            Action::Removed => {}
            Action::Left(_) | Action::Ended => text.extend(lines[first..end].concat()),
        }
        next = end;
        changes.push(Change {
            place: format!("{}:{}", input.name, first + 1),
            action: edit.action,
        });
    }
    text.extend(lines[next.min(lines.len())..].concat());
    if text.last().is_some_and(|last| *last != b'\n') {
        text.push(b'\n');
        changes.push(Change {
            place: format!("{}:{}", input.name, lines.len()),
            action: Action::Ended,
        });
    }
    Migrated { text, changes }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn migrated(text: &str) -> (String, Vec<String>) {
        let input = Input {
            name: "old.cfg".into(),
            text: text.as_bytes().to_vec(),
        };
        let found = migrate(&input, &BuildInfo::default());
        let changes = found.changes.iter().map(Change::to_string).collect();
        (String::from_utf8(found.text).expect("text"), changes)
    }

    #[test]
    fn an_old_file() {
        let (text, changes) = migrated(
            "global\n  nbproc 4\n  daemon\n\ndefaults\n\tcontimeout 5000  # was\n\tclitimeout 50000\n\toption forceclose\n\toption http-tunnel\n\
             listen web 0.0.0.0:80,:8080\n    reqadd X-Forwarded-Proto:\\ http\n    reqidel ^X-Secret:.*\n    redispatch\n\
             \x20   option httpchk GET /x HTTP/1.1\\r\\nHost:\\ a.b\\r\\nAccept:\\ */*\n    server a 127.0.0.1:1",
        );
        assert_eq!(
            text,
            "global\n  daemon\n\ndefaults\n\ttimeout connect 5000\n\ttimeout client 50000\n\toption httpclose\n\
             listen web\n    bind 0.0.0.0:80,:8080\n    http-request add-header X-Forwarded-Proto http\n\
             \x20   http-request del-header X-Secret\n    option redispatch\n    option httpchk\n\
             \x20   http-check send meth GET uri /x ver HTTP/1.1 hdr Host a.b hdr Accept */*\n    server a 127.0.0.1:1\n"
        );
        assert_eq!(changes.len(), 11, "{changes:#?}");
        assert_eq!(changes[0], "old.cfg:2: removed");
        assert_eq!(changes[10], "old.cfg:15: the last line was not ended");
    }

    #[test]
    fn what_is_new_stays_byte_for_byte() {
        let text = "# a\nfrontend f from d # x\n  bind :80   \n  option httpchk GET /\n\n  no option httpclose\nbackend b\n  server s 1.1.1.1:1 \\\n    check\n";
        assert_eq!(migrated(text), (text.to_owned(), Vec::new()));
    }

    #[test]
    fn what_cannot_be_derived_is_named() {
        let cases = [
            (
                "reqrep ^Host:\\ a Cookie:\\ b",
                "left as it is: The 'reqrep' directive",
            ),
            ("option transparent", "left as it is: 'option transparent"),
            ("reqadd X:\\ $HOME", "has variables"),
        ];
        for (line, part) in cases {
            let text = format!("backend b\n    {line}\n");
            let (found, changes) = migrated(&text);
            assert_eq!(found, text, "{line}");
            assert!(
                changes.len() == 1 && changes[0].contains(part),
                "{line}: {changes:?}"
            );
        }
    }
}
