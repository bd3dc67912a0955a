//! `expect`: the requirements for a response (manual §4.2 `http-check expect`, `tcp-check expect`).

use super::super::Shared;
use super::super::line::{Cursor, Parse};
use super::Rules;
use super::rules::{self, Rule};
use crate::model::{
    CheckExpect, CheckStatus, CheckText, CustomExpect, ExpectHeader, Expectation, HeaderMatch,
    HeaderPattern,
};
use sample::Place;
use sample::regex::Regex;
use syntax::hex;
use syntax::octets::Octets;

/// Parses the words after `expect`. Returns the rule and its comment.
pub fn parse(
    rule: &Rule,
    shared: &mut Shared<'_>,
    cursor: &mut Cursor<'_>,
) -> Parse<(CheckExpect, Option<Octets>)> {
    let mut options = rules::expect(Expectation::Custom(CustomExpect::Anything));
    let mut what = None;
    let mut comment = None;
    if cursor.peek().is_empty() {
        return Err(rule.fault(cursor, "expects at least a matching pattern as arguments"));
    }
    while !cursor.peek().is_empty() {
        let mut word = cursor.take();
        let mut negated = false;
        while let Some(rest) = word.strip_prefix('!') {
            negated = true;
            options.inverse = !options.inverse;
            word = rest;
            if word.is_empty() {
                word = cursor.take();
            }
        }
        if let Some(found) = pattern(rule, shared, cursor, word)? {
            if what.replace(found).is_some() {
                return Err(rule.fault(cursor, "only one pattern expected"));
            }
            continue;
        }
        if negated {
            return Err(rule.fault(cursor, &format!("[!] not supported with '{word}'")));
        }
        option(rule, shared, cursor, word, &mut options, &mut comment)?;
    }
    match what {
        Some(what) => Ok((CheckExpect { what, ..options }, comment)),
        None => Err(rule.fault(cursor, "pattern expected")),
    }
}

/// The pattern that begins with `word`, which was taken; None if `word` is an option.
fn pattern(
    rule: &Rule,
    shared: &mut Shared<'_>,
    cursor: &mut Cursor<'_>,
    word: &str,
) -> Parse<Option<Expectation>> {
    let is_http = rule.rules == Rules::Http;
    let of_http = matches!(word, "status" | "rstatus" | "hdr" | "fhdr");
    let of_tcp = matches!(word, "binary" | "rbinary" | "binary-lf");
    if (of_http && !is_http) || (of_tcp && is_http) {
        return Err(rule.fault(cursor, &unknown(rule.rules, word)));
    }
    let is_binary = of_tcp;
    let take = |cursor: &mut Cursor<'_>| {
        if cursor.peek().is_empty() {
            let message = format!("'{word}' expects a <pattern> as argument");
            return Err(rule.fault(cursor, &message));
        }
        cursor.take();
        Ok(cursor.line.octets(cursor.at - 1))
    };
    Ok(Some(match word {
        "string" => Expectation::Bytes {
            bytes: take(cursor)?,
            is_binary,
        },
        "binary" => {
            let text = take(cursor)?;
            let Some(bytes) = hex::decode(&text) else {
                return Err(rule.fault(
                    cursor,
                    "invalid binary string (an even number of hex digits is expected)",
                ));
            };
            Expectation::Bytes {
                bytes: bytes.into(),
                is_binary,
            }
        }
        "rstring" | "rbinary" => {
            let pattern = take(cursor)?;
            Expectation::Regex {
                regex: regex(rule, cursor, &pattern, false)?,
                is_binary,
            }
        }
        "string-lf" | "binary-lf" => {
            take(cursor)?;
            Expectation::Format {
                format: shared.plain_format(&cursor.line, cursor.at - 1, Place::CHECK)?,
                is_binary,
            }
        }
        "status" => {
            take(cursor)?;
            Expectation::Status(statuses(rule, cursor)?)
        }
        "rstatus" => {
            let pattern = take(cursor)?;
            Expectation::StatusRegex(regex(rule, cursor, &pattern, false)?)
        }
        "hdr" | "fhdr" => {
            Expectation::Header(Box::new(header(rule, shared, cursor, word == "fhdr")?))
        }
        "custom" => Expectation::Custom(CustomExpect::Anything),
        _ => return Ok(None),
    }))
}

/// An option beside the pattern, after its name was taken.
fn option(
    rule: &Rule,
    shared: &mut Shared<'_>,
    cursor: &mut Cursor<'_>,
    word: &str,
    expect: &mut CheckExpect,
    comment: &mut Option<Octets>,
) -> Parse {
    use CheckStatus as S;
    match word {
        "min-recv" => {
            let text = rule.value(cursor, "a integer as argument")?;
            expect.min_recv = match text.parse::<i64>() {
                Ok(-1) => None,
                Ok(bytes @ 0..=0x7fff_ffff) => Some(bytes as u32),
                _ => {
                    return Err(rule.fault(
                        cursor,
                        "'min-recv' expects -1 or an integer from 0 to INT_MAX",
                    ));
                }
            };
        }
        "comment" => *comment = Some(rule.octets(cursor)?),
        "on-success" => expect.on_success = Some(rule.format(shared, cursor)?),
        "on-error" => expect.on_error = Some(rule.format(shared, cursor)?),
        "ok-status" => {
            let known = [
                ("L7OK", S::Layer7Ok),
                ("L7OKC", S::Layer7OkConditionally),
                ("L6OK", S::Layer6Ok),
                ("L4OK", S::Layer4Ok),
            ];
            let names = "'L4OK', 'L6OK', 'L7OK' or 'L7OKC'";
            expect.ok_status = Some(status(rule, cursor, &known, names)?);
        }
        "error-status" => {
            let known = [
                ("L7RSP", S::Layer7Invalid),
                ("L7STS", S::Layer7WrongStatus),
                ("L7OKC", S::Layer7OkConditionally),
                ("L6RSP", S::Layer6Invalid),
                ("L4CON", S::Layer4Error),
            ];
            let names = "'L4CON', 'L6RSP', 'L7RSP' or 'L7STS'";
            expect.error_status = Some(status(rule, cursor, &known, names)?);
        }
        "tout-status" => {
            let known = [
                ("L7TOUT", S::Layer7Timeout),
                ("L6TOUT", S::Layer6Timeout),
                ("L4TOUT", S::Layer4Timeout),
            ];
            let names = "'L4TOUT', 'L6TOUT' or 'L7TOUT'";
            expect.timeout_status = Some(status(rule, cursor, &known, names)?);
        }
        "status-code" => {
            rule.value(cursor, "an expression as argument")?;
            let words = [cursor.line.bytes(cursor.at - 1)];
            let result = shared.compiler.expr(&words, Place::CHECK);
            shared.warnings(&cursor.line, cursor.at - 1);
            let (expr, _) = result.map_err(|error| {
                let context = "error detected while parsing status-code expression";
                cursor.line.expr_fault(cursor.at - 1, &error, context)
            })?;
            expect.status_code = Some(expr);
        }
        _ => return Err(rule.fault(cursor, &unknown(rule.rules, word))),
    }
    Ok(())
}

fn unknown(rules: Rules, word: &str) -> String {
    match rules {
        Rules::Http => format!(
            "'only supports min-recv, [!]string', '[!]rstring', '[!]string-lf', '[!]status', '[!]rstatus', [!]hdr, [!]fhdr or comment but got '{word}' as argument."
        ),
        Rules::Tcp => format!(
            "'only supports min-recv, '[!]binary', '[!]string', '[!]rstring', '[!]string-lf''[!]rbinary', '[!]binary-lf' or comment but got '{word}' as argument."
        ),
    }
}

fn status(
    rule: &Rule,
    cursor: &mut Cursor<'_>,
    known: &[(&str, CheckStatus)],
    names: &str,
) -> Parse<CheckStatus> {
    let option = cursor.last();
    let word = rule.value(cursor, "a string as argument")?;
    let found = known
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(word));
    found.map(|(_, status)| *status).ok_or_else(|| {
        rule.fault(
            cursor,
            &format!("'{option}' only supports {names} status (got '{word}')."),
        )
    })
}

/// `200-399,404`
fn statuses(rule: &Rule, cursor: &Cursor<'_>) -> Parse<Vec<(u32, u32)>> {
    let text = cursor.last();
    let mut ranges = Vec::new();
    for part in text.split(',') {
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| {
            text.parse::<u32>().map_err(|_| {
                let bad = text.chars().find(|each| !each.is_ascii_digit());
                let message = match bad {
                    Some(bad) => format!("invalid character '{bad}' in the list of status codes"),
                    None => format!("invalid list of status codes '{text}'"),
                };
                rule.fault(cursor, &message)
            })
        };
        let (low, high) = (number(low)?, number(high)?);
        if low > high {
            let message = format!("invalid range of status codes '{text}'");
            return Err(rule.fault(cursor, &message));
        }
        ranges.push((low, high));
    }
    Ok(ranges)
}

fn regex(rule: &Rule, cursor: &Cursor<'_>, pattern: &[u8], ignore_case: bool) -> Parse<Regex> {
    sample::regex::compile(pattern, ignore_case)
        .map_err(|message| rule.fault(cursor, &format!("bad regex: {message}")))
}

/// `hdr name[-lf] [-m <method>] <pattern> [value[-lf] [-m <method>] <pattern>]`
fn header(
    rule: &Rule,
    shared: &mut Shared<'_>,
    cursor: &mut Cursor<'_>,
    is_full: bool,
) -> Parse<ExpectHeader> {
    let keyword = if is_full { "fhdr" } else { "hdr" };
    let is_name = matches!(cursor.peek(), "name" | "name-lf");
    if !is_name || cursor.line.arg(cursor.at + 1).is_empty() {
        let message = format!(
            "'{keyword}' expects at the name keyword as first argument followed by a pattern"
        );
        return Err(rule.fault(cursor, &message));
    }
    let is_format = cursor.take() == "name-lf";
    let part = HeaderPart::Name;
    let name = header_pattern(rule, shared, cursor, keyword, part, is_format)?;
    let value = match cursor.peek() {
        "value" | "value-lf" => {
            let is_format = cursor.take() == "value-lf";
            let part = HeaderPart::Value;
            Some(header_pattern(
                rule, shared, cursor, keyword, part, is_format,
            )?)
        }
        _ => None,
    };
    Ok(ExpectHeader {
        is_full,
        name,
        value,
    })
}

/// What of a header field a pattern is compared with.
#[derive(Clone, Copy, PartialEq)]
enum HeaderPart {
    Name,
    Value,
}

/// A pattern after `name` or `value`; `is_format`: the keyword was `name-lf` or `value-lf`.
fn header_pattern(
    rule: &Rule,
    shared: &mut Shared<'_>,
    cursor: &mut Cursor<'_>,
    keyword: &str,
    part: HeaderPart,
    is_format: bool,
) -> Parse<HeaderPattern> {
    let mut word = "str";
    if cursor.peek() == "-m" {
        cursor.take();
        word = cursor.take();
        if word.is_empty() {
            let message = format!(
                "'{keyword}' : '-m' expects at a matching pattern ('str', 'beg', 'end', 'sub' or 'reg')"
            );
            return Err(rule.fault(cursor, &message));
        }
        if !matches!(word, "str" | "beg" | "end" | "sub" | "reg") {
            let message = format!(
                "'{keyword}' : '-m' only supports 'str', 'beg', 'end', 'sub' or 'reg' (got '{word}')"
            );
            return Err(rule.fault(cursor, &message));
        }
    }
    if word == "reg" && is_format {
        let message =
            format!("'{keyword}': log-format string is not supported with a regex matching method");
        return Err(rule.fault(cursor, &message));
    }
    if cursor.take().is_empty() {
        let message = format!("'{keyword}' expect a pattern with the value keyword");
        return Err(rule.fault(cursor, &message));
    }
    let octets = cursor.line.octets(cursor.at - 1);
    let method = match word {
        "beg" => HeaderMatch::Begin,
        "end" => HeaderMatch::End,
        "sub" => HeaderMatch::Inside,
        // Header names are compared without case.
        "reg" => {
            let ignores_case = part == HeaderPart::Name;
            HeaderMatch::Regex(regex(rule, cursor, &octets, ignores_case)?)
        }
        _ => HeaderMatch::Whole,
    };
    let text = if is_format {
        CheckText::Format(shared.plain_format(&cursor.line, cursor.at - 1, Place::CHECK)?)
    } else {
        CheckText::Fixed(octets)
    };
    Ok(HeaderPattern { method, text })
}
