//! Expressions: a fetch and its converters, as a typed program.

use std::fmt;
use std::sync::Arc;

use crate::args::Args;
use crate::cast::{append_text, cast};
use crate::convert::{Convert, Eval};
use crate::fetch::{Cursor, Fetch};
use crate::operator::{self, Operation};
use crate::{Kind, Scope, Value};

/// A compiled expression. Cheap to clone.
#[derive(Clone)]
pub struct Expr {
    program: Arc<Program>,
}

/// More data may arrive and change the sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MayCome;

/// A step after the fetch.
enum Stage {
    Convert(Step),
    Operate(Box<[Operation]>),
}

/// The steps of an expression.
pub(crate) struct Program {
    pub start: Start,
    stages: Vec<Stage>,
    pub kind: Kind,
    /// Whether converters were written, even if they are folded into the constant.
    pub converted: bool,
}

/// The source of the value.
pub(crate) enum Start {
    /// A constant; None if it has no value.
    Constant(Option<Value<'static>>),
    /// A fetch.
    Fetch(&'static Fetch, Args),
}

/// A converter and its arguments.
pub(crate) struct Step {
    pub convert: &'static Convert,
    pub args: Args,
}

impl Program {
    /// Builds a program from the parts that the compiler found.
    pub(crate) fn new(start: Start, steps: Vec<Step>, kind: Kind, converted: bool) -> Program {
        let mut stages: Vec<Stage> = Vec::new();
        let mut run = Vec::new();
        for step in steps {
            match step.operation() {
                Some(operation) => run.push(operation),
                None => {
                    stages.extend(finish_run(&mut run));
                    stages.push(Stage::Convert(step));
                }
            }
        }
        stages.extend(finish_run(&mut run));
        Program {
            start,
            stages,
            kind,
            converted,
        }
    }
}

#[inline]
fn operate<'a>(
    operations: &[Operation],
    value: Option<Value<'a>>,
    scope: &Scope<'a>,
) -> Option<Value<'a>> {
    let number = match value? {
        Value::Int(number) => number,
        value => value.into_int()?,
    };
    operator::run(operations, number, scope).map(Value::Int)
}

fn finish_run(run: &mut Vec<Operation>) -> Option<Stage> {
    (!run.is_empty()).then(|| Stage::Operate(std::mem::take(run).into()))
}

impl Expr {
    pub(crate) fn new(program: Program) -> Expr {
        Expr {
            program: Arc::new(program),
        }
    }

    /// The sample; None if the fetch or a converter has no value.
    #[must_use]
    pub fn eval<'a>(&'a self, scope: &Scope<'a>) -> Option<Value<'a>> {
        self.next(scope, &mut Cursor::default())
    }

    /// The same, with an error if more data may change it.
    ///
    /// # Errors
    /// More data may arrive and change the sample, or give the first one.
    pub fn settled<'a>(&'a self, scope: &Scope<'a>) -> Result<Option<Value<'a>>, MayCome> {
        let mut cursor = Cursor::default();
        let value = self.next(scope, &mut cursor);
        if cursor.may_change && !scope.last_chance {
            Err(MayCome)
        } else {
            Ok(value)
        }
    }

    /// Appends the sample as text, like HAProxy's cast to a string. Returns whether there is one.
    pub fn append_text(&self, scope: &Scope<'_>, out: &mut Vec<u8>) -> bool {
        if let Some(text) = self.constant_text() {
            out.extend_from_slice(text);
            return true;
        }
        let value = self.eval(scope);
        if let Some(value) = &value {
            append_text(value, out);
        }
        value.is_some()
    }

    /// Appends the sample as bytes, like HAProxy's cast to binary. Returns whether there is one.
    pub fn append_binary(&self, scope: &Scope<'_>, out: &mut Vec<u8>) -> bool {
        let value = self.eval(scope).and_then(|value| cast(value, Kind::Bin));
        match value {
            Some(Value::Bin(bytes) | Value::Str(bytes)) => {
                out.extend_from_slice(&bytes);
                true
            }
            _ => false,
        }
    }

    /// Calls `work` with the sample as bytes, like HAProxy's cast to binary; None if there is no
    /// sample.
    pub fn with_binary<R>(&self, scope: &Scope<'_>, work: impl FnOnce(&[u8]) -> R) -> Option<R> {
        match cast(self.eval(scope)?, Kind::Bin)? {
            Value::Bin(bytes) | Value::Str(bytes) => Some(work(&bytes)),
            _ => None,
        }
    }

    /// The type of the sample.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.program.kind
    }

    /// Whether it reads a fact that is known only at the end of a stream.
    pub(crate) fn needs_end(&self) -> bool {
        match &self.program.start {
            Start::Constant(_) => false,
            Start::Fetch(fetch, _) => fetch.needs_end(),
        }
    }

    /// The value, if it is constant; the outer None if it is not.
    #[inline]
    pub(crate) fn constant(&self) -> Option<Option<&Value<'static>>> {
        match &self.program.start {
            Start::Constant(value) if self.program.stages.is_empty() => Some(value.as_ref()),
            _ => None,
        }
    }

    /// The text, if it is constant and a text.
    #[must_use]
    #[inline]
    pub fn constant_text(&self) -> Option<&[u8]> {
        match self.constant() {
            Some(Some(Value::Str(text))) => Some(text),
            _ => None,
        }
    }

    /// The list in which `http_auth_group` looks up its users.
    pub(crate) fn userlist(&self) -> Option<&crate::auth::Userlist> {
        match &self.program.start {
            Start::Fetch(fetch, args) if fetch.name == "http_auth_group" => match args.first() {
                Some(crate::args::Arg::Userlist(list)) => Some(list),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether converters follow the fetch.
    pub(crate) fn has_converters(&self) -> bool {
        self.program.converted
    }

    /// One value of an expression that may have several: like [`Expr::eval`], with the requests and
    /// flags of the cursor.
    #[inline]
    pub(crate) fn next<'a>(&'a self, scope: &Scope<'a>, cursor: &mut Cursor) -> Option<Value<'a>> {
        let program = &*self.program;
        let mut value = match &program.start {
            Start::Constant(value) => value.as_ref().map(Value::borrow),
            Start::Fetch(fetch, args) => (fetch.eval)(args, scope, cursor),
        };
        for stage in &program.stages {
            value = match stage {
                Stage::Convert(step) => {
                    let value = step.run(value, scope);
                    if step.convert.settles && value.is_some() {
                        cursor.may_change = false;
                    }
                    value
                }
                Stage::Operate(operations) => operate(operations, value, scope),
            };
        }
        value
    }
}

impl Step {
    /// Casts the value and converts it.
    pub(crate) fn run<'a>(
        &'a self,
        value: Option<Value<'a>>,
        scope: &Scope<'a>,
    ) -> Option<Value<'a>> {
        let value = value?;
        let from = self.convert.from;
        let value = if value.kind() == from {
            value
        } else {
            cast(value, from)?
        };
        match self.convert.eval {
            Eval::Fn(eval) => eval(&self.args, value, scope),
            Eval::Operator(_) => operate(&[self.operation()?], Some(value), scope),
        }
    }

    fn operation(&self) -> Option<Operation> {
        match self.convert.eval {
            Eval::Operator(operator) => Operation::new(operator, self.args.first()?),
            Eval::Fn(_) => None,
        }
    }
}

impl fmt::Debug for Expr {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.program.start {
            Start::Constant(value) => write!(out, "Expr({value:?})")?,
            Start::Fetch(fetch, args) => write!(out, "Expr({}{args:?})", fetch.name)?,
        }
        for stage in &self.program.stages {
            match stage {
                Stage::Convert(step) => write!(out, ",{}{:?}", step.convert.name, step.args)?,
                Stage::Operate(operations) => write!(out, ",{operations:?}")?,
            }
        }
        Ok(())
    }
}
