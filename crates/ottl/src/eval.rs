//! Whether a condition is true of a subject, and what values are.

use super::Outside;
use super::client::Told;
use super::parser::{Math, Term, Test};
use super::value::{self, Value, compare};
use otlp::scan::{Around, Event, Exemplar, Log, Metric, Point, Slots, Span};
use std::fmt;

/// What a condition is evaluated for.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a, 's, 'k> {
    /// The span; an empty one for conditions on resources and scopes.
    pub span: &'s Span<'a>,
    /// Its attributes that conditions name, where they were looked up.
    pub slots: Option<&'s Slots<'a, 'k>>,
    /// Its resource and scope.
    pub around: Around<'a>,
    /// The `schema_url` of the resource and the scope.
    pub schemas: Schemas<'a>,
    /// One of its events and its place, for conditions on events.
    pub event: Option<(Event<'a>, usize)>,
    /// The record, for conditions on metrics, data points and log records.
    pub record: Record<'a, 's>,
    /// What statements keep for each other: a `KeyValueList`.
    pub cache: &'a [u8],
    /// Client metadata; none if it is unknown.
    pub client: Option<&'a Told>,
    /// The clock and random numbers.
    pub outside: Outside,
}

/// A record that is no span.
#[derive(Clone, Copy, Debug)]
pub enum Record<'a, 's> {
    /// The subject is a span, an event of one, or what is around records.
    None,
    /// A log record.
    Log(&'s Log<'a>),
    /// A metric.
    Metric(&'s Metric<'a>),
    /// A data point, and its metric without its data points.
    Point(&'s Metric<'a>, &'s Point<'a>),
    /// An exemplar, its data point without its exemplars, and its metric without its data points.
    Exemplar(&'s Metric<'a>, &'s Point<'a>, &'s Exemplar<'a>),
}

impl<'a, 's> Record<'a, 's> {
    pub(crate) fn log(self) -> Option<&'s Log<'a>> {
        match self {
            Record::Log(log) => Some(log),
            Record::None | Record::Metric(_) | Record::Point(..) | Record::Exemplar(..) => None,
        }
    }

    pub(crate) fn metric(self) -> Option<&'s Metric<'a>> {
        match self {
            Record::Metric(metric) | Record::Point(metric, _) | Record::Exemplar(metric, ..) => {
                Some(metric)
            }
            Record::None | Record::Log(_) => None,
        }
    }

    pub(crate) fn point(self) -> Option<&'s Point<'a>> {
        match self {
            Record::Point(_, point) | Record::Exemplar(_, point, _) => Some(point),
            Record::None | Record::Log(_) | Record::Metric(_) => None,
        }
    }

    pub(crate) fn exemplar(self) -> Option<&'s Exemplar<'a>> {
        match self {
            Record::Exemplar(.., exemplar) => Some(exemplar),
            Record::None | Record::Log(_) | Record::Metric(_) | Record::Point(..) => None,
        }
    }
}

/// The texts `ResourceSpans.schema_url` and `ScopeSpans.schema_url`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Schemas<'a> {
    /// That of the resource.
    pub resource: &'a [u8],
    /// That of the scope.
    pub scope: &'a [u8],
}

/// Why a condition cannot be evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// A value is of another kind than it must be.
    Type,
    /// A list is shorter.
    Index,
    /// A division by zero, or a number that does not fit in 64 bits.
    Math,
    /// A text is not what it must be.
    Syntax,
    /// A value is too large.
    Size,
    /// A value is nested too deeply.
    Depth,
    /// There is no clock here, or there are no random numbers.
    Outside,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Failure::Type => "a value is of another type than it must be",
            Failure::Index => "a list has no such item",
            Failure::Math => "a division by zero, or a number of more than 64 bits",
            Failure::Syntax => "a text is not what it must be",
            Failure::Size => "a value is too large",
            Failure::Depth => "a value is nested too deeply",
            Failure::Outside => "there is no clock here, or there are no random numbers",
        })
    }
}

impl Test {
    pub fn is_true(&self, subject: &Subject<'_, '_, '_>) -> Result<bool, Failure> {
        match self {
            Test::Const(value) => Ok(*value),
            Test::Not(test) => Ok(!test.is_true(subject)?),
            Test::And(tests) => {
                for test in tests {
                    if !test.is_true(subject)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            Test::Or(tests) => {
                for test in tests {
                    if test.is_true(subject)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
            Test::Compare(op, left, right) => {
                let left = left.get(subject)?;
                Ok(compare(*op, &left, &right.get(subject)?))
            }
            Test::Call(term) => match term.get(subject)? {
                Value::Bool(value) => Ok(value),
                _ => Err(Failure::Type),
            },
        }
    }
}

impl Term {
    /// What it is for a subject.
    ///
    /// # Errors
    /// It cannot be said.
    pub fn get<'a>(&'a self, subject: &Subject<'a, '_, '_>) -> Result<Value<'a>, Failure> {
        Ok(match self {
            Term::Literal(value) => value.borrow(),
            Term::Path(path) => path.get(subject)?,
            Term::Call(call) => call.get(subject)?,
            Term::Math(op, left, right) => math(*op, &left.get(subject)?, &right.get(subject)?)?,
            Term::List(terms) => {
                let values = terms.iter().map(|term| term.get(subject));
                value::list(values.collect::<Result<Vec<_>, _>>()?)?
            }
            Term::Map(entries) => map(entries, subject)?,
            Term::Index(term, keys) => {
                let mut value = term.get(subject)?;
                for key in keys {
                    value = key.get(subject)?.of(&value)?;
                }
                value
            }
        })
    }
}

fn map<'a>(
    entries: &'a [(Box<[u8]>, Term)],
    subject: &Subject<'a, '_, '_>,
) -> Result<Value<'a>, Failure> {
    let (mut out, mut one) = (Vec::new(), Vec::new());
    for (key, term) in entries {
        one.clear();
        term.get(subject)?.encode(&mut one)?;
        value::check_depth(&one)?;
        value::entry(&mut out, key, &one);
        if out.len() > value::VALUE_BYTES_MAX {
            return Err(Failure::Size);
        }
    }
    Ok(Value::Map(out.into(), value::ENTRIES))
}

fn math<'a>(op: Math, left: &Value<'a>, right: &Value<'a>) -> Result<Value<'a>, Failure> {
    let float = |left: f64, right: f64| match op {
        Math::Add => left + right,
        Math::Sub => left - right,
        Math::Mul => left * right,
        Math::Div => left / right,
    };
    let int = |left: i64, right: i64| {
        match op {
            Math::Add => left.checked_add(right),
            Math::Sub => left.checked_sub(right),
            Math::Mul => left.checked_mul(right),
            Math::Div => left.checked_div(right),
        }
        .ok_or(Failure::Math)
    };
    Ok(match (left, right) {
        (Value::Int(left), Value::Int(right)) => Value::Int(int(*left, *right)?),
        (Value::Int(left), Value::Float(right)) => Value::Float(float(*left as f64, *right)),
        (Value::Float(left), Value::Int(right)) => Value::Float(float(*left, *right as f64)),
        (Value::Float(left), Value::Float(right)) => Value::Float(float(*left, *right)),
        (
            Value::Time(left) | Value::Zoned(left, _),
            Value::Time(right) | Value::Zoned(right, _),
        ) if op == Math::Sub => Value::Duration(int(*left, *right)?),
        (Value::Time(left), Value::Duration(right)) if matches!(op, Math::Add | Math::Sub) => {
            Value::Time(int(*left, *right)?)
        }
        (Value::Zoned(left, zone), Value::Duration(right))
            if matches!(op, Math::Add | Math::Sub) =>
        {
            Value::Zoned(int(*left, *right)?, zone.clone())
        }
        (Value::Duration(left), Value::Time(right)) if op == Math::Add => {
            Value::Time(int(*left, *right)?)
        }
        (Value::Duration(left), Value::Zoned(right, zone)) if op == Math::Add => {
            Value::Zoned(int(*left, *right)?, zone.clone())
        }
        (Value::Duration(left), Value::Duration(right)) if matches!(op, Math::Add | Math::Sub) => {
            Value::Duration(int(*left, *right)?)
        }
        _ => return Err(Failure::Type),
    })
}
