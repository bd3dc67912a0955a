//! Regular expressions: HAProxy's syntax, which is PCRE's, on bytes, in linear time.
//!
//! A pattern is translated to the syntax of the `regex` crates (`translate`), then compiled.
//! Features that no automaton supports (look-around, back-references, possessive and atomic groups)
//! are refused by name. A program built with the feature `pcre2` compiles such patterns with PCRE2,
//! with PCRE2's limit on its work (10,000,000 steps, as in HAProxy). A match that exceeds a limit
//! is neither a match nor a mismatch: [`take_undecided`] reports it, and the rules fail closed.
//!
//! One meaning differs from PCRE: `$` and `\Z` match only at the end, not before a line feed that
//! ends the text.

mod translate;

use regex_automata::meta;
use regex_automata::util::primitives::NonMaxUsize;
use regex_automata::{Input, util::syntax};

/// Groups that a template can use, including the whole match: `\0` to `\9`.
pub const GROUPS: usize = 10;

/// Most memory of the compiled program of one pattern.
const PROGRAM_BYTES_MAX: usize = 10 << 20;

/// Most memory of PCRE2 for one match without its compiler to machine code, in KiB.
#[cfg(feature = "pcre2")]
const MATCH_KIB_MAX: u32 = 64 << 10;

/// Most memory of PCRE2 for one match with its compiler to machine code. PCRE2's own 32 KiB are too
/// few for the longest header fields.
#[cfg(feature = "pcre2")]
const MATCH_STACK_BYTES_MAX: usize = 1 << 20;

#[cfg(feature = "pcre2")]
thread_local! {
    /// A match on this thread exceeded a limit since the last call of [`take_undecided`].
    static UNDECIDED: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Whether a match on this thread could not be decided since the last call, because it exceeded a
/// limit of PCRE2. Such a match was reported as no match. A caller for whom "no match" permits
/// something must refuse instead.
#[must_use]
#[inline]
pub fn take_undecided() -> bool {
    #[cfg(feature = "pcre2")]
    return UNDECIDED.get() && UNDECIDED.replace(false);
    #[cfg(not(feature = "pcre2"))]
    false
}

/// Drops the report of earlier matches.
#[inline]
pub fn forget_undecided() {
    #[cfg(feature = "pcre2")]
    UNDECIDED.set(false);
}

/// The result of a match; None, and a report, if it was not decided.
#[cfg(feature = "pcre2")]
fn decided<T>(result: Result<T, pcre2::Error>) -> Option<T> {
    result.inspect_err(|_| UNDECIDED.set(true)).ok()
}

/// A compiled regular expression. Cheap to clone. A search allocates nothing after the first search
/// in each thread.
#[derive(Clone, Debug)]
pub struct Regex {
    engine: Engine,
}

#[derive(Clone, Debug)]
enum Engine {
    Linear(meta::Regex),
    #[cfg(feature = "pcre2")]
    Backtracking(std::sync::Arc<pcre2::bytes::Regex>),
}

/// Compiles a pattern, which is a word of the configuration.
///
/// # Errors
/// HAProxy's message for an invalid pattern: the fault and its place.
pub fn compile(pattern: impl AsRef<[u8]>, ignore_case: bool) -> Result<Regex, String> {
    compile_bytes(pattern.as_ref(), ignore_case)
}

/// Up to this many patterns are tried one by one: each has its own optimised search.
const FEW_MAX: usize = 4;

/// Regular expressions that together match where one of the patterns matches.
///
/// # Errors
/// The index of the faulty pattern, and the fault.
pub(crate) fn any_of<P: AsRef<[u8]>>(
    patterns: &[P],
    ignore_case: bool,
) -> Result<Vec<Regex>, (usize, String)> {
    let each = patterns
        .iter()
        .enumerate()
        .map(|(at, pattern)| compile(pattern, ignore_case).map_err(|message| (at, message)));
    let each: Vec<Regex> = each.collect::<Result<_, _>>()?;
    if each.len() <= FEW_MAX {
        return Ok(each);
    }
    let translated = patterns
        .iter()
        .map(|pattern| translate::translate(pattern.as_ref()));
    let Ok(translated) = translated.collect::<Result<Vec<_>, _>>() else {
        return Ok(each);
    };
    // The combined program is too large: compile them one by one.
    Ok(builder(ignore_case)
        .build_many(&translated)
        .map_or(each, |regex| {
            vec![Regex {
                engine: Engine::Linear(regex),
            }]
        }))
}

fn builder(ignore_case: bool) -> meta::Builder {
    // Words in any case result in so many literals that a search for those first is slower than the
    // automaton itself.
    let config = meta::Config::new()
        .auto_prefilter(!ignore_case)
        .utf8_empty(false)
        .nfa_size_limit(Some(PROGRAM_BYTES_MAX));
    let syntax = syntax::Config::new()
        .unicode(false)
        .utf8(false)
        .case_insensitive(ignore_case);
    let mut builder = meta::Builder::new();
    builder.configure(config).syntax(syntax);
    builder
}

/// Appends a template. `\0` to `\9` are groups, `\xHH` is a byte, and any other byte after a
/// backslash is literal. False if it ends in the middle of such a sequence, or if `out` has grown
/// longer than `bytes_max`.
pub fn expand(
    template: &[u8],
    captures: &Captures<'_>,
    out: &mut Vec<u8>,
    bytes_max: usize,
) -> bool {
    let mut rest = template;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.extend_from_slice(&rest[..at]);
        rest = match &rest[at + 1..] {
            [digit @ b'0'..=b'9', after @ ..] => {
                if let Some(group) = captures.get(usize::from(digit - b'0')) {
                    out.extend_from_slice(group.as_bytes());
                }
                after
            }
            [b'x', after @ ..] => match after {
                [high, low, after @ ..] => {
                    let Some(byte) = http::hex_byte(*high, *low) else {
                        return false;
                    };
                    out.push(byte);
                    after
                }
                _ => return false,
            },
            [other, after @ ..] => {
                out.push(*other);
                after
            }
            [] => return false,
        };
        if out.len() > bytes_max {
            return false;
        }
    }
    out.extend_from_slice(rest);
    out.len() <= bytes_max
}

/// Like [`compile`], with a pattern of any bytes.
pub(crate) fn compile_bytes(pattern: &[u8], ignore_case: bool) -> Result<Regex, String> {
    let invalid = |error: &str, at: usize| {
        let pattern = String::from_utf8_lossy(pattern);
        format!("regex '{pattern}' is invalid (error={error}, erroffset={at})")
    };
    let translated = match translate::translate(pattern) {
        Ok(translated) => translated,
        Err(translate::Fault::Invalid(error, at)) => return Err(invalid(&error, at)),
        #[cfg(feature = "pcre2")]
        Err(translate::Fault::Unsupported(..)) => {
            let text = std::str::from_utf8(pattern)
                .map_err(|_| invalid("a pattern for PCRE2 must be UTF-8", 0))?;
            let bounded = format!("(*LIMIT_HEAP={MATCH_KIB_MAX}){text}");
            let compiled = pcre2::bytes::RegexBuilder::new()
                .caseless(ignore_case)
                .jit_if_available(true)
                .max_jit_stack_size(Some(MATCH_STACK_BYTES_MAX))
                .build(&bounded);
            let before = bounded.len() - text.len();
            return compiled
                .map(|regex| Regex {
                    engine: Engine::Backtracking(std::sync::Arc::new(regex)),
                })
                .map_err(|error| {
                    let at = error.offset().unwrap_or(0).saturating_sub(before);
                    let text = error.to_string();
                    invalid(text.rsplit(": ").next().unwrap_or(&text), at)
                });
        }
        #[cfg(not(feature = "pcre2"))]
        Err(translate::Fault::Unsupported(what, at)) => {
            return Err(invalid(
                &format!("{what}: this needs PCRE2, which was not built in"),
                at,
            ));
        }
    };
    builder(ignore_case)
        .build(&translated)
        .map(|regex| Regex {
            engine: Engine::Linear(regex),
        })
        .map_err(|error| {
            let text = match error.syntax_error() {
                Some(error) => error.to_string(),
                None => error.to_string(),
            };
            let last = text.lines().last().unwrap_or("");
            invalid(last.trim_start_matches("error: "), pattern.len())
        })
}

impl Regex {
    /// Whether it matches anywhere in the text.
    #[must_use]
    #[inline]
    pub fn is_match(&self, text: &[u8]) -> bool {
        match &self.engine {
            Engine::Linear(regex) => regex.is_match(text),
            #[cfg(feature = "pcre2")]
            Engine::Backtracking(regex) => decided(regex.is_match(text)).unwrap_or(false),
        }
    }

    /// The first match.
    #[must_use]
    pub fn captures<'t>(&self, text: &'t [u8]) -> Option<Captures<'t>> {
        self.captures_at(text, 0)
    }

    /// The first match that begins at `start` or later. `^` and `\b` take the text before it into
    /// account.
    #[must_use]
    pub fn captures_at<'t>(&self, text: &'t [u8], start: usize) -> Option<Captures<'t>> {
        if start > text.len() {
            return None;
        }
        let groups = match &self.engine {
            Engine::Linear(regex) => {
                let mut slots = [None::<NonMaxUsize>; 2 * GROUPS];
                regex.search_slots(&Input::new(text).range(start..), &mut slots)?;
                let end = |slot: Option<NonMaxUsize>| slot.map(NonMaxUsize::get);
                let group = |at: usize| Some((end(slots[2 * at])?, end(slots[2 * at + 1])?));
                std::array::from_fn(group)
            }
            #[cfg(feature = "pcre2")]
            Engine::Backtracking(regex) => {
                let mut places = regex.capture_locations();
                decided(regex.captures_read_at(&mut places, text, start))??;
                std::array::from_fn(|at| places.get(at))
            }
        };
        Some(Captures { text, groups })
    }

    /// All matches from left to right, without overlaps.
    pub fn captures_iter<'r, 't>(&'r self, text: &'t [u8]) -> CapturesIter<'r, 't> {
        CapturesIter {
            regex: self,
            text,
            next: 0,
            last_end: None,
        }
    }
}

/// A match, its text, and the ranges of the first [`GROUPS`] groups.
#[derive(Clone, Copy, Debug)]
pub struct Captures<'t> {
    text: &'t [u8],
    groups: [Option<(usize, usize)>; GROUPS],
}

impl<'t> Captures<'t> {
    /// A group; 0 is the whole match. None if the group did not take part.
    #[must_use]
    pub fn get(&self, group: usize) -> Option<Match<'t>> {
        let (start, end) = (*self.groups.get(group)?)?;
        Some(Match {
            start,
            bytes: self.text.get(start..end)?,
        })
    }
}

/// A part of a text that matched.
#[derive(Clone, Copy, Debug)]
pub struct Match<'t> {
    start: usize,
    bytes: &'t [u8],
}

impl<'t> Match<'t> {
    /// The position of its first byte.
    #[must_use]
    pub fn start(&self) -> usize {
        self.start
    }

    /// The position after its last byte.
    #[must_use]
    pub fn end(&self) -> usize {
        self.start + self.bytes.len()
    }

    /// Its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &'t [u8] {
        self.bytes
    }
}

/// See [`Regex::captures_iter`].
#[derive(Debug)]
pub struct CapturesIter<'r, 't> {
    regex: &'r Regex,
    text: &'t [u8],
    next: usize,
    last_end: Option<usize>,
}

impl<'t> Iterator for CapturesIter<'_, 't> {
    type Item = Captures<'t>;

    fn next(&mut self) -> Option<Captures<'t>> {
        loop {
            let captures = self.regex.captures_at(self.text, self.next)?;
            let (start, end) = captures.groups[0]?;
            if start == end && self.last_end == Some(end) {
                // An empty match at the end of the last match belongs to that match.
                self.next = end + 1;
                continue;
            }
            self.next = end.max(self.next);
            self.last_end = Some(end);
            return Some(captures);
        }
    }
}

#[cfg(test)]
mod tests;
