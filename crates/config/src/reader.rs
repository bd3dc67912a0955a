//! Reads texts into a [`Tree`]: splits lines into words, assigns words to sections, executes
//! directives, and collects every error.
//!
//! It follows HAProxy line by line, but continues after every error, so that one run shows all of
//! them. If a broken line makes the meaning of other lines uncertain (a section whose header is
//! invalid, a block whose condition cannot be evaluated), those lines are skipped. There is one
//! pass: `setenv` and related keywords apply to the lines after them.

use crate::condition::{self, BuildInfo};
use crate::diagnostic::{Diagnostics, Severity};
use crate::directive::{Blocks, MAX_NESTED_BLOCKS, Misplaced};
use crate::environment::Environment;
use crate::lexer::{self, Context, Ignored, LexError, Line, Token};
use crate::suggest;
use crate::tree::{Prefix, Section, Source, Span, Statement, Text, Tree, Word};
use std::ops::Range;
use std::sync::Arc;
use syntax::octets::readable;

#[cfg(test)]
mod tests;

/// The keywords that can follow `no` and `default`.
const NEGATABLE: [&str; 8] = [
    "option",
    "log",
    "busy-polling",
    "set-dumpable",
    "strict-limits",
    "insecure-fork-wanted",
    "numa-cpu-mapping",
    "h2-workaround-bogus-websocket-clients",
];

/// Directives other than blocks; they begin with a dot.
const MESSAGES: [(&str, Severity); 4] = [
    (".alert", Severity::Alert),
    (".warning", Severity::Warning),
    (".notice", Severity::Notice),
    (".diag", Severity::Diag),
];
const BLOCKS: [&str; 4] = [".if", ".elif", ".else", ".endif"];

/// One text to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    /// The name in diagnostics and for `"${.FILE}"`: the path as given.
    pub name: String,
    /// The bytes of the file.
    pub text: Vec<u8>,
}

/// The inputs of the reader other than the texts.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// The names of all sections. A line that begins with one opens a section anywhere.
    pub sections: &'a [&'a str],
    /// Facts for conditions.
    pub build: &'a BuildInfo,
}

/// Reads `inputs` in order as one configuration. `environment` is the initial environment;
/// afterwards, it contains the changes by `setenv` and related keywords. Continues after errors:
/// the diagnostics contain those of all texts.
pub fn read(
    inputs: &[Input],
    options: &Options<'_>,
    environment: &mut Environment,
) -> (Tree, Diagnostics) {
    let mut tree = Tree::default();
    let mut diagnostics = Diagnostics::new();
    for input in inputs {
        read_input(
            &input.name,
            &input.text,
            options,
            environment,
            &mut tree,
            &mut diagnostics,
        );
    }
    (tree, diagnostics)
}

/// [`read`] for a single text in memory.
pub fn read_text(
    name: &str,
    text: &[u8],
    options: &Options<'_>,
    environment: &mut Environment,
) -> (Tree, Diagnostics) {
    let mut tree = Tree::default();
    let mut diagnostics = Diagnostics::new();
    read_input(
        name,
        text,
        options,
        environment,
        &mut tree,
        &mut diagnostics,
    );
    (tree, diagnostics)
}

fn read_input(
    name: &str,
    text: &[u8],
    options: &Options<'_>,
    environment: &mut Environment,
    tree: &mut Tree,
    diagnostics: &mut Diagnostics,
) {
    let lines: Vec<&[u8]> = text
        .split_inclusive(|&byte| byte == b'\n')
        .map(|line| line.strip_suffix(b"\n").unwrap_or(line))
        .collect();
    let mut reader = Reader {
        options,
        environment,
        tree,
        diagnostics,
        source: Arc::new(Source::new(name, text.to_vec())),
        line: 0,
        written: b"",
        blocks: Blocks::default(),
        section: Current::None,
        section_name: None,
        scope: None,
    };
    for line in lines {
        reader.line += 1;
        reader.written = line;
        reader.read_line();
    }
    reader.finish(text);
}

/// The section of the following statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Current {
    /// None in this file yet.
    None,
    /// The last one of the tree.
    Open,
    /// A section with an invalid header; its statements are ignored.
    Lost,
}

struct Reader<'a> {
    options: &'a Options<'a>,
    environment: &'a mut Environment,
    tree: &'a mut Tree,
    diagnostics: &'a mut Diagnostics,
    source: Arc<Source>,
    /// Counted from 1.
    line: u32,
    /// The bytes of the line.
    written: &'a [u8],
    blocks: Blocks,
    section: Current,
    /// For `${.SECTION}`.
    section_name: Option<Text>,
    scope: Option<Arc<str>>,
}

impl Reader<'_> {
    fn read_line(&mut self) {
        if let Some(nul) = self.written.iter().position(|&byte| byte == 0) {
            let span = self.span(nul..nul + 1);
            self.diagnostics.alert(
                &span,
                format!("Stray NUL character at position {}.", nul + 1),
            );
            return;
        }
        let first = self.written.iter().find(|&&byte| !lexer::is_space(byte));
        if first == Some(&b'[') {
            self.scope_line();
            return;
        }
        let context = Context {
            environment: self.environment,
            file: &self.source.name,
            line: self.line,
            section: self.section_name.as_ref().map(Text::bytes),
            comments: true,
        };
        match lexer::split(self.written, &context) {
            Ok(line) => self.words(line),
            Err(error) => self.broken_line(error),
        }
    }

    /// Checks at the end of the file.
    fn finish(&mut self, text: &[u8]) {
        if text.last().is_some_and(|&byte| byte != b'\n') {
            let end = self.written.len();
            let span = self.span(end..end + 1);
            let message = format!(
                "Missing LF on last line, file might have been truncated at position {}.",
                end + 1
            );
            self.diagnostics.alert(&span, message);
        }
        for start in self.blocks.unclosed() {
            self.diagnostics.alert(start, "non-terminated '.if' block.");
        }
    }

    fn broken_line(&mut self, error: LexError) {
        let span = self.span(error.offset..error.offset + 1);
        self.diagnostics.alert(
            &span,
            format!("{} at position {}.", error.kind, error.offset + 1),
        );
        let first = self
            .written
            .trim_ascii()
            .split(|&byte| lexer::is_space(byte))
            .next()
            .unwrap_or_default();
        if self.blocks.reading()
            && self
                .options
                .sections
                .iter()
                .any(|name| name.as_bytes() == first)
        {
            self.section = Current::Lost;
        }
    }

    fn words(&mut self, line: Line) {
        let Some(first) = line.words.first() else {
            return;
        };
        if self.blocks.reading() {
            self.warn_ignored(&line);
        }
        if BLOCKS.contains(&first.text.as_str()) {
            self.block(&line.words);
        } else if self.blocks.reading() {
            match first.text.as_bytes().first() {
                None => self.nameless(first),
                Some(b'.') => self.message(&line.words),
                Some(_) if self.has_empty_word(&line.words) => {}
                Some(_) => self.statement(line.words),
            }
        }
    }

    /// As in HAProxy, a line whose first word is empty counts as an empty line.
    fn nameless(&mut self, first: &Token) {
        let span = self.span(first.range.clone());
        self.diagnostics
            .diag(&span, "the first word is empty, so the line is ignored.");
    }

    fn warn_ignored(&mut self, line: &Line) {
        let (at, message) = match line.ignored {
            None => return,
            Some(Ignored::AfterCarriageReturn(at)) => (
                at,
                "a carriage return ends the line, what follows it is ignored.",
            ),
            Some(Ignored::AfterNul(at)) => (
                at,
                "a NUL character ends the word, what follows it is ignored.",
            ),
        };
        let span = self.span(at..at + 1);
        self.diagnostics.warning(&span, message);
    }

    /// An empty word would end the arguments for HAProxy's parsers, so it refuses the line.
    fn has_empty_word(&mut self, words: &[Token]) -> bool {
        let Some((index, word)) = words
            .iter()
            .enumerate()
            .find(|(_, word)| word.text.is_empty())
        else {
            return false;
        };
        let place = word.unset.clone().unwrap_or(word.range.clone());
        let span = self.span(place.clone());
        let position = place.start + 1;
        let message = format!(
            "argument number {index} at position {position} is empty and marks the end of the argument list."
        );
        self.diagnostics.alert(&span, message);
        if word.unset.is_some() {
            let name = String::from_utf8_lossy(&self.written[place]).into_owned();
            let meant = self
                .environment
                .suggest(&name)
                .map(|known| format!(" Did you mean '{known}'?"));
            self.diagnostics.help(format!(
                "The environment variable '{name}' is not set.{}",
                meant.unwrap_or_default()
            ));
        }
        true
    }

    /// `.if`, `.elif`, `.else` and `.endif`.
    fn block(&mut self, words: &[Token]) {
        let span = self.span(words[0].range.clone());
        let directive = words[0].text.as_str();
        if let (".else" | ".endif", Some(extra)) = (directive, words.get(1)) {
            let place = self.span(extra.range.clone());
            self.diagnostics.alert(
                &place,
                format!("Unexpected argument '{}' for '{directive}'.", extra.text),
            );
        }
        let mut blocks = std::mem::take(&mut self.blocks);
        let done = match directive {
            ".if" => {
                if !blocks.enter(&span, || self.condition(words)) {
                    let message = format!("too many nested '.if', max is {MAX_NESTED_BLOCKS}.");
                    self.diagnostics.alert(&span, message);
                }
                Ok(())
            }
            ".elif" => blocks.otherwise_if(|| self.condition(words)),
            ".else" => blocks.otherwise(),
            _ => blocks.leave(),
        };
        self.blocks = blocks;
        match done {
            Ok(()) => {}
            Err(Misplaced::Lone) => {
                self.diagnostics
                    .alert(&span, format!("lone '{directive}' with no matching '.if'."));
            }
            Err(Misplaced::AfterElse) => {
                self.diagnostics.alert(
                    &span,
                    format!("'{directive}' after '.else' is not permitted."),
                );
            }
        }
    }

    /// The value of the condition in `words`; None if it cannot be evaluated, which was reported.
    fn condition(&mut self, words: &[Token]) -> Option<bool> {
        let texts: Vec<&[u8]> = words[1..].iter().map(|word| word.text.bytes()).collect();
        let expression = texts.join(&b' ');
        let error = match condition::evaluate(&expression, self.options.build, self.environment) {
            Ok(answer) => return Some(answer),
            Err(error) => error,
        };
        let written = words[1].range.start..words[words.len() - 1].range.end;
        // Offsets in the expression equal those in the line, unless quotes, variables or blanks
        // were resolved.
        let as_written = self.written.get(written.clone()) == Some(&expression);
        let at = written.start + error.offset;
        let span = self.span(if as_written { at..at + 1 } else { written });
        let position = error.offset + 1;
        self.diagnostics.alert(
            &span,
            format!(
                "{} in '{}' at position {position}.",
                error.message, words[0].text
            ),
        );
        if !as_written {
            self.diagnostics
                .help(format!("The condition reads: {}", readable(&expression)));
        }
        None
    }

    /// `.alert`, `.warning`, `.notice` and `.diag`.
    fn message(&mut self, words: &[Token]) {
        let directive = words[0].text.as_str();
        let span = self.span(words[0].range.clone());
        let Some((_, severity)) = MESSAGES.iter().find(|(name, _)| *name == directive) else {
            self.diagnostics
                .alert(&span, format!("unknown directive '{directive}'."));
            let known = MESSAGES.iter().map(|(name, _)| *name).chain(BLOCKS);
            self.help_did_you_mean(directive, known);
            return;
        };
        if let Some(extra) = words.get(2) {
            let place = self.span(extra.range.clone());
            self.diagnostics.alert(
                &place,
                format!("Unexpected argument '{}' for '{directive}'.", extra.text),
            );
            self.diagnostics
                .help("Put the message in quotes if it contains spaces.");
            return;
        }
        let text = words.get(1).map_or("", |word| word.text.as_str());
        self.diagnostics
            .add(*severity, Some(&span), format!("'{text}'."));
    }

    fn statement(&mut self, tokens: Vec<Token>) {
        let mut words: Vec<Word> = tokens.into_iter().map(|token| self.word(token)).collect();
        let mut prefix = match words[0].text.as_str() {
            "no" => Prefix::No,
            "default" => Prefix::Default,
            _ => Prefix::None,
        };
        if prefix != Prefix::None {
            let taken = words.remove(0);
            if !words
                .first()
                .is_some_and(|word| NEGATABLE.contains(&word.text.as_str()))
            {
                let message = format!(
                    "'{}' can only stand before one of: {}.",
                    taken.text,
                    NEGATABLE.join(", ")
                );
                self.diagnostics.alert(&taken.span, message);
                // The keyword itself is still checked.
                prefix = Prefix::None;
            }
        }
        if !words.is_empty() {
            self.place(Statement { words, prefix });
        }
    }

    /// Assigns a statement: it opens a section or belongs to the open one.
    fn place(&mut self, statement: Statement) {
        if self.options.sections.contains(&statement.keyword()) {
            self.section_name = Some(
                statement
                    .words
                    .get(1)
                    .unwrap_or(&statement.words[0])
                    .text
                    .clone(),
            );
            self.section = Current::Open;
            self.tree.sections.push(Section {
                header: statement,
                statements: Vec::new(),
                scope: self.scope.clone(),
            });
            return;
        }
        match self.section {
            Current::Lost => {}
            Current::None => self.outside(&statement),
            Current::Open => {
                let Some(section) = self.tree.sections.last_mut() else {
                    return;
                };
                if section.header.keyword() == "global"
                    && let Err((span, message)) = self.environment.apply(&statement)
                {
                    self.diagnostics.alert(&span, message);
                }
                section.statements.push(statement);
            }
        }
    }

    /// A statement before the first section of its file.
    fn outside(&mut self, statement: &Statement) {
        let keyword = statement.keyword();
        self.diagnostics.alert(
            statement.span(),
            format!("unknown keyword '{keyword}' out of section."),
        );
        if self.help_did_you_mean(keyword, self.options.sections.iter().copied()) {
            self.section = Current::Lost;
        }
    }

    fn help_did_you_mean<'s>(&mut self, word: &str, known: impl Iterator<Item = &'s str>) -> bool {
        let meant = suggest::closest(word, known);
        if let Some(meant) = meant {
            self.diagnostics.help(format!("Did you mean '{meant}'?"));
        }
        meant.is_some()
    }

    /// `[name]`: the scope of the sections that follow, in the files of filters.
    fn scope_line(&mut self) {
        let open = self
            .written
            .iter()
            .position(|&byte| byte == b'[')
            .unwrap_or_default();
        let close = self
            .written
            .iter()
            .position(|&byte| byte == b']')
            .unwrap_or(open + 1);
        let name = self.written.get(open + 1..close).unwrap_or_default();
        let after = self.written.get(close + 1..).unwrap_or_default();
        let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-:.".contains(byte);
        let trailing = after
            .iter()
            .position(|&byte| !lexer::is_space(byte))
            .filter(|&at| after[at] != b'#');
        let wrong = match (name.iter().position(|byte| !allowed(byte)), trailing) {
            _ if name.is_empty() => Some((open, "empty scope name is forbidden.".to_owned())),
            (Some(at), _) => Some((
                open + 1 + at,
                "this character is not permitted in a scope name.".to_owned(),
            )),
            (None, Some(at)) => Some((
                close + 1 + at,
                "nothing is permitted after scope declaration.".to_owned(),
            )),
            (None, None) => None,
        };
        match wrong {
            Some((at, message)) => {
                let span = self.span(at..at + 1);
                self.diagnostics.alert(&span, message);
            }
            None => self.scope = Some(String::from_utf8_lossy(name).into()),
        }
    }

    fn word(&self, token: Token) -> Word {
        Word {
            span: self.span(token.range),
            text: token.text,
        }
    }

    /// The place of a range of bytes of the line.
    fn span(&self, range: Range<usize>) -> Span {
        Span {
            source: self.source.clone(),
            line: self.line,
            start: range.start.min(self.written.len()) as u32,
            end: range.end.min(self.written.len()) as u32,
        }
    }
}
