//! Evaluates replies against the expectations of rules (manual §4.2 http-check expect, tcp-check
//! expect).

use config::model::{
    CheckExpect, CheckKind, CheckRule, CheckStatus, CheckText, CustomExpect, ExpectHeader,
    Expectation, HeaderMatch, HeaderPattern,
};
use http::Head;
use memchr::memmem;
use syntax::hex;
use syntax::octets::readable;

use crate::custom::{self, Parsed};
use crate::http::Exchange;
use crate::outcome::Verdict;
use crate::run::{Run, Stop};
use crate::text;

/// The result of a rule that does not end the check.
pub(crate) enum Judged {
    /// The rule matches; the next rule decides.
    Good,
    /// More input is needed.
    Wait,
}

/// The result of matching.
enum Seen {
    Match(bool),
    Wait,
    /// It cannot be decided, for this reason.
    Failed(&'static str),
}

/// Evaluates the input received so far.
///
/// # Errors
/// The check has failed or ended in another way.
pub(crate) fn judge(
    run: &mut Run<'_>,
    rule: &CheckRule,
    expect: &CheckExpect,
) -> Result<Judged, Stop> {
    match run.script.kind {
        CheckKind::Http => judge_http(run, rule, expect),
        _ => judge_bytes(run, rule, expect),
    }
}

// ---- bytes

fn judge_bytes(run: &mut Run<'_>, rule: &CheckRule, expect: &CheckExpect) -> Result<Judged, Stop> {
    let has_min = expect
        .min_recv
        .is_some_and(|min| run.input.len() >= min as usize);
    if !run.at_end && expect.min_recv.is_some() && !has_min {
        return Ok(Judged::Wait);
    }
    let seen = match &expect.what {
        Expectation::Custom(what) => return custom(run, rule, expect, *what),
        Expectation::Bytes { bytes, .. } if run.input.len() < bytes.len() && !run.at_end => {
            Seen::Wait
        }
        Expectation::Bytes { bytes, .. } => Seen::Match(find(&run.input, bytes)),
        Expectation::Regex {
            regex,
            is_binary: false,
        } => Seen::Match(regex.is_match(&run.input)),
        Expectation::Regex { regex, .. } => {
            let digits = hex::text(&run.input).to_ascii_uppercase();
            Seen::Match(regex.is_match(digits.as_bytes()))
        }
        Expectation::Format { format, is_binary } => match wanted(run, format, *is_binary) {
            Err(why) => Seen::Failed(why),
            Ok(bytes) if run.input.len() < bytes.len() && !run.at_end => Seen::Wait,
            Ok(bytes) => Seen::Match(find(&run.input, &bytes)),
        },
        Expectation::Status(_) | Expectation::StatusRegex(_) | Expectation::Header(_) => {
            Seen::Match(false)
        }
    };
    let matched = match seen {
        Seen::Wait => return Ok(Judged::Wait),
        Seen::Failed(why) => {
            return Err(fail(run, rule, expect, CheckStatus::Layer7Invalid, why, false).into());
        }
        Seen::Match(matched) => matched,
    };
    if !matched && !run.at_end && expect.min_recv.is_none() {
        return Ok(Judged::Wait);
    }
    if matched != expect.inverse {
        return Ok(Judged::Good);
    }
    let status = expect.error_status.unwrap_or(CheckStatus::Layer7Invalid);
    Err(fail(run, rule, expect, status, "", matched).into())
}

fn find(text: &[u8], what: &[u8]) -> bool {
    memmem::find(text, what).is_some()
}

/// The expected text, made from a format.
fn wanted(
    run: &Run<'_>,
    format: &sample::LogFormat,
    is_binary: bool,
) -> Result<Vec<u8>, &'static str> {
    let text = run.render(format);
    match (text.is_empty(), is_binary) {
        (true, _) => Err("log-format string evaluated to an empty string"),
        (false, false) => Ok(text),
        (false, true) => hex::decode(&text)
            .ok_or("Failed to parse hexastring resulting of eval of a log-format string"),
    }
}

/// The result of a protocol's parser.
fn custom(
    run: &mut Run<'_>,
    rule: &CheckRule,
    expect: &CheckExpect,
    what: CustomExpect,
) -> Result<Judged, Stop> {
    if run.input.is_empty() {
        return if run.at_end {
            let status = CheckStatus::Layer7Invalid;
            Err(fail(run, rule, expect, status, "", false).into())
        } else {
            Ok(Judged::Wait)
        };
    }
    let reply = custom::reply(what);
    let parsed = match &reply {
        Some(reply) => (reply.parse)(&run.input),
        None => match crate::agent::line(&run.input, run.at_end) {
            Some(line) => return Err(Stop::Said(line)),
            None => Parsed::Wait,
        },
    };
    match parsed {
        Parsed::Good => Ok(Judged::Good),
        Parsed::Wait if !run.at_end => Ok(Judged::Wait),
        Parsed::Wait => {
            let status = CheckStatus::Layer7Invalid;
            let why = reply.map_or("", |reply| reply.cut_off);
            Err(fail(run, rule, expect, status, why, false).into())
        }
        Parsed::Failed { status, code, text } => {
            run.code = code;
            let verdict = fail(run, rule, expect, status, &text, false);
            Err(verdict.into())
        }
    }
}

/// The message of a built-in script for a good reply.
pub(crate) fn own_success(run: &Run<'_>, expect: &CheckExpect) -> String {
    match &expect.what {
        Expectation::Custom(what) => match custom::reply(*what) {
            Some(reply) => (reply.success)(&run.input),
            None => String::new(),
        },
        Expectation::Bytes { .. }
        | Expectation::Regex { .. }
        | Expectation::Format { .. }
        | Expectation::Status(_)
        | Expectation::StatusRegex(_)
        | Expectation::Header(_) => String::new(),
    }
}

// ---- HTTP

fn judge_http(run: &mut Run<'_>, rule: &CheckRule, expect: &CheckExpect) -> Result<Judged, Stop> {
    use CheckStatus::{Layer7Invalid, Layer7WrongStatus};
    let Some(exchange) = &run.exchange else {
        return Err(Stop::Expired);
    };
    let is_last = run.at_end || exchange.is_whole();
    let Some(head) = exchange.head() else {
        return if exchange.is_broken() || is_last {
            Err(fail(run, rule, expect, Layer7Invalid, "", false).into())
        } else {
            Ok(Judged::Wait)
        };
    };
    run.code = i64::from(head.status());
    if run.is_retired() {
        return Ok(Judged::Good);
    }
    let Some(exchange) = &run.exchange else {
        return Err(Stop::Expired);
    };
    let Some(head) = exchange.head() else {
        return Ok(Judged::Wait);
    };
    let or = |status| expect.error_status.unwrap_or(status);
    let reason = || match expect.on_error {
        None => reason_of(head),
        Some(_) => String::new(),
    };
    let (matched, status, why) = match &expect.what {
        Expectation::Status(ranges) => {
            let status = u32::from(head.status());
            let is_in = |range: &(u32, u32)| (range.0..=range.1).contains(&status);
            (ranges.iter().any(is_in), or(Layer7WrongStatus), reason())
        }
        Expectation::StatusRegex(regex) => {
            let matched = regex.is_match(head.status().to_string().as_bytes());
            (matched, or(Layer7WrongStatus), reason())
        }
        Expectation::Header(header) => match has_header(run, head, header) {
            Ok(matched) => (matched, or(Layer7WrongStatus), reason()),
            Err(why) => {
                return Err(fail(run, rule, expect, Layer7Invalid, why, false).into());
            }
        },
        Expectation::Bytes { .. }
        | Expectation::Regex { .. }
        | Expectation::Format { .. }
        | Expectation::Custom(_) => return judge_body(run, rule, expect, is_last),
    };
    if matched == expect.inverse {
        Err(fail(run, rule, expect, status, &why, false).into())
    } else {
        Ok(Judged::Good)
    }
}

/// The reason phrase of a status line, or the standard one for HTTP/2.
fn reason_of(head: &Head) -> String {
    readable(head.reason()).to_string()
}

fn judge_body(
    run: &mut Run<'_>,
    rule: &CheckRule,
    expect: &CheckExpect,
    is_last: bool,
) -> Result<Judged, Stop> {
    use CheckStatus::Layer7Invalid;
    let status = expect.error_status.unwrap_or(Layer7Invalid);
    let or_own = |text: &'static str| match expect.on_error {
        None => text,
        Some(_) => "",
    };
    let body = run.exchange.as_ref().map_or(&b""[..], Exchange::body);
    if body.is_empty() {
        let why = or_own("HTTP content check could not find a response body");
        return if is_last {
            Err(fail(run, rule, expect, status, why, false).into())
        } else {
            Ok(Judged::Wait)
        };
    }
    let too_few = |length: usize| !is_last && body.len() < length;
    if expect
        .min_recv
        .is_some_and(|min| min > 0 && too_few(min as usize))
    {
        return Ok(Judged::Wait);
    }
    let matched = match &expect.what {
        Expectation::Bytes { bytes, .. } if too_few(bytes.len()) => return Ok(Judged::Wait),
        Expectation::Bytes { bytes, .. } => find(body, bytes),
        Expectation::Regex { regex, .. } => regex.is_match(body),
        Expectation::Format { format, is_binary } => match wanted(run, format, *is_binary) {
            Ok(bytes) if too_few(bytes.len()) => return Ok(Judged::Wait),
            Ok(bytes) => find(body, &bytes),
            Err(why) => {
                return Err(fail(run, rule, expect, Layer7Invalid, why, false).into());
            }
        },
        Expectation::Status(_)
        | Expectation::StatusRegex(_)
        | Expectation::Header(_)
        | Expectation::Custom(_) => false,
    };
    if !matched && !is_last && expect.min_recv.is_none() {
        return Ok(Judged::Wait);
    }
    if matched != expect.inverse {
        return Ok(Judged::Good);
    }
    let why = if expect.inverse {
        or_own("HTTP check matched unwanted content")
    } else {
        or_own("HTTP content check did not match")
    };
    Err(fail(run, rule, expect, status, why, false).into())
}

/// Whether a field is present, with the requested value if there is one.
fn has_header(run: &Run<'_>, head: &Head, header: &ExpectHeader) -> Result<bool, &'static str> {
    let name = pattern(run, &header.name)?;
    let value = header.value.as_ref().map(|value| pattern(run, value));
    let value = value.transpose()?;
    let splits = header.value.is_some() && !header.is_full;
    for (_, _, field, content) in head.fields() {
        let is_named = matches(&header.name, &name.to_ascii_lowercase(), field);
        if !is_named {
            continue;
        }
        let (Some(pattern), Some(wanted)) = (&header.value, &value) else {
            return Ok(true);
        };
        let mut values = content.split(|byte| splits && *byte == b',');
        if values.any(|value| matches(pattern, wanted, value.trim_ascii())) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn pattern(run: &Run<'_>, pattern: &HeaderPattern) -> Result<Vec<u8>, &'static str> {
    match &pattern.text {
        CheckText::Fixed(text) => Ok(text.to_vec()),
        CheckText::Format(format) => wanted(run, format, false),
    }
}

fn matches(pattern: &HeaderPattern, wanted: &[u8], text: &[u8]) -> bool {
    match &pattern.method {
        HeaderMatch::Whole => text == wanted,
        HeaderMatch::Begin => text.starts_with(wanted),
        HeaderMatch::End => text.ends_with(wanted),
        HeaderMatch::Inside => find(text, wanted),
        HeaderMatch::Regex(regex) => regex.is_match(text),
    }
}

// ---- failures

/// Fails: a rule does not match the reply. `why`: what is already known about the cause.
fn fail(
    run: &mut Run<'_>,
    rule: &CheckRule,
    expect: &CheckExpect,
    status: CheckStatus,
    why: &str,
    matched: bool,
) -> Verdict {
    let mut text = match (why, &expect.on_error) {
        ("", Some(format)) => String::from_utf8_lossy(&run.render(format)).into_owned(),
        ("", None) => generic(run, rule, expect, matched),
        (why, _) => why.to_owned(),
    };
    if let Some(comment) = &rule.comment {
        text.push_str(" comment: ");
        text.push_str(&comment.to_string());
    }
    if let Some(expr) = &expect.status_code
        && let Some(code) = run.code_of(expr)
    {
        run.code = code;
    }
    Verdict::new(status, text)
}

fn generic(run: &Run<'_>, rule: &CheckRule, expect: &CheckExpect, matched: bool) -> String {
    let step = text::step(rule);
    let is_empty = match &run.exchange {
        Some(exchange) => exchange.head().is_none(),
        None => run.input.is_empty(),
    };
    if is_empty {
        return format!("TCPCHK got an empty response at step {step}");
    }
    if matches!(run.script.kind, CheckKind::Protocol | CheckKind::Agent) {
        return String::new();
    }
    let what = if matched {
        "TCPCHK matched unwanted content"
    } else {
        "TCPCHK did not match content"
    };
    let which = match &expect.what {
        Expectation::Status(_) => "(status codes)".to_owned(),
        Expectation::Bytes {
            bytes,
            is_binary: false,
        } => format!(" '{bytes}'"),
        Expectation::Bytes { .. } => " (binary)".to_owned(),
        Expectation::Regex {
            is_binary: false, ..
        }
        | Expectation::StatusRegex(_) => " (regex)".to_owned(),
        Expectation::Regex { .. } => " (binary regex)".to_owned(),
        Expectation::Format {
            is_binary: false, ..
        } => " (log-format string)".to_owned(),
        Expectation::Format { .. } => " (log-format binary)".to_owned(),
        Expectation::Custom(_) => " (custom function)".to_owned(),
        Expectation::Header(_) => " (header pattern)".to_owned(),
    };
    format!("{what}{which} at step {step}")
}
