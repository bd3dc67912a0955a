//! FIX (Financial Information eXchange): tags of a message, and validation of messages.

use super::{Convert, bytes_of, convert};
use crate::args::ArgKind::Str;
use crate::args::{Arg, NONE, int_at, spec, str_at};
use crate::text::read_ui;
use crate::{Kind, Value};

pub(crate) const CONVERTERS: &[Convert] = &[
    convert(
        "fix_is_valid",
        NONE,
        Kind::Bin,
        Kind::Bool,
        "whether it is a FIX message",
        |_, value, _| match validate(&bytes_of(value)?) {
            Check::Valid => Some(Value::Bool(true)),
            Check::Invalid => Some(Value::Bool(false)),
            Check::Incomplete => None,
        },
    )
    .settling(),
    convert(
        "fix_tag_value",
        spec(1, &[Str]),
        Kind::Bin,
        Kind::Bin,
        "the value of a FIX tag",
        |args, value, _| {
            let message = bytes_of(value)?;
            let wanted = u32::try_from(int_at(args, 0)?).ok()?;
            let (start, end) = find(&message, wanted)?;
            Some(Value::Bin(message.slice(start, end)))
        },
    )
    .settling()
    .checked(|args| {
        let name = str_at(args, 0);
        let named = NAMES
            .iter()
            .find(|(known, _)| name.eq_ignore_ascii_case(known.as_bytes()));
        let id = number(name)
            .filter(|id| *id != 0)
            .or(named.map(|(_, id)| *id));
        let Some(id) = id else {
            let name = String::from_utf8_lossy(name);
            return Err(format!("Unknown FIX tag name '{name}'"));
        };
        args[0] = Arg::Int(id.into());
        Ok(())
    }),
];

const BEGIN_STRING: u32 = 8;
const BODY_LENGTH: u32 = 9;
const CHECK_SUM: u32 = 10;
const MSG_TYPE: u32 = 35;

/// Tags with a name (manual §7.3.1).
const NAMES: &[(&str, u32)] = &[
    ("BeginString", BEGIN_STRING),
    ("BodyLength", BODY_LENGTH),
    ("CheckSum", CHECK_SUM),
    ("MsgType", MSG_TYPE),
    ("SenderCompID", 49),
    ("TargetCompID", 56),
];

/// Versions, each with its largest tag other than user-defined ones.
const VERSIONS: &[(&str, u32)] = &[
    ("FIX.4.0", 140),
    ("FIX.4.1", 211),
    ("FIX.4.2", 446),
    ("FIX.4.3", 659),
    ("FIX.4.4", 956),
    ("FIXT.1.1", 1621),
];
const USER_DEFINED: std::ops::RangeInclusive<u32> = 10_000..=19_999;

/// The byte that ends a value.
const DELIMITER: u8 = 1;

/// The length of the shortest message.
const MESSAGE_BYTES_MIN: usize = 26;

/// `tag=value` and a delimiter.
struct Field<'m> {
    tag: u32,
    value: &'m [u8],
    value_at: usize,
}

enum Step<'m> {
    Field(Field<'m>),
    Incomplete,
    Invalid,
}

/// The field at a position.
fn field(message: &[u8], at: usize) -> Step<'_> {
    let rest = &message[at..];
    let Some(equals) = memchr::memchr(b'=', rest) else {
        return Step::Incomplete;
    };
    let Some(length) = memchr::memchr(DELIMITER, &rest[equals..]) else {
        return Step::Incomplete;
    };
    let value_at = at + equals + 1;
    let value = &message[value_at..at + equals + length];
    match number(&rest[..equals]) {
        Some(tag @ 1..) => Step::Field(Field {
            tag,
            value,
            value_at,
        }),
        _ => Step::Invalid,
    }
}

impl Field<'_> {
    /// The position after the field.
    fn end(&self) -> usize {
        self.value_at + self.value.len() + 1
    }
}

/// Parses decimal digits only. Wraps on overflow, as in HAProxy.
fn number(digits: &[u8]) -> Option<u32> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u32, |sum, digit| {
        let digit = char::from(*digit).to_digit(10)?;
        Some(sum.wrapping_mul(10).wrapping_add(digit))
    })
}

/// The range of a tag's value. An empty value is not found.
fn find(message: &[u8], wanted: u32) -> Option<(usize, usize)> {
    let mut at = 0;
    while at < message.len() {
        let Step::Field(field) = field(message, at) else {
            return None;
        };
        if field.tag == wanted {
            let end = field.value_at + field.value.len();
            return (field.value_at < end).then_some((field.value_at, end));
        }
        if field.tag == CHECK_SUM {
            return None;
        }
        at = field.end();
    }
    None
}

enum Check {
    Valid,
    Invalid,
    Incomplete,
}

/// Checks the order of the first three tags, the length of the body, and the checksum of everything
/// before the last tag.
fn validate(message: &[u8]) -> Check {
    if message.len() < MESSAGE_BYTES_MIN {
        return Check::Incomplete;
    }
    let mut tag_max = u32::MAX;
    let (mut body_at, mut body_length) = (0, 0);
    let mut at = 0;
    for index in 1.. {
        if at == message.len() {
            break;
        }
        let field = match field(message, at) {
            Step::Field(field) => field,
            Step::Incomplete => return Check::Incomplete,
            Step::Invalid => return Check::Invalid,
        };
        if field.tag > tag_max && !USER_DEFINED.contains(&field.tag) {
            return Check::Invalid;
        }
        let fits = match (index, field.tag) {
            (1, BEGIN_STRING) => {
                let version = VERSIONS
                    .iter()
                    .find(|(name, _)| name.as_bytes() == field.value);
                tag_max = version.map_or(0, |(_, tag_max)| *tag_max);
                version.is_some()
            }
            (2, BODY_LENGTH) => {
                body_at = field.end();
                body_length = number(field.value).unwrap_or(0) as usize;
                body_length > 0
            }
            (3, MSG_TYPE) => true,
            (4.., CHECK_SUM) => {
                let sum = message[..at]
                    .iter()
                    .fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
                let said = read_ui(field.value);
                let valid =
                    at - body_at == body_length && field.value.len() == 3 && said == sum.into();
                return if valid { Check::Valid } else { Check::Invalid };
            }
            (4.., _) => true,
            _ => false,
        };
        if !fits {
            return Check::Invalid;
        }
        at = field.end();
    }
    // The message ended before the checksum.
    Check::Incomplete
}

#[cfg(test)]
mod tests {
    use crate::testing::{Facts, compiler};
    use crate::{Place, Value};

    /// In the text, `|` stands for the delimiter.
    fn ask(message: &str, converter: &str) -> Option<Value<'static>> {
        let mut facts = Facts::new();
        let mut compiler = compiler();
        let var = compiler.var("txn.m").expect("a variable");
        let message = message.replace('|', "\x01");
        facts
            .txn
            .txn_vars
            .set(var.slot, Value::text(message.as_bytes()).detach());
        let text = format!("var(txn.m),{converter}");
        let (expr, _) = compiler.expr(&[&text], Place::ALL).expect("an expression");
        expr.eval(&facts.scope()).map(Value::detach)
    }

    /// A logon message in the format of FIX 4.2.
    const LOGON: &str =
        "8=FIX.4.2|9=65|35=A|49=SERVER|56=CLIENT|34=177|52=20090107-18:15:16|98=0|108=30|10=062|";

    #[test]
    fn messages_are_valid_invalid_or_incomplete() {
        for (message, wanted) in [
            (LOGON.to_owned(), Some(true)),
            (LOGON.replace("10=062", "10=063"), Some(false)),
            (LOGON.replace("9=65", "9=66"), Some(false)),
            (LOGON.replace("FIX.4.2", "FIX.9.2"), Some(false)),
            (LOGON.replace("35=A", "36=A"), Some(false)),
            (LOGON.replace("49=", "="), Some(false)),
            (LOGON.replace("49=SERVER", "49="), Some(false)),
            (LOGON.replace("49=", "x="), Some(false)),
            (LOGON.replace("98=", "998="), Some(false)),
            (LOGON.replace("10=062|", ""), None),
            (LOGON[..40].to_owned(), None),
            (LOGON[..10].to_owned(), None),
        ] {
            let said = ask(&message, "fix_is_valid");
            assert_eq!(said, wanted.map(Value::Bool), "{message}");
        }
    }

    #[test]
    fn values_of_tags() {
        for (tag, wanted) in [
            ("35", Some("A")),
            ("msgtype", Some("A")),
            ("BeginString", Some("FIX.4.2")),
            ("SenderCompID", Some("SERVER")),
            ("108", Some("30")),
            ("CheckSum", Some("062")),
            ("99", None),
        ] {
            let said = ask(LOGON, &format!("fix_tag_value({tag})"));
            let wanted = wanted.map(|text| Value::Bin(text.into()));
            assert_eq!(said, wanted, "{tag}");
        }
        assert_eq!(ask("35=A", "fix_tag_value(35)"), None);
        assert_eq!(ask("=A|35=A|", "fix_tag_value(35)"), None);
    }
}
