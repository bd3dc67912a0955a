//! Converters: one static entry each, grouped by family.

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
    /// The input type: its input is cast to it.
    pub from: Kind,
    /// The output type.
    pub to: Kind,
    /// One line for the reference.
    pub doc: &'static str,
    /// Converts.
    pub eval: Eval,
    /// Checks the arguments at compile time; may replace them.
    pub check: CheckFn,
    /// The result depends only on the input and on constant arguments.
    pub pure: bool,
    /// The result has the type of the input before its cast.
    pub keeps_kind: bool,
    /// More data does not change the result, so a rule need not wait for it.
    pub settles: bool,
    /// The arguments from this one on hold a secret: a key or a password.
    pub secret_from: Option<usize>,
}

/// The implementation of an entry.
#[derive(Clone, Copy)]
pub(crate) enum Eval {
    /// A function.
    Fn(ConvertFn),
    /// An operator on integers. Consecutive operators run together.
    Operator(Operator),
}

/// Converts a value of the entry's type; None if there is no result.
pub(crate) type ConvertFn = for<'a> fn(&'a [Arg], Value<'a>, &Scope<'a>) -> Option<Value<'a>>;

/// A pure entry without a check.
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
        secret_from: None,
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
        secret_from: None,
    }
}

impl Convert {
    /// Adds a check of the arguments.
    pub(crate) const fn checked(mut self, check: CheckFn) -> Convert {
        self.check = check;
        self
    }

    /// Marks an entry that reads the scope.
    pub(crate) const fn scoped(mut self) -> Convert {
        self.pure = false;
        self
    }

    /// Marks an entry whose result has the type of its input.
    pub(crate) const fn kind_kept(mut self) -> Convert {
        self.keeps_kind = true;
        self
    }

    /// Marks an entry whose arguments from the one with this index on hold a secret.
    pub(crate) const fn secret(mut self, from: usize) -> Convert {
        self.secret_from = Some(from);
        self
    }

    /// Marks an entry whose result is final.
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

/// The same for a borrowed value.
fn bytes_in<'v>(value: &'v Value<'_>) -> Option<&'v [u8]> {
    match value {
        Value::Str(bytes) | Value::Bin(bytes) => Some(bytes),
        _ => None,
    }
}

/// A recycled buffer that `write` fills; None if it fails or the result is too long.
fn written<'a>(write: impl FnOnce(&mut Vec<u8>) -> Option<()>) -> Option<Bytes<'a>> {
    let mut out = Bytes::buffer();
    write(out.as_vec())?;
    (!out.too_long()).then(|| out.into())
}

/// Every entry.
pub(crate) fn all() -> impl Iterator<Item = &'static Convert> {
    FAMILIES.iter().copied().flatten()
}

/// The index of the first argument of a converter that holds a secret: a key or a password. None
/// for a converter without one, and for an unknown name.
#[must_use]
pub fn secret_from(name: &str) -> Option<usize> {
    find(name)?.secret_from
}

/// The entry of this name.
pub(crate) fn find(name: &str) -> Option<&'static Convert> {
    all().find(|convert| convert.name == name)
}
