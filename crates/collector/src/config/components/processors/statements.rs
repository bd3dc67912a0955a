//! Statements and conditions in OTTL, as `transform` and `filter` have them: lists of texts, or
//! groups with a context.

use otlp::Signal;
use otlp::scan::Keys;
use ottl::{Condition, Context, Error, Statement};
use tail::settings::ErrorMode;

use crate::config::diagnostic::At;
use crate::config::options::{Kind, Opt, Section, opt};

/// Statements or conditions of one context, in their order.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// What they are about.
    pub context: Context,
    /// What becomes of errors.
    pub error_mode: ErrorMode,
    /// One of these must be true for the statements to be run; none: they always are. For `filter`:
    /// what drops.
    pub conditions: Vec<String>,
    /// Statements; `filter` has none.
    pub statements: Vec<String>,
    /// They have one `cache` for all records of a request, with the other groups of the same
    /// context that say so.
    pub shares_cache: bool,
}

/// Reason why options of profiles have no effect.
pub(crate) const NO_PROFILES: &str = "there are no pipelines of profiles";

pub(crate) const ERROR_MODES: &[&str] = &["ignore", "silent", "propagate"];
/// The options of a group, whose context is one of these.
#[rustfmt::skip]
const fn group(contexts: &'static [&'static str]) -> [Opt; 3] {
    [
        opt("context", Kind::WordAnyCase(contexts), "", "what the paths are of; found out where each says so itself"),
        opt("error_mode", Kind::Word(ERROR_MODES), "", "as above, for these alone"),
        opt("conditions", Kind::Texts, "", "OTTL: any that is true is enough"),
    ]
}

/// A group's options, of traces.
pub(crate) const TRACE_GROUP: &[Opt] = &group(&["resource", "scope", "span", "spanevent"]);
/// The same, of conditions on metrics.
pub(crate) const METRIC_GROUP: &[Opt] = &group(&["resource", "scope", "metric", "datapoint"]);
/// The same, of statements on metrics.
pub(crate) const METRIC_STATEMENTS_GROUP: &[Opt] =
    &group(&["resource", "scope", "metric", "datapoint", "exemplar"]);
/// The same, of logs.
pub(crate) const LOG_GROUP: &[Opt] = &group(&["resource", "scope", "log"]);
#[rustfmt::skip]
pub(crate) const STATEMENTS: &[Opt] = &[
    opt("statements", Kind::Texts, "", "OTTL, in this order"),
    opt("shared_cache", Kind::Flag, "false", "one `cache` for all records of a request, and for all groups of this context that say so; else each record has one of its own"),
];

/// How an `error_mode` is read.
pub(crate) fn error_mode(section: &Section<'_>, default: ErrorMode) -> ErrorMode {
    match section.text("error_mode").as_str() {
        "propagate" => ErrorMode::Propagate,
        "ignore" => ErrorMode::Ignore,
        "silent" => ErrorMode::Silent,
        _ => default,
    }
}

/// The groups under a key: one of all texts, or one a map. Conditions that do not say their context
/// are groups of their own: each finds its context, as in the Collector. What is wrong is noted.
pub(crate) fn groups(
    section: &Section<'_>,
    name: &str,
    signal: Signal,
    default: ErrorMode,
) -> Vec<Group> {
    let items = section.written(name).map_or(&[][..], |node| node.items());
    if items.iter().any(|item| item.text().is_some()) {
        let texts = section.texts_at(name);
        let is_condition = !section.sections_know(name, "statements");
        let group = Written {
            path: format!("{}::{name}", section.path),
            signal,
            context: None,
            error_mode: default,
            conditions: if is_condition {
                texts.clone()
            } else {
                Vec::new()
            },
            statements: if is_condition { Vec::new() } else { texts },
            shares_cache: false,
        };
        return group.read_all(section);
    }
    let sections = section.sections(name);
    sections
        .iter()
        .flat_map(|group| written(group, signal, default).read_all(group))
        .collect()
}

/// Conditions under a key, of one context.
pub(crate) fn conditions(
    section: &Section<'_>,
    name: &str,
    signal: Signal,
    context: Context,
    error_mode: ErrorMode,
) -> Option<Group> {
    let group = Written {
        path: format!("{}::{name}", section.path),
        signal,
        context: Some(context),
        error_mode,
        conditions: section.whole_texts_at(name),
        statements: Vec::new(),
        shares_cache: false,
    };
    if group.conditions.is_empty() {
        None
    } else {
        group.read(section)
    }
}

/// A group as it is written.
#[derive(Clone)]
struct Written {
    path: String,
    signal: Signal,
    context: Option<Context>,
    error_mode: ErrorMode,
    conditions: Vec<(String, At)>,
    statements: Vec<(String, At)>,
    shares_cache: bool,
}

fn written(group: &Section<'_>, signal: Signal, default: ErrorMode) -> Written {
    let word = group.text("context").to_ascii_lowercase();
    let context = Context::of(signal)
        .iter()
        .copied()
        .find(|context| context.name() == word);
    let statements = if group.knows("statements") {
        group.whole_texts_at("statements")
    } else {
        Vec::new()
    };
    let own = if group.knows("statements") {
        "statements"
    } else {
        "conditions"
    };
    if group.written(own).is_none() {
        group.warn(own, "is empty: nothing is done");
    }
    Written {
        path: group.path.clone(),
        signal,
        context,
        error_mode: error_mode(group, default),
        conditions: group.whole_texts_at("conditions"),
        statements,
        shares_cache: group.knows("shared_cache") && group.flag("shared_cache"),
    }
}

impl Written {
    /// The group, or one group for each condition where there are only conditions and no context.
    fn read_all(self, section: &Section<'_>) -> Vec<Group> {
        if self.context.is_some() || !self.statements.is_empty() || self.conditions.len() < 2 {
            return self.read(section).into_iter().collect();
        }
        let conditions = self.conditions.iter();
        let alone = conditions.map(|condition| Written {
            conditions: vec![condition.clone()],
            ..self.clone()
        });
        alone.filter_map(|group| group.read(section)).collect()
    }

    /// Finds the context, and checks everything.
    fn read(self, section: &Section<'_>) -> Option<Group> {
        let context = match self.context {
            Some(context) => context,
            None => self.inferred(),
        };
        let mut right = true;
        for (text, at, outcome) in self.outcomes(context) {
            if let Err(error) = outcome {
                let shown = crate::config::source::shortened(text);
                section
                    .notes
                    .error(at, format!("{}: '{shown}' {error}", self.path));
                right = false;
            }
        }
        let texts = |list: Vec<(String, At)>| list.into_iter().map(|(text, _)| text).collect();
        right.then(|| Group {
            context,
            error_mode: self.error_mode,
            conditions: texts(self.conditions),
            statements: texts(self.statements),
            shares_cache: self.shares_cache,
        })
    }

    /// The first context that knows all of the paths; if none does, the one that gets furthest.
    fn inferred(&self) -> Context {
        // Conditions that drop exemplars are not there, as in the Collector.
        let is_one =
            |context: &Context| *context != Context::Exemplar || !self.statements.is_empty();
        let contexts = Context::of(self.signal).iter().copied().filter(is_one);
        let contexts: Vec<Context> = contexts.collect();
        let fitting = contexts.iter().find(|context| self.fits(**context));
        let furthest = || contexts.iter().max_by_key(|context| self.reach(**context));
        let context = fitting.or_else(furthest);
        context.copied().unwrap_or(Context::Resource)
    }

    /// How many texts are right, and how far the others are understood.
    fn reach(&self, context: Context) -> (usize, usize) {
        let (mut right, mut reach) = (0, 0);
        for (.., outcome) in self.outcomes(context) {
            match outcome {
                Ok(()) => right += 1,
                Err(error) => reach += error.at,
            }
        }
        (right, reach)
    }

    fn fits(&self, context: Context) -> bool {
        self.outcomes(context).all(|(.., outcome)| outcome.is_ok())
    }

    fn outcomes(&self, context: Context) -> impl Iterator<Item = (&str, At, Result<(), Error>)> {
        let prefixed = self.context.is_none();
        let conditions = self.conditions.iter().map(move |(text, at)| {
            let parsed = if prefixed {
                Condition::prefixed(text, context)
            } else {
                Condition::parse(text, context, &mut Keys::default())
            };
            (text.as_str(), *at, parsed.map(drop))
        });
        let statements = self.statements.iter().map(move |(text, at)| {
            let parsed = Statement::parse(text, context, prefixed);
            (text.as_str(), *at, parsed.map(drop))
        });
        conditions.chain(statements)
    }
}
