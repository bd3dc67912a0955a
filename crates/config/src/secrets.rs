//! Hides the secrets in a line of a configuration, for pages that show the files.
//!
//! Hidden are: arguments that the keyword table or the table of converters marks
//! ([`crate::keywords::Secret`]), the values of headers, variables and parameters with the name of
//! a secret, the patterns that such values are compared with, `name: value` and `name=value` in
//! texts, passwords in URLs, and all of this in comments. A line that cannot be read hides more,
//! not less.

mod names;
mod statement;
#[cfg(test)]
mod tests;

pub use statement::hide_words;

use crate::environment::Environment;
use crate::keywords::{self, Keyword, Secret};
use crate::lexer::{self, Context};
use names::{is_secret, names_secret};
use std::ops::Range;
use std::sync::LazyLock;

/// The replacement for a secret.
pub const HIDDEN: &str = "***";

/// Actions that are followed by a header's name and its value.
const HEADER_ACTIONS: &[&str] = &["add-header", "hdr", "set-header", "set-param"];
/// Actions that are followed by a header's name, a regular expression and the value.
const REPLACING_ACTIONS: &[&str] = &["replace-header", "replace-value"];
/// Keywords that are followed by a name of the configuration's own or of a field without a value.
const ENTITIES: &[&str] = &[
    "acl",
    "balance",
    "cookie",
    "default_backend",
    "del-header",
    "filter",
    "group",
    "log-format",
    "mailer",
    "peer",
    "server",
    "server-template",
    "use-server",
    "use_backend",
    "user",
];
/// Parts of the names of fetches that have the argument of a header, a cookie, a parameter or a
/// variable.
const FETCHES_BY_NAME: &[&str] = &["cook", "env", "hdr", "json", "param", "var"];
/// Functions whose arguments are constants.
const CONSTANTS: &[&str] = &["bin(", "int(", "str("];
/// The scopes of variables: an argument with one of them is a name, not a secret.
const SCOPES: &[&str] = &["proc.", "req.", "res.", "sess.", "txn."];
/// Flags of a condition's test that are followed by a word which is no pattern.
const FLAGS_WITH_WORD: &[&str] = &["-f", "-m"];
/// Flags of a condition's test.
const FLAGS: &[&str] = &["--", "-M", "-i", "-n", "-u"];

/// A line without its secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The line, with [`HIDDEN`] in place of each secret.
    pub text: String,
    /// The secrets as messages would quote them.
    pub hidden: Vec<String>,
}

/// Hides the secrets of `line`, which has no line feed.
#[must_use]
pub fn hide(line: &str) -> Shown {
    let (words, is_split) = words_of(line);
    let mut marks = Marks::new(&words);
    marks.mark();
    let cuts = marks.cuts;
    let mut shown = Shown {
        text: String::with_capacity(line.len()),
        hidden: Vec::new(),
    };
    let mut at = 0;
    for (word, cut) in words.iter().zip(cuts) {
        let Some(cut) = cut else {
            continue;
        };
        shown.text.push_str(&line[at..word.range.start + cut]);
        shown.text.push_str(HIDDEN);
        shown.hidden.push(word.text.clone());
        at = word.range.end;
        if !is_split {
            // The secret may continue after a space.
            return shown;
        }
    }
    let end = words.last().map_or(0, |word| word.range.end);
    shown.text.push_str(&line[at..end]);
    if is_split {
        rest(&line[end..], &mut shown);
    } else {
        shown.text.push_str(&line[end..]);
    }
    shown
}

/// Hides the rest of a text after the name of a secret: `name: value`, `name=value`, and after the
/// user in a URL. For texts that are not lines of a configuration, such as header fields and
/// messages.
#[must_use]
pub fn hide_text(text: &str) -> String {
    match secret_in_text(text) {
        Some(at) => format!("{}{HIDDEN}", &text[..at]),
        None => text.to_owned(),
    }
}

fn secret_in_text(text: &str) -> Option<usize> {
    let value = names::value_of_secret(text, false);
    value.into_iter().chain(names::password_of_url(text)).min()
}

/// Adds the text after the last word: spaces and a comment, or text that the configuration ignores.
fn rest(text: &str, shown: &mut Shown) {
    let comment = text.trim_start().trim_start_matches('#');
    let before = &text[..text.len() - comment.len()];
    shown.text.push_str(before);
    if comment.is_empty() {
    } else if before.ends_with('#') {
        let inner = hide_comment(comment);
        shown.text.push_str(&inner.text);
        shown.hidden.extend(inner.hidden);
    } else {
        shown.text.push_str(HIDDEN);
    }
}

/// Hides the secrets of a comment: it may be a line that was disabled, or prose.
fn hide_comment(comment: &str) -> Shown {
    let first = comment.split_whitespace().next().unwrap_or_default();
    if is_keyword(first) {
        return hide(comment);
    }
    match secret_in_text(comment) {
        Some(at) => Shown {
            text: format!("{}{HIDDEN}", &comment[..at]),
            hidden: vec![comment[at..].trim().to_owned()],
        },
        None => Shown {
            text: comment.to_owned(),
            hidden: Vec::new(),
        },
    }
}

struct Word {
    /// The resolved word.
    text: String,
    /// As written.
    raw: String,
    range: Range<usize>,
}

/// The words of a line, and whether it could be split as the configuration's reader does.
fn words_of(line: &str) -> (Vec<Word>, bool) {
    let environment = Environment::default();
    let context = Context {
        environment: &environment,
        file: "",
        line: 0,
        section: None,
        comments: true,
    };
    let word = |text: &str, range: Range<usize>| Word {
        text: text.to_owned(),
        raw: line[range.clone()].to_owned(),
        range,
    };
    match lexer::split(line.as_bytes(), &context) {
        Ok(split) => {
            let words = split.words.into_iter();
            // A variable with several words gives several words with the same range.
            let mut end = 0;
            let words = words.filter_map(|one| {
                let is_new = one.range.start >= end && one.range.start < one.range.end;
                end = end.max(one.range.end);
                is_new.then(|| word(one.text.as_str(), one.range))
            });
            (words.collect(), true)
        }
        Err(_) => {
            let words = line.split_whitespace().map(|text| {
                let start = text.as_ptr().addr() - line.as_ptr().addr();
                word(text, start..start + text.len())
            });
            (words.collect(), false)
        }
    }
}

/// What is hidden of each word: the offset in the word as written from which it is.
struct Marks<'a> {
    words: &'a [Word],
    cuts: Vec<Option<usize>>,
    /// The position of `if` or `unless`; the number of words without one.
    condition_at: usize,
}

impl<'a> Marks<'a> {
    fn new(words: &'a [Word]) -> Self {
        let condition = words.iter().position(|word| ends_action(&word.text));
        Marks {
            words,
            cuts: vec![None; words.len()],
            condition_at: condition.unwrap_or(words.len()),
        }
    }

    fn mark(&mut self) {
        self.mark_by_table();
        for at in 0..self.words.len() {
            self.mark_after(at);
            self.mark_inside(at);
        }
    }

    fn text(&self, at: usize) -> &'a str {
        self.words.get(at).map_or("", |word| &word.text)
    }

    /// Hides a word from an offset on.
    fn cut(&mut self, at: usize, from: usize) {
        if let Some(cut) = self.cuts.get_mut(at) {
            *cut = Some(cut.unwrap_or(usize::MAX).min(from));
        }
    }

    fn cut_all(&mut self, places: Range<usize>) {
        for at in places {
            self.cut(at, 0);
        }
    }

    /// Hides the argument after each of these words.
    fn cut_after(&mut self, words: &[&str]) {
        for at in 1..self.words.len() {
            if words.contains(&self.text(at)) {
                self.cut(at + 1, 0);
            }
        }
    }

    /// Hides the password of an account, which begins at this word.
    fn cut_account(&mut self, place: usize) {
        let raw = self.words.get(place).map_or("", |word| &word.raw);
        self.cut(place, raw.find(':').map_or(0, |colon| colon + 1));
        // A password with spaces that is not quoted.
        self.cut_all(place + 1..self.words.len());
    }

    /// Hides the arguments that the tables mark.
    fn mark_by_table(&mut self) {
        let count = self.words.len();
        match directive(self.text(0)) {
            Secret::No => {}
            Secret::All => self.cut_all(1..count),
            Secret::AllButFirst => self.cut_all(2..count),
            Secret::SentBytes => self.cut_after(&["send-binary", "send-binary-lf"]),
            Secret::Password => self.cut_after(&["insecure-password", "password"]),
            Secret::AuthAccount if self.text(1) == "auth" => self.cut_account(2),
            Secret::AuthAccount => {}
            Secret::Account => self.cut_account(1),
        }
        for at in 1..count {
            if option(self.text(at)) != Secret::No {
                self.cut(at + 1, 0);
            }
        }
    }

    /// Hides what follows a word that names a secret.
    fn mark_after(&mut self, at: usize) {
        let word = self.text(at);
        if HEADER_ACTIONS.contains(&word) && names_secret(self.text(at + 1)) {
            self.cut(at + 2, 0);
        } else if REPLACING_ACTIONS.contains(&word) && names_secret(self.text(at + 1)) {
            self.cut_all(at + 2..(at + 4).min(self.condition_at.max(at + 2)));
        } else if let Some(name) = variable_set(word, self.text(at + 1)) {
            let first = at + 1 + usize::from(!word.contains('('));
            let value = self.text(first);
            let is_constant = word.starts_with("set-var-fmt")
                || CONSTANTS.iter().any(|known| value.starts_with(known));
            if is_secret(name) || names_secret(name) && is_constant {
                self.cut_all(first..self.condition_at.max(first));
            }
        } else if self.is_test(at) && tests_secret(word) {
            self.mark_patterns(at + 1);
        } else if self.names_value(at) {
            self.cut(at + 1, 0);
        }
    }

    /// Whether the word is a fetch whose value is compared with the patterns after it.
    fn is_test(&self, at: usize) -> bool {
        let is_acl = at == 2 && self.text(0) == "acl";
        is_acl || at > 0 && matches!(self.text(at - 1), "{" | "!{")
    }

    /// Whether the word is the plain name of a secret that the next word has.
    fn names_value(&self, at: usize) -> bool {
        let word = self.text(at);
        let is_entity =
            at == 0 || ENTITIES.contains(&self.text(at - 1)) || self.text(0) == "capture";
        let is_plain =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let is_section =
            at == 1 && keywords::find(keywords::other::SECTIONS, self.text(0)).is_some();
        !is_entity
            && !is_section
            && at + 1 < self.condition_at
            && word.bytes().all(is_plain)
            && is_secret(word)
    }

    /// Hides patterns up to the end of the test.
    fn mark_patterns(&mut self, from: usize) {
        let mut at = from;
        while at < self.words.len() {
            match self.text(at) {
                "}" => return,
                flag if FLAGS_WITH_WORD.contains(&flag) => at += 2,
                flag if FLAGS.contains(&flag) => at += 1,
                _ => {
                    self.cut(at, 0);
                    at += 1;
                }
            }
        }
    }

    /// Hides a secret inside a word.
    fn mark_inside(&mut self, at: usize) {
        let Some(word) = self.words.get(at) else {
            return;
        };
        // A check sends `AUTH password` and the like.
        let is_sent = self.text(0) == "tcp-check" && matches!(self.text(1), "send" | "send-lf");
        let in_text = [
            names::value_of_secret(&word.raw, is_sent),
            names::password_of_url(&word.raw),
            names::default_of_variable(&word.raw),
            argument_of_converter(&word.raw),
        ];
        if let Some(from) = in_text.into_iter().flatten().min() {
            self.cut(at, from);
        }
        // Escapes may conceal it in the word as written.
        let is_concealed = names::value_of_secret(&word.text, is_sent).is_some()
            || names::password_of_url(&word.text).is_some()
            || argument_of_converter(&word.text).is_some();
        if is_concealed && self.cuts[at].is_none() && word.raw != word.text {
            self.cut(at, 0);
        }
    }
}

fn ends_action(word: &str) -> bool {
    matches!(word, "if" | "unless")
}

/// The variable that a word sets: `set-var(name)`, or `set-var` with the name in the next word.
fn variable_set<'a>(word: &'a str, next: &'a str) -> Option<&'a str> {
    let rest = word.strip_prefix("set-var")?;
    let rest = rest.strip_prefix("-fmt").unwrap_or(rest);
    match rest.strip_prefix('(') {
        Some(name) => Some(name.split([',', ')']).next().unwrap_or(name)),
        None if rest.is_empty() => Some(next),
        None => None,
    }
}

/// Whether a fetch or its argument names a secret.
fn tests_secret(word: &str) -> bool {
    let mut functions = word.split(',').peekable();
    let fetch = functions.peek().copied().unwrap_or_default();
    let (name, argument) = fetch.split_once('(').unwrap_or((fetch, ""));
    let by_name = FETCHES_BY_NAME.iter().any(|part| name.contains(part));
    is_secret(name)
        || name.split('_').any(|part| part == "pass")
        || by_name && names_secret(argument.trim_end_matches(')'))
        // `json_query` and the like, later in the chain.
        || word.split_once(',').is_some_and(|(_, chain)| {
            let names = FETCHES_BY_NAME.iter().any(|part| chain.contains(part));
            names && is_secret(chain)
        })
}

/// The offset of an argument that holds a secret, in a chain of converters.
fn argument_of_converter(word: &str) -> Option<usize> {
    let mut at = 0;
    let mut found: Option<usize> = None;
    while let Some(open) = word[at..].find('(').map(|open| at + open) {
        let name = word[..open]
            .rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .next()
            .unwrap_or_default();
        at = open + 1;
        if let Some(from) = sample::secret_from(name) {
            let mut start = open + 1;
            for _ in 0..from {
                match word[start..].find(',') {
                    Some(comma) => start += comma + 1,
                    None => break,
                }
            }
            let argument = &word[start..];
            if !SCOPES.iter().any(|scope| argument.starts_with(scope)) {
                found = Some(found.unwrap_or(start).min(start));
            }
        }
    }
    // The constant that `secure_memcmp` compares with a variable is the secret.
    if word.contains("secure_memcmp(") {
        let constant = CONSTANTS.iter().filter_map(|known| {
            let at = word.find(known)?;
            Some(at + known.len())
        });
        found = constant.chain(found).min();
    }
    found
}

/// A keyword that the tables mark.
struct Marked {
    name: &'static str,
    secret: Secret,
}

/// The marked keywords that lines begin with.
static DIRECTIVES: LazyLock<Vec<Marked>> = LazyLock::new(|| {
    let mut all = Vec::new();
    add_marked(&mut all, keywords::global::KEYWORDS);
    add_marked(&mut all, keywords::proxy::KEYWORDS);
    add_marked(&mut all, crate::build::dashboard::keywords());
    for (_, table) in keywords::other::TABLES {
        add_marked(&mut all, table);
    }
    all
});

/// The marked options of lines.
static OPTIONS: LazyLock<Vec<Marked>> = LazyLock::new(|| {
    let mut all = Vec::new();
    add_marked(&mut all, keywords::bind::KEYWORDS);
    add_marked(&mut all, keywords::server::KEYWORDS);
    add_marked(&mut all, keywords::tls::OPTIONS);
    all
});

fn add_marked<P>(all: &mut Vec<Marked>, table: &[Keyword<P>]) {
    let marked = table.iter().filter(|known| known.secret != Secret::No);
    all.extend(marked.map(|known| Marked {
        name: known.name,
        secret: known.secret,
    }));
}

fn find(marked: &[Marked], word: &str) -> Secret {
    let mut marked = marked.iter();
    let known = marked.find(|known| keywords::is_named(known.name, word));
    known.map_or(Secret::No, |known| known.secret)
}

/// What the tables mark for a line that begins with `word`.
fn directive(word: &str) -> Secret {
    find(&DIRECTIVES, word)
}

/// What the tables mark for an option of a line.
fn option(word: &str) -> Secret {
    find(&OPTIONS, word)
}

/// Whether lines can begin with `word`.
fn is_keyword(word: &str) -> bool {
    keywords::find(keywords::global::KEYWORDS, word).is_some()
        || keywords::find(keywords::proxy::KEYWORDS, word).is_some()
        || keywords::find(crate::build::dashboard::keywords(), word).is_some()
        || keywords::other::TABLES
            .iter()
            .any(|(_, table)| keywords::find(table, word).is_some())
}
