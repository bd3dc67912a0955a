//! `set-var` and `unset-var`: store the value that passes through in a variable, or remove the
//! variable (manual §7.3.1).

use super::{Convert, convert};
use crate::args::ArgKind::{Str, Var};
use crate::args::{Arg, spec};
use crate::vars::SetConditions;
use crate::{Kind, Scope, Value};

pub(crate) const CONVERTERS: &[Convert] = &[
    convert(
        "set-var",
        spec(1, &[Var, Str, Str, Str, Str]),
        Kind::Any,
        Kind::Any,
        "sets a variable if all conditions hold, and passes the sample on; else there is none",
        set_var,
    )
    .checked(read_conditions)
    .scoped(),
    convert(
        "unset-var",
        spec(1, &[Var]),
        Kind::Any,
        Kind::Any,
        "unsets a variable and passes the sample on",
        |args, value, scope| {
            if let Some(Arg::Var(var)) = args.first() {
                scope.unassign(*var);
            }
            Some(value)
        },
    )
    .scoped(),
];

fn set_var<'a>(args: &'a [Arg], value: Value<'a>, scope: &Scope<'a>) -> Option<Value<'a>> {
    let [Arg::Var(var), rest @ ..] = args else {
        return None;
    };
    let when = match rest.first() {
        Some(Arg::Conditions(when)) => *when,
        _ => SetConditions::default(),
    };
    scope.assign(*var, when, &value).then_some(value)
}

/// Replaces the second argument by all conditions together.
fn read_conditions(args: &mut [Arg]) -> Result<(), String> {
    let mut when = SetConditions::default();
    for arg in args.iter().skip(1) {
        if let Arg::Str(name) = arg {
            when.add(&String::from_utf8_lossy(name))?;
        }
    }
    if let Some(first) = args.get_mut(1) {
        *first = Arg::Conditions(when);
    }
    Ok(())
}
