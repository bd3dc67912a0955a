//! Policies as they would be written: what the dashboard shows, and dry runs begin with.

use std::fmt::Write as _;

use tail::settings::Policy;

use super::policies;

/// The list `policies` as YAML, which [`crate::config::policies::policies`] reads as the same
/// policies. Options that have their defaults are left out.
#[must_use]
pub fn yaml(policies: &[Policy]) -> String {
    let mut out = String::new();
    list(policies, 0, &mut out);
    out
}

/// Writes policies, each with its options below it; `indent` is the column of their dashes.
fn list(policies: &[Policy], indent: usize, out: &mut String) {
    for policy in policies {
        let _ = write!(out, "{:indent$}- ", "");
        body(policy, indent + 2, out);
    }
}

/// Writes a policy whose first key stands where the text ends, and the others in this column.
fn body(policy: &Policy, indent: usize, out: &mut String) {
    let kind = policy.kind.name();
    let _ = writeln!(out, "name: {}", text(&policy.name));
    let _ = writeln!(out, "{:indent$}type: {kind}", "");
    let mut block = Block {
        kind,
        indent,
        is_begun: false,
        out,
    };
    if let Some(found) = policies::find(kind) {
        (found.write)(&policy.kind, &mut block);
    }
}

/// The block of options of one policy.
pub(super) struct Block<'o> {
    kind: &'static str,
    indent: usize,
    is_begun: bool,
    out: &'o mut String,
}

impl Block<'_> {
    /// Writes the key of the block before its first option.
    fn begin(&mut self) {
        if !self.is_begun {
            self.is_begun = true;
            let (indent, kind) = (self.indent, self.kind);
            let _ = writeln!(self.out, "{:indent$}{kind}:", "");
        }
    }

    pub fn put(&mut self, name: &str, value: impl std::fmt::Display) {
        self.begin();
        let at = self.indent + 2;
        let _ = writeln!(self.out, "{:at$}{name}: {value}", "");
    }

    pub fn put_unless_zero(&mut self, name: &str, value: u64) {
        if value != 0 {
            self.put(name, value);
        }
    }

    pub fn put_if(&mut self, name: &str, value: bool) {
        if value {
            self.put(name, "true");
        }
    }

    /// Writes a policy under this key.
    pub fn sub(&mut self, name: &str, sub: &Policy) {
        self.begin();
        let (at, inner) = (self.indent + 2, self.indent + 4);
        let _ = write!(self.out, "{:at$}{name}:\n{:inner$}", "", "");
        body(sub, inner, self.out);
    }

    pub fn subs(&mut self, name: &str, subs: &[Policy]) {
        if subs.is_empty() {
            return;
        }
        self.begin();
        let at = self.indent + 2;
        let _ = writeln!(self.out, "{:at$}{name}:", "");
        list(subs, at + 2, self.out);
    }

    pub fn rates(&mut self, rates: &[(String, u64)]) {
        if rates.is_empty() {
            return;
        }
        self.begin();
        let (at, inner) = (self.indent + 2, self.indent + 4);
        let _ = writeln!(self.out, "{:at$}rate_allocation:", "");
        for (policy, percent) in rates {
            let policy = text(policy);
            let _ = writeln!(
                self.out,
                "{:inner$}- {{ policy: {policy}, percent: {percent} }}",
                ""
            );
        }
    }
}

pub(super) fn texts(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|one| text(one)).collect();
    format!("[{}]", texts.join(", "))
}

/// A text as a scalar of YAML: plain where it is a word, else in double quotes. A dollar is two, so
/// that nothing in it is a reference.
pub(super) fn text(text: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic());
    const OTHER: [&str; 8] = ["true", "false", "null", "yes", "no", "on", "off", "nan"];
    let is_other = OTHER.iter().any(|other| text.eq_ignore_ascii_case(other));
    if begins && !is_other && text.chars().all(is_word) {
        return text.to_owned();
    }
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '$' => out.push_str("$$"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
