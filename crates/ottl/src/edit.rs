//! Editors: what statements do. Here they are read and checked; whoever owns the bytes carries them
//! out.

mod metric;

use super::context::Context;
use super::eval::{Failure, Subject};
use super::function::{self, Arg, Function, arguments};
use super::lexer::Token;
use super::parser::{Parser, Term};
use super::path::{Path, Shape};
use super::value::Value;
use super::{Error, replace};
use crate::pattern::compile;
use regex_automata::meta::Regex;

pub use metric::{Aggregation, Distribution, Merge, MetricEdit};
pub use replace::Replace;

/// What a statement does.
#[derive(Debug)]
pub enum Edit {
    /// Writes a value; nil is not written.
    Set(Path, Term),
    /// Takes a key out of a map.
    DeleteKey(Path, Term),
    /// Takes the keys out of a map that match, or those that do not.
    DeleteMatching {
        /// The map.
        map: Path,
        /// The expression.
        pattern: Box<Regex>,
        /// Those that match stay.
        keep: bool,
    },
    /// Leaves these keys in a map.
    KeepKeys(Path, Term),
    /// Leaves so many entries in a map.
    Limit {
        /// The map.
        map: Path,
        /// How many.
        limit: usize,
        /// A list of keys that stay.
        priority: Term,
    },
    /// Shortens the texts of a map.
    TruncateAll {
        /// The map.
        map: Path,
        /// Bytes of a text.
        limit: usize,
        /// Characters stay whole.
        whole: bool,
        /// What stands at the end of what was shortened.
        marker: Vec<u8>,
    },
    /// Replaces in one text.
    Replace(Path, Replace),
    /// Replaces in the texts of a map, or in its keys.
    ReplaceAll {
        /// The map.
        map: Path,
        /// In its keys.
        keys: bool,
        /// What.
        replace: Replace,
    },
    /// Takes the entries of another map in.
    MergeMaps {
        /// The map.
        map: Path,
        /// The other one.
        source: Term,
        /// What becomes of keys that both have, or not.
        strategy: Strategy,
    },
    /// Puts values behind those of a list; what is no list becomes one.
    Append(Path, Vec<Term>),
    /// Takes items out of a list: from a place up to another one, which stays.
    DeleteIndex(Path, Term, Option<Term>),
    /// Moves what is in maps and lists within a map to that map.
    Flatten {
        /// The map.
        map: Path,
        /// What stands in front of new keys.
        prefix: Vec<u8>,
        /// Levels.
        depth: u32,
    },
    /// Makes texts of all values of a map.
    StringifyAll(Path),
    /// Gives a span the name that semantic conventions have for it.
    SpanName {
        /// The attribute that gets the name that it had.
        original: Option<Vec<u8>>,
    },
    /// Changes a metric or makes another one of it.
    Metric(MetricEdit),
}

/// How maps are merged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// Keys that are not there.
    Insert,
    /// Keys that are there.
    Update,
    /// All keys.
    Upsert,
}

/// An editor: its name, the names of its arguments, and what makes it.
#[derive(Debug)]
pub struct Editor {
    /// Its name.
    pub name: &'static str,
    /// Its arguments; a `?` stands in front of those that need not be there.
    pub params: &'static [&'static str],
    /// The contexts that have it; empty: all.
    contexts: &'static [Context],
    make: fn(&mut Args) -> Result<Edit, String>,
}

const fn editor(
    name: &'static str,
    params: &'static [&'static str],
    make: fn(&mut Args) -> Result<Edit, String>,
) -> Editor {
    Editor {
        name,
        params,
        contexts: &[],
        make,
    }
}

/// The editors that there are.
pub fn editors() -> impl Iterator<Item = &'static Editor> {
    EDITORS.iter().chain(metric::EDITORS)
}

/// Those of all contexts.
const EDITORS: &[Editor] = &[
    editor("set", &["target", "value"], |args| {
        Ok(Edit::Set(args.place()?, args.term(1)?))
    }),
    editor("delete_key", &["target", "key"], |args| {
        Ok(Edit::DeleteKey(args.map()?, args.term(1)?))
    }),
    editor("delete_matching_keys", &["target", "pattern"], |args| {
        args.matching(false)
    }),
    editor("keep_matching_keys", &["target", "pattern"], |args| {
        args.matching(true)
    }),
    editor("keep_keys", &["target", "keys"], |args| {
        Ok(Edit::KeepKeys(args.map()?, args.term(1)?))
    }),
    editor("limit", &["target", "limit", "priority_keys"], limit),
    editor(
        "truncate_all",
        &["target", "limit", "?utf8_safe", "?truncation_marker"],
        truncate_all,
    ),
    editor(
        "replace_pattern",
        &[
            "target",
            "regex",
            "replacement",
            "?function",
            "?replacement_format",
        ],
        |args| Ok(Edit::Replace(args.place()?, args.replace(1, true)?)),
    ),
    editor(
        "replace_match",
        &[
            "target",
            "pattern",
            "replacement",
            "?function",
            "?replacement_format",
        ],
        |args| Ok(Edit::Replace(args.place()?, args.replace(1, false)?)),
    ),
    editor(
        "replace_all_patterns",
        &[
            "target",
            "mode",
            "regex",
            "replacement",
            "?function",
            "?replacement_format",
        ],
        |args| {
            let keys = match args.text(1)?.as_str() {
                "key" => true,
                "value" => false,
                _ => return Err("the mode is \"key\" or \"value\"".to_owned()),
            };
            let (map, replace) = (args.map()?, args.replace(2, true)?);
            Ok(Edit::ReplaceAll { map, keys, replace })
        },
    ),
    editor(
        "replace_all_matches",
        &[
            "target",
            "pattern",
            "replacement",
            "?function",
            "?replacement_format",
        ],
        |args| {
            let (map, replace) = (args.map()?, args.replace(1, false)?);
            Ok(Edit::ReplaceAll {
                map,
                keys: false,
                replace,
            })
        },
    ),
    editor("merge_maps", &["target", "source", "strategy"], merge_maps),
    editor("append", &["target", "?value", "?values"], append),
    editor(
        "delete_index",
        &["target", "start_index", "?end_index"],
        |args| {
            Ok(Edit::DeleteIndex(
                args.place()?,
                args.term(1)?,
                args.take(2)?,
            ))
        },
    ),
    editor(
        "flatten",
        &["target", "?prefix", "?depth", "?resolve_conflicts"],
        flatten,
    ),
    editor("stringify_all", &["target"], |args| {
        Ok(Edit::StringifyAll(args.map()?))
    }),
    Editor {
        name: "set_semconv_span_name",
        params: &["semconv_version", "?original_span_name_attribute"],
        contexts: &[Context::Span],
        make: span_name,
    },
];

/// Parses an editor.
pub fn parse(parser: &mut Parser<'_, '_>) -> Result<Edit, Error> {
    let start = parser.error("an editor is expected here, such as `set(`");
    let Some(Token::Word(name)) = parser.next() else {
        return Err(start);
    };
    let fail = |why: String| Error::new(start.at, why);
    let Some(editor) = editors().find(|editor| editor.name == name) else {
        let why = match function::find(name) {
            Ok(_) => format!("{name} changes nothing: an editor is expected here, such as set"),
            Err(_) => format!("the editor {name} is not supported"),
        };
        return Err(fail(why));
    };
    let context = parser.scope.context;
    if !editor.contexts.is_empty() && !editor.contexts.contains(&context) {
        let why = format!("the editor {name} is not supported with the context {context}");
        return Err(fail(why));
    }
    let args = arguments(parser, start.at, editor.name, editor.params)?;
    (editor.make)(&mut Args(args)).map_err(|why| fail(format!("{name}: {why}")))
}

/// The arguments of an editor; each is taken once.
pub struct Args(Vec<Option<Arg>>);

impl Args {
    fn take(&mut self, at: usize) -> Result<Option<Term>, String> {
        match self.0.get_mut(at).and_then(Option::take) {
            None => Ok(None),
            Some(Arg::Term(term)) => Ok(Some(term)),
            Some(Arg::Function(_)) => Err("a function is no value".to_owned()),
        }
    }

    fn term(&mut self, at: usize) -> Result<Term, String> {
        self.take(at)?
            .ok_or_else(|| "an argument is missing".to_owned())
    }

    /// The first argument: a path that can be written.
    fn place(&mut self) -> Result<Path, String> {
        match self.term(0)? {
            Term::Path(path) if path.shape() != Shape::Fixed => Ok(path),
            Term::Path(_) => Err("this path cannot be written".to_owned()),
            _ => Err("the first argument must be a path".to_owned()),
        }
    }

    /// The first argument: a path that may be a map.
    fn map(&mut self) -> Result<Path, String> {
        let path = self.place()?;
        match path.shape() {
            Shape::Map | Shape::Any => Ok(path),
            Shape::Fixed | Shape::Scalar => {
                Err("the first argument must be a map, such as attributes".to_owned())
            }
        }
    }

    fn text(&mut self, at: usize) -> Result<String, String> {
        let term = self.term(at)?;
        let text = term.literal_text().map(str::to_owned);
        text.ok_or_else(|| "a text in quotes is expected here".to_owned())
    }

    fn count(&mut self, at: usize) -> Result<usize, String> {
        let count = match self.term(at)? {
            Term::Literal(Value::Int(count)) => usize::try_from(count).ok(),
            _ => None,
        };
        count.ok_or_else(|| "a number from 0 is expected here".to_owned())
    }

    fn flag(&mut self, at: usize, default: bool) -> Result<bool, String> {
        match self.take(at)? {
            None => Ok(default),
            Some(Term::Literal(Value::Bool(value))) => Ok(value),
            Some(_) => Err("true or false is expected here".to_owned()),
        }
    }

    fn matching(&mut self, keep: bool) -> Result<Edit, String> {
        let (map, pattern) = (self.map()?, self.text(1)?);
        let pattern = Box::new(compile(&[pattern])?);
        Ok(Edit::DeleteMatching { map, pattern, keep })
    }

    /// A pattern, a replacement, a function and a format, from this argument on.
    fn replace(&mut self, at: usize, regex: bool) -> Result<Replace, String> {
        let (pattern, replacement) = (self.text(at)?, self.term(at + 1)?);
        let function: Option<&'static Function> =
            match self.0.get_mut(at + 2).and_then(Option::take) {
                Some(Arg::Function(function)) => Some(function),
                _ => None,
            };
        let format = match self.0.get(at + 3) {
            Some(Some(_)) => Some(self.text(at + 3)?),
            _ => None,
        };
        Replace::new(&pattern, regex, replacement, function, format)
    }
}

/// The versions of the semantic conventions that give the same names.
const SEMCONV_VERSIONS: std::ops::RangeInclusive<u32> = 37..=43;

fn span_name(args: &mut Args) -> Result<Edit, String> {
    let version = args.text(0)?;
    let minor = version
        .strip_prefix("1.")
        .and_then(|rest| rest.strip_suffix(".0"));
    let minor = minor.and_then(|minor| minor.parse().ok());
    if !minor.is_some_and(|minor| SEMCONV_VERSIONS.contains(&minor)) {
        return Err(format!(
            "the version {version:?} is not one of 1.37.0 to 1.43.0"
        ));
    }
    let original = match args.0.get(1) {
        Some(Some(_)) => Some(args.text(1)?.into_bytes()),
        _ => None,
    };
    if original.as_ref().is_some_and(Vec::is_empty) {
        return Err("the attribute has no name".to_owned());
    }
    Ok(Edit::SpanName { original })
}

fn limit(args: &mut Args) -> Result<Edit, String> {
    let (map, limit, priority) = (args.map()?, args.count(1)?, args.term(2)?);
    match &priority {
        Term::List(keys) if keys.len() > limit => {
            Err("there are more priority keys than the limit allows".to_owned())
        }
        Term::List(keys) if keys.iter().all(|key| key.literal_text().is_some()) => {
            Ok(Edit::Limit {
                map,
                limit,
                priority,
            })
        }
        _ => Err("priority_keys must be a list of texts".to_owned()),
    }
}

fn truncate_all(args: &mut Args) -> Result<Edit, String> {
    let (map, limit, whole) = (args.map()?, args.count(1)?, args.flag(2, true)?);
    let marker = match args.0.get(3) {
        Some(Some(_)) => args.text(3)?.into_bytes(),
        _ => Vec::new(),
    };
    if marker.len() > limit {
        return Err("the marker is longer than the limit".to_owned());
    }
    Ok(Edit::TruncateAll {
        map,
        limit,
        whole,
        marker,
    })
}

fn merge_maps(args: &mut Args) -> Result<Edit, String> {
    let strategy = match args.text(2)?.as_str() {
        "insert" => Strategy::Insert,
        "update" => Strategy::Update,
        "upsert" => Strategy::Upsert,
        _ => return Err("the strategy is \"insert\", \"update\" or \"upsert\"".to_owned()),
    };
    let (map, source) = (args.map()?, args.term(1)?);
    Ok(Edit::MergeMaps {
        map,
        source,
        strategy,
    })
}

fn append(args: &mut Args) -> Result<Edit, String> {
    let path = args.place()?;
    let (one, many) = (args.take(1)?, args.take(2)?);
    let mut values: Vec<Term> = one.into_iter().collect();
    match many {
        None => {}
        Some(Term::List(more)) => values.extend(more),
        Some(_) => return Err("values must be a list".to_owned()),
    }
    match (values.is_empty(), path.shape()) {
        (true, _) => Err("there is no value".to_owned()),
        (false, Shape::Any) => Ok(Edit::Append(path, values)),
        (false, Shape::Map) if path.has_keys() => Ok(Edit::Append(path, values)),
        (false, _) => {
            Err("the first argument must be a list, such as attributes[\"tags\"]".to_owned())
        }
    }
}

fn flatten(args: &mut Args) -> Result<Edit, String> {
    if args.flag(3, false)? {
        return Err("resolve_conflicts is not supported".to_owned());
    }
    let map = args.map()?;
    let prefix = match args.0.get(1) {
        Some(Some(_)) => args.text(1)?.into_bytes(),
        _ => Vec::new(),
    };
    let depth = match args.0.get(2) {
        Some(Some(_)) => u32::try_from(args.count(2)?).unwrap_or(u32::MAX),
        _ => u32::MAX,
    };
    Ok(Edit::Flatten { map, prefix, depth })
}

/// The texts of a list of them.
///
/// # Errors
/// It is no list, or not of texts.
pub fn texts(term: &Term, subject: &Subject<'_, '_, '_>) -> Result<Vec<Vec<u8>>, Failure> {
    let value = term.get(subject)?;
    if !matches!(value, Value::List(_)) {
        return Err(Failure::Type);
    }
    let text = |item: otlp::scan::Any<'_>| match item {
        otlp::scan::Any::Text(text) => Ok(text.to_vec()),
        _ => Err(Failure::Type),
    };
    value.items().map(text).collect()
}
