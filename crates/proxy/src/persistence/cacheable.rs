//! Whether a cache may keep a response (RFC 9111 §3), as needed for `cookie … nocache` and `option
//! checkcache`.

use http::{Head, Method, Name};

/// The parts of a response that a cache may keep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cacheable {
    /// The response.
    pub response: bool,
    /// The response with its cookies.
    pub cookies: bool,
}

/// Statuses that are cacheable by default (RFC 9110 §15.1), in HAProxy's list.
const STATUSES: &[u16] = &[200, 203, 204, 206, 300, 301, 404, 405, 410, 414, 501];

/// Decides what a cache may keep of the response to a request with this method.
pub(crate) fn of(method: Method, response: &Head) -> Cacheable {
    let safe = matches!(
        method,
        Method::Get | Method::Head | Method::Options | Method::Trace
    );
    let by_default = safe && STATUSES.contains(&response.status());
    let mut may = Cacheable {
        response: by_default,
        cookies: by_default,
    };
    let pragma = response.find(b"pragma").next();
    if pragma.is_some_and(|(_, value)| value.eq_ignore_ascii_case(b"no-cache")) {
        return Cacheable::default();
    }
    let (mut fresh, mut no_age) = (false, false);
    for directive in response
        .get_all(Name::CacheControl)
        .flat_map(|(_, value)| value.split(|byte| *byte == b','))
    {
        let directive = directive.trim_ascii();
        let is = |text: &str| directive.eq_ignore_ascii_case(text.as_bytes());
        let name = directive
            .split(|byte| *byte == b'=')
            .next()
            .unwrap_or_default();
        let named = |text: &str| name.eq_ignore_ascii_case(text.as_bytes());
        if is("public") {
            may = Cacheable {
                response: true,
                cookies: true,
            };
        } else if is("max-age=0") {
            no_age = true;
        } else if is("no-cache=\"set-cookie\"") {
            may.cookies = false;
        } else if named("private") || named("no-cache") || named("no-store") || is("s-maxage=0") {
            may = Cacheable::default();
        } else if named("s-maxage") {
            (fresh, no_age) = (true, false);
        } else if named("max-age") {
            fresh = true;
        }
    }
    if no_age {
        may = Cacheable::default();
    }
    let dated = || {
        [&b"expires"[..], b"etag", b"last-modified"]
            .iter()
            .any(|name| response.find(name).next().is_some())
    };
    // Without an explicit lifetime and without a validator, a response is not kept (RFC 9111
    // §4.2.2).
    may.response &= fresh || dated();
    may
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may(method: Method, fields: &[(&str, &str)]) -> (bool, bool) {
        let mut response = Head::default();
        response.set_status(200, b"OK");
        for (name, value) in fields {
            response.append(name.as_bytes(), value.as_bytes());
        }
        let may = of(method, &response);
        (may.response, may.cookies)
    }

    #[test]
    fn responses() {
        type Fields = &'static [(&'static str, &'static str)];
        const ETAG: (&str, &str) = ("etag", "x");
        let cases: &[(Method, Fields, (bool, bool))] = &[
            (Method::Get, &[], (false, true)),
            (Method::Get, &[ETAG], (true, true)),
            (Method::Get, &[("cache-control", "max-age=9")], (true, true)),
            (Method::Post, &[ETAG], (false, false)),
            (
                Method::Post,
                &[ETAG, ("cache-control", "public")],
                (true, true),
            ),
            (Method::Get, &[ETAG, ("pragma", "no-cache")], (false, false)),
            (
                Method::Get,
                &[ETAG, ("cache-control", "a, no-store")],
                (false, false),
            ),
            (
                Method::Get,
                &[ETAG, ("cache-control", "no-cache=\"set-cookie\"")],
                (true, false),
            ),
            (
                Method::Get,
                &[ETAG, ("cache-control", "max-age=0, s-maxage=1")],
                (true, true),
            ),
            (
                Method::Get,
                &[ETAG, ("cache-control", "max-age=0")],
                (false, false),
            ),
        ];
        for (method, fields, wanted) in cases {
            assert_eq!(may(*method, fields), *wanted, "{method:?} {fields:?}");
        }
    }
}
