//! Arithmetic, bit and boolean operators, address masks.

use super::{Convert, convert, operator};
use crate::args::ArgKind::{Mask4, Mask6, Str};
use crate::args::{Arg, NONE, spec, str_at};
use crate::cast::embedded_ipv4;
use crate::operator::Operator;
use crate::{Kind, Scope, Value};
use std::net::{Ipv4Addr, Ipv6Addr};

pub(crate) const CONVERTERS: &[Convert] = &[
    operator("add", "adds, saturating", Operator::Add),
    operator("sub", "subtracts, saturating", Operator::Sub),
    operator("mul", "multiplies, saturating", Operator::Mul),
    operator(
        "div",
        "divides; by 0 it gives the largest integer",
        Operator::Div,
    ),
    operator("mod", "the remainder; by 0 it gives 0", Operator::Mod),
    operator("and", "bitwise and", Operator::And),
    operator("or", "bitwise or", Operator::Or),
    operator("xor", "bitwise exclusive or", Operator::Xor),
    convert(
        "cpl",
        NONE,
        Kind::Int,
        Kind::Int,
        "every bit inverted",
        |_, value, _| map(value, |int| Value::Int(!int)),
    ),
    convert(
        "neg",
        NONE,
        Kind::Int,
        Kind::Int,
        "the opposite number",
        |_, value, _| map(value, |int| Value::Int(int.saturating_neg())),
    ),
    convert(
        "not",
        NONE,
        Kind::Int,
        Kind::Bool,
        "false unless it is 0",
        |_, value, _| map(value, |int| Value::Bool(int == 0)),
    ),
    convert(
        "bool",
        NONE,
        Kind::Int,
        Kind::Bool,
        "true unless it is 0",
        |_, value, _| map(value, |int| Value::Bool(int != 0)),
    ),
    convert(
        "even",
        NONE,
        Kind::Int,
        Kind::Bool,
        "whether it is even",
        |_, value, _| map(value, |int| Value::Bool(int & 1 == 0)),
    ),
    convert(
        "odd",
        NONE,
        Kind::Int,
        Kind::Bool,
        "whether it is odd",
        |_, value, _| map(value, |int| Value::Bool(int & 1 != 0)),
    ),
    convert(
        "iif",
        spec(2, &[Str, Str]),
        Kind::Bool,
        Kind::Str,
        "the first text for true, else the second",
        |args, value, _| match value {
            Value::Bool(value) => Some(Value::text(str_at(args, usize::from(!value)))),
            _ => None,
        },
    ),
    convert(
        "ipmask",
        spec(1, &[Mask4, Mask6]),
        Kind::Addr,
        Kind::Addr,
        "the address under a mask",
        ipmask,
    ),
];

fn map<'a>(value: Value<'_>, with: impl Fn(i64) -> Value<'a>) -> Option<Value<'a>> {
    match value {
        Value::Int(int) => Some(with(int)),
        _ => None,
    }
}

fn ipmask<'a>(args: &'a [Arg], value: Value<'a>, _: &Scope<'a>) -> Option<Value<'a>> {
    let mask4 = match args.first()? {
        Arg::Ipv4(mask) => u32::from(*mask),
        _ => return None,
    };
    let masked4 = |ip: Ipv4Addr| Value::Ipv4(Ipv4Addr::from(u32::from(ip) & mask4));
    match value {
        Value::Ipv4(ip) => Some(masked4(ip)),
        Value::Ipv6(ip) => match (embedded_ipv4(ip), args.get(1)) {
            (Some(ip), _) => Some(masked4(ip)),
            (None, Some(Arg::Ipv6(mask))) => Some(Value::Ipv6(Ipv6Addr::from(
                u128::from(ip) & u128::from(*mask),
            ))),
            (None, _) => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{convert_text, none};

    #[test]
    fn arithmetic_saturates_and_never_divides_by_zero() {
        for (expr, wanted) in [
            ("int(3),add(4)", "7"),
            ("int(9223372036854775807),add(1)", "9223372036854775807"),
            ("int(-9223372036854775808),sub(1)", "-9223372036854775808"),
            ("int(4611686018427387904),mul(2)", "9223372036854775807"),
            ("int(7),div(2)", "3"),
            ("int(7),div(0)", "9223372036854775807"),
            ("int(-9223372036854775808),div(-1)", "9223372036854775807"),
            ("int(7),mod(4)", "3"),
            ("int(7),mod(0)", "0"),
            ("int(6),and(3)", "2"),
            ("int(6),or(1)", "7"),
            ("int(6),xor(2)", "4"),
            ("int(6),cpl", "-7"),
            ("int(6),neg", "-6"),
            ("int(6),not", "0"),
            ("int(6),bool", "1"),
            ("int(6),even", "1"),
            ("int(6),odd", "0"),
            ("bool(true),iif(yes,no)", "yes"),
            ("bool(false),iif(yes,no)", "no"),
        ] {
            assert_eq!(convert_text(expr), wanted, "{expr}");
        }
    }

    #[test]
    fn addresses_under_masks() {
        for (expr, wanted) in [
            ("ipv4(192.168.3.4),ipmask(24)", "192.168.3.0"),
            ("ipv4(192.168.3.4),ipmask(255.255.0.0)", "192.168.0.0"),
            ("ipv6(2001:db8:1:2::3),ipmask(24,32)", "2001:db8::"),
            ("ipv6(::ffff:10.1.2.3),ipmask(8)", "10.0.0.0"),
        ] {
            assert_eq!(convert_text(expr), wanted, "{expr}");
        }
        none("ipv6(2001:db8::1),ipmask(24)");
    }
}
