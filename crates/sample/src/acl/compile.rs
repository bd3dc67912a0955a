//! Reads `acl` lines and conditions.

use std::sync::Arc;

use super::keywords::{KEYWORDS, Keyword};
use super::{Acl, Acls, Condition, Line, Suite, Term, predefined, routes};
use crate::auth::Userlist;
use crate::compile::Reading;
use crate::compile::expression::{Compiled, name_end};
use crate::compile::{ascii, suggest};
use crate::pattern::inline::Matcher;
use crate::pattern::method::{METHODS, Method};
use crate::pattern::{Columns, How, Lookup, ValueKinds, Wanted};
use crate::text::parse_int;
use crate::{Compiler, ExprError, Kind, Place, fetch, known};
use std::borrow::Cow;
use syntax::octets::readable;

/// Compiles an `acl` line and adds it to the ACL of that name.
pub(crate) fn named(
    compiler: &mut Compiler,
    acls: &mut Acls,
    name: &str,
    words: &[&[u8]],
) -> Result<(), ExprError> {
    if let Some(other) = name
        .chars()
        .find(|c| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-' | '.' | ':'))
    {
        return Err(ExprError::at(
            0,
            0,
            0,
            format!("invalid character in ACL name : '{other}'"),
        ));
    }
    let line = line(compiler, words)?;
    // Drop this reference first, so that the table is not shared and need not be copied.
    compiler.names.acls = Acls::default();
    acls.add(name, line);
    Ok(())
}

/// Compiles the terms after `if` or `unless`.
pub(crate) fn condition(
    compiler: &mut Compiler,
    acls: &Acls,
    words: &[&[u8]],
    unless: bool,
    place: Place,
) -> Result<Condition, ExprError> {
    let mut suites: Vec<Suite> = Vec::new();
    let mut terms = Vec::new();
    let mut negated = false;
    let mut at = 0;
    while let Some(written) = words.get(at) {
        let word = without_marks(written);
        negated ^= (written.len() - word.len()) % 2 == 1;
        let first = at;
        at += 1;
        if word.is_empty() {
            continue;
        }
        if word.eq_ignore_ascii_case(b"or") || word == b"||" {
            suites
                .extend((!terms.is_empty()).then(|| std::mem::take(&mut terms).into_boxed_slice()));
            negated = false;
            continue;
        }
        let acl = if word == b"{" {
            let Some(length) = words[at..].iter().position(|word| *word == b"}") else {
                return Err(ExprError::at(
                    first,
                    0,
                    written.len(),
                    "missing closing '}' in condition",
                ));
            };
            let inner = &words[at..at + length];
            let line = line(compiler, inner).map_err(|error| error.shifted(first + 1))?;
            at += length + 1;
            Arc::new([Arc::new(line)])
        } else {
            find(compiler, acls, &readable(word).to_string())
                .map_err(|message| ExprError::at(first, 0, written.len(), message))?
        };
        warn_misplaced(compiler, &acl, first, written, place);
        terms.push(Term { acl, negated });
        negated = false;
    }
    suites.extend((!terms.is_empty()).then(|| terms.into_boxed_slice()));
    if suites.is_empty() {
        return Err(ExprError::at(
            0,
            0,
            words.first().map_or(0, |word| word.len()),
            "missing condition",
        ));
    }
    Ok(Condition {
        suites: suites.into(),
        unless,
    })
}

/// An ACL of the section, or a predefined one.
fn find(compiler: &mut Compiler, acls: &Acls, name: &str) -> Result<Acl, String> {
    if let Some(acl) = acls.find(name) {
        return Ok(acl.clone());
    }
    match predefined::words(name) {
        Some(words) => {
            let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
            let line = line(compiler, &words)
                .map_err(|error| format!("ACL '{name}' : {}", error.message))?;
            Ok(Arc::new([Arc::new(line)]))
        }
        None => Err(format!("no such ACL : '{name}'")),
    }
}

/// A term without the `!` before it.
fn without_marks(term: &[u8]) -> &[u8] {
    let marks = term.iter().take_while(|byte| **byte == b'!').count();
    &term[marks..]
}

/// Warns about an ACL at a place where none of its data exists, as HAProxy does; it is accepted.
fn warn_misplaced(compiler: &mut Compiler, acl: &Acl, index: usize, word: &[u8], place: Place) {
    if acl.iter().any(|line| line.source.places.meets(place)) {
        return;
    }
    let name = without_marks(word);
    let message = if name == b"{" {
        let keyword = acl.first().map_or("", |line| line.keyword);
        format!(
            "anonymous acl will never match because it uses keyword '{keyword}' which is incompatible with '{}'",
            place.name()
        )
    } else {
        format!(
            "acl '{}' will never match because it only involves keywords that are incompatible with '{}'",
            readable(name),
            place.name()
        )
    };
    compiler.warn(ExprError::at(index, 0, word.len(), message));
}

/// Flags of an `acl` line.
struct Flags {
    method: Option<Method>,
    ignore_case: bool,
    strict_addresses: bool,
    /// `-M`: pattern files have values.
    with_values: bool,
    /// `-u`: the word's index and the id.
    id: Option<(usize, u32)>,
    files: Vec<Lookup>,
    /// The index of the first pattern.
    next: usize,
}

impl Flags {
    fn how(&self, method: Method) -> How {
        How {
            method,
            ignore_case: self.ignore_case && method.may_ignore_case(),
            strict_addresses: self.strict_addresses && method == Method::Ip,
        }
    }
}

/// Compiles a fetch or an ACL keyword, flags and patterns.
fn line(compiler: &mut Compiler, words: &[&[u8]]) -> Result<Line, ExprError> {
    let first = words.first().copied().unwrap_or_default();
    let (compiled, keyword, converted) = sample(compiler, words)?;
    // A converter after the keyword changes the type, so the keyword's method no longer applies.
    let own_method = keyword.filter(|_| !converted).map(|keyword| keyword.method);
    let kind = compiled.expr.kind();
    let default = own_method.or_else(|| Method::default_of(kind));
    let mut flags = flags(compiler, words, kind, default, compiled.fetch.name)?;
    let method = flags.method.or(default).ok_or_else(|| {
        let message = format!(
            "matching method must be specified first (using '-m') when using a sample fetch of this type ('{}')",
            compiled.fetch.name
        );
        ExprError::at(0, 0, first.len(), message)
    })?;
    if words.len() == 1 && method.has_patterns() {
        compiler.warn(ExprError::at(0, 0, first.len(), format!(
            "acl keyword '{}': no pattern to match against were provided, so this ACL will never match. If this is \
             what you intended, please add '--' to get rid of this warning. If you intended to match only for existence, \
             please use '-m found'. If you wanted to force an int to match as a bool, please use '-m bool'.",
            readable(first)
        )));
    }
    if let Some(keyword) =
        keyword.filter(|keyword| keyword.names_method() && keyword.method != method)
    {
        compiler.warn(ExprError::at(
            0,
            0,
            first.len(),
            format!(
                "original matching method '{}' was overwritten and will not be applied as expected",
                keyword.name
            ),
        ));
    }
    let is_default = flags.method.is_none_or(|method| default == Some(method));
    if let Some(list) = compiled.expr.userlist().filter(|_| is_default) {
        groups(list, words, flags.next)?;
    }
    let how = flags.how(method);
    let written = written_patterns(words, flags.next, method)?;
    let texts = written.iter().map(|(_, text)| &**text);
    let routes = routes::of_line(compiled.fetch.name, method, texts);
    let matcher = match flags.id {
        Some((word, id)) => {
            flags.files.push(with_id(
                compiler,
                words,
                word,
                id,
                how,
                compiled.fetch.name,
                &written,
            )?);
            Matcher::new::<&[u8]>(how, &[])
        }
        None => {
            let texts: Vec<&[u8]> = written.iter().map(|(_, text)| &**text).collect();
            Matcher::new(how, &texts)
        }
    };
    let matcher = matcher.map_err(|(at, message)| {
        let index = written.get(at).map_or(0, |(index, _)| *index);
        at_word(words, index, message)
    })?;
    Ok(Line {
        expr: compiled.expr,
        keyword: compiled.fetch.name,
        source: compiled.fetch.source,
        routes: match (converted, flags.id, &*flags.files) {
            (false, None, []) => routes,
            _ => Box::default(),
        },
        files: flags.files.into(),
        matcher,
    })
}

/// The patterns of `http_auth_group` are groups of its list.
fn groups(list: &Userlist, words: &[&[u8]], first: usize) -> Result<(), ExprError> {
    for (at, group) in words.iter().enumerate().skip(first) {
        if !list.has_group(group) {
            let message = format!("http_auth_group(): invalid group '{}'", readable(group));
            return Err(at_word(words, at, message));
        }
    }
    Ok(())
}

/// Patterns that can be edited at run time because they have an id, which the word at `word` gives.
fn with_id(
    compiler: &mut Compiler,
    words: &[&[u8]],
    word: usize,
    id: u32,
    how: How,
    keyword: &str,
    written: &[WrittenPattern<'_>],
) -> Result<Lookup, ExprError> {
    let wanted = Wanted {
        columns: Columns::Keys,
        how,
        values: ValueKinds::default(),
    };
    let source = compiler.source.clone();
    let lookup = compiler
        .references
        .with_id(id, keyword, wanted, &source)
        .map_err(|message| at_word(words, word, message))?;
    for (index, pattern) in written {
        lookup
            .add(pattern)
            .map_err(|message| at_word(words, *index, message))?;
    }
    Ok(lookup)
}

fn at_word(words: &[&[u8]], index: usize, message: String) -> ExprError {
    let length = words.get(index).map_or(0, |word| word.len());
    ExprError::at(index, 0, length, message)
}

/// The sample of an `acl` line, the ACL keyword if it is one, and whether converters follow it.
///
/// As in HAProxy, the next words may continue the converters of a sample fetch, and these words are
/// patterns too: `req.ssl_alpn, lower h2` matches the texts `lower` and `h2`.
fn sample(
    compiler: &mut Compiler,
    words: &[&[u8]],
) -> Result<(Compiled, Option<&'static Keyword>, bool), ExprError> {
    let word = words.first().copied().unwrap_or_default();
    let end = name_end(word, 0);
    let Some(keyword) = KEYWORDS
        .iter()
        .find(|known| known.name.as_bytes() == &word[..end])
    else {
        let name = ascii(&word[..end]);
        let compiled = match fetch::find(name) {
            None if end > 0 => Err(ExprError::at(0, 0, end, unknown_name(name))),
            _ => compiler.expression(words, Place::ALL, Reading::Words),
        };
        let compiled = compiled.map_err(|mut error| {
            error.message = format!("{} in ACL expression '{}'", error.message, readable(word));
            error
        })?;
        return Ok((compiled, None, false));
    };
    let Keyword {
        name,
        fetch: behind,
        ..
    } = keyword;
    let Some(fetch) = fetch::find(behind) else {
        let names = fetch::all().map(|fetch| fetch.name);
        let message = suggest::unknown(
            "ACL keyword",
            name,
            &[known::FETCHES, &[name]].concat(),
            names,
        );
        return Err(ExprError::at(0, 0, end, message));
    };
    let compiled = compiler
        .call(&[word], fetch, end, Reading::Word)
        .map_err(|mut error| {
            error.message = format!("ACL keyword '{name}' : {}", error.message);
            error
        })?;
    let converted = compiled.expr.has_converters();
    Ok((compiled, Some(keyword), converted))
}

/// The message for a name that is neither a fetch nor an ACL keyword. Both are suggested.
fn unknown_name(name: &str) -> String {
    let keywords = KEYWORDS.iter().map(|keyword| keyword.name);
    let names = fetch::all().map(|fetch| fetch.name).chain(keywords);
    suggest::unknown("fetch method", name, known::FETCHES, names)
}

fn flags(
    compiler: &mut Compiler,
    words: &[&[u8]],
    kind: Kind,
    default: Option<Method>,
    fetch: &str,
) -> Result<Flags, ExprError> {
    let mut flags = Flags {
        method: None,
        ignore_case: false,
        strict_addresses: false,
        with_values: false,
        id: None,
        files: Vec::new(),
        next: 1,
    };
    let mut loaded = false;
    while let Some(word) = words.get(flags.next).filter(|word| word.starts_with(b"-")) {
        let at = flags.next;
        let fault = |message: String| ExprError::at(at, 0, word.len(), message);
        let value = words.get(at + 1).copied();
        let missing = || fault(format!("missing value after '{}'", readable(word)));
        flags.next += 1;
        match *word {
            b"--" => break,
            b"-i" => flags.ignore_case = true,
            // Names are never resolved here. The flag still refuses shortened addresses.
            b"-n" => flags.strict_addresses = true,
            b"-M" => flags.with_values = true,
            b"-u" => {
                let id = crate::compile::ascii(value.ok_or_else(missing)?).parse();
                let id = id.map_err(|_| fault("the argument of -u must be an integer".into()))?;
                flags.id = Some((at + 1, id));
                flags.next += 1;
            }
            b"-m" => {
                let name = value.ok_or_else(missing)?;
                if loaded {
                    return Err(fault(
                        "'-m' must only be specified before patterns and files in parsing ACL expression".into(),
                    ));
                }
                if flags.method.is_some() {
                    return Err(fault(
                        "only one explicit matching method can be defined with '-m' parameter. if migrating from an old \
                         version, just keep the last one"
                            .into(),
                    ));
                }
                flags.method = Some(method_named(name, kind, fetch).map_err(fault)?);
                flags.next += 1;
            }
            b"-f" => {
                let path = value.ok_or_else(missing)?;
                let Some(method) = flags.method.or(default) else {
                    return Err(fault(format!(
                        "matching method must be specified first (using '-m') when using a sample fetch of this type ('{fetch}')"
                    )));
                };
                let wanted = Wanted {
                    columns: if flags.with_values {
                        Columns::KeysAndValues
                    } else {
                        Columns::Keys
                    },
                    how: flags.how(method),
                    values: ValueKinds::default(),
                };
                let source = &compiler.source;
                let file = compiler.references.lookup(path, wanted, source);
                let file = file.map_err(|message| at_word(words, at + 1, message))?;
                flags.files.push(file);
                loaded = true;
                flags.next += 1;
            }
            _ => {
                return Err(fault(format!(
                    "'{}' is not a valid ACL option. Please use '--' before any pattern beginning with a '-'",
                    readable(word)
                )));
            }
        }
    }
    Ok(flags)
}

fn method_named(name: &[u8], kind: Kind, fetch: &str) -> Result<Method, String> {
    let Some((_, method)) = METHODS.iter().find(|(known, _)| known.as_bytes() == name) else {
        return Err(format!(
            "unknown matching method '{}' when parsing ACL expression",
            readable(name)
        ));
    };
    if method.suits(kind) {
        Ok(*method)
    } else {
        Err(format!(
            "matching method '{}' cannot be used with fetch keyword '{fetch}'",
            readable(name)
        ))
    }
}

/// A pattern and the index of its word.
type WrittenPattern<'w> = (usize, Cow<'w, [u8]>);

/// The patterns among the words from `first` on, each with its index. An operator is merged into
/// the patterns that follow it.
fn written_patterns<'w>(
    words: &[&'w [u8]],
    first: usize,
    method: Method,
) -> Result<Vec<WrittenPattern<'w>>, ExprError> {
    let mut patterns = Vec::new();
    let mut operator = Operator::Eq;
    for (index, word) in words.iter().enumerate().skip(first) {
        if !method.takes_operators() {
            patterns.push((index, Cow::Borrowed(*word)));
        } else if *word == b"--" {
            // Behind an operator it ends no flags: HAProxy takes it for a range without bounds.
        } else if let Some(named) = Operator::named(word) {
            operator = named;
        } else if operator == Operator::Eq || word.iter().any(|byte| b":-".contains(byte)) {
            patterns.push((index, Cow::Borrowed(*word)));
        } else {
            let range = operator.range(&readable(word).to_string(), method);
            let range = range.map_err(|message| at_word(words, index, message))?;
            patterns.push((index, Cow::Owned(range.into_bytes())));
        }
    }
    Ok(patterns)
}

/// An operator before a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Eq,
    Ge,
    Gt,
    Le,
    Lt,
}

impl Operator {
    fn named(word: &[u8]) -> Option<Operator> {
        Some(match word {
            b"eq" => Operator::Eq,
            b"ge" => Operator::Ge,
            b"gt" => Operator::Gt,
            b"le" => Operator::Le,
            b"lt" => Operator::Lt,
            _ => return None,
        })
    }

    /// The range of an operator and its number, in the syntax of a pattern.
    fn range(self, word: &str, method: Method) -> Result<String, String> {
        let neither = || format!("'{word}' is neither a number nor a supported operator");
        let number = match method {
            Method::Version => {
                let (major, minor) = word.split_once('.').unwrap_or((word, "0"));
                let part = |text: &str, what| match parse_int(text) {
                    Some(value) => u16::try_from(value)
                        .map_err(|_| format!("'{word}' contains too large a {what} value")),
                    None => Err(neither()),
                };
                let (major, minor) = (part(major, "major")?, part(minor, "minor")?);
                i64::from(major) << 16 | i64::from(minor)
            }
            _ => parse_int(word).ok_or_else(neither)?,
        };
        let number = match self {
            Operator::Gt => number.checked_add(1).ok_or_else(neither)?,
            Operator::Lt => number.checked_sub(1).ok_or_else(neither)?,
            Operator::Eq | Operator::Ge | Operator::Le => number,
        };
        let text = match method {
            Method::Version => format!("{}.{}", number >> 16, number & 0xffff),
            _ => number.to_string(),
        };
        Ok(match self {
            Operator::Eq => text,
            Operator::Ge | Operator::Gt => format!("{text}:"),
            Operator::Le | Operator::Lt => format!(":{text}"),
        })
    }
}
