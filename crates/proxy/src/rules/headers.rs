//! Actions on header fields (manual §4.4): added, set, removed, rewritten by a regular expression,
//! taken from a binary list.

use config::model::{HeaderRewrite, NameMatch, NameMethod};
use http::{FieldId, FieldName, Head, Name};
use sample::regex::expand;
use sample::{Expr, LogFormat};

use super::Cx;
use super::RuleSet;
use super::http::Flow;
use crate::stream::Stream;

/// The bytes of a field besides its name and value: `: ` and CRLF.
const FRAME_BYTES: usize = 4;

impl Stream {
    /// The message of a rule set.
    pub(super) fn head_of(&mut self, set: RuleSet) -> &mut Head {
        if set.is_response() {
            &mut self.response
        } else {
            &mut self.request
        }
    }
}

impl Cx<'_> {
    /// Whether the head of a message may grow by `more` bytes: the received part of its body takes
    /// the rest of the buffer, except for `tune.maxrewrite` bytes (manual §3.2).
    pub(super) fn has_room(&self, stream: &Stream, set: RuleSet, more: usize) -> bool {
        let tune = &self.eval().runtime_config.config.global.tune;
        let (head, body) = if set.is_response() {
            (&stream.response, &stream.down)
        } else {
            (&stream.request, &stream.up)
        };
        let waiting = if body.done { 0 } else { body.waiting.len() };
        let body_max = tune
            .bufsize_bytes
            .saturating_sub(tune.maxrewrite_bytes + stream.read.bytes);
        let body = stream.read.body.max(waiting).min(body_max);
        head.wire_bytes() + more <= tune.bufsize_bytes - body
    }

    /// `set-header`, `add-header`. False if the field does not fit.
    pub(super) fn put_header(
        &mut self,
        stream: &mut Stream,
        set: RuleSet,
        (name, value): (&FieldName, &LogFormat),
        replace: bool,
    ) -> bool {
        let mut text = std::mem::take(self.scene.eval.text);
        self.eval().render(stream, value, &mut text);
        let fits = self.put_named(stream, set, (name, &text), replace);
        text.clear();
        *self.scene.eval.text = text;
        fits
    }

    fn put_named(
        &self,
        stream: &mut Stream,
        set: RuleSet,
        (name, value): (&FieldName, &[u8]),
        replace: bool,
    ) -> bool {
        if replace {
            stream.head_of(set).remove_named(name);
        }
        let bytes = name.as_bytes();
        if !self.has_room(stream, set, bytes.len() + value.len() + FRAME_BYTES) {
            return false;
        }
        stream.head_of(set).append_named(name, value);
        if name.id() == Name::Host && !set.is_response() {
            follow_host(&mut stream.request, bytes, value);
        }
        true
    }

    fn put_field(
        &self,
        stream: &mut Stream,
        set: RuleSet,
        (name, value): (&[u8], &[u8]),
        replace: bool,
    ) -> bool {
        if replace {
            stream.head_of(set).remove_all(name);
        }
        if !self.has_room(stream, set, name.len() + value.len() + FRAME_BYTES) {
            return false;
        }
        stream.head_of(set).append(name, value);
        if !set.is_response() {
            follow_host(&mut stream.request, name, value);
        }
        true
    }

    /// `replace-header`, `replace-value`. False if a rewritten value does not fit, or the
    /// replacement is invalid.
    pub(super) fn replace_header(
        &mut self,
        stream: &mut Stream,
        set: RuleSet,
        rewrite: &HeaderRewrite,
    ) -> bool {
        let name = rewrite.name.as_bytes();
        if stream.head_of(set).find_from(name, FieldId(0)).is_none() {
            return true;
        }
        let mut template = std::mem::take(self.scene.eval.text);
        let mut out = std::mem::take(&mut self.memory.rewritten);
        self.eval()
            .render(stream, &rewrite.with.format, &mut template);
        let matcher = self.memory.take_matcher(&rewrite.with);
        let bytes_max = self.eval().runtime_config.config.global.tune.bufsize_bytes;
        let replace = |value: &[u8], out: &mut Vec<u8>| {
            let found = matcher.captures(value)?;
            Some(expand(&template, &found, out, bytes_max))
        };
        let mut from = FieldId(0);
        let mut fits = true;
        while fits && let Some((field, value)) = stream.head_of(set).find_from(name, from) {
            from = FieldId(field.0 + 1);
            out.clear();
            let rewritten = if rewrite.by_value {
                each_value(value, &mut out, replace)
            } else {
                replace(value, &mut out)
            };
            let before = value.len();
            fits = match rewritten {
                None => continue,
                Some(whole) => {
                    whole && self.has_room(stream, set, out.len().saturating_sub(before))
                }
            };
            if fits {
                stream.head_of(set).set_value(field, &out);
                if !set.is_response() {
                    follow_host(&mut stream.request, name, &out);
                }
            }
        }
        self.memory.put_matcher(&rewrite.with, matcher);
        template.clear();
        *self.scene.eval.text = template;
        out.clear();
        self.memory.rewritten = out;
        fits
    }

    /// `set-headers-bin`, `add-headers-bin`: a list of names and values, each preceded by its
    /// length, ended by an empty name and an empty value (the format of `req.hdrs_bin`).
    pub(super) fn put_binary_headers(
        &mut self,
        stream: &mut Stream,
        set: RuleSet,
        (replace, expr, prefix): (bool, &Expr, &[u8]),
    ) -> Flow {
        let mut list = std::mem::take(self.scene.eval.text);
        let found = self.eval().binary(stream, expr, &mut list);
        let flow = if found {
            self.put_listed(stream, set, (replace, prefix), &list)
        } else {
            Flow::Next
        };
        list.clear();
        *self.scene.eval.text = list;
        flow
    }

    fn put_listed(
        &self,
        stream: &mut Stream,
        set: RuleSet,
        (replace, prefix): (bool, &[u8]),
        list: &[u8],
    ) -> Flow {
        let failed = |stream: &Stream| {
            if stream.soft_rewrites {
                Flow::Next
            } else {
                Flow::Failed(500)
            }
        };
        let fields_max = self.eval().runtime_config.limits().fields_max;
        let mut rest = list;
        while !rest.is_empty() {
            let Some(name) = counted(&mut rest) else {
                return failed(stream);
            };
            let Some(value) = counted(&mut rest) else {
                return failed(stream);
            };
            if name.is_empty() {
                return if value.is_empty() {
                    Flow::Next
                } else {
                    failed(stream)
                };
            }
            if !name.starts_with(prefix) || is_framing(name) {
                continue;
            }
            // The recipient would parse an invalid field as something else (RFC 9110 §5.5, §11.1).
            let is_field =
                http::is_token(name) && !value.iter().any(|byte| matches!(byte, b'\r' | b'\n' | 0));
            let fits = is_field
                && stream.head_of(set).field_count() < fields_max
                && self.put_field(stream, set, (name, value), replace);
            if !fits {
                return failed(stream);
            }
        }
        // A list without its end is invalid, so `strict-mode off` does not apply.
        Flow::Failed(500)
    }

    /// `del-headers-bin`: a list of names, each preceded by its length, ended by an empty name.
    pub(super) fn remove_binary_headers(
        &mut self,
        stream: &mut Stream,
        set: RuleSet,
        expr: &Expr,
        method: NameMethod,
    ) -> Flow {
        let mut list = std::mem::take(self.scene.eval.text);
        let found = self.eval().binary(stream, expr, &mut list);
        let mut flow = if found { Flow::Failed(500) } else { Flow::Next };
        let mut rest = &list[..];
        while found && !rest.is_empty() {
            match counted(&mut rest) {
                None if stream.soft_rewrites => flow = Flow::Next,
                None => {}
                Some([]) => flow = Flow::Next,
                Some(name) if is_framing(name) => continue,
                Some(name) => {
                    remove_named(stream.head_of(set), method, name);
                    continue;
                }
            }
            break;
        }
        list.clear();
        *self.scene.eval.text = list;
        flow
    }
}

/// `del-header`
pub(super) fn remove(head: &mut Head, names: &NameMatch) {
    match names {
        NameMatch::Name(name) => head.remove_named(name),
        NameMatch::Text(method, text) => remove_named(head, *method, text.as_bytes()),
        NameMatch::Regex(regex) => head.remove_where(|name| regex.is_match(name)),
    }
}

fn remove_named(head: &mut Head, method: NameMethod, text: &[u8]) {
    // Names are kept in lower case; text from a list may not be.
    let same = |part: &[u8]| part.eq_ignore_ascii_case(text);
    match method {
        NameMethod::Is => {
            head.remove_all(text);
        }
        NameMethod::Begins => head.remove_where(|name| name.get(..text.len()).is_some_and(same)),
        NameMethod::Ends => head.remove_where(|name| {
            let at = name.len().checked_sub(text.len());
            at.is_some_and(|at| same(&name[at..]))
        }),
        NameMethod::Contains => {
            head.remove_where(|name| text.is_empty() || name.windows(text.len()).any(same))
        }
    }
}

/// Sets the host of an absolute target to that of `Host` (RFC 9112 §3.2.2).
fn follow_host(request: &mut Head, name: &[u8], value: &[u8]) {
    if request.authority().is_some() && Name::from_any(name) == Name::Host {
        request.set_authority(value);
    }
}

/// Copies a comma-separated line and replaces the values that `rewrite` accepts. `rewrite` returns
/// whether its output is complete. None if it accepted no value. The blanks around a replaced value
/// are removed.
fn each_value(
    line: &[u8],
    out: &mut Vec<u8>,
    rewrite: impl Fn(&[u8], &mut Vec<u8>) -> Option<bool>,
) -> Option<bool> {
    let mut rest = line;
    let mut result = None;
    loop {
        let (part, left) = rest.split_at(sample::values::value_end(rest));
        match rewrite(sample::values::trim(part), out) {
            None => out.extend_from_slice(part),
            Some(false) => return Some(false),
            Some(true) => result = Some(true),
        }
        let Some((comma, left)) = left.split_first() else {
            return result;
        };
        out.push(*comma);
        rest = left;
    }
}

/// Takes bytes that are preceded by their length from a list; none if the list is truncated.
fn counted<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(varint(rest)?).ok()?;
    let (bytes, left) = rest.split_at_checked(length)?;
    *rest = left;
    Some(bytes)
}

/// Takes a number in HAProxy's form from a list: one byte below 240, or a larger byte followed by
/// the remainder in groups of seven bits, the lowest first. None if it is truncated, or too large
/// for any length.
fn varint(rest: &mut &[u8]) -> Option<u64> {
    let (first, left) = rest.split_first()?;
    *rest = left;
    let mut number = u64::from(*first);
    if *first < 240 {
        return Some(number);
    }
    for shift in (4..39).step_by(7) {
        let (byte, left) = rest.split_first()?;
        *rest = left;
        number += u64::from(*byte) << shift;
        if *byte < 128 {
            return Some(number);
        }
    }
    None
}

/// Whether a field determines the framing or the connection; lists cannot change such fields, as in
/// HAProxy.
fn is_framing(name: &[u8]) -> bool {
    const NAMES: &[&[u8]] = &[
        b"connection",
        b"content-length",
        b"expect",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    ];
    NAMES.iter().any(|known| known.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(mut list: &[u8]) -> Vec<Option<u64>> {
        let mut found = Vec::new();
        while !list.is_empty() {
            found.push(varint(&mut list));
        }
        found
    }

    #[test]
    fn numbers_of_a_list() {
        assert_eq!(numbers(&[0, 5, 239]), [Some(0), Some(5), Some(239)]);
        assert_eq!(numbers(&[240, 0, 255, 0]), [Some(240), Some(255)]);
        assert_eq!(numbers(&[240, 1, 255, 127]), [Some(256), Some(2287)]);
        assert_eq!(numbers(&[240, 128, 0]), [Some(2288)]);
        assert_eq!(numbers(&[240]), [None]);
        assert_eq!(numbers(&[255; 6]), [None]);
    }

    #[test]
    fn values_of_a_line() {
        let rewritten = |line: &str| {
            let mut out = Vec::new();
            let result = each_value(line.as_bytes(), &mut out, |value, out| {
                (value == b"a")
                    .then(|| out.extend_from_slice(b"NEW"))
                    .map(|()| true)
            });
            result.map(|whole| (whole, String::from_utf8(out).expect("text")))
        };
        let new = |line: &str| Some((true, line.to_string()));
        assert_eq!(rewritten("a"), new("NEW"));
        assert_eq!(rewritten("b, a ,c,a"), new("b,NEW,c,NEW"));
        assert_eq!(rewritten("\"x,a,y\", a"), new("\"x,a,y\",NEW"));
        assert_eq!(rewritten("b,,c"), None);
        assert_eq!(rewritten(""), None);
    }
}
