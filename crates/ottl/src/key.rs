//! Keys of paths and calls: `["text"]`, `[1]`, or a term that gives one of the two.

use super::eval::{Failure, Subject};
use super::lexer::Token;
use super::parser::{Parser, Term};
use super::value::Value;
use super::{Error, eval};
use otlp::scan::Any;
use std::borrow::Cow;

/// A key as it is written.
#[derive(Debug)]
pub enum Key {
    Name(Box<[u8]>),
    Index(i64),
    Term(Box<Term>),
}

/// A key as it is for a subject.
#[derive(Clone, Debug, PartialEq)]
pub enum Found<'a> {
    /// Of a map.
    Name(Cow<'a, [u8]>),
    /// Of a list.
    Index(usize),
}

/// Parses all keys that follow.
pub fn parse(parser: &mut Parser<'_, '_>) -> Result<Vec<Key>, Error> {
    let mut keys = Vec::new();
    while parser.sign("[") {
        keys.push(match (parser.peek(), parser.second()) {
            (Some(Token::Text(name)), Some(Token::Sign("]"))) => {
                parser.next();
                Key::Name(name.as_bytes().into())
            }
            (Some(Token::Int(index)), Some(Token::Sign("]"))) => {
                parser.next();
                Key::Index(*index)
            }
            _ => match parser.deeper(Parser::term)? {
                Term::Literal(_) => {
                    return Err(parser.error("a text or a number is expected in front of this"));
                }
                term => Key::Term(Box::new(term)),
            },
        });
        parser.expect("]")?;
    }
    Ok(keys)
}

impl Key {
    /// What it is for a subject.
    pub fn get<'a>(&'a self, subject: &Subject<'a, '_, '_>) -> Result<Found<'a>, eval::Failure> {
        match self {
            Key::Name(name) => Ok(Found::Name((&**name).into())),
            Key::Index(index) => index_of(*index),
            Key::Term(term) => match term.get(subject)? {
                Value::Text(name) => Ok(Found::Name(name)),
                Value::Int(index) => index_of(index),
                _ => Err(Failure::Type),
            },
        }
    }
}

fn index_of<'a>(index: i64) -> Result<Found<'a>, Failure> {
    let index = usize::try_from(index).map_err(|_| Failure::Index)?;
    Ok(Found::Index(index))
}

impl Found<'_> {
    /// What it finds in a map or a list; nil where a map has no such key, and within nil.
    pub fn of<'a>(&self, value: &Value<'a>) -> Result<Value<'a>, Failure> {
        let (borrowed, owned): (Option<&'a [u8]>, &[u8]) = match value {
            Value::Nil => return Ok(Value::Nil),
            Value::Map(message, _) | Value::List(message) => match message {
                Cow::Borrowed(message) => (Some(message), b""),
                Cow::Owned(message) => (None, message),
            },
            _ => return Err(Failure::Type),
        };
        let key = match value {
            Value::Map(_, key) => Some(*key),
            _ => None,
        };
        match borrowed {
            Some(message) => self.within(message, key),
            None => self.within(owned, key).map(Value::into_owned),
        }
    }

    fn within<'m>(&self, message: &'m [u8], map: Option<u32>) -> Result<Value<'m>, Failure> {
        let found = match (self, map) {
            (Found::Name(name), Some(key)) => otlp::scan::Attributes::new(message, key).get(name),
            (Found::Index(index), None) => {
                Some(Any::items(message).nth(*index).ok_or(Failure::Index)?)
            }
            _ => return Err(Failure::Type),
        };
        Ok(found.map_or(Value::Nil, Value::from))
    }
}
