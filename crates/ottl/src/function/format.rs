//! `Format`: Go's `fmt.Sprintf` (Go: package fmt, "Printing").

use super::text::text_like;
use super::{Function, prepare, prepared};
use crate::eval::Failure;
use crate::value::{VALUE_BYTES_MAX, Value};
use std::fmt::Write as _;
use syntax::hex;

/// The largest width and precision (Go: `tooLarge`).
const WIDTH_MAX: i64 = 1_000_000;
/// Digits behind the point where none are asked for.
const PRECISION_DEFAULT: usize = 6;

pub const FUNCTIONS: &[Function] = &[prepare("Format", &["format", "vals"], |written| {
    let format = written.text(0)?.unwrap_or_default().to_owned();
    prepared(move |args, _| match &args[1] {
        vals @ Value::List(_) => {
            let vals: Vec<Value<'_>> = vals.items().map(Value::from).collect();
            Printer::new(&vals).print(&format).map(Value::text)
        }
        _ => Err(Failure::Type),
    })
})];

/// Flags, width and precision between `%` and the verb.
#[derive(Clone, Copy, Default)]
struct Flags {
    minus: bool,
    plus: bool,
    sharp: bool,
    space: bool,
    zero: bool,
    width: Option<usize>,
    precision: Option<usize>,
}

struct Printer<'v> {
    vals: &'v [Value<'v>],
    next: usize,
    /// An explicit index such as `[1]` was used: unused values are then no error.
    reordered: bool,
    out: String,
}

impl<'v> Printer<'v> {
    fn new(vals: &'v [Value<'v>]) -> Printer<'v> {
        Printer {
            vals,
            next: 0,
            reordered: false,
            out: String::new(),
        }
    }

    fn print(mut self, format: &str) -> Result<String, Failure> {
        let mut rest = format;
        while let Some(at) = rest.find('%') {
            self.out.push_str(&rest[..at]);
            rest = self.directive(&rest[at + 1..])?;
            if self.out.len() > VALUE_BYTES_MAX {
                return Err(Failure::Size);
            }
        }
        self.out.push_str(rest);
        if !self.reordered && self.next < self.vals.len() {
            self.out.push_str("%!(EXTRA ");
            for (at, value) in self.vals[self.next..].iter().enumerate() {
                if at > 0 {
                    self.out.push_str(", ");
                }
                match value {
                    Value::Nil => self.out.push_str("<nil>"),
                    value => {
                        let _ = write!(self.out, "{}=", type_name(value));
                        self.out.push_str(&plain(value)?);
                    }
                }
            }
            self.out.push(')');
        }
        Ok(self.out)
    }

    /// Prints a directive, and gives what follows it.
    fn directive<'f>(&mut self, mut rest: &'f str) -> Result<&'f str, Failure> {
        let mut flags = Flags::default();
        let mut after_index = false;
        loop {
            match rest.as_bytes().first() {
                Some(b'#') => flags.sharp = true,
                Some(b'0') => flags.zero = true,
                Some(b'+') => flags.plus = true,
                Some(b'-') => flags.minus = true,
                Some(b' ') => flags.space = true,
                _ => break,
            }
            rest = &rest[1..];
        }
        let mut is_good = self.index(&mut rest, &mut after_index);
        if let Some(after) = rest.strip_prefix('*') {
            rest = after;
            match self.star() {
                Some(width) => {
                    flags.minus |= width < 0;
                    flags.width = Some(width.unsigned_abs() as usize);
                }
                None => self.out.push_str("%!(BADWIDTH)"),
            }
            after_index = false;
        } else {
            flags.width = number(&mut rest);
            is_good &= !(after_index && flags.width.is_some());
        }
        if let Some(after) = rest.strip_prefix('.') {
            rest = after;
            is_good &= !after_index;
            is_good &= self.index(&mut rest, &mut after_index);
            if let Some(after) = rest.strip_prefix('*') {
                rest = after;
                match self.star() {
                    // A negative precision counts as no precision.
                    Some(precision) => flags.precision = usize::try_from(precision).ok(),
                    None => self.out.push_str("%!(BADPREC)"),
                }
                after_index = false;
            } else {
                flags.precision = Some(number(&mut rest).unwrap_or(0));
            }
        }
        if !after_index {
            is_good &= self.index(&mut rest, &mut after_index);
        }
        let Some(verb) = rest.chars().next() else {
            self.out.push_str("%!(NOVERB)");
            return Ok(rest);
        };
        rest = &rest[verb.len_utf8()..];
        match self.vals.get(self.next) {
            _ if verb == '%' => self.out.push('%'),
            _ if !is_good => {
                let _ = write!(self.out, "%!{verb}(BADINDEX)");
            }
            None => {
                let _ = write!(self.out, "%!{verb}(MISSING)");
            }
            Some(value) => {
                self.next += 1;
                let text = print(value, verb, flags)?;
                self.out.push_str(&text);
            }
        }
        Ok(rest)
    }

    /// Parses `[n]`, the index of the next value. Returns false if there is no such value.
    fn index(&mut self, rest: &mut &str, after_index: &mut bool) -> bool {
        let Some(inner) = rest.strip_prefix('[') else {
            return true;
        };
        self.reordered = true;
        let Some((digits, after)) = inner.split_once(']') else {
            *rest = inner;
            return false;
        };
        *rest = after;
        *after_index = true;
        let number = digits.parse::<usize>().ok().filter(|number| *number > 0);
        let number = number.filter(|number| *number <= self.vals.len());
        match number {
            Some(number) => {
                self.next = number - 1;
                true
            }
            None => false,
        }
    }

    /// The value of `*`.
    fn star(&mut self) -> Option<i64> {
        let value = self.vals.get(self.next)?;
        self.next += 1;
        match value {
            Value::Int(value) if (-WIDTH_MAX..=WIDTH_MAX).contains(value) => Some(*value),
            _ => None,
        }
    }
}

fn number(rest: &mut &str) -> Option<usize> {
    let len = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, after) = rest.split_at(len);
    let number = digits.parse().ok().filter(|n| *n <= WIDTH_MAX as usize);
    *rest = after;
    number
}

fn type_name(value: &Value<'_>) -> &'static str {
    match value {
        Value::Nil => "<nil>",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Float(_) => "float64",
        Value::Text(_) => "string",
        Value::Bytes(_) => "[]uint8",
        Value::Time(_) | Value::Zoned(..) => "time.Time",
        Value::Duration(_) => "time.Duration",
        Value::Map(..) => "pcommon.Map",
        Value::List(_) => "pcommon.Slice",
        // Lists never have such items.
        Value::Messages(..) => "ptrace.SpanEventSlice",
    }
}

/// A value as `%v` prints it.
fn plain(value: &Value<'_>) -> Result<String, Failure> {
    print(value, 'v', Flags::default())
}

fn print(value: &Value<'_>, verb: char, mut flags: Flags) -> Result<String, Failure> {
    if verb == 'T' {
        return Ok(padded(type_name(value), flags));
    }
    if verb == 'v' && flags.plus {
        // `%+v` prints field names of Go structs. Values here have no such fields.
        flags.plus = false;
    }
    let text = match value {
        Value::Nil if verb == 'v' => Some(padded("<nil>", flags)),
        Value::Bool(value) if matches!(verb, 'v' | 't') => {
            Some(padded(if *value { "true" } else { "false" }, flags))
        }
        Value::Int(value) => int(*value, verb, flags),
        Value::Float(value) => float(*value, verb, flags)?,
        Value::Text(text) => bytes_as_text(text, verb, flags),
        Value::Bytes(bytes) if matches!(verb, 'v' | 'd') => {
            let items: Vec<String> = bytes.iter().map(ToString::to_string).collect();
            Some(padded(&format!("[{}]", items.join(" ")), flags))
        }
        Value::Bytes(bytes) => bytes_as_text(bytes, verb, flags),
        // Go prints memory addresses here. JSON is printed instead.
        Value::Map(..) | Value::List(_) if matches!(verb, 'v' | 's') => {
            let text = text_like(value)?.unwrap_or_default();
            Some(padded(&String::from_utf8_lossy(&text), flags))
        }
        _ => None,
    };
    match (text, value) {
        (Some(text), _) => Ok(text),
        (None, Value::Nil) => Ok(format!("%!{verb}(<nil>)")),
        (None, value) => Ok(format!("%!{verb}({}={})", type_name(value), plain(value)?)),
    }
}

fn padded(text: &str, flags: Flags) -> String {
    let missing = flags
        .width
        .unwrap_or(0)
        .saturating_sub(text.chars().count());
    if flags.minus {
        return format!("{text}{}", " ".repeat(missing));
    }
    let by = if flags.zero { "0" } else { " " };
    format!("{}{text}", by.repeat(missing))
}

fn int(value: i64, verb: char, flags: Flags) -> Option<String> {
    let magnitude = value.unsigned_abs();
    let mut digits = match verb {
        'v' | 'd' => magnitude.to_string(),
        'b' => format!("{magnitude:b}"),
        'o' | 'O' => format!("{magnitude:o}"),
        'x' => format!("{magnitude:x}"),
        'X' => format!("{magnitude:X}"),
        'c' => return Some(padded(&char_of(value).to_string(), flags)),
        'q' => {
            let quoted = quoted(&char_of(value).to_string(), '\'');
            return Some(padded(&quoted, flags));
        }
        'U' => return Some(padded(&format!("U+{value:04X}"), flags)),
        _ => return None,
    };
    let is_signed = value < 0 || flags.plus || flags.space;
    let digits_min = match (flags.precision, flags.width) {
        (Some(0), _) if value == 0 => {
            let flags = Flags {
                zero: false,
                ..flags
            };
            return Some(padded("", flags));
        }
        (Some(precision), _) => precision,
        (None, Some(width)) if flags.zero && !flags.minus => width - usize::from(is_signed),
        _ => 0,
    };
    if digits.len() < digits_min {
        digits.insert_str(0, &"0".repeat(digits_min - digits.len()));
    }
    let prefix = match verb {
        'b' if flags.sharp => "0b",
        'o' if flags.sharp && !digits.starts_with('0') => "0",
        'O' => "0o",
        'x' if flags.sharp => "0x",
        'X' if flags.sharp => "0X",
        _ => "",
    };
    let text = format!("{}{prefix}{digits}", sign(value < 0, flags));
    let flags = Flags {
        zero: false,
        ..flags
    };
    Some(padded(&text, flags))
}

fn sign(is_negative: bool, flags: Flags) -> &'static str {
    match is_negative {
        _ if is_negative => "-",
        _ if flags.plus => "+",
        _ if flags.space => " ",
        _ => "",
    }
}

fn char_of(value: i64) -> char {
    let code = u32::try_from(value).ok().and_then(char::from_u32);
    code.unwrap_or(char::REPLACEMENT_CHARACTER)
}

fn float(value: f64, verb: char, mut flags: Flags) -> Result<Option<String>, Failure> {
    // Its forms with `#`, and with an exponent of two, are not printed here.
    if matches!(verb, 'b' | 'x' | 'X') || flags.sharp && verb != 'v' {
        return Err(Failure::Syntax);
    }
    if !value.is_finite() {
        flags.zero = false;
    }
    let magnitude = value.abs();
    let digits = match verb {
        _ if value.is_nan() => "NaN".to_owned(),
        _ if value.is_infinite() => {
            let plus = if value > 0.0 && !flags.space { "+" } else { "" };
            return Ok(Some(padded(
                &format!("{}Inf", if value < 0.0 { "-" } else { plus }),
                flags,
            )));
        }
        'e' => exponent(magnitude, flags.precision.unwrap_or(PRECISION_DEFAULT)),
        'E' => exponent(magnitude, flags.precision.unwrap_or(PRECISION_DEFAULT)).to_uppercase(),
        'f' | 'F' => format!(
            "{magnitude:.*}",
            flags.precision.unwrap_or(PRECISION_DEFAULT)
        ),
        'v' | 'g' => general(magnitude, flags.precision),
        'G' => general(magnitude, flags.precision).to_uppercase(),
        _ => return Ok(None),
    };
    let sign = sign(value.is_sign_negative() && !value.is_nan(), flags);
    let width = flags.width.unwrap_or(0);
    if flags.zero && !flags.minus && width > sign.len() + digits.len() {
        let zeros = "0".repeat(width - sign.len() - digits.len());
        return Ok(Some(format!("{sign}{zeros}{digits}")));
    }
    flags.zero = false;
    Ok(Some(padded(&format!("{sign}{digits}"), flags)))
}

/// `1.5e+06`: the exponent has a sign and two digits at least.
fn exponent(value: f64, precision: usize) -> String {
    with_exponent(&format!("{value:.precision$e}"))
}

fn with_exponent(text: &str) -> String {
    let (digits, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

/// Go's `%g`: the exponent form for very small and very large numbers; without a precision as many
/// digits as tell the number apart.
fn general(value: f64, precision: Option<usize>) -> String {
    let shortest = match precision {
        None => format!("{value:e}"),
        Some(precision) => format!("{value:.*e}", precision.max(1) - 1),
    };
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let mantissa = if mantissa.contains('.') {
        mantissa.trim_end_matches('0').trim_end_matches('.')
    } else {
        mantissa
    };
    let digits = mantissa.replace('.', "");
    let count = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let limit = match precision {
        // Go decides as with a precision of 6.
        None => 6,
        Some(precision) => {
            let precision = i32::try_from(precision.max(1)).unwrap_or(i32::MAX);
            if precision > count && count > exponent {
                count
            } else {
                precision
            }
        }
    };
    if exponent < -4 || exponent >= limit {
        return with_exponent(&format!("{mantissa}e{exponent}"));
    }
    let behind = usize::try_from(count - 1 - exponent).unwrap_or(0);
    // The digits are known: this only moves the point.
    match exponent {
        ..0 => format!(
            "0.{}{digits}",
            "0".repeat(usize::try_from(-exponent - 1).unwrap_or(0))
        ),
        _ if behind == 0 => {
            let zeros = usize::try_from(exponent + 1 - count).unwrap_or(0);
            format!("{digits}{}", "0".repeat(zeros))
        }
        _ => {
            let (whole, part) = digits.split_at(digits.len() - behind);
            format!("{whole}.{part}")
        }
    }
}

fn bytes_as_text(bytes: &[u8], verb: char, flags: Flags) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let cut: String = match flags.precision {
        Some(precision) => text.chars().take(precision).collect(),
        None => text.into_owned(),
    };
    Some(match verb {
        'v' if flags.sharp => padded(&quoted(&cut, '"'), flags),
        'v' | 's' => padded(&cut, flags),
        'q' => padded(&quoted(&cut, '"'), flags),
        'x' | 'X' => {
            let bytes = &bytes[..flags.precision.unwrap_or(usize::MAX).min(bytes.len())];
            padded(&hexadecimal(bytes, verb == 'X', flags), flags)
        }
        _ => return None,
    })
}

fn hexadecimal(bytes: &[u8], is_upper: bool, flags: Flags) -> String {
    let prefix = match (flags.sharp, is_upper) {
        (true, true) => "0X",
        (true, false) => "0x",
        (false, _) => "",
    };
    let digits = |bytes: &[u8]| {
        let digits = hex::text(bytes);
        if is_upper {
            digits.to_uppercase()
        } else {
            digits
        }
    };
    if flags.space {
        let each = bytes
            .iter()
            .map(|byte| format!("{prefix}{}", digits(&[*byte])));
        return each.collect::<Vec<_>>().join(" ");
    }
    if bytes.is_empty() {
        return String::new();
    }
    format!("{prefix}{}", digits(bytes))
}

/// A text as Go's `strconv.Quote` writes it.
fn quoted(text: &str, quote: char) -> String {
    let mut out = String::from(quote);
    for char in text.chars() {
        match char {
            '\u{7}' => out.push_str("\\a"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{b}' => out.push_str("\\v"),
            '\\' => out.push_str("\\\\"),
            char if char == quote => {
                out.push('\\');
                out.push(char);
            }
            ' '..='~' => out.push(char),
            '\0'..='\u{7f}' => {
                let _ = write!(out, "\\x{:02x}", u32::from(char));
            }
            // Rust and Go agree on which characters are printable, apart from newer Unicode
            // versions.
            char if char.escape_debug().count() == 1 => out.push(char),
            '\u{80}'..='\u{ffff}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(char));
            }
            char => {
                let _ = write!(out, "\\U{:08x}", u32::from(char));
            }
        }
    }
    out.push(quote);
    out
}
