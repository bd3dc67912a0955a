//! Picks from lists in texts: a parameter of a query, the best language; reverses the labels of a
//! domain.

use super::{Convert, bytes_of, convert, written};
use crate::args::ArgKind::Str;
use crate::args::{Arg, NONE, spec, str_at};
use crate::{Kind, Scope, Value};

pub(crate) const CONVERTERS: &[Convert] = &[
    convert(
        "param",
        spec(1, &[Str, Str]),
        Kind::Str,
        Kind::Str,
        "the value of a parameter in a list",
        param,
    )
    .checked(delimiter),
    convert(
        "language",
        spec(1, &[Str, Str]),
        Kind::Str,
        Kind::Str,
        "the preferred one of some languages, of Accept-Language",
        language,
    ),
    convert(
        "reverse_dom",
        NONE,
        Kind::Str,
        Kind::Str,
        "a domain's labels from the last to the first",
        reverse_dom,
    ),
];

/// One byte: literal, or as `0xHH`.
fn delimiter(args: &mut [Arg]) -> Result<(), String> {
    let Some(Arg::Str(text)) = args.get(1) else {
        return Ok(());
    };
    let byte = match &**text {
        [byte] => Some(*byte),
        [b'0', b'x', high, low] => http::hex_byte(*high, *low),
        _ => None,
    };
    let byte =
        byte.ok_or("Delimiter must be either exactly 1 character, or 0xHH for an ASCII code .")?;
    args[1] = Arg::Str([byte].into());
    Ok(())
}

/// The first `name=value`, or `name` alone, between delimiters.
fn param<'a>(args: &'a [Arg], value: Value<'a>, _: &Scope<'a>) -> Option<Value<'a>> {
    let text = bytes_of(value)?;
    let name = str_at(args, 0);
    let delimiter = str_at(args, 1).first().copied().unwrap_or(b'&');
    let mut at = 0;
    while at < text.len() {
        let named = text.get(at..at + name.len())? == name;
        let behind = at + name.len();
        match text.get(behind) {
            next if next.is_none_or(|byte| *byte == delimiter) => {
                if named {
                    return Some(Value::text(""));
                }
                at = behind + 1;
            }
            Some(b'=') if named => {
                let start = behind + 1;
                let len = memchr::memchr(delimiter, &text[start..]);
                let end = len.map_or(text.len(), |len| start + len);
                return Some(Value::Str(text.slice(start, end)));
            }
            _ => at += memchr::memchr(delimiter, &text[at..])? + 1,
        }
    }
    None
}

/// The default quality, in thousandths (RFC 9110 §12.4.2).
const QUALITY_MAX: u32 = 1000;

/// The language of the first argument with the highest quality in the header; otherwise the second
/// argument.
fn language<'a>(args: &'a [Arg], value: Value<'a>, _: &Scope<'a>) -> Option<Value<'a>> {
    let header = bytes_of(value)?;
    let mut best: (u32, &'a [u8]) = (0, b"");
    for item in header.split(|byte| *byte == b',') {
        let item = item.trim_ascii_start();
        let is_end = |byte: &u8| *byte == b';' || is_space(*byte);
        let end = item.iter().position(is_end).unwrap_or(item.len());
        let (range, rest) = item.split_at(end);
        if range.is_empty() {
            continue;
        }
        let mut languages = str_at(args, 0).split(|byte| *byte == b';');
        let Some(known) = languages.find(|known| in_range(range, known)) else {
            continue;
        };
        let quality = quality(rest).unwrap_or(0);
        if quality > best.0 {
            best = (quality, known);
        }
        if quality == QUALITY_MAX {
            break;
        }
    }
    let found = if best.1.is_empty() {
        str_at(args, 1)
    } else {
        best.1
    };
    (!found.is_empty()).then(|| Value::text(found))
}

fn is_space(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

/// Whether a language range of the header includes this language or a variant of it.
fn in_range(range: &[u8], known: &[u8]) -> bool {
    range
        .strip_prefix(known)
        .is_some_and(|rest| matches!(rest, [] | [b'-', ..]))
}

/// The quality after a range: empty, or `;q=0.5`. An item with other text than a parameter does not
/// count.
fn quality(rest: &[u8]) -> Option<u32> {
    let mut rest = trimmed(rest);
    for byte in b";q=" {
        rest = match rest.split_first() {
            Some((first, after)) if first == byte => trimmed(after),
            Some((_, _)) if *byte == b';' => return None,
            _ => return Some(QUALITY_MAX),
        };
    }
    let digit = |at: usize| {
        rest.get(at)
            .filter(|byte| byte.is_ascii_digit())
            .map(|byte| u32::from(byte - b'0'))
    };
    let Some(whole) = digit(0) else {
        return Some(QUALITY_MAX);
    };
    let mut quality = whole * 1000;
    if rest.get(1) == Some(&b'.') {
        for (at, unit) in [(2, 100), (3, 10), (4, 1)] {
            let Some(digit) = digit(at) else { break };
            quality += digit * unit;
        }
    }
    Some(quality.min(QUALITY_MAX))
}

fn trimmed(text: &[u8]) -> &[u8] {
    let spaces = text.iter().take_while(|byte| is_space(**byte)).count();
    &text[spaces..]
}

/// A dot at the end is dropped; an empty label fails.
fn reverse_dom<'a>(_: &'a [Arg], value: Value<'a>, _: &Scope<'a>) -> Option<Value<'a>> {
    let text = bytes_of(value)?;
    let domain = text.strip_suffix(b".").unwrap_or(&text);
    written(|out| {
        for (index, label) in domain.rsplit(|byte| *byte == b'.').enumerate() {
            if label.is_empty() {
                return None;
            }
            if index > 0 {
                out.push(b'.');
            }
            out.extend_from_slice(label);
        }
        Some(())
    })
    .map(Value::Str)
}

#[cfg(test)]
mod tests {
    use crate::testing::{convert_text, none};

    #[test]
    fn parameters_of_lists() {
        for (expr, wanted) in [
            ("str(a=b&c=d&a=r),param(a)", "b"),
            ("str(a&b=c),param(a)", ""),
            ("str(a=&b&c=a),param(b)", ""),
            ("str(a=1;b=2;c=4),param(b,;)", "2"),
            ("str(a=1;b=2;c=4),param(b,0x3b)", "2"),
            ("str(xa=1&a=2),param(a)", "2"),
            ("str(a=1=2),param(a)", "1=2"),
        ] {
            assert_eq!(convert_text(expr), wanted, "{expr}");
        }
        none("str(a=1),param(b)");
        none("str(),param(b)");
        none("str(ab),param(abc)");
    }

    #[test]
    fn preferred_languages() {
        for (header, args, wanted) in [
            ("fr,en;q=0.5", "es;fr;en", "fr"),
            ("fr;q=0.3,en;q=0.5", "es;fr;en", "en"),
            ("fr ; q = 0.7 , en;q=0.5", "es;fr;en", "fr"),
            ("de, fr-CH, en", "es;fr;en", "fr"),
            ("fr-CH", "fr-CH;fr", "fr-CH"),
            ("en;q=0,fr;q=0.001", "fr;en", "fr"),
            ("en;level=1", "en", "en"),
            ("de", "en,nl", "nl"),
            ("", "en,nl", "nl"),
        ] {
            assert_eq!(
                convert_text(&format!("str('{header}'),language({args})")),
                wanted,
                "{header}"
            );
        }
        none("str(de),language(en)");
        none("str(FR),language(fr)");
        none("str('en;q=0'),language(en)");
    }

    #[test]
    fn reversed_domains() {
        for (domain, wanted) in [
            ("example.com", "com.example"),
            ("mail.example.com", "com.example.mail"),
            ("example.com.", "com.example"),
            ("localhost", "localhost"),
        ] {
            assert_eq!(
                convert_text(&format!("str({domain}),reverse_dom")),
                wanted,
                "{domain}"
            );
        }
        for domain in ["", ".", "a..b", ".a", "a.."] {
            none(&format!("str({domain}),reverse_dom"));
        }
    }
}
