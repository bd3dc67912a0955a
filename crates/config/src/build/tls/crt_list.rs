//! Certificate lists (manual §5.1 `crt-list`): a line has a certificate, its options in brackets,
//! and its server names.

use super::super::line::Fault;
use crate::diagnostic::Severity;
use crate::model::SniFilter;
use crate::tree::{Prefix, Source, Span, Statement, Text, Word};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// Most bytes of a list.
pub const BYTES_MAX: u64 = 256 << 20;

/// Most bytes of a line including its line feed, as in HAProxy.
const LINE_BYTES_MAX: usize = 65_535;

/// Most words of a line, as in HAProxy.
const WORDS_MAX: usize = 2048;

/// One line of a list.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The certificate's name.
    pub certificate: Statement,
    /// The words in the brackets.
    pub options: Option<Statement>,
    /// Its server names.
    pub filters: Vec<SniFilter>,
    /// Whether `*` is one of the names.
    pub is_default: bool,
    /// The names as written.
    pub names: Vec<String>,
}

impl Entry {
    /// The words in the brackets.
    pub fn option_words(&self) -> Vec<String> {
        let words = self.options.iter().flat_map(|options| &options.words);
        words.map(|word| word.text.as_str().to_owned()).collect()
    }
}

/// Parses the lines of a list. Reports every fault.
pub fn parse(name: &str, text: Vec<u8>) -> (Vec<Entry>, Vec<Fault>) {
    let source = Arc::new(Source::new(name, text));
    let mut entries = Vec::new();
    let mut faults = Vec::new();
    let lines = source.text().split_inclusive(|byte| *byte == b'\n');
    for (bytes, number) in lines.zip(1..) {
        let mut line = ListLine {
            source: &source,
            number,
            faults: &mut faults,
        };
        entries.extend(line.entry(bytes));
    }
    (entries, faults)
}

/// A line during parsing.
struct ListLine<'a> {
    source: &'a Arc<Source>,
    number: u32,
    faults: &'a mut Vec<Fault>,
}

impl ListLine<'_> {
    /// The entry of the line; None if it is empty, a comment or faulty.
    fn entry(&mut self, line: &[u8]) -> Option<Entry> {
        if matches!(line[0], b'#' | b'\n' | b'\r') {
            return None;
        }
        let bytes = line.strip_suffix(b"\n").unwrap_or(line);
        if let Some((at, message)) = broken(line, bytes) {
            self.fault(at..at + 1, Severity::Alert, message);
            return None;
        }
        let split = match split(bytes) {
            Ok(split) => split,
            Err((at, message)) => {
                self.fault(at..at + 1, Severity::Alert, message);
                return None;
            }
        };
        let (first, rest) = split.words.split_first()?;
        let (options, names, problem) = split.parts(rest);
        if let Some((severity, message)) = problem {
            self.fault(first.clone(), severity, message);
        }
        let names: Vec<&[u8]> = names.iter().map(|at| &bytes[at.clone()]).collect();
        let (filters, is_default) = filters(&names);
        let certificate = self.statement(bytes, std::slice::from_ref(first));
        if is_only_negative(&filters) {
            let name = certificate.keyword();
            let message = format!(
                "crt-list: negative filters on crt-list line \"{name}\" without a positive wildcard filter won't do anything!"
            );
            self.fault(first.clone(), Severity::Warning, message);
        }
        Some(Entry {
            options: (!options.is_empty()).then(|| self.statement(bytes, options)),
            certificate,
            filters,
            is_default,
            names: names.iter().map(|name| lossy(name)).collect(),
        })
    }

    fn fault(&mut self, at: Range<usize>, severity: Severity, message: impl Into<String>) {
        self.faults.push(Fault {
            severity,
            span: self.span(at),
            message: message.into(),
        });
    }

    fn span(&self, at: Range<usize>) -> Span {
        Span {
            source: Arc::clone(self.source),
            line: self.number,
            start: at.start as u32,
            end: at.end as u32,
        }
    }

    fn statement(&self, bytes: &[u8], words: Words<'_>) -> Statement {
        let word = |at: &Range<usize>| Word {
            text: Text::from(&bytes[at.clone()]),
            span: self.span(at.clone()),
        };
        Statement {
            words: words.iter().map(word).collect(),
            prefix: Prefix::None,
        }
    }
}

fn lossy(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

/// Why a line cannot be parsed, and the position of the fault. `bytes` is the line without its line
/// feed.
fn broken(line: &[u8], bytes: &[u8]) -> Option<(usize, String)> {
    let end = bytes.len();
    if let Some(at) = bytes.iter().position(|byte| *byte == 0) {
        let message = format!("stray NUL character at position {}.", at + 1);
        return Some((at, message));
    }
    if line.len() > LINE_BYTES_MAX {
        let message = format!("line too long, limit is {LINE_BYTES_MAX} characters.");
        return Some((0, message));
    }
    (line.len() == end).then(|| {
        let message = format!(
            "missing LF on last line, file might have been truncated at position {}.",
            end + 1
        );
        (end, message)
    })
}

/// Whether there are exceptions but no wildcard to which they could apply.
fn is_only_negative(filters: &[SniFilter]) -> bool {
    let mut excepted = filters.iter();
    excepted.any(|filter| matches!(filter, SniFilter::Except(_)))
        && !filters
            .iter()
            .any(|filter| matches!(filter, SniFilter::Wildcard(_)))
}

/// The words of a line, and the number of words before the brackets open and close.
struct Split {
    words: Vec<Range<usize>>,
    open: Option<usize>,
    close: Option<usize>,
}

type Words<'a> = &'a [Range<usize>];

impl Split {
    /// The options and the names among the words after the first one, and a problem to report.
    fn parts<'a>(
        &self,
        rest: Words<'a>,
    ) -> (Words<'a>, Words<'a>, Option<(Severity, &'static str)>) {
        let between = "malformated line, filters can't be between filename and options!";
        match (self.open, self.close) {
            (Some(open), Some(close)) => {
                // HAProxy ignores the names before the brackets.
                let problem = (open > 1).then_some((Severity::Warning, between));
                (&rest[open - 1..close - 1], &rest[close - 1..], problem)
            }
            // As in HAProxy, all of them are names.
            (Some(open), None) => {
                let message = "missing ']': the options are taken for names.";
                (&[], &rest[open - 1..], Some((Severity::Notice, message)))
            }
            (None, _) => (&[], rest, None),
        }
    }
}

fn split(line: &[u8]) -> Result<Split, (usize, &'static str)> {
    let mut split = Split {
        words: Vec::new(),
        open: None,
        close: None,
    };
    let mut is_inside = false;
    for (at, byte) in line.iter().enumerate() {
        match byte {
            b'[' if split.open.is_some() => return Err((at, "too many '['.")),
            b'[' if split.words.is_empty() => return Err((at, "file must start with a cert.")),
            b'[' => split.open = Some(split.words.len()),
            b']' if split.close.is_some() => return Err((at, "too many ']'.")),
            b']' if split.open.is_none() => return Err((at, "missing '['.")),
            b']' => split.close = Some(split.words.len()),
            // The characters of C's `isspace`.
            b' ' | b'\t'..=b'\r' => {}
            _ if is_inside => {
                if let Some(last) = split.words.last_mut() {
                    last.end = at + 1;
                }
                continue;
            }
            _ if split.words.len() == WORDS_MAX => return Err((at, "too many args.")),
            _ => {
                split.words.push(at..at + 1);
                is_inside = true;
                continue;
            }
        }
        is_inside = false;
    }
    Ok(split)
}

/// The names of a line, and whether `*` is one of them.
fn filters(names: &[&[u8]]) -> (Vec<SniFilter>, bool) {
    let mut filters = Vec::new();
    let mut is_default = false;
    for name in names {
        let (name, is_negative) = match name.strip_prefix(b"!") {
            Some(rest) => (rest, true),
            None => (*name, false),
        };
        let text: Box<str> = String::from_utf8_lossy(name).to_lowercase().into();
        match (text.strip_prefix('*'), is_negative) {
            (Some(""), false) => is_default = true,
            // The manual: `!` before `*` is ignored.
            (Some(_), true) => {}
            (Some(rest), false) => filters.push(SniFilter::Wildcard(rest.into())),
            (None, true) => filters.push(SniFilter::Except(text)),
            (None, false) => filters.push(SniFilter::Exact(text)),
        }
    }
    (filters, is_default)
}

/// Reads a file of at most `BYTES_MAX` bytes.
pub fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let text = files::read(path, BYTES_MAX + 1)?;
    if text.len() as u64 > BYTES_MAX {
        let message = format!("it is larger than {} MiB", BYTES_MAX >> 20);
        Err(std::io::Error::other(message))
    } else {
        Ok(text)
    }
}
