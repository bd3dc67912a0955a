//! Requests to the statistics page: options after its path, and actions in the body of a form
//! (management guide: the page itself; the facts are those of HAProxy's `http_handle_stats` and
//! `stats_process_http_post`).

use stats::page::{Links, Outcome};

use super::Selection;
use super::generated_body::Form;

/// The longest filter on proxy names (`scope`), bytes; a longer one is truncated.
const SCOPE_BYTES_MAX: usize = 20;

/// The options of the page, which may come in any order after its path.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub form: Form,
    pub selection: Selection,
    pub norefresh: bool,
    pub outcome: Option<Outcome>,
}

impl Asked {
    /// Parses the part after the page's path.
    pub fn of(rest: &[u8]) -> Asked {
        let has = |option: &[u8]| find(rest, option).is_some();
        let form = match () {
            () if has(b";json-schema") => Form::Schema,
            () if has(b";json") => Form::Json,
            () if has(b";typed") => Form::Typed,
            () if has(b";csv") => Form::Csv,
            () => Form::Page,
        };
        let outcome = find(rest, b";st=").map(|at| {
            let code = rest[at + 4..].get(..4).unwrap_or_default();
            Outcome::of(&String::from_utf8_lossy(code))
        });
        let scope = find(rest, b"scope=").map_or(&b""[..], |at| &rest[at + 6..]);
        let end = scope
            .iter()
            .position(|byte| matches!(byte, b';' | b'&' | b' '));
        let scope = &scope[..end.unwrap_or(scope.len())];
        let scope = &scope[..scope.len().min(SCOPE_BYTES_MAX)];
        // As in HAProxy, characters that cannot be part of a name are replaced.
        let scope = scope.iter().map(|byte| match byte {
            byte if byte.is_ascii_alphanumeric() => char::from(*byte),
            b'-' | b'.' | b'_' | b':' => char::from(*byte),
            _ => '_',
        });
        Asked {
            form,
            selection: Selection {
                hides_down: has(b";up"),
                hides_maintenance: has(b";no-maint"),
                contains: scope.collect(),
                ..Selection::default()
            },
            norefresh: has(b";norefresh"),
            outcome,
        }
    }

    /// The URL of the page with its options, without an outcome.
    pub fn links(&self, uri: &str, refresh_s: u32) -> Links {
        let mut options = String::new();
        if self.selection.hides_down {
            options.push_str(";up");
        }
        if self.norefresh && refresh_s > 0 {
            options.push_str(";norefresh");
        }
        if !self.selection.contains.is_empty() {
            options.push_str("?;scope=");
            options.push_str(&self.selection.contains);
        }
        Links {
            uri: uri.to_owned(),
            options,
            scope: self.selection.contains.clone(),
            hides_down: self.selection.hides_down,
            refresh_s,
            norefresh: self.norefresh && refresh_s > 0,
        }
    }
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

/// Decodes `%xx` and `+`. None if the text is malformed.
pub(crate) fn decode(text: &[u8]) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'+' => out.push(b' '),
            b'%' => {
                let digits = [*bytes.next()?, *bytes.next()?];
                let digit = |byte: u8| char::from(byte).to_digit(16);
                out.push((digit(digits[0])? * 16 + digit(digits[1])?) as u8);
            }
            byte => out.push(*byte),
        }
    }
    Some(String::from_utf8_lossy(&out).into_owned())
}

/// The action that a form requests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Action {
    /// The backend's name, or `#` and its number.
    pub backend: String,
    pub action: String,
    pub servers: Vec<String>,
}

/// Parses the body of a form. The last backend and the last action count, as in HAProxy. None if it
/// is malformed.
pub(crate) fn action(body: &[u8]) -> Option<Action> {
    let mut action = Action::default();
    for parameter in body.split(|byte| *byte == b'&') {
        let mut parts = parameter.splitn(2, |byte| *byte == b'=');
        let key = decode(parts.next().unwrap_or_default())?;
        let value = decode(parts.next().unwrap_or_default())?;
        match key.as_str() {
            "b" => action.backend = value,
            "action" => action.action = value,
            "s" => action.servers.push(value),
            _ => {}
        }
    }
    Some(action)
}

/// Whether a request that changes something was sent by a page of the same origin. A request
/// without an origin does not come from a browser. `origin`: the field `Origin`, or else `Referer`.
pub(crate) fn is_same_origin(origin: Option<&[u8]>, host: Option<&[u8]>) -> bool {
    let Some(origin) = origin else {
        return true;
    };
    let authority = find(origin, b"://").map(|at| &origin[at + 3..]);
    let authority = authority.map(|rest| {
        let end = rest
            .iter()
            .position(|byte| matches!(byte, b'/' | b'?' | b'#'));
        &rest[..end.unwrap_or(rest.len())]
    });
    match (authority, host) {
        (Some(authority), Some(host)) => authority.eq_ignore_ascii_case(host),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_the_page() {
        let asked = Asked::of(b"?;csv;scope=b1<x>;up;st=DONE");
        assert_eq!(asked.form, Form::Csv);
        assert_eq!(asked.selection.contains, "b1_x_");
        assert!(asked.selection.hides_down && !asked.selection.hides_maintenance);
        assert_eq!(asked.outcome, Some(Outcome::Done));
        assert_eq!(Asked::of(b"").form, Form::Page);
        assert_eq!(Asked::of(b";json-schema").form, Form::Schema);
        let links = Asked::of(b";up;norefresh?;scope=b2").links("/s", 5);
        assert_eq!(links.options, ";up;norefresh?;scope=b2");
        assert_eq!(
            Asked::of(b"scope=abcdefghijklmnopqrstuvwxyz")
                .selection
                .contains
                .len(),
            20
        );
    }

    #[test]
    fn forms() {
        let read = action(b"s=srv1&s=srv%202&action=maint&b=%233").expect("a form");
        assert_eq!(read.backend, "#3");
        assert_eq!(read.action, "maint");
        assert_eq!(read.servers, ["srv1", "srv 2"]);
        assert_eq!(action(b"s=%2"), None);
        assert_eq!(action(b""), Some(Action::default()));
    }

    #[test]
    fn origins() {
        let same = |origin: Option<&str>, host: Option<&str>| {
            is_same_origin(origin.map(str::as_bytes), host.map(str::as_bytes))
        };
        assert!(same(None, Some("a")));
        assert!(same(Some("http://a:80"), Some("A:80")));
        assert!(same(Some("https://a/stats?x"), Some("a")));
        assert!(!same(Some("http://evil"), Some("a")));
        assert!(!same(Some("null"), Some("a")));
        assert!(!same(Some("http://a"), None));
    }
}
