//! Converters: one static entry each, by family.

mod aes;
mod binary;
pub(crate) mod coding;
mod date;
mod digest;
mod fix;
mod forwarded;
pub(crate) mod hash;
mod json_path;
mod json_query;
pub(crate) mod jwe;
pub(crate) mod map;
mod mqtt;
pub(crate) mod number;
mod packet;
mod pick;
mod protobuf;
mod state;
pub(crate) mod string;
mod tables;
pub(crate) mod token_key;
mod variable;
pub(crate) mod x509;

use crate::args::ArgKind::IntOrVar;
use crate::args::{Arg, Spec, spec};
use crate::fetch::CheckFn;
use crate::operator::Operator;
use crate::{Bytes, Kind, Scope, Value};

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
    /// The result has the type that the input had before it was cast.
    pub keeps_kind: bool,
    /// More data does not change a result that it gave: a rule need not wait for it.
    pub settles: bool,
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
        keeps_kind: false,
        settles: false,
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
        keeps_kind: false,
        settles: false,
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

    /// The same, whose result has its input's type.
    pub(crate) const fn kind_kept(mut self) -> Convert {
        self.keeps_kind = true;
        self
    }

    /// The same, whose result is final.
    pub(crate) const fn settling(mut self) -> Convert {
        self.settles = true;
        self
    }
}

fn accept(_args: &mut [Arg]) -> Result<(), String> {
    Ok(())
}

/// All families.
const FAMILIES: &[&[Convert]] = &[
    number::CONVERTERS,
    date::CONVERTERS,
    string::CONVERTERS,
    pick::CONVERTERS,
    coding::CONVERTERS,
    binary::CONVERTERS,
    json_query::CONVERTERS,
    jwe::CONVERTERS,
    hash::CONVERTERS,
    map::CONVERTERS,
    digest::CONVERTERS,
    aes::CONVERTERS,
    protobuf::CONVERTERS,
    fix::CONVERTERS,
    mqtt::CONVERTERS,
    packet::CONVERTERS,
    forwarded::CONVERTERS,
    state::CONVERTERS,
    tables::CONVERTERS,
    variable::CONVERTERS,
    x509::CONVERTERS,
];

/// The bytes of a text or of binary data.
fn bytes_of(value: Value<'_>) -> Option<Bytes<'_>> {
    match value {
        Value::Str(bytes) | Value::Bin(bytes) => Some(bytes),
        _ => None,
    }
}

/// The same of a value that stays.
fn bytes_in<'v>(value: &'v Value<'_>) -> Option<&'v [u8]> {
    match value {
        Value::Str(bytes) | Value::Bin(bytes) => Some(bytes),
        _ => None,
    }
}

/// What `write` puts into a recycled buffer; none where it fails or makes too much.
fn written<'a>(write: impl FnOnce(&mut Vec<u8>) -> Option<()>) -> Option<Bytes<'a>> {
    let mut out = Bytes::buffer();
    write(out.as_vec())?;
    (!out.too_long()).then(|| out.into())
}

/// Every entry.
pub(crate) fn all() -> impl Iterator<Item = &'static Convert> {
    FAMILIES.iter().copied().flatten()
}

/// The entry of this name.
pub(crate) fn find(name: &str) -> Option<&'static Convert> {
    all().find(|convert| convert.name == name)
}
