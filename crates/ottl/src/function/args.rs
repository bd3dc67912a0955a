//! Arguments: in their order, or by their names.

use super::{ARGS_MAX, Function, find};
use crate::Error;
use crate::lexer::Token;
use crate::parser::{Parser, Term};

/// An argument.
#[derive(Debug)]
pub enum Arg {
    Term(Term),
    /// The name of a function, where a function is an argument.
    Function(&'static Function),
}

/// Parses `(…)`: the arguments of `name`, which began at the byte `start`, in the order of
/// `params`.
pub fn arguments(
    parser: &mut Parser<'_, '_>,
    start: usize,
    name: &str,
    params: &[&str],
) -> Result<Vec<Option<Arg>>, Error> {
    debug_assert!(params.len() <= ARGS_MAX);
    let mut args: Vec<Option<Arg>> = params.iter().map(|_| None).collect();
    parser.expect("(")?;
    let (mut count, mut named) = (0, false);
    while !parser.sign(")") {
        if count > 0 {
            parser.expect(",")?;
        }
        let at = parser.error("");
        let fail = |why: String| Error::new(at.at, why);
        let place = match (parser.peek(), parser.second()) {
            (Some(Token::Word(word)), Some(Token::Sign("="))) => {
                parser.next();
                parser.next();
                named = true;
                let place = params.iter().position(|param| is_named(param, word));
                place.ok_or_else(|| fail(format!("{name} has no argument {word}")))?
            }
            _ if named => return Err(fail("this argument needs a name as well".to_owned())),
            _ => count,
        };
        let Some(arg) = args.get_mut(place) else {
            return Err(Error::new(start, takes(name, params)));
        };
        if arg.is_some() {
            return Err(fail(format!(
                "the argument {} is there twice",
                params[place]
            )));
        }
        *arg = Some(argument(parser, params[place])?);
        count += 1;
    }
    let missing = params
        .iter()
        .zip(&args)
        .any(|(param, arg)| arg.is_none() && !param.starts_with('?'));
    if missing {
        return Err(Error::new(start, takes(name, params)));
    }
    Ok(args)
}

fn argument(parser: &mut Parser<'_, '_>, param: &str) -> Result<Arg, Error> {
    if param != "?function" {
        return parser.deeper(Parser::term).map(Arg::Term);
    }
    let bad = parser.error("the name of a function is expected here");
    match parser.next() {
        Some(Token::Word(name)) => {
            let function = find(name).map_err(|why| Error::new(bad.at, why))?;
            Ok(Arg::Function(function))
        }
        _ => Err(bad),
    }
}

/// Names are written with underscores; those of some functions with capitals too. An argument may
/// have several names, with `|` in between.
fn is_named(param: &str, word: &str) -> bool {
    let plain = |text: &str| text.replace(['_', '?'], "").to_ascii_lowercase();
    param.split('|').any(|name| plain(name) == plain(word))
}

fn takes(name: &str, params: &[&str]) -> String {
    let needed = params
        .iter()
        .filter(|param| !param.starts_with('?'))
        .count();
    if needed == params.len() {
        return format!("{name} takes {needed} arguments");
    }
    format!("{name} takes {needed} to {} arguments", params.len())
}
