//! Converters: one static entry each, by family.

pub(crate) mod coding;
pub(crate) mod hash;
pub(crate) mod map;
pub(crate) mod number;
pub(crate) mod string;
mod variable;

use crate::args::ArgKind::IntOrVar;
use crate::args::{Arg, Spec, spec};
use crate::fetch::CheckFn;
use crate::operator::Operator;
use crate::{Kind, Scope, Value};

/// A converter.
pub(crate) struct Convert {
    /// The name in the configuration.
    pub name: &'static str,
    /// Its arguments.
    pub args: Spec,
    /// The type it takes: its input is cast to it.
    pub from: Kind,
    /// The type it gives.
    pub to: Kind,
    /// One line for the reference.
    pub doc: &'static str,
    /// Converts.
    pub eval: Eval,
    /// Looks at the arguments when they are compiled; may replace them.
    pub check: CheckFn,
    /// The result depends on nothing but the input and constant arguments.
    pub pure: bool,
}

/// How an entry converts.
#[derive(Clone, Copy)]
pub(crate) enum Eval {
    /// By a function.
    Fn(ConvertFn),
    /// It is an operator on integers, of which runs are made.
    Operator(Operator),
}

/// Converts a value of the entry's type; none when there is no result.
pub(crate) type ConvertFn = for<'a> fn(&'a [Arg], Value<'a>, &Scope<'a>) -> Option<Value<'a>>;

/// An entry without a check, that is pure.
pub(crate) const fn convert(
    name: &'static str,
    args: Spec,
    from: Kind,
    to: Kind,
    doc: &'static str,
    eval: ConvertFn,
) -> Convert {
    Convert {
        name,
        args,
        from,
        to,
        doc,
        eval: Eval::Fn(eval),
        check: accept,
        pure: true,
    }
}

/// An operator on integers.
pub(crate) const fn operator(name: &'static str, doc: &'static str, operator: Operator) -> Convert {
    Convert {
        name,
        args: spec(1, &[IntOrVar]),
        from: Kind::Int,
        to: Kind::Int,
        doc,
        eval: Eval::Operator(operator),
        check: accept,
        pure: true,
    }
}

impl Convert {
    /// The same with a check of its arguments.
    pub(crate) const fn checked(mut self, check: CheckFn) -> Convert {
        self.check = check;
        self
    }

    /// The same, which looks at the scope.
    pub(crate) const fn scoped(mut self) -> Convert {
        self.pure = false;
        self
    }
}

fn accept(_args: &mut [Arg]) -> Result<(), String> {
    Ok(())
}

/// All families.
const FAMILIES: &[&[Convert]] = &[
    number::CONVERTERS,
    string::CONVERTERS,
    coding::CONVERTERS,
    hash::CONVERTERS,
    map::CONVERTERS,
    variable::CONVERTERS,
];

/// Every entry.
pub(crate) fn all() -> impl Iterator<Item = &'static Convert> {
    FAMILIES.iter().copied().flatten()
}

/// The entry of this name.
pub(crate) fn find(name: &str) -> Option<&'static Convert> {
    all().find(|convert| convert.name == name)
}
