//! Actions on a request's start line (manual §4.4): set the method, path, query or URI; rewrite by
//! a regular expression; `normalize-uri`.

use config::model::{Rewrite, TargetPart};
use http::normalize::Normalizer;
use http::{Head, Method, Name};
use sample::LogFormat;
use sample::regex::expand;

use super::Cx;
use super::RuleSet;
use super::http::Flow;
use crate::stream::Stream;

impl Cx<'_> {
    /// `set-method`. Like the other actions here it returns false if the value does not fit or is
    /// invalid.
    pub(super) fn set_method(&mut self, stream: &mut Stream, format: &LogFormat) -> bool {
        let mut text = std::mem::take(self.scene.eval.text);
        self.eval().render(stream, format, &mut text);
        let old = stream.request.method_bytes().len();
        let fits = self.has_room(stream, RuleSet::Request, text.len().saturating_sub(old))
            && !makes_tunnel(&stream.request, &text)
            && stream.request.set_method(&text);
        text.clear();
        *self.scene.eval.text = text;
        fits
    }

    /// `set-uri`, `set-path`, `set-pathq`. For a whole target with an authority, `Host` is updated.
    pub(super) fn set_target(
        &mut self,
        stream: &mut Stream,
        part: TargetPart,
        format: &LogFormat,
    ) -> bool {
        let mut text = std::mem::take(self.scene.eval.text);
        self.eval().render(stream, format, &mut text);
        let fits = self.put_target(stream, part, &text);
        text.clear();
        *self.scene.eval.text = text;
        fits
    }

    /// `set-query`: replaces the part after the question mark, which is kept once it is there.
    pub(super) fn set_query(&mut self, stream: &mut Stream, format: &LogFormat) -> bool {
        let mut text = std::mem::take(self.scene.eval.text);
        let target = stream.request.target();
        let mark = target.iter().position(|byte| *byte == b'?');
        text.extend_from_slice(&target[..mark.unwrap_or(target.len())]);
        let before = text.len();
        text.push(b'?');
        self.eval().render(stream, format, &mut text);
        if mark.is_none() && text.len() == before + 1 {
            text.clear();
            *self.scene.eval.text = text;
            return true;
        }
        let fits = self.put_target(stream, TargetPart::Whole, &text);
        text.clear();
        *self.scene.eval.text = text;
        fits
    }

    /// `replace-path`, `replace-pathq`, `replace-uri`.
    pub(super) fn replace_target(
        &mut self,
        stream: &mut Stream,
        part: TargetPart,
        rewrite: &Rewrite,
    ) -> bool {
        let matcher = self.memory.take_matcher(rewrite);
        let subject = subject(&stream.request, part);
        let mut fits = true;
        if !subject.is_empty()
            && let Some(found) = matcher.captures(subject)
        {
            let mut template = std::mem::take(self.scene.eval.text);
            let mut out = std::mem::take(&mut self.memory.rewritten);
            self.eval().render(stream, &rewrite.format, &mut template);
            let bytes_max = self.eval().runtime_config.config.global.tune.bufsize_bytes;
            fits = expand(&template, &found, &mut out, bytes_max)
                && self.put_target(stream, part, &out);
            template.clear();
            *self.scene.eval.text = template;
            out.clear();
            self.memory.rewritten = out;
        }
        self.memory.put_matcher(rewrite, matcher);
        fits
    }

    /// `normalize-uri`
    pub(super) fn normalize(&mut self, stream: &mut Stream, step: Normalizer) -> Flow {
        if stream.request.path_and_query().is_empty() {
            return Flow::Next;
        }
        let mut normalized = std::mem::take(&mut self.memory.normalized);
        let flow = match step.apply(stream.request.path_and_query(), &mut normalized) {
            Err(_) => Flow::Failed(400),
            Ok(()) => {
                let part = TargetPart::PathAndQuery;
                if self.put_target(stream, part, &normalized.text) || stream.soft_rewrites {
                    Flow::Next
                } else {
                    Flow::Failed(500)
                }
            }
        };
        self.memory.normalized = normalized;
        flow
    }

    /// Replaces a part of the target. A target without a path (`*`) is replaced as a whole.
    fn put_target(&mut self, stream: &mut Stream, part: TargetPart, text: &[u8]) -> bool {
        let request = &stream.request;
        let target = request.target();
        let path_and_query = match request.path_and_query() {
            [] => target,
            path => path,
        };
        let before = match part {
            TargetPart::Whole => &[][..],
            _ => &target[..target.len() - path_and_query.len()],
        };
        let after = match part {
            TargetPart::Path => {
                let query = path_and_query.iter().position(|byte| *byte == b'?');
                &path_and_query[query.unwrap_or(path_and_query.len())..]
            }
            _ => &[][..],
        };
        let len = before.len() + text.len() + after.len();
        if !self.has_room(stream, RuleSet::Request, len.saturating_sub(target.len())) {
            return false;
        }
        let mut whole = std::mem::take(&mut self.memory.target);
        for piece in [before, text, after] {
            whole.extend_from_slice(piece);
        }
        if *stream.request.target() != *whole {
            stream.request.set_target(&whole);
            if part == TargetPart::Whole {
                follow_authority(&mut stream.request, &mut whole);
            }
        }
        whole.clear();
        self.memory.target = whole;
        true
    }
}

/// Whether the two sides would disagree about a tunnel and about bodies after this change of
/// method.
fn makes_tunnel(request: &Head, method: &[u8]) -> bool {
    (request.method() == Method::Connect) != (Method::from_bytes(method) == Method::Connect)
}

/// The part of the target that a rewrite reads; empty where it is missing.
fn subject(request: &Head, part: TargetPart) -> &[u8] {
    match part {
        TargetPart::Path => request.path(),
        TargetPart::PathAndQuery => request.path_and_query(),
        TargetPart::Whole => request.target(),
    }
}

/// Sets `Host` to the authority of the target (RFC 9112 §3.2.2). `text` is a scratch buffer, left
/// in any state.
fn follow_authority(request: &mut Head, text: &mut Vec<u8>) {
    let Some(authority) = request.authority() else {
        return;
    };
    text.clear();
    text.extend_from_slice(authority);
    let host = request.get_all(Name::Host).next();
    match host.map(|(field, value)| (field, value == text.as_slice())) {
        Some((_, true)) | None => {}
        Some((field, false)) => request.set_value(field, text),
    }
}
