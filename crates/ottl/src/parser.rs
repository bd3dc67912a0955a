//! The grammar: `or` of `and` of comparisons, calls, booleans and parentheses.

use super::client::Client;
use super::function::{self, Call};
use super::key::{self, Key};
use super::lexer::Token;
use super::path::{self, Path};
use super::value::{Op, Value};
use super::{Context, DEPTH_MAX, Error};
use otlp::scan::Keys;

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
    /// It is written out.
    Literal(Value<'static>),
    /// What a path finds.
    Path(Path),
    /// What a function gives.
    Call(Box<Call>),
    /// What two numbers come to.
    Math(Math, Box<Term>, Box<Term>),
    /// `[a, b]`
    List(Vec<Term>),
    /// `{"a": b}`
    Map(Vec<(Box<[u8]>, Term)>),
    /// What keys find in what a call gives.
    Index(Box<Term>, Vec<Key>),
}

impl Term {
    /// The text that it is, if it is written out.
    #[must_use]
    pub fn literal_text(&self) -> Option<&str> {
        match self {
            Term::Literal(Value::Text(text)) => std::str::from_utf8(text).ok(),
            _ => None,
        }
    }
}

/// Arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Math {
    Add,
    Sub,
    Mul,
    Div,
}

pub struct Parser<'t, 'k> {
    tokens: &'t [(usize, Token)],
    at: usize,
    end: usize,
    pub scope: Scope,
    /// Who gives attributes of spans a place, if anybody does.
    pub keys: Option<&'k mut Keys>,
    /// Client properties that paths read.
    pub client: Vec<Client>,
    /// Whether a path is a `schema_url`.
    pub schemas: bool,
    depth: u32,
}

/// Which paths there are.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    pub context: Context,
    /// Every path must say what it is about.
    pub prefixed: bool,
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

impl<'t, 'k> Parser<'t, 'k> {
    /// For all tokens of a text of `end` bytes.
    pub fn new(
        tokens: &'t [(usize, Token)],
        end: usize,
        scope: Scope,
        keys: Option<&'k mut Keys>,
    ) -> Parser<'t, 'k> {
        Parser {
            tokens,
            at: 0,
            end,
            scope,
            keys,
            client: Vec::new(),
            schemas: false,
            depth: DEPTH_MAX,
        }
    }

    /// Nothing is left.
    pub fn finish(&self) -> Result<(), Error> {
        match self.peek() {
            None => Ok(()),
            Some(token) => Err(self.error(format!("`{}` is not expected here", show(token)))),
        }
    }

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

    /// The token after the next.
    pub fn second(&self) -> Option<&'t Token> {
        self.tokens.get(self.at + 1).map(|(_, token)| token)
    }

    /// Takes a word, if it is the next token.
    pub fn word(&mut self, word: &str) -> bool {
        let is_it = matches!(self.peek(), Some(Token::Word(next)) if next == word);
        self.at += usize::from(is_it);
        is_it
    }

    /// An error at the next token.
    pub fn error(&self, why: impl Into<String>) -> Error {
        let at = self.tokens.get(self.at).map_or(self.end, |(at, _)| *at);
        Error::new(at, why)
    }

    pub fn deeper<T>(
        &mut self,
        parse: impl FnOnce(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let Some(depth) = self.depth.checked_sub(1) else {
            return Err(self.error(format!("it is nested deeper than {DEPTH_MAX}")));
        };
        self.depth = depth;
        let parsed = parse(self);
        self.depth += 1;
        parsed
    }

    /// An `or` of whatever there is.
    pub fn any(&mut self) -> Result<Test, Error> {
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
                if matches!(self.peek(), Some(Token::Word(word)) if word == "in") {
                    let why = "OTTL has no operator `in`: write ContainsValue([...], value)";
                    return Err(self.error(why));
                }
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
                return Ok(match parser.factor()? {
                    // The least integer has no opposite: `0 - x` tells.
                    Term::Literal(Value::Int(value)) if value != i64::MIN => {
                        Term::Literal(Value::Int(-value))
                    }
                    Term::Literal(Value::Float(value)) => Term::Literal(Value::Float(-value)),
                    term => {
                        let zero = Term::Literal(Value::Int(0));
                        Term::Math(Math::Sub, Box::new(zero), Box::new(term))
                    }
                });
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
                    let call = Term::Call(Box::new(function::parse(self)?));
                    let keys = key::parse(self)?;
                    return Ok(if keys.is_empty() {
                        call
                    } else {
                        Term::Index(Box::new(call), keys)
                    });
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
            Some(Token::Sign("{")) => return self.map(),
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

impl Parser<'_, '_> {
    fn map(&mut self) -> Result<Term, Error> {
        let mut entries = Vec::new();
        while !self.sign("}") {
            if !entries.is_empty() {
                self.expect(",")?;
            }
            let bad = self.error("a key in quotes is expected here");
            let Some(Token::Text(key)) = self.next() else {
                return Err(bad);
            };
            self.expect(":")?;
            entries.push((key.as_bytes().into(), self.term()?));
        }
        Ok(Term::Map(entries))
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
