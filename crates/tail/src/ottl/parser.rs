//! The grammar: `or` of `and` of comparisons, calls, booleans and parentheses.

use super::function::{self, Function};
use super::lexer::Token;
use super::path::{self, Path};
use super::value::{Op, Value};
use super::{Context, DEPTH_MAX, Error};
use crate::policy::Keys;

/// What is true or false.
#[derive(Debug)]
pub enum Test {
    Const(bool),
    Not(Box<Test>),
    And(Vec<Test>),
    Or(Vec<Test>),
    Compare(Op, Term, Term),
    /// A call whose value is a boolean.
    Call(Term),
}

/// What has a value.
#[derive(Debug)]
pub enum Term {
    Literal(Value<'static>),
    Path(Path),
    Call(Box<Function>),
    Math(Math, Box<Term>, Box<Term>),
    /// Only as an argument.
    List(Vec<Term>),
}

/// Arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Math {
    Add,
    Sub,
    Mul,
    Div,
}

/// Parses all tokens of a text of `end` bytes.
pub fn parse(
    tokens: &[(usize, Token)],
    end: usize,
    context: Context,
    keys: &mut Keys,
) -> Result<Test, Error> {
    let mut parser = Parser {
        tokens,
        at: 0,
        end,
        context,
        keys,
        depth: DEPTH_MAX,
    };
    let test = parser.any()?;
    match parser.peek() {
        None => Ok(test),
        Some(token) => Err(parser.error(format!("`{}` is not expected here", show(token)))),
    }
}

pub struct Parser<'t, 'k> {
    tokens: &'t [(usize, Token)],
    at: usize,
    end: usize,
    pub context: Context,
    pub keys: &'k mut Keys,
    depth: u32,
}

fn show(token: &Token) -> String {
    match token {
        Token::Word(word) => word.clone(),
        Token::Text(text) => format!("{text:?}"),
        Token::Int(value) => value.to_string(),
        Token::Float(value) => value.to_string(),
        Token::Bytes(_) => "0x...".to_owned(),
        Token::Sign(sign) => (*sign).to_owned(),
    }
}

impl<'t> Parser<'t, '_> {
    pub fn peek(&self) -> Option<&'t Token> {
        self.tokens.get(self.at).map(|(_, token)| token)
    }

    pub fn next(&mut self) -> Option<&'t Token> {
        let token = self.peek();
        self.at += usize::from(token.is_some());
        token
    }

    /// Takes a sign, if it is the next token.
    pub fn sign(&mut self, sign: &str) -> bool {
        let is_it = matches!(self.peek(), Some(Token::Sign(next)) if *next == sign);
        self.at += usize::from(is_it);
        is_it
    }

    pub fn expect(&mut self, sign: &str) -> Result<(), Error> {
        if self.sign(sign) {
            return Ok(());
        }
        Err(self.error(format!("`{sign}` is expected here")))
    }

    fn word(&mut self, word: &str) -> bool {
        let is_it = matches!(self.peek(), Some(Token::Word(next)) if next == word);
        self.at += usize::from(is_it);
        is_it
    }

    /// An error at the next token.
    pub fn error(&self, why: impl Into<String>) -> Error {
        let at = self.tokens.get(self.at).map_or(self.end, |(at, _)| *at);
        Error::new(at, why)
    }

    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        let Some(depth) = self.depth.checked_sub(1) else {
            return Err(self.error(format!("it is nested deeper than {DEPTH_MAX}")));
        };
        self.depth = depth;
        let parsed = parse(self);
        self.depth += 1;
        parsed
    }

    fn any(&mut self) -> Result<Test, Error> {
        let mut tests = vec![self.all()?];
        while self.word("or") {
            tests.push(self.all()?);
        }
        Ok(one(tests, Test::Or))
    }

    fn all(&mut self) -> Result<Test, Error> {
        let mut tests = vec![self.test()?];
        while self.word("and") {
            tests.push(self.test()?);
        }
        Ok(one(tests, Test::And))
    }

    fn test(&mut self) -> Result<Test, Error> {
        if self.word("not") {
            let test = self.deeper(|parser| parser.positive())?;
            return Ok(Test::Not(Box::new(test)));
        }
        self.positive()
    }

    fn positive(&mut self) -> Result<Test, Error> {
        let start = self.at;
        if self.sign("(") {
            // Parentheses are around a test, or around numbers that are compared.
            self.at = start;
            if let Ok(test) = self.comparison() {
                return Ok(test);
            }
            self.at = start + 1;
            let test = self.deeper(|parser| parser.any())?;
            self.expect(")")?;
            return Ok(test);
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Result<Test, Error> {
        let left = self.term()?;
        let at = self.at;
        let op = match self.next() {
            Some(Token::Sign("==")) => Op::Eq,
            Some(Token::Sign("!=")) => Op::Ne,
            Some(Token::Sign("<")) => Op::Lt,
            Some(Token::Sign("<=")) => Op::Le,
            Some(Token::Sign(">")) => Op::Gt,
            Some(Token::Sign(">=")) => Op::Ge,
            _ => {
                self.at = at;
                return match left {
                    Term::Literal(Value::Bool(value)) => Ok(Test::Const(value)),
                    Term::Call(_) => Ok(Test::Call(left)),
                    _ => Err(self.error("a comparison is expected here, such as `==`")),
                };
            }
        };
        let right = self.term()?;
        Ok(Test::Compare(op, left, right))
    }

    /// Sums of products.
    pub fn term(&mut self) -> Result<Term, Error> {
        let mut left = self.product()?;
        loop {
            let op = if self.sign("+") {
                Math::Add
            } else if self.sign("-") {
                Math::Sub
            } else {
                return Ok(left);
            };
            left = Term::Math(op, Box::new(left), Box::new(self.product()?));
        }
    }

    fn product(&mut self) -> Result<Term, Error> {
        let mut left = self.factor()?;
        loop {
            let op = if self.sign("*") {
                Math::Mul
            } else if self.sign("/") {
                Math::Div
            } else {
                return Ok(left);
            };
            left = Term::Math(op, Box::new(left), Box::new(self.factor()?));
        }
    }

    fn factor(&mut self) -> Result<Term, Error> {
        self.deeper(|parser| {
            if parser.sign("-") {
                let term = parser.factor()?;
                let zero = Term::Literal(Value::Int(0));
                return Ok(Term::Math(Math::Sub, Box::new(zero), Box::new(term)));
            }
            if parser.sign("+") {
                return parser.factor();
            }
            if parser.sign("(") {
                let term = parser.term()?;
                parser.expect(")")?;
                return Ok(term);
            }
            parser.atom()
        })
    }

    fn atom(&mut self) -> Result<Term, Error> {
        let start = self.at;
        let literal = match self.next() {
            Some(Token::Text(text)) => Value::Text(text.clone().into_bytes().into()),
            Some(Token::Int(value)) => Value::Int(*value),
            Some(Token::Float(value)) => Value::Float(*value),
            Some(Token::Bytes(bytes)) => Value::Bytes(bytes.clone().into()),
            Some(Token::Word(word)) => match word.as_str() {
                "nil" => Value::Nil,
                "true" => Value::Bool(true),
                "false" => Value::Bool(false),
                _ if matches!(self.peek(), Some(Token::Sign("("))) => {
                    self.at = start;
                    return function::parse(self).map(|call| Term::Call(Box::new(call)));
                }
                name if name.starts_with(|first: char| first.is_ascii_uppercase()) => {
                    self.at = start;
                    let value = path::symbol(name);
                    let value =
                        value.ok_or_else(|| self.error(format!("there is no enum {name}")))?;
                    self.at += 1;
                    Value::Int(value)
                }
                _ => {
                    self.at = start;
                    return path::parse(self).map(Term::Path);
                }
            },
            Some(Token::Sign("[")) => return self.list(),
            Some(Token::Sign("{")) => {
                self.at = start;
                return Err(self.error("maps cannot be written in conditions here"));
            }
            _ => {
                self.at = start;
                return Err(self.error("a value is expected here"));
            }
        };
        Ok(Term::Literal(literal))
    }

    fn list(&mut self) -> Result<Term, Error> {
        let mut terms = Vec::new();
        while !self.sign("]") {
            if !terms.is_empty() {
                self.expect(",")?;
            }
            terms.push(self.term()?);
        }
        Ok(Term::List(terms))
    }
}

fn one(mut tests: Vec<Test>, many: fn(Vec<Test>) -> Test) -> Test {
    match tests.pop() {
        Some(test) if tests.is_empty() => test,
        Some(test) => {
            tests.push(test);
            many(tests)
        }
        None => Test::Const(true),
    }
}
