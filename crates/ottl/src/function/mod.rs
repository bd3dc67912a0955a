//! Functions ("converters"): one entry of a table each, one file a family.

mod args;
mod hash;
mod is;
mod list;
mod number;
mod parse;
mod text;
mod time;

use super::eval::{Failure, Subject};
use super::parser::{Parser, Term};
use super::value::Value;
use super::{Context, Error, lexer::Token};
use crate::pattern::compile;
pub use args::{Arg, arguments};
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
    /// Asks about the span itself.
    Root,
}

type Eval = for<'a> fn(&[Value<'a>]) -> Result<Value<'a>, Failure>;
type EvalRegex = for<'a> fn(&Regex, &Value<'a>) -> Result<Value<'a>, Failure>;

impl fmt::Debug for Build {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Build::Eval(_) => "Eval",
            Build::Regex(_) => "Regex",
            Build::Const(_) => "Const",
            Build::Root => "Root",
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
    parse::FUNCTIONS,
];

/// Functions that the Collector has and that are missing here.
pub const MISSING: &[&str] = &[
    "All",
    "Any",
    "CommunityID",
    "ConvertAttributesToElementsXML",
    "ConvertTextToElementsXML",
    "ExtractGrokPatterns",
    "Filter",
    "Find",
    "Format",
    "FormatTime",
    "GetXML",
    "InsertXML",
    "MapEach",
    "MapKeys",
    "Murmur3Hash",
    "Murmur3Hash128",
    "Now",
    "ParseCSV",
    "ParseSeverity",
    "ParseSimplifiedXML",
    "ParseXML",
    "ProfileID",
    "Reduce",
    "RemoveXML",
    "SliceToMap",
    "Time",
    "ToCamelCase",
    "ToSnakeCase",
    "URL",
    "UUID",
    "UUIDv7",
    "UserAgent",
    "When",
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
        if MISSING.contains(&name) {
            format!("the function {name} is not supported yet")
        } else {
            format!("the function {name} is not supported: there is none of this name")
        }
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
    Root,
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
        ("ConvertCase", Some(case)) if !matches!(case, "lower" | "upper") => {
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
        Build::Root if context < Context::Span => {
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
        Build::Regex(_) | Build::Const(_) | Build::Root => Err(Failure::Type),
    }
}

impl Call {
    pub fn get<'a>(&'a self, subject: &Subject<'a, '_, '_>) -> Result<Value<'a>, Failure> {
        match &self.made {
            Made::Eval(MadeEval(eval)) => {
                let mut values = [const { Value::Nil }; ARGS_MAX];
                for (value, term) in values.iter_mut().zip(&self.args) {
                    if let Some(term) = term {
                        *value = term.get(subject)?;
                    }
                }
                eval(&values)
            }
            Made::Regex(regex, MadeRegex(eval)) => match self.args.first() {
                Some(Some(term)) => eval(regex, &term.get(subject)?),
                _ => Err(Failure::Type),
            },
            Made::Const(value) => Ok(value.borrow()),
            Made::Root => Ok(Value::Bool(subject.span.is_root())),
        }
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
