//! Integer operators (`add`, `sub`, …), and sequences of them.
//!
//! Configurations compute with these operators, often with several in a row. A sequence keeps its
//! number in a register and reads variables by their slots. It makes no sample for each result.

use crate::args::Arg;
use crate::vars::Entry;
use crate::{Kind, Scope, Value, VarRef, VarScope};

/// The operation on the input and the operand (manual §7.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Add,
    Sub,
    Mul,
    Div,
    Mod,
    And,
    Or,
    Xor,
}

impl Operator {
    /// Sums, differences and products saturate. A division by 0 gives the largest integer; its
    /// remainder is 0.
    #[inline]
    pub(crate) fn apply(self, left: i64, right: i64) -> i64 {
        match self {
            Operator::Add => left.saturating_add(right),
            Operator::Sub => left.saturating_sub(right),
            Operator::Mul => left.saturating_mul(right),
            Operator::Div => left.checked_div(right).unwrap_or(i64::MAX),
            Operator::Mod => left.checked_rem(right).unwrap_or(0),
            Operator::And => left & right,
            Operator::Or => left | right,
            Operator::Xor => left ^ right,
        }
    }
}

/// An operator with its operand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operation {
    operator: Operator,
    operand: Operand,
}

#[derive(Clone, Copy, Debug)]
enum Operand {
    Int(i64),
    Var(VarRef),
}

impl Operation {
    /// An operation from an operator and its compiled argument; None for an argument of another
    /// kind.
    pub(crate) fn new(operator: Operator, arg: &Arg) -> Option<Operation> {
        let operand = match arg {
            Arg::Int(value) => Operand::Int(*value),
            Arg::Var(var) => Operand::Var(*var),
            _ => return None,
        };
        Some(Operation { operator, operand })
    }
}

/// Applies the operators one after the other; None if a variable is not an integer.
pub(crate) fn run(operations: &[Operation], mut number: i64, scope: &Scope<'_>) -> Option<i64> {
    // Variables of one scope mostly follow each other, so the scope's entries are kept.
    let (mut entries, mut of) = (&[][..], VarScope::Parent);
    for operation in operations {
        let operand = match operation.operand {
            Operand::Int(value) => value,
            Operand::Var(var) => {
                if var.scope != of {
                    (entries, of) = (scope.settled(var.scope), var.scope);
                }
                match entries.get(var.slot as usize) {
                    Some(Entry::Set(Value::Int(number))) => *number,
                    _ => scope.int_var(var)?,
                }
            }
        };
        number = operation.operator.apply(number, operand);
    }
    Some(number)
}

/// An integer argument, or the value of a variable as an integer.
pub(crate) fn int_of(arg: &Arg, scope: &Scope<'_>) -> Option<i64> {
    match arg {
        Arg::Int(value) => Some(*value),
        Arg::Var(var) => scope.int_var(*var),
        _ => None,
    }
}

impl Scope<'_> {
    /// A variable as an integer.
    #[cold]
    pub(crate) fn int_var(&self, var: VarRef) -> Option<i64> {
        match crate::cast::cast(self.var(var)?, Kind::Int)? {
            Value::Int(number) => Some(number),
            _ => None,
        }
    }
}
