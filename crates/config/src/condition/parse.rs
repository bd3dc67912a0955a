//! Parses the text of a condition. Offsets are bytes from the start of the whole text.

use super::predicate::{self, Predicate};
use super::version::number_prefix;
use super::{ConditionError, Expression, MAX_CONDITION_DEPTH, Term, TermKind};
use syntax::octets::{Octets, first_character, readable};

/// Parses all of `text`, which is not empty.
pub(super) fn expression(text: &[u8]) -> Result<Expression, ConditionError> {
    let mut parser = Parser { text, at: 0 };
    let parsed = parser.alternatives(0)?;
    match parser.rest() {
        [] => Ok(parsed),
        rest => parser.error(
            parser.at,
            format!(
                "unexpected character '{}' at the end of conditional expression '{}'",
                first_character(rest),
                readable(text)
            ),
        ),
    }
}

/// The part of a text's beginning that may be a number.
fn numeric_prefix(text: &[u8]) -> &str {
    let numeric = |byte: &u8| byte.is_ascii_hexdigit() || b"+-xX".contains(byte);
    let len = text.iter().take_while(|byte| numeric(byte)).count();
    std::str::from_utf8(&text[..len]).unwrap_or_default()
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Parser<'a> {
    fn alternatives(&mut self, depth: usize) -> Result<Expression, ConditionError> {
        let mut alternatives = vec![self.conjunction(depth)?];
        while self.eat("||") {
            alternatives.push(self.conjunction(depth)?);
        }
        Ok(Expression(alternatives))
    }

    fn conjunction(&mut self, depth: usize) -> Result<Vec<Term>, ConditionError> {
        let mut terms = vec![self.term(depth)?];
        while self.eat("&&") {
            terms.push(self.term(depth)?);
        }
        Ok(terms)
    }

    fn term(&mut self, depth: usize) -> Result<Term, ConditionError> {
        self.skip_blanks();
        let start = self.at;
        let mut negated = false;
        while self.eat("!") {
            negated = !negated;
        }
        let kind = self.bare_term(start, depth)?;
        self.skip_blanks();
        Ok(Term { negated, kind })
    }

    fn bare_term(&mut self, start: usize, depth: usize) -> Result<TermKind, ConditionError> {
        if let Some((non_zero, len)) = number_prefix(numeric_prefix(self.rest())) {
            self.at += len;
            return Ok(TermKind::Constant(non_zero));
        }
        if self.rest().starts_with(b"(") {
            return self.parentheses(start, depth);
        }
        let name_len = memchr::memchr2(b' ', b'(', self.rest()).unwrap_or(self.rest().len());
        match predicate::find(&self.rest()[..name_len]) {
            Some(predicate) => {
                self.at += name_len;
                self.arguments(predicate)
                    .map(|args| TermKind::Predicate(predicate, args))
            }
            None => self.unparsable(start),
        }
    }

    fn parentheses(&mut self, start: usize, depth: usize) -> Result<TermKind, ConditionError> {
        if depth == MAX_CONDITION_DEPTH {
            return self.error(
                start,
                format!(
                    "more than {MAX_CONDITION_DEPTH} nested parentheses in conditional expression"
                ),
            );
        }
        self.eat("(");
        let inner = self.alternatives(depth + 1)?;
        if !self.eat(")") {
            return self.error(
                start,
                format!(
                    "expected ')' after conditional expression '{}'",
                    readable(&self.text[start..])
                ),
            );
        }
        Ok(TermKind::Parentheses(inner))
    }

    /// The arguments in parentheses after a predicate's name. Without parentheses, there is one
    /// empty argument.
    fn arguments(&mut self, predicate: &Predicate) -> Result<Vec<Octets>, ConditionError> {
        let mut args = Vec::new();
        let parenthesis = self.rest().starts_with(b"(");
        self.at += usize::from(parenthesis);
        while args.len() < predicate.arity {
            let arg = if parenthesis {
                self.argument(predicate, args.len())?
            } else {
                Octets::default()
            };
            args.push(arg);
            if args.len() == predicate.arity || !self.rest().starts_with(b",") {
                break;
            }
            self.at += 1;
        }
        if args.len() < predicate.arity {
            let what = format!(
                "missing arguments (got {}/{}), type 'string' expected",
                args.len(),
                predicate.arity
            );
            return self.bad_argument(predicate, args.len(), &what);
        }
        if parenthesis && !self.rest().starts_with(b")") {
            let what = match self.rest() {
                [] => "expected ')'".to_owned(),
                rest => format!("expected ')' before '{}'", readable(rest)),
            };
            return self.bad_argument(predicate, args.len(), &what);
        }
        self.at += usize::from(parenthesis);
        Ok(args)
    }

    /// One argument, up to a comma or parenthesis outside of quotes (manual §2.2, second level of
    /// quoting).
    fn argument(&mut self, predicate: &Predicate, index: usize) -> Result<Octets, ConditionError> {
        let mut arg = Vec::new();
        let mut quote = None;
        while let Some(&byte) = self.rest().first() {
            let mut taken = 1;
            match byte {
                b',' | b')' if quote.is_none() => break,
                b'"' | b'\'' if quote.is_none() => quote = Some(byte),
                byte if quote == Some(byte) => quote = None,
                b'\\' if quote != Some(b'\'') => {
                    let (out, len) = match self.rest().get(1) {
                        None => return self.bad_argument(predicate, index, "nothing after '\\'"),
                        Some(&escaped @ (b'\\' | b' ' | b'"' | b'\'')) => (escaped, 2),
                        Some(b'r') => (b'\r', 2),
                        Some(b'n') => (b'\n', 2),
                        Some(b't') => (b'\t', 2),
                        Some(_) => (b'\\', 1),
                    };
                    arg.push(out);
                    taken = len;
                }
                byte => arg.push(byte),
            }
            self.at += taken;
        }
        Ok(arg.into())
    }

    fn rest(&self) -> &'a [u8] {
        &self.text[self.at..]
    }

    fn skip_blanks(&mut self) {
        let blanks = self.rest().iter().take_while(|byte| b" \t".contains(byte));
        self.at += blanks.count();
    }

    /// Consumes `token` and the blanks after it, if it is the next token.
    fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token.as_bytes());
        if found {
            self.at += token.len();
            self.skip_blanks();
        }
        found
    }

    fn unparsable<T>(&self, start: usize) -> Result<T, ConditionError> {
        self.error(
            start,
            format!(
                "unparsable conditional expression '{}'",
                readable(&self.text[start..])
            ),
        )
    }

    fn bad_argument<T>(
        &self,
        predicate: &Predicate,
        index: usize,
        what: &str,
    ) -> Result<T, ConditionError> {
        let message = format!(
            "{what} in argument {index} of predicate '{}' used in conditional expression",
            predicate.name
        );
        self.error(self.at, message)
    }

    fn error<T>(&self, offset: usize, message: String) -> Result<T, ConditionError> {
        Err(ConditionError { offset, message })
    }
}
