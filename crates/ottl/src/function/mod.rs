//! Functions ("converters"): one entry of a table each, one file a family.

mod args;
mod case;
mod csv;
mod format;
mod grok;
mod hash;
mod identifier;
mod is;
mod layout;
mod list;
mod murmur3;
mod network;
mod number;
mod parse;
mod points;
mod text;
mod time;
mod url;
mod xml;

use super::eval::{Failure, Subject};
use super::parser::{Parser, Term};
use super::value::Value;
use super::{Context, Error, Outside, lexer::Token};
use crate::pattern::compile;
pub use args::{Arg, arguments};
use otlp::scan::Metric;
use regex_automata::meta::Regex;
use std::fmt;
use text::text_like;

/// Arguments of one function.
pub const ARGS_MAX: usize = 6;

/// A function.
#[derive(Debug)]
pub struct Function {
    /// Its name.
    pub name: &'static str,
    /// Names of its arguments; a `?` stands in front of those that need not be there.
    pub params: &'static [&'static str],
    pub(super) build: Build,
}

/// What a function becomes when it is parsed.
#[derive(Clone, Copy)]
pub enum Build {
    /// Called with its arguments' values; those that are not there are nil.
    Eval(Eval),
    /// Its second argument is a regular expression that is written out.
    Regex(EvalRegex),
    /// Its argument is written out, and so is what it gives.
    Const(fn(&Value<'_>) -> Result<Value<'static>, Failure>),
    /// Made from those of its arguments that are written out; called with the values of all.
    Prepare(Prepare),
    /// Asks the caller's clock or random numbers. It has no arguments.
    Outside(fn(Outside) -> Result<Value<'static>, Failure>),
    /// Asks about the span itself.
    Root,
    /// Asks about the data points of a metric, with its arguments' values.
    Points(Points),
}

type Prepare = fn(&Written<'_>) -> Result<Prepared, String>;
/// A function that was prepared.
pub type Prepared =
    Box<dyn for<'a> Fn(&[Value<'a>], Outside) -> Result<Value<'a>, Failure> + Send + Sync>;

type Points = fn(&Metric<'_>, &[Value<'_>]) -> Result<Value<'static>, Failure>;
type Eval = for<'a> fn(&[Value<'a>]) -> Result<Value<'a>, Failure>;
type EvalRegex = for<'a> fn(&Regex, &Value<'a>) -> Result<Value<'a>, Failure>;

impl fmt::Debug for Build {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Build::Eval(_) => "Eval",
            Build::Regex(_) => "Regex",
            Build::Const(_) => "Const",
            Build::Prepare(_) => "Prepare",
            Build::Outside(_) => "Outside",
            Build::Root => "Root",
            Build::Points(_) => "Points",
        })
    }
}

/// The functions that there are, by family.
pub const FUNCTIONS: &[&[Function]] = &[
    is::FUNCTIONS,
    text::FUNCTIONS,
    number::FUNCTIONS,
    list::FUNCTIONS,
    time::FUNCTIONS,
    hash::FUNCTIONS,
    murmur3::FUNCTIONS,
    identifier::FUNCTIONS,
    network::FUNCTIONS,
    parse::FUNCTIONS,
    grok::FUNCTIONS,
    csv::FUNCTIONS,
    url::FUNCTIONS,
    xml::FUNCTIONS,
    format::FUNCTIONS,
    points::FUNCTIONS,
];

const LAMBDA: &str = "it needs the Collector's feature gate ottl.functions.enableLambda, which is off there by default";
const NOT_BUILT_IN: &str = "it is not built in";
const XML: &str = "XPath is not supported: ParseXML and ParseSimplifiedXML make maps of XML";

/// Functions that the Collector has and that are missing here, and why.
#[rustfmt::skip]
pub const MISSING: &[(&str, &str)] = &[
    ("All", LAMBDA), ("Any", LAMBDA), ("Filter", LAMBDA), ("Find", LAMBDA), ("MapEach", LAMBDA),
    ("MapKeys", LAMBDA), ("Reduce", LAMBDA), ("When", LAMBDA),
    ("ConvertAttributesToElementsXML", XML), ("ConvertTextToElementsXML", XML), ("GetXML", XML),
    ("InsertXML", XML), ("RemoveXML", XML),
    ("ParseCEF", NOT_BUILT_IN), ("ParseCLF", NOT_BUILT_IN), ("ParseELF", NOT_BUILT_IN),
    ("ParseLEEF", NOT_BUILT_IN), ("ParseSeverity", NOT_BUILT_IN),
    ("UserAgent", "the list of user agents of the Collector (uap-core) is not built in"),
];

/// The names of all functions that there are.
pub fn names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.iter().copied().flatten().map(|one| one.name)
}

/// The function of a name.
pub fn find(name: &str) -> Result<&'static Function, String> {
    let mut all = FUNCTIONS.iter().copied().flatten();
    let found = all.find(|function| function.name == name);
    found.ok_or_else(|| {
        let missing = MISSING.iter().find(|(missing, _)| *missing == name);
        let why = missing.map_or("there is none of this name", |(_, why)| why);
        format!("the function {name} is not supported: {why}")
    })
}

/// A function with its arguments.
#[derive(Debug)]
pub struct Call {
    args: Vec<Option<Term>>,
    made: Made,
}

#[derive(Debug)]
enum Made {
    Eval(MadeEval),
    Regex(Box<Regex>, MadeRegex),
    Const(Value<'static>),
    Prepared(MadePrepared),
    Outside(MadeOutside),
    Root,
    Points(MadePoints),
}

struct MadePrepared(Prepared);
struct MadeOutside(fn(Outside) -> Result<Value<'static>, Failure>);

impl fmt::Debug for MadePrepared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MadePrepared")
    }
}

impl fmt::Debug for MadeOutside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MadeOutside")
    }
}

struct MadePoints(Points);

impl fmt::Debug for MadePoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MadePoints")
    }
}

struct MadeEval(Eval);
struct MadeRegex(EvalRegex);

impl fmt::Debug for MadeEval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MadeEval")
    }
}

impl fmt::Debug for MadeRegex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MadeRegex")
    }
}

/// Parses a call; its name is the next token.
pub fn parse(parser: &mut Parser<'_, '_>) -> Result<Call, Error> {
    let start = parser.error("");
    let fail = |why: String| Error::new(start.at, why);
    let Some(Token::Word(name)) = parser.next() else {
        return Err(fail("a function is expected here".to_owned()));
    };
    let function = find(name).map_err(fail)?;
    let args = arguments(parser, start.at, function.name, function.params)?;
    let mut terms = Vec::with_capacity(args.len());
    for arg in args {
        terms.push(match arg {
            Some(Arg::Term(term)) => Some(term),
            Some(Arg::Function(_)) => return Err(fail(format!("{name} takes no function"))),
            None => None,
        });
    }
    let made = made(function, &terms, parser.scope.context).map_err(fail)?;
    Ok(Call { args: terms, made })
}

fn made(function: &Function, args: &[Option<Term>], context: Context) -> Result<Made, String> {
    let name = function.name;
    // What would fail with every span is told at once.
    let word = |at: usize| args.get(at)?.as_ref()?.literal_text();
    match (name, word(1)) {
        ("ConvertCase", Some(case)) if !text::CASES.contains(&case) => {
            return Err(format!("ConvertCase to {case:?} is not supported"));
        }
        ("Decode", Some(encoding)) if !number::is_encoding(encoding) => {
            return Err(format!("Decode of {encoding:?} is not supported"));
        }
        _ => {}
    }
    Ok(match function.build {
        Build::Eval(eval) => Made::Eval(MadeEval(eval)),
        Build::Regex(eval) => {
            let pattern = args.get(1).and_then(Option::as_ref);
            let pattern = pattern.and_then(Term::literal_text);
            let pattern = pattern.ok_or_else(|| format!("the pattern of {name} must be a text"))?;
            let regex = compile(&[pattern.to_owned()])?;
            if name == "ExtractPatterns" && parse::group_names(&regex).next().is_none() {
                return Err(format!("the pattern of {name} has no group with a name"));
            }
            Made::Regex(Box::new(regex), MadeRegex(eval))
        }
        Build::Const(eval) => {
            let Some(Some(Term::Literal(value))) = args.first() else {
                return Err(format!("{name} takes a value that is written out"));
            };
            let value = eval(value);
            Made::Const(value.map_err(|_| format!("this is nothing that {name} takes"))?)
        }
        Build::Prepare(prepare) => {
            Made::Prepared(MadePrepared(prepare(&Written { function, args })?))
        }
        Build::Outside(ask) => Made::Outside(MadeOutside(ask)),
        Build::Points(_) if context != Context::Metric => {
            return Err(format!(
                "{name} asks about the data points of a metric: it is of the context metric"
            ));
        }
        Build::Points(ask) => Made::Points(MadePoints(ask)),
        Build::Root if !context.sees(Context::Span) => {
            return Err(format!("{name} asks about a span: there is none here"));
        }
        Build::Root => Made::Root,
    })
}

/// Calls a function that takes a text and gives one, by name.
pub fn apply(function: &Function, value: Value<'_>) -> Result<Value<'static>, Failure> {
    let mut args = [const { Value::Nil }; ARGS_MAX];
    args[0] = value;
    match function.build {
        Build::Eval(eval) => eval(&args).map(Value::into_owned),
        Build::Regex(_)
        | Build::Const(_)
        | Build::Prepare(_)
        | Build::Outside(_)
        | Build::Points(_)
        | Build::Root => Err(Failure::Type),
    }
}

impl Call {
    pub fn get<'a>(&'a self, subject: &Subject<'a, '_, '_>) -> Result<Value<'a>, Failure> {
        match &self.made {
            Made::Eval(MadeEval(eval)) => eval(&self.values(subject)?),
            Made::Prepared(MadePrepared(call)) => call(&self.values(subject)?, subject.outside),
            Made::Outside(MadeOutside(ask)) => ask(subject.outside),
            Made::Regex(regex, MadeRegex(eval)) => match self.args.first() {
                Some(Some(term)) => eval(regex, &term.get(subject)?),
                _ => Err(Failure::Type),
            },
            Made::Const(value) => Ok(value.borrow()),
            Made::Root => Ok(Value::Bool(subject.span.is_root())),
            Made::Points(MadePoints(ask)) => match subject.record.metric() {
                Some(metric) => ask(metric, &self.values(subject)?),
                None => Err(Failure::Type),
            },
        }
    }

    /// The values of the arguments; nil in the place of those that are not there.
    fn values<'a>(
        &'a self,
        subject: &Subject<'a, '_, '_>,
    ) -> Result<[Value<'a>; ARGS_MAX], Failure> {
        let mut values = [const { Value::Nil }; ARGS_MAX];
        for (value, term) in values.iter_mut().zip(&self.args) {
            if let Some(term) = term {
                *value = term.get(subject)?;
            }
        }
        Ok(values)
    }
}

/// The arguments of a function as they are written.
pub struct Written<'t> {
    function: &'t Function,
    args: &'t [Option<Term>],
}

impl Written<'_> {
    fn term(&self, at: usize) -> Option<&Term> {
        self.args.get(at)?.as_ref()
    }

    fn must(&self, at: usize, what: &str) -> String {
        let name = self.function.params[at].trim_start_matches('?');
        format!(
            "the argument {name} of {} must be {what}",
            self.function.name
        )
    }

    /// A text in quotes, where the argument is there.
    pub fn text(&self, at: usize) -> Result<Option<&str>, String> {
        match self.term(at) {
            None => Ok(None),
            Some(term) => match term.literal_text() {
                Some(text) => Ok(Some(text)),
                None => Err(self.must(at, "a text in quotes")),
            },
        }
    }

    /// A text of one character, where the argument is there.
    pub fn char(&self, at: usize) -> Result<Option<char>, String> {
        let Some(text) = self.text(at)? else {
            return Ok(None);
        };
        let mut chars = text.chars();
        match (chars.next(), chars.next()) {
            (Some(char), None) => Ok(Some(char)),
            _ => Err(self.must(at, "a single character")),
        }
    }

    /// True or false, where the argument is there.
    pub fn flag(&self, at: usize) -> Result<Option<bool>, String> {
        match self.term(at) {
            None => Ok(None),
            Some(Term::Literal(Value::Bool(flag))) => Ok(Some(*flag)),
            Some(_) => Err(self.must(at, "true or false")),
        }
    }

    /// A list of texts in quotes; empty where the argument is not there.
    pub fn texts(&self, at: usize) -> Result<Vec<&str>, String> {
        let wrong = || self.must(at, "a list of texts in quotes");
        match self.term(at) {
            None => Ok(Vec::new()),
            Some(Term::List(terms)) => {
                let texts = terms
                    .iter()
                    .map(|term| term.literal_text().ok_or_else(wrong));
                texts.collect()
            }
            Some(_) => Err(wrong()),
        }
    }
}

/// A function that was prepared: its type is easier inferred here.
fn prepared(
    call: impl for<'a> Fn(&[Value<'a>], Outside) -> Result<Value<'a>, Failure> + Send + Sync + 'static,
) -> Result<Prepared, String> {
    Ok(Box::new(call))
}

/// A function that asks the caller's clock or random numbers.
const fn outside(
    name: &'static str,
    ask: fn(Outside) -> Result<Value<'static>, Failure>,
) -> Function {
    Function {
        name,
        params: &[],
        build: Build::Outside(ask),
    }
}

/// A function of which some arguments must be written out.
const fn prepare(
    name: &'static str,
    params: &'static [&'static str],
    prepare: Prepare,
) -> Function {
    Function {
        name,
        params,
        build: Build::Prepare(prepare),
    }
}

/// A function whose arguments are all evaluated.
const fn eval(name: &'static str, params: &'static [&'static str], eval: Eval) -> Function {
    Function {
        name,
        params,
        build: Build::Eval(eval),
    }
}
