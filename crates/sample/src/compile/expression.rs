//! A fetch and its converters.

use super::{Compiler, ascii, suggest};
use crate::args::Arg;
use crate::cast::{Cast, cast_of};
use crate::expr::{Program, Start, Step};
use crate::facts::{Nowhere, Scope, Session};
use crate::fetch::{self, Cursor, Fetch};
use crate::{Expr, ExprError, Kind, Place, Value, convert, known};
use syntax::octets::readable;

/// Where an expression ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// After one word, and the following words that are converters.
    Words,
    /// At the end of the word.
    Word,
    /// Within a word: at the first byte that cannot continue the expression.
    Prefix,
}

/// A compiled expression and the number of words that it consumed.
pub(crate) struct Compiled {
    pub expr: Expr,
    pub fetch: &'static Fetch,
    /// The number of consumed words.
    pub words: usize,
    /// The position after the expression in the last word, for [`Reading::Prefix`].
    pub end: usize,
}

impl Compiler {
    /// Compiles the expression at the beginning of `words`, and checks that it can be used at
    /// `place`.
    pub(crate) fn expression(
        &mut self,
        words: &[&[u8]],
        place: Place,
        reading: Reading,
    ) -> Result<Compiled, ExprError> {
        let word = words.first().copied().unwrap_or_default();
        let end = name_end(word, 0);
        if end == 0 {
            return Err(ExprError::at(0, 0, word.len(), "missing fetch method"));
        }
        let name = ascii(&word[..end]);
        let Some(fetch) = fetch::find(name) else {
            let names = fetch::all().map(|fetch| fetch.name);
            return Err(ExprError::at(
                0,
                0,
                end,
                suggest::unknown("fetch method", name, known::FETCHES, names),
            ));
        };
        let compiled = self.call(words, fetch, end, reading)?;
        if !fetch.source.places.meets(place) {
            return Err(ExprError::at(0, 0, end, misplaced(fetch)));
        }
        Ok(compiled)
    }

    /// Compiles a fetch whose name ends at `name_end` of the first word, with its arguments and
    /// converters.
    pub(crate) fn call(
        &mut self,
        words: &[&[u8]],
        fetch: &'static Fetch,
        name_end: usize,
        reading: Reading,
    ) -> Result<Compiled, ExprError> {
        let word = words.first().copied().unwrap_or_default();
        let (args, end) = self
            .arguments(word, name_end, fetch.args, fetch.check)
            .map_err(|fault| {
                let what = if fault.index.is_some() {
                    "fetch method"
                } else {
                    "invalid args in fetch method"
                };
                ExprError::at(
                    0,
                    fault.start,
                    fault.end,
                    format!("{what} '{}' : {}", fetch.name, fault.message),
                )
            })?;
        self.needs.note(fetch, self.names.current);
        let mut chain = Chain {
            words,
            at: (0, end),
            kind: fetch.out,
            steps: Vec::new(),
            last: None,
        };
        self.chain(&mut chain, reading)?;
        let Chain {
            at, kind, steps, ..
        } = chain;
        let converted = !steps.is_empty();
        let (start, steps) = fold(fetch, args, steps);
        Ok(Compiled {
            expr: Expr::new(Program::new(start, steps, kind, converted)),
            fetch,
            words: at.0 + 1,
            end: at.1,
        })
    }

    /// Compiles the converters that follow.
    fn chain(&mut self, chain: &mut Chain<'_>, reading: Reading) -> Result<(), ExprError> {
        loop {
            let (index, mut at) = chain.at;
            let word = chain.words[index];
            let rest = word.get(at..).unwrap_or_default();
            if rest.first().is_some_and(|byte| *byte != b',') {
                if reading == Reading::Prefix {
                    return Ok(());
                }
                let message = match chain.last {
                    Some(name) => format!("missing comma after converter '{name}'"),
                    None => "missing comma after fetch keyword".into(),
                };
                return Err(ExprError::at(index, at, word.len(), message));
            }
            at += rest.iter().take_while(|byte| **byte == b',').count();
            chain.at = (index, at);
            if at < word.len() {
                self.step(chain, false)?;
            } else if reading != Reading::Words || !self.next_word(chain)? {
                return Ok(());
            }
        }
    }

    /// Continues with the next word if it begins with a converter. Returns whether it did.
    fn next_word(&mut self, chain: &mut Chain<'_>) -> Result<bool, ExprError> {
        let before = chain.at;
        if before.0 + 1 >= chain.words.len() {
            return Ok(false);
        }
        chain.at = (before.0 + 1, 0);
        let known = self.step(chain, true)?;
        if !known {
            chain.at = before;
        }
        Ok(known)
    }

    /// Compiles the converter at the chain's position. With `optional`, the text may be something
    /// else; returns whether it was a converter.
    fn step(&mut self, chain: &mut Chain<'_>, optional: bool) -> Result<bool, ExprError> {
        let (index, at) = chain.at;
        let word = chain.words[index];
        let end = name_end(word, at);
        let name = ascii(&word[at..end]);
        let Some(convert) = convert::find(name) else {
            if optional && !known::CONVERTERS.contains(&name) {
                return Ok(false);
            }
            let names = convert::all().map(|convert| convert.name);
            let message = suggest::unknown("converter", name, known::CONVERTERS, names);
            return Err(ExprError::at(index, at, end, message));
        };
        if cast_of(chain.kind, convert.from) == Cast::Never {
            return Err(ExprError::at(
                index,
                at,
                end,
                format!("converter '{name}' cannot be applied"),
            ));
        }
        let mut end = end;
        if convert.args.takes_none() && word.get(end) == Some(&b'(') {
            if word.get(end + 1) != Some(&b')') {
                let message = format!(
                    "invalid arg 1 in converter '{name}' : expected ')' before '{}'",
                    readable(&word[end + 1..])
                );
                return Err(ExprError::at(index, end, word.len(), message));
            }
            end += b"()".len();
        }
        let (args, end) = self
            .arguments(word, end, convert.args, convert.check)
            .map_err(|fault| {
                let args = fault
                    .index
                    .map_or("args".into(), |index| format!("arg {}", index + 1));
                let message = format!("invalid {args} in converter '{name}' : {}", fault.message);
                ExprError::at(index, fault.start, fault.end, message)
            })?;
        if !convert.keeps_kind {
            chain.kind = convert.to;
        }
        chain.steps.push(Step { convert, args });
        chain.last = Some(name);
        chain.at = (index, end);
        Ok(true)
    }
}

/// State while converters are parsed.
struct Chain<'w> {
    words: &'w [&'w [u8]],
    /// The current word and byte.
    at: (usize, usize),
    kind: Kind,
    steps: Vec<Step>,
    /// The last converter's name.
    last: Option<&'w str>,
}

/// HAProxy's message for a fetch at a place where its data does not exist.
pub(crate) fn misplaced(fetch: &Fetch) -> String {
    format!(
        "sample fetch <{}> may not be reliably used here because it needs '{}' which is not available here",
        fetch.name, fetch.source.needs
    )
}

/// The end of the name that begins at `at`.
pub(crate) fn name_end(word: &[u8], at: usize) -> usize {
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-+:".contains(byte);
    at + word[at..].iter().take_while(|byte| is_name(byte)).count()
}

/// Evaluates the constant part now: a constant and the pure converters directly after it.
fn fold(fetch: &'static Fetch, args: Box<[Arg]>, mut steps: Vec<Step>) -> (Start, Vec<Step>) {
    if !fetch::internal::is_constant(fetch) {
        return (Start::Fetch(fetch, args), steps);
    }
    let session = Session::new(
        net::Now::default(),
        net::Addr::Unix([].into()),
        net::Addr::Unix([].into()),
        0,
        0,
    );
    let scope = Scope::without_stream(net::Now::default(), &Nowhere, &session);
    let mut value = (fetch.eval)(&args, &scope, &mut Cursor::default());
    let pure = steps.iter().take_while(|step| is_pure(step)).count();
    for step in steps.drain(..pure) {
        // A result may borrow from the converter's arguments, which are dropped here.
        value = step.run(value, &scope).map(Value::detach);
    }
    (Start::Constant(value.map(Value::detach)), steps)
}

fn is_pure(step: &Step) -> bool {
    step.convert.pure && !step.args.iter().any(|arg| matches!(arg, Arg::Var(_)))
}
