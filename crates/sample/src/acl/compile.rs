//! Reads `acl` lines and conditions.

use std::sync::Arc;

use super::keywords::{KEYWORDS, Keyword};
use super::matcher::{METHODS, Matcher, Method};
use super::{Acl, Acls, Condition, Line, Suite, Term, predefined};
use crate::auth::Userlist;
use crate::compile::Reading;
use crate::compile::expression::{Compiled, name_end};
use crate::compile::suggest;
use crate::text::parse_int;
use crate::{Compiler, ExprError, Kind, Place, fetch, known};

/// Compiles an `acl` line and adds it to the ACL of that name.
pub(crate) fn named(
    compiler: &mut Compiler,
    acls: &mut Acls,
    name: &str,
    words: &[&str],
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
    let line = Arc::new(line(compiler, words)?);
    match acls.list.iter_mut().find(|(known, _)| known == name) {
        Some((_, acl)) => *acl = acl.iter().cloned().chain([line]).collect(),
        None => acls.list.push((name.to_owned(), Arc::new([line]))),
    }
    Ok(())
}

/// Compiles the terms after `if` or `unless`.
pub(crate) fn condition(
    compiler: &mut Compiler,
    acls: &Acls,
    words: &[&str],
    unless: bool,
    place: Place,
) -> Result<Condition, ExprError> {
    let mut suites: Vec<Suite> = Vec::new();
    let mut terms = Vec::new();
    let mut negated = false;
    let mut at = 0;
    while let Some(written) = words.get(at) {
        let word = written.trim_start_matches('!');
        negated ^= (written.len() - word.len()) % 2 == 1;
        let first = at;
        at += 1;
        if word.is_empty() {
            continue;
        }
        if word.eq_ignore_ascii_case("or") || word == "||" {
            suites
                .extend((!terms.is_empty()).then(|| std::mem::take(&mut terms).into_boxed_slice()));
            negated = false;
            continue;
        }
        let acl = if word == "{" {
            let Some(length) = words[at..].iter().position(|word| *word == "}") else {
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
            find(compiler, acls, word)
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
            let line = line(compiler, words)
                .map_err(|error| format!("ACL '{name}' : {}", error.message))?;
            Ok(Arc::new([Arc::new(line)]))
        }
        None => Err(format!("no such ACL : '{name}'")),
    }
}

/// HAProxy accepts an ACL where nothing it reads is there, and warns.
fn warn_misplaced(compiler: &mut Compiler, acl: &Acl, index: usize, word: &str, place: Place) {
    if acl.iter().any(|line| line.source.places.meets(place)) {
        return;
    }
    let name = word.trim_start_matches('!');
    let message = if name == "{" {
        let keyword = acl.first().map_or("", |line| line.keyword);
        format!(
            "anonymous acl will never match because it uses keyword '{keyword}' which is incompatible with '{}'",
            place.name()
        )
    } else {
        format!(
            "acl '{name}' will never match because it only involves keywords that are incompatible with '{}'",
            place.name()
        )
    };
    compiler.warn(ExprError::at(index, 0, word.len(), message));
}

/// Flags of an `acl` line.
struct Flags {
    method: Option<Method>,
    ignore_case: bool,
    patterns: Vec<String>,
    /// Where the patterns begin.
    next: usize,
}

/// Compiles a fetch or an ACL keyword, flags and patterns.
fn line(compiler: &mut Compiler, words: &[&str]) -> Result<Line, ExprError> {
    let first = words.first().copied().unwrap_or("");
    let (compiled, own_method) = sample(compiler, first)?;
    let kind = compiled.expr.kind();
    let default = own_method.or_else(|| Method::default_of(kind));
    let flags = flags(words, kind, default, compiled.fetch.name)?;
    let method = flags.method.or(default).ok_or_else(|| {
        let message = format!(
            "matching method must be specified first (using '-m') when using a sample fetch of this type ('{}')",
            compiled.fetch.name
        );
        ExprError::at(0, 0, first.len(), message)
    })?;
    if words.len() == 1 && method.has_patterns() {
        compiler.warn(ExprError::at(0, 0, first.len(), format!(
            "acl keyword '{first}': no pattern to match against were provided, so this ACL will never match. If this is \
             what you intended, please add '--' to get rid of this warning. If you intended to match only for existence, \
             please use '-m found'. If you wanted to force an int to match as a bool, please use '-m bool'."
        )));
    }
    if let Some(list) = compiled
        .expr
        .userlist()
        .filter(|_| own_method == Some(method))
    {
        groups(list, words, &flags)?;
    }
    let matcher = patterns(words, &flags, method)?;
    Ok(Line {
        expr: compiled.expr,
        keyword: compiled.fetch.name,
        source: compiled.fetch.source,
        matcher,
    })
}

/// The patterns of `http_auth_group` are groups of its list.
fn groups(list: &Userlist, words: &[&str], flags: &Flags) -> Result<(), ExprError> {
    let written = words.iter().enumerate().skip(flags.next);
    let loaded = flags.patterns.iter().map(|group| (0, group.as_str()));
    for (at, group) in loaded.chain(written.map(|(at, group)| (at, *group))) {
        if !list.has_group(group) {
            let message = format!("http_auth_group(): invalid group '{group}'");
            return Err(ExprError::at(at, 0, words[at].len(), message));
        }
    }
    Ok(())
}

/// The sample of an `acl` line, and the method that an ACL keyword brings.
fn sample(compiler: &mut Compiler, word: &str) -> Result<(Compiled, Option<Method>), ExprError> {
    let end = name_end(word, 0);
    let Some(keyword) = KEYWORDS.iter().find(|keyword| keyword.name == &word[..end]) else {
        let compiled = compiler
            .expression(&[word], Place::ALL, Reading::Word)
            .map_err(|mut error| {
                error.message = format!("{} in ACL expression '{word}'", error.message);
                error
            })?;
        return Ok((compiled, None));
    };
    let Keyword {
        name,
        fetch: behind,
        method,
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
    // A converter after it changes the type, and with it the method.
    let converted = compiled.expr.has_converters();
    Ok((compiled, (!converted).then_some(*method)))
}

fn flags(
    words: &[&str],
    kind: Kind,
    default: Option<Method>,
    fetch: &str,
) -> Result<Flags, ExprError> {
    let mut flags = Flags {
        method: None,
        ignore_case: false,
        patterns: Vec::new(),
        next: 1,
    };
    let mut loaded = false;
    while let Some(word) = words.get(flags.next).filter(|word| word.starts_with('-')) {
        let at = flags.next;
        let fault = |message: String| ExprError::at(at, 0, word.len(), message);
        let value = words.get(at + 1).copied();
        let missing = || fault(format!("missing value after '{word}'"));
        flags.next += 1;
        match *word {
            "--" => break,
            "-i" => flags.ignore_case = true,
            // Names are never resolved here: an address is an address.
            "-n" => {}
            "-u" => {
                let id = value.ok_or_else(missing)?;
                parse_int(id)
                    .ok_or_else(|| fault("the argument of -u must be an integer".into()))?;
                flags.next += 1;
            }
            "-m" => {
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
            "-f" => {
                let path = value.ok_or_else(missing)?;
                if flags.method.or(default).is_none() {
                    return Err(fault(format!(
                        "matching method must be specified first (using '-m') when using a sample fetch of this type ('{fetch}')"
                    )));
                }
                flags.patterns.extend(read_patterns(path).map_err(fault)?);
                loaded = true;
                flags.next += 1;
            }
            "-M" => return Err(fault("'-M' is known but not implemented yet".into())),
            _ => {
                return Err(fault(format!(
                    "'{word}' is not a valid ACL option. Please use '--' before any pattern beginning with a '-'"
                )));
            }
        }
    }
    Ok(flags)
}

fn method_named(name: &str, kind: Kind, fetch: &str) -> Result<Method, String> {
    let Some((_, method)) = METHODS.iter().find(|(known, _)| *known == name) else {
        return Err(format!(
            "unknown matching method '{name}' when parsing ACL expression"
        ));
    };
    if method.suits(kind) {
        Ok(*method)
    } else {
        Err(format!(
            "matching method '{name}' cannot be used with fetch keyword '{fetch}'"
        ))
    }
}

/// Patterns of a file: one a line, without blanks before it; lines that begin with `#` and empty ones are left out.
fn read_patterns(path: &str) -> Result<Vec<String>, String> {
    for prefix in ["virt@", "opt@"] {
        if path.starts_with(prefix) {
            return Err(format!(
                "pattern file <{path}>: '{prefix}' is known but not implemented yet"
            ));
        }
    }
    let path = path.strip_prefix("file@").unwrap_or(path);
    let bytes = std::fs::read(path).map_err(|_| format!("failed to open pattern file <{path}>"))?;
    let text =
        String::from_utf8(bytes).map_err(|_| format!("pattern file <{path}> is not UTF-8 text"))?;
    let lines = text.split('\n').filter(|line| !line.starts_with('#'));
    let patterns = lines.map(|line| {
        line.trim_start_matches([' ', '\t'])
            .split('\r')
            .next()
            .unwrap_or("")
    });
    Ok(patterns
        .filter(|pattern| !pattern.is_empty())
        .map(str::to_owned)
        .collect())
}

/// The matcher of the patterns in files and words.
fn patterns(words: &[&str], flags: &Flags, method: Method) -> Result<Matcher, ExprError> {
    let mut patterns = flags.patterns.clone();
    let mut places = vec![flags.next.saturating_sub(1); patterns.len()];
    let mut operator = None;
    for (index, word) in words.iter().enumerate().skip(flags.next) {
        if method.takes_operators() {
            if let Some(named) = Operator::named(word) {
                operator = Some(named);
                continue;
            }
            if let Some(operator) =
                operator.filter(|operator| *operator != Operator::Eq && !word.contains([':', '-']))
            {
                let range = operator.range(word, method).ok_or_else(|| {
                    let message = format!("'{word}' is neither a number nor a supported operator");
                    ExprError::at(index, 0, word.len(), message)
                })?;
                patterns.push(range);
                places.push(index);
                continue;
            }
        }
        patterns.push((*word).to_owned());
        places.push(index);
    }
    Matcher::new(method, flags.ignore_case, &patterns).map_err(|(pattern, message)| {
        let index = places.get(pattern).copied().unwrap_or(0);
        ExprError::at(
            index,
            0,
            words.get(index).map_or(0, |word| word.len()),
            message,
        )
    })
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
    fn named(word: &str) -> Option<Operator> {
        Some(match word {
            "eq" => Operator::Eq,
            "ge" => Operator::Ge,
            "gt" => Operator::Gt,
            "le" => Operator::Le,
            "lt" => Operator::Lt,
            _ => return None,
        })
    }

    /// The range of an operator and its number, as a pattern.
    fn range(self, word: &str, method: Method) -> Option<String> {
        let number = match method {
            Method::Version => {
                let (major, minor) = word.split_once('.').unwrap_or((word, "0"));
                i64::from(major.parse::<u16>().ok()?) << 16 | i64::from(minor.parse::<u16>().ok()?)
            }
            _ => parse_int(word)?,
        };
        let number = match self {
            Operator::Gt => number.checked_add(1)?,
            Operator::Lt => number.checked_sub(1)?,
            Operator::Eq | Operator::Ge | Operator::Le => number,
        };
        let text = match method {
            Method::Version => format!("{}.{}", number >> 16, number & 0xffff),
            _ => number.to_string(),
        };
        Some(match self {
            Operator::Eq => text,
            Operator::Ge | Operator::Gt => format!("{text}:"),
            Operator::Le | Operator::Lt => format!(":{text}"),
        })
    }
}
