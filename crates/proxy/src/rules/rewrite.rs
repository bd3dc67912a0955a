//! Texts that are replaced where a regular expression matches: the matching, and the replacement with its references.

use config::model::Rewrite;
use sample::regex::{Groups, Regex};

use crate::engine::Core;

/// What one worker matches one rewrite with. The expression is the worker's own, since all that use one share its memory.
#[derive(Debug)]
pub(super) struct Matcher {
    regex: Regex,
    found: Groups,
}

impl Matcher {
    /// Whether the text matches; remembers where.
    pub fn find(&mut self, text: &[u8]) -> bool {
        let found = self.regex.groups(text);
        self.found = found.unwrap_or_default();
        found.is_some()
    }
}

impl Core {
    /// The matcher of a rewrite, made when it is first used; [`Core::put_matcher`] takes it back.
    pub(super) fn take_matcher(&mut self, rewrite: &Rewrite) -> Matcher {
        let matchers = &mut self.rules.matchers;
        if matchers.len() <= rewrite.id {
            matchers.resize_with(rewrite.id + 1, || None);
        }
        matchers[rewrite.id].take().unwrap_or_else(|| Matcher {
            regex: rewrite.regex.clone(),
            found: Groups::default(),
        })
    }

    pub(super) fn put_matcher(&mut self, rewrite: &Rewrite, matcher: Matcher) {
        self.rules.matchers[rewrite.id] = Some(matcher);
    }
}

/// Appends a replacement: `\0` to `\9` stand for what was matched, `\xHH` for a byte, `\` before anything else for that.
/// False where it ends in the middle of such a sequence, or grows longer than `bytes_max`.
pub(super) fn expand(
    template: &[u8],
    subject: &[u8],
    matcher: &Matcher,
    out: &mut Vec<u8>,
    bytes_max: usize,
) -> bool {
    let mut rest = template;
    while let Some(at) = rest.iter().position(|byte| *byte == b'\\') {
        out.extend_from_slice(&rest[..at]);
        rest = match rest[at + 1..] {
            [] => return false,
            [digit @ b'0'..=b'9', ref left @ ..] => {
                if let Some((start, end)) = matcher.found.get(usize::from(digit - b'0')) {
                    out.extend_from_slice(&subject[start..end]);
                }
                left
            }
            [b'x', ref left @ ..] => {
                let Some((byte, left)) = from_hex(left) else {
                    return false;
                };
                out.push(byte);
                left
            }
            [byte, ref left @ ..] => {
                out.push(byte);
                left
            }
        };
        if out.len() > bytes_max {
            return false;
        }
    }
    out.extend_from_slice(rest);
    out.len() <= bytes_max
}

/// The byte that two digits stand for, and what follows them.
fn from_hex(text: &[u8]) -> Option<(u8, &[u8])> {
    let (digits, left) = text.split_at_checked(2)?;
    Some((http::hex_byte(digits[0], digits[1])?, left))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaced(pattern: &str, template: &str, subject: &str) -> Option<String> {
        let regex = sample::regex::compile(pattern, false).expect("a pattern");
        let mut matcher = Matcher {
            regex,
            found: Groups::default(),
        };
        assert!(matcher.find(subject.as_bytes()), "{pattern} {subject}");
        let mut out = Vec::new();
        expand(
            template.as_bytes(),
            subject.as_bytes(),
            &matcher,
            &mut out,
            20,
        )
        .then(|| String::from_utf8(out).expect("text"))
    }

    #[test]
    fn references_and_escapes() {
        let cases = [
            ("(a)(b)", r"\2\1\0", "xab", Some("baab")),
            ("(a)|(b)", r"[\1\2]", "b", Some("[b]")),
            ("a", r"\7", "a", Some("")),
            ("a", r"\x41\\\.", "a", Some(r"A\.")),
            ("a", r"x\", "a", None),
            ("a", r"\x4", "a", None),
            ("a", r"\xzz", "a", None),
            ("a*", r"\0\0\0", "aaaaaaaa", None),
            ("a", "plain", "a", Some("plain")),
        ];
        for (pattern, template, subject, wanted) in cases {
            let found = replaced(pattern, template, subject);
            assert_eq!(found.as_deref(), wanted, "{pattern} {template}");
        }
    }
}
