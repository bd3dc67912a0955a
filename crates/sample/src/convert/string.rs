//! Text: case, parts, trimming, joining, comparing, replacing.

use super::{Convert, bytes_of, convert};
use crate::args::ArgKind::{Int, IntOrVar, OtherVar, Regex, Str, VarOrNothing};
use crate::args::{Arg, NONE, int_at, spec, str_at};
use crate::cast::append_text;
use crate::operator::int_of as operand;
use crate::pattern::regex::expand;
use crate::text::read_ui;
use crate::{Bytes, Kind, SAMPLE_BYTES_MAX, Scope, Value};

const PART: crate::args::Spec = spec(2, &[Int, Str, Int]);

pub(crate) const CONVERTERS: &[Convert] = &[
    convert(
        "lower",
        NONE,
        Kind::Str,
        Kind::Str,
        "ASCII letters in lower case",
        |_, value, _| change(value, <[u8]>::make_ascii_lowercase),
    ),
    convert(
        "upper",
        NONE,
        Kind::Str,
        Kind::Str,
        "ASCII letters in upper case",
        |_, value, _| change(value, <[u8]>::make_ascii_uppercase),
    ),
    convert(
        "reverse",
        NONE,
        Kind::Str,
        Kind::Str,
        "the bytes from the last to the first",
        |_, value, _| change(value, <[u8]>::reverse),
    ),
    convert(
        "length",
        NONE,
        Kind::Str,
        Kind::Int,
        "the number of bytes",
        |_, value, _| Some(Value::Int(bytes_of(value)?.len() as i64)),
    ),
    convert(
        "field",
        PART,
        Kind::Str,
        Kind::Str,
        "the n-th part between separators",
        field,
    )
    .checked(part_args),
    convert(
        "word",
        PART,
        Kind::Str,
        Kind::Str,
        "the n-th part, runs of separators count once",
        word,
    )
    .checked(part_args),
    convert(
        "bytes",
        spec(1, &[IntOrVar, IntOrVar]),
        Kind::Bin,
        Kind::Bin,
        "bytes from an offset on",
        bytes,
    )
    .checked(|args| match (int_at(args, 0), int_at(args, 1)) {
        (Some(..0), _) => Err("expects a non-negative integer".into()),
        (_, Some(..=0)) => Err("expects a positive integer".into()),
        _ => Ok(()),
    }),
    convert(
        "ltrim",
        spec(1, &[Str]),
        Kind::Str,
        Kind::Str,
        "without these bytes at its beginning",
        |args, value, _| {
            let text = bytes_of(value)?;
            let start = text
                .iter()
                .take_while(|byte| str_at(args, 0).contains(byte))
                .count();
            Some(Value::Str(text.slice(start, usize::MAX)))
        },
    ),
    convert(
        "rtrim",
        spec(1, &[Str]),
        Kind::Str,
        Kind::Str,
        "without these bytes at its end",
        |args, value, _| {
            let text = bytes_of(value)?;
            let trimmed = text
                .iter()
                .rev()
                .take_while(|byte| str_at(args, 0).contains(byte))
                .count();
            let end = text.len() - trimmed;
            Some(Value::Str(text.slice(0, end)))
        },
    ),
    convert(
        "cut_crlf",
        NONE,
        Kind::Str,
        Kind::Str,
        "up to the first CR or LF",
        |_, value, _| {
            let text = bytes_of(value)?;
            let end = memchr::memchr2(b'\r', b'\n', &text).unwrap_or(text.len());
            Some(Value::Str(text.slice(0, end)))
        },
    ),
    convert(
        "concat",
        spec(1, &[Str, VarOrNothing, Str]),
        Kind::Str,
        Kind::Str,
        "followed by texts and a variable",
        concat,
    ),
    convert(
        "add_item",
        spec(2, &[Str, VarOrNothing, Str]),
        Kind::Str,
        Kind::Str,
        "followed by a delimiter, where that makes sense, a variable and a text",
        add_item,
    )
    .checked(|args| match (args.get(1), str_at(args, 2)) {
        (Some(Arg::Var(_)), _) | (_, [_, ..]) => Ok(()),
        _ => Err("one of the optional arguments has to be nonempty".into()),
    }),
    convert(
        "strcmp",
        spec(1, &[OtherVar]),
        Kind::Str,
        Kind::Int,
        "compared with a variable: negative, 0, positive",
        strcmp,
    ),
    convert(
        "regsub",
        spec(2, &[Regex, Str, Str]),
        Kind::Str,
        Kind::Str,
        "what matches is replaced",
        regsub,
    )
    .checked(replacement),
    convert(
        "host_only",
        NONE,
        Kind::Str,
        Kind::Str,
        "a Host without its port, in lower case",
        |_, value, _| {
            let text = bytes_of(value)?;
            let end = port_colon(&text).unwrap_or(text.len());
            change(Value::Str(text.slice(0, end)), <[u8]>::make_ascii_lowercase)
        },
    ),
    convert(
        "port_only",
        NONE,
        Kind::Str,
        Kind::Int,
        "the port of a Host, 0 without one",
        |_, value, _| {
            let text = bytes_of(value)?;
            let port = port_colon(&text).map_or(0, |colon| read_ui(&text[colon + 1..]));
            Some(Value::Int(port.into()))
        },
    ),
];

fn change<'a>(value: Value<'a>, with: impl Fn(&mut [u8])) -> Option<Value<'a>> {
    let mut buffer = bytes_of(value)?.into_buffer();
    with(buffer.bytes_mut());
    Some(Value::Str(buffer.into()))
}

fn part_args(args: &mut [Arg]) -> Result<(), String> {
    if int_at(args, 0) == Some(0) {
        return Err("Unexpected value 0 for index".into());
    }
    if str_at(args, 1).is_empty() {
        return Err("Empty separators list".into());
    }
    Ok(())
}

/// The number of parts; 0 for all remaining ones.
fn part_count(args: &[Arg]) -> usize {
    int_at(args, 2).map_or(1, |count| usize::try_from(count).unwrap_or(0))
}

/// Finds the range of a number of parts from the n-th on, between separators.
type FindPart = fn(&[u8], usize, usize, &dyn Fn(u8) -> bool) -> Option<(usize, usize)>;

fn part_range(text: &[u8], args: &[Arg], find: FindPart) -> Option<(usize, usize)> {
    let index = int_at(args, 0)?;
    let separators = str_at(args, 1);
    let is_separator = |byte: u8| separators.contains(&byte);
    let number = usize::try_from(index.unsigned_abs()).ok()?;
    if index > 0 {
        return find(text, number, part_count(args), &is_separator);
    }
    // Counting from the end is the same on the reversed text.
    let mut reversed = Bytes::Borrowed(text).into_buffer();
    reversed.bytes_mut().reverse();
    let (start, end) = find(&reversed, number, part_count(args), &is_separator)?;
    Some((text.len() - end, text.len() - start))
}

fn field<'a>(args: &'a [Arg], value: Value<'a>, _: &Scope<'a>) -> Option<Value<'a>> {
    let text = bytes_of(value)?;
    let (start, end) = part_range(&text, args, find_field)?;
    Some(Value::Str(text.slice(start, end)))
}

/// The range of `count` fields from the `number`-th on.
fn find_field(
    text: &[u8],
    number: usize,
    count: usize,
    is_separator: &dyn Fn(u8) -> bool,
) -> Option<(usize, usize)> {
    let mut field = 1;
    let mut left = count;
    let mut start = 0;
    for (at, byte) in text.iter().enumerate() {
        if !is_separator(*byte) {
            continue;
        }
        if field < number {
            field += 1;
            start = at + 1;
        } else if left == 1 {
            return Some((start, at));
        } else {
            left = left.saturating_sub(1);
        }
    }
    (field == number).then_some((start, text.len()))
}

fn word<'a>(args: &'a [Arg], value: Value<'a>, _: &Scope<'a>) -> Option<Value<'a>> {
    let text = bytes_of(value)?;
    let (start, end) = part_range(&text, args, find_word)?;
    Some(Value::Str(text.slice(start, end)))
}

/// The range of `count` words from the `number`-th on, including the separators between them.
fn find_word(
    text: &[u8],
    number: usize,
    count: usize,
    is_separator: &dyn Fn(u8) -> bool,
) -> Option<(usize, usize)> {
    let mut word = 0;
    let mut left = count;
    let mut start = 0;
    let mut in_word = false;
    for (at, byte) in text.iter().enumerate() {
        let separates = is_separator(*byte);
        if !in_word && !separates {
            if word < number {
                word += 1;
                start = at;
            }
            in_word = true;
        } else if in_word && separates {
            if word == number {
                if left == 1 {
                    return Some((start, at));
                }
                left = left.saturating_sub(1);
            }
            in_word = false;
        }
    }
    (word == number).then_some((start, text.len()))
}

fn bytes<'a>(args: &'a [Arg], value: Value<'a>, scope: &Scope<'a>) -> Option<Value<'a>> {
    let bytes = bytes_of(value)?;
    let start = usize::try_from(operand(args.first()?, scope)?).ok()?;
    if start >= bytes.len() {
        return scope.last_chance.then_some(Value::Bin(Bytes::from("")));
    }
    let length = match args.get(1) {
        Some(arg) => usize::try_from(operand(arg, scope)?).ok()?,
        None => usize::MAX,
    };
    if args.len() > 1 && length > bytes.len() - start && !scope.last_chance {
        return None;
    }
    Some(Value::Bin(bytes.slice(start, start.saturating_add(length))))
}

/// As in HAProxy, a result that is too long is truncated here.
fn concat<'a>(args: &'a [Arg], value: Value<'a>, scope: &Scope<'a>) -> Option<Value<'a>> {
    let mut buffer = bytes_of(value)?.into_buffer();
    buffer.extend(str_at(args, 0));
    if let Some(Arg::Var(var)) = args.get(1)
        && let Some(value) = scope.var(*var)
    {
        append_text(&value, buffer.as_vec());
    }
    buffer.extend(str_at(args, 2));
    Some(Value::Str(Bytes::Owned(buffer).slice(0, SAMPLE_BYTES_MAX)))
}

/// Like `concat`, with the delimiter only between two texts that are not empty.
fn add_item<'a>(args: &'a [Arg], value: Value<'a>, scope: &Scope<'a>) -> Option<Value<'a>> {
    let mut buffer = bytes_of(value)?.into_buffer();
    let variable = match args.get(1) {
        Some(Arg::Var(var)) => scope.var(*var),
        _ => None,
    };
    let mut item = Bytes::buffer();
    if let Some(value) = variable {
        append_text(&value, item.as_vec());
    }
    item.extend(str_at(args, 2));
    if !buffer.is_empty() && !item.is_empty() {
        buffer.extend(str_at(args, 0));
    }
    buffer.extend(&item);
    Some(Value::Str(Bytes::Owned(buffer).slice(0, SAMPLE_BYTES_MAX)))
}

/// Compares like C: bytes after a NUL byte in both texts count only by their number.
fn strcmp<'a>(args: &'a [Arg], value: Value<'a>, scope: &Scope<'a>) -> Option<Value<'a>> {
    let Some(Arg::Var(var)) = args.first() else {
        return None;
    };
    let other = bytes_of(crate::cast::cast(scope.var(*var)?, Kind::Str)?)?;
    let text = bytes_of(value)?;
    let common = text.len().min(other.len());
    let differing = text[..common]
        .iter()
        .zip(&other[..common])
        .find(|(left, right)| left != right || **left == 0);
    Some(Value::Int(match differing {
        Some((left, right)) if left != right => i64::from(*left) - i64::from(*right),
        _ => text.len().cmp(&other.len()) as i64,
    }))
}

/// The colon before a port: the last one, outside of the brackets of an IPv6 address.
fn port_colon(host: &[u8]) -> Option<usize> {
    let colon = memchr::memrchr(b':', host)?;
    let outside = memchr::memrchr(b']', host).is_none_or(|bracket| bracket < colon);
    outside.then_some(colon)
}

/// A backslash must precede another character, and `\x` must precede two hexadecimal digits.
fn replacement(args: &mut [Arg]) -> Result<(), String> {
    let mut rest = str_at(args, 1);
    while let Some(at) = memchr::memchr(b'\\', rest) {
        rest = match &rest[at + 1..] {
            [b'x', high, low, after @ ..] if http::hex_byte(*high, *low).is_some() => after,
            [b'x', ..] => {
                return Err("'\\x' in the replacement needs two hexadecimal digits".into());
            }
            [_, after @ ..] => after,
            [] => return Err("the replacement ends with a backslash".into()),
        };
    }
    Ok(())
}

/// Replaces the first match, or all with the flag `g`. As in HAProxy, a result that is too long is
/// truncated here.
fn regsub<'a>(args: &'a [Arg], value: Value<'a>, _: &Scope<'a>) -> Option<Value<'a>> {
    let Some(Arg::Regex { regex, global }) = args.first() else {
        return None;
    };
    let text = bytes_of(value)?;
    if !regex.is_match(&text) {
        return Some(Value::Str(text));
    }
    let template = str_at(args, 1);
    let mut out = Bytes::buffer();
    let mut at = 0;
    while let Some(captures) = regex.captures_at(&text, at)
        && let Some(found) = captures.get(0)
    {
        out.extend(&text[at..found.start()]);
        // The template is complete: this was checked when it was parsed.
        expand(template, &captures, out.as_vec(), SAMPLE_BYTES_MAX);
        let began = at;
        at = found.end();
        if began == text.len() {
            break;
        }
        // The match was empty: the next search begins after the next byte.
        if at == began {
            out.push(text[at]);
            at += 1;
        }
        if !global || out.too_long() {
            break;
        }
    }
    out.extend(&text[at..]);
    Some(Value::Str(Bytes::Owned(out).slice(0, SAMPLE_BYTES_MAX)))
}

#[cfg(test)]
mod tests {
    use crate::testing::{convert_text, none};

    #[test]
    fn parts_of_texts() {
        for (expr, wanted) in [
            ("str(f1_f2_f3__f5),field(4,_)", ""),
            ("str(f1_f2_f3__f5),field(5,_)", "f5"),
            ("str(f1_f2_f3__f5),field(2,_,0)", "f2_f3__f5"),
            ("str(f1_f2_f3__f5),field(2,_,2)", "f2_f3"),
            ("str(f1_f2_f3__f5),field(-2,_,3)", "f2_f3_"),
            ("str(f1_f2_f3__f5),field(-3,_,0)", "f1_f2_f3"),
            ("str(w1_w2_w3__w4),word(4,_)", "w4"),
            ("str(w1_w2_w3__w4),word(3,_,0)", "w3__w4"),
            ("str(w1_w2_w3__w4),word(2,_,2)", "w2_w3"),
            ("str(w1_w2_w3__w4),word(-2,_)", "w3"),
            ("str(w1_w2_w3__w4),word(-2,_,0)", "w1_w2_w3"),
            ("str(/foo/bar/),word(1,/)", "foo"),
            ("str(hello),bytes(1,3)", "ell"),
            ("str(hello),bytes(2)", "llo"),
            ("str(hello),bytes(9)", ""),
            ("str(hello),bytes(3,9)", "lo"),
        ] {
            assert_eq!(convert_text(expr), wanted, "{expr}");
        }
        none("str(f1_f2),field(3,_)");
        none("str(f1_f2),word(3,_)");
    }

    #[test]
    fn changed_texts() {
        for (expr, wanted) in [
            ("str(aBc-9),lower", "abc-9"),
            ("str(aBc-9),upper", "ABC-9"),
            ("str(aBc),length", "3"),
            ("str(aabca),ltrim(a)", "bca"),
            ("str(aabca),rtrim(a)", "aabc"),
            ("str(aaa),rtrim(a)", ""),
            ("str(a),concat(b)", "ab"),
            ("str(a),concat(b,,c)", "abc"),
            ("str(a),add_item(;,,c)", "a;c"),
            ("str(),add_item(;,,c)", "c"),
            ("str(a),add_item(;,txn.unset)", "a"),
            ("str(www.example.com:80),host_only", "www.example.com"),
            ("str([::1]:80),port_only", "80"),
            ("str([::1]),host_only", "[::1]"),
            ("str(A:b),host_only", "a"),
            ("str(a:b),port_only", "50"),
            ("str(banana),regsub(x*,-,g)", "-b-a-n-a-n-a-"),
            (r"str(abc),regsub(b*,[\\0],g)", "[]a[b][]c[]"),
            ("str(abc),regsub($,x,g)", "abcxx"),
            ("str(aaa),regsub(^a,x,g)", "xaa"),
            ("str(),length", "0"),
            (r#"str(/foo/bar),regsub("^/([^/]*)",/\1x)"#, "/foox/bar"),
            ("str(banana),regsub(a,o)", "bonana"),
            ("str(banana),regsub(a,o,g)", "bonono"),
            ("str(bAnana),regsub(a,o,ig)", "bonono"),
            ("str(abc),regsub(z,o,g)", "abc"),
            (r"str(abc),regsub(b,\x41)", "aAc"),
        ] {
            assert_eq!(convert_text(expr), wanted, "{expr}");
        }
    }
}
