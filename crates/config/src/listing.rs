//! `-dC[key][,line]`: prints the files without comments (management guide §3).
//!
//! Lines are split into words, without further processing: `.if` blocks are not evaluated, and
//! `setenv` is not executed. With a key, names, addresses and paths become hashes, and text that
//! may be confidential is omitted.

use crate::anonymise::Anonymiser;
use crate::diagnostic::Diagnostics;
use crate::environment::Environment;
use crate::keywords::other;
use crate::lexer::{self, Context, Token};
use crate::reader::Input;
use crate::tree::{Source, Span};
use std::fmt::Write as _;
use std::sync::Arc;

/// The arguments of `-dC`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Form {
    /// Replaces names by hashes if it has a key.
    pub anonymiser: Anonymiser,
    /// Whether each line begins with its number.
    pub numbered: bool,
}

impl Form {
    /// Parses the text after `-dC`: a key and `line`, separated by a comma.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        Form {
            anonymiser: Anonymiser::new(text[..digits].parse().unwrap_or(0)),
            numbered: text.split(',').any(|word| word == "line"),
        }
    }
}

/// How a word is printed.
#[derive(Clone, Copy)]
enum As {
    Plain,
    Name,
    Path,
    Address,
    Text,
}

use As::{Address, Name, Path, Plain, Text};

/// How the words after a keyword are printed if names are hidden; the rest of the line is omitted.
const WORDS: &[(&[&str], &[As])] = &[
    (&["acl"], &[Name, Plain]),
    (&["anonkey"], &[]),
    (&["auth"], &[Text]),
    (&["bind"], &[Address]),
    (&["cookie"], &[Name, Plain]),
    (&["default_backend"], &[Name]),
    (&["errorfile"], &[Plain, Path]),
    (&["filter"], &[Plain]),
    (&["http-after-response"], &[Plain]),
    (&["http-request"], &[Plain]),
    (&["http-response"], &[Plain]),
    (&["log", "global"], &[]),
    (&["log"], &[Address]),
    (&["maxconn"], &[Plain]),
    (&["mode"], &[Plain]),
    (&["nameserver"], &[Name, Address]),
    (&["peer"], &[Name, Address]),
    (&["redirect", "location"], &[Path]),
    (&["redirect", "prefix"], &[Path]),
    (&["redirect"], &[Plain, Plain]),
    (&["server"], &[Name, Address]),
    (&["source"], &[Address]),
    (&["stats", "auth"], &[Text]),
    (&["stats", "socket"], &[Address]),
    (&["timeout"], &[Plain, Plain]),
    (&["use_backend"], &[Name]),
    (&["user"], &[Name]),
];
/// The same for all other keywords.
const OTHERS: &[As] = &[Plain, Plain];

/// The lines of `inputs`. A line that cannot be split is an alert and omitted.
pub fn shown(
    inputs: &[Input],
    form: Form,
    environment: &Environment,
    diagnostics: &mut Diagnostics,
) -> String {
    let mut out = String::new();
    for input in inputs {
        let source = Arc::new(Source::new(&input.name, input.text.clone()));
        let mut section: Option<Vec<u8>> = None;
        for (line, written) in (1..).zip(input.text.split(|byte| *byte == b'\n')) {
            let context = Context {
                environment,
                file: &input.name,
                line,
                section: section.as_deref(),
                comments: true,
            };
            let words = match lexer::split(written, &context) {
                Ok(split) => split.words,
                Err(error) => {
                    let at = error.offset as u32;
                    let span = Span {
                        source: Arc::clone(&source),
                        line,
                        start: at,
                        end: at + 1,
                    };
                    diagnostics.alert(&span, format!("{}.", error.kind));
                    continue;
                }
            };
            let Some(first) = words.first() else {
                continue;
            };
            let is_section = other::SECTIONS
                .iter()
                .any(|known| first.text == *known.name);
            if is_section {
                let named = words.get(1).unwrap_or(first);
                section = Some(named.text.bytes().to_vec());
            }
            if form.numbered {
                // Writing to memory does not fail.
                let _ = write!(out, "{line}\t");
            }
            out.push_str(&shown_line(&words, is_section, form.anonymiser));
            out.push('\n');
        }
    }
    out
}

fn shown_line(words: &[Token], is_section: bool, hide: Anonymiser) -> String {
    let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    let indent = if is_section { "" } else { "\t" };
    if !hide.hides() {
        return format!("{indent}{}", texts.join(" "));
    }
    let (known, kinds) = if is_section {
        (1, &[Name][..])
    } else {
        WORDS
            .iter()
            .find(|(keyword, _)| texts.starts_with(keyword))
            .map_or((1, OTHERS), |(keyword, kinds)| (keyword.len(), *kinds))
    };
    let mut line = format!("{indent}{}", texts[..known].join(" "));
    for (text, kind) in texts[known..].iter().zip(kinds) {
        line.push(' ');
        line.push_str(&match kind {
            Plain => (*text).into(),
            Name => hide.name(text),
            Path => hide.path(text),
            Address => hide.address(text),
            Text => hide.text(text),
        });
    }
    if texts.len() > known + kinds.len() && !is_section {
        line.push_str(" [...]");
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# a comment\nglobal\n  anonkey 5\n  stats socket /tmp/hap/s.sock\n  user root # me\n\n  log 192.168.0.1:514 local0\n\
        listen f\n  bind 10.1.2.3:80 ssl crt /x\n  acl a path -i /x\n  http-request deny if { path /secret }\n  server s1 10.1.1.1:80 check\n  \
        server s2 example.com:80\n  server-template t 3 foo:80 check\n  errorfile 503 /etc/x.http\n  redirect location /y code 301\n  option httplog\n";

    fn shown_with(form: &str, text: &str) -> (String, usize) {
        let inputs = [Input {
            name: "f.cfg".to_owned(),
            text: text.into(),
        }];
        let mut diagnostics = Diagnostics::new();
        let environment = Environment::default();
        let shown = shown(&inputs, Form::parse(form), &environment, &mut diagnostics);
        (shown, diagnostics.alerts())
    }

    #[test]
    fn without_a_key_all_words_stand_there() {
        let (shown, _) = shown_with(",line", FILE);
        assert!(shown.starts_with(
            "2\tglobal\n3\t\tanonkey 5\n4\t\tstats socket /tmp/hap/s.sock\n5\t\tuser root\n7\t\tlog"
        ));
        let (shown, _) = shown_with("", FILE);
        assert!(shown.contains("\nlisten f\n\tbind 10.1.2.3:80 ssl crt /x\n"));
    }

    #[test]
    fn with_a_key_nothing_tells_whose_it_is() {
        let (shown, _) = shown_with("77", FILE);
        assert_eq!(
            shown,
            "global\n\tanonkey [...]\n\tstats socket 36e2ef\n\tuser ID(046dd4)\n\tlog IPV4(fb75c6):514 [...]\nlisten ID(3880f5)\n\
             \tbind IPV4(fe0374):80 [...]\n\tacl ID(b520f9) path [...]\n\thttp-request deny [...]\n\
             \tserver ID(bf704a) IPV4(1f1460):80 [...]\n\tserver ID(f5744f) 059ba9\n\tserver-template t 3 [...]\n\
             \terrorfile 503 PATH(f2bbde)\n\tredirect location PATH(8ed6a5) [...]\n\toption httplog\n"
        );
    }

    #[test]
    fn a_line_without_words_is_an_alert() {
        assert_eq!(
            shown_with("", "global\n  log \"x\n"),
            ("global\n".to_owned(), 1)
        );
    }
}
