//! Values of attributes, descriptions and bodies: the results of a line's samples.

use sample::{Expr, LogFormat, Scope, Value as Sample};

use crate::record::{Arena, Text};

/// The samples of a line.
#[derive(Debug)]
pub enum Value {
    /// Known when the configuration was loaded.
    Text(Box<[u8]>),
    /// One expression: its type is kept if the target permits.
    One(Expr),
    /// Several expressions: their texts are concatenated.
    Several(Vec<Expr>),
    /// One log format.
    Format(LogFormat),
}

/// The result of a [`Value`]; texts are in the arena.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Evaluated {
    Bool(bool),
    Int(i64),
    Text(Text),
}

impl Value {
    /// Evaluates the value. A missing sample gives an empty text; a binary sample gives nothing.
    #[inline]
    pub fn eval(&self, scope: &Scope<'_>, arena: &mut Arena) -> Option<Evaluated> {
        let text = match self {
            Value::Text(text) => arena.text(text),
            Value::One(expr) => match expr.eval(scope) {
                None => Text::EMPTY,
                Some(Sample::Bool(value)) => return Some(Evaluated::Bool(value)),
                Some(Sample::Int(value)) => return Some(Evaluated::Int(value)),
                Some(Sample::Bin(_)) => return None,
                Some(Sample::Str(text)) => arena.text(&text),
                Some(other) => arena.write(|out| other.append_text(out)),
            },
            Value::Several(_) | Value::Format(_) => self.text(scope, arena),
        };
        Some(Evaluated::Text(text))
    }

    /// Evaluates the value as a text.
    pub fn text(&self, scope: &Scope<'_>, arena: &mut Arena) -> Text {
        arena.write(|out| self.append_text(scope, out))
    }

    /// Appends the value as a text.
    pub fn append_text(&self, scope: &Scope<'_>, out: &mut Vec<u8>) {
        match self {
            Value::Text(text) => out.extend_from_slice(text),
            Value::One(expr) => {
                expr.append_text(scope, out);
            }
            Value::Several(exprs) => {
                for expr in exprs {
                    expr.append_text(scope, out);
                }
            }
            Value::Format(format) => format.render(scope, out),
        }
    }

    /// Evaluates the value as an integer; none if it is not one.
    pub fn int(&self, scope: &Scope<'_>) -> Option<i64> {
        match self {
            Value::One(expr) => int(expr, scope),
            Value::Text(text) => std::str::from_utf8(text).ok()?.parse().ok(),
            Value::Several(_) | Value::Format(_) => {
                let mut out = sample::Bytes::buffer();
                self.append_text(scope, out.as_vec());
                std::str::from_utf8(&out).ok()?.parse().ok()
            }
        }
    }
}

/// Evaluates an expression as an integer; a text that is a number counts.
pub fn int(expr: &Expr, scope: &Scope<'_>) -> Option<i64> {
    match expr.eval(scope)? {
        Sample::Int(value) => Some(value),
        Sample::Bool(value) => Some(i64::from(value)),
        Sample::Str(text) => std::str::from_utf8(&text).ok()?.trim().parse().ok(),
        _ => None,
    }
}
