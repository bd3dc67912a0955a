//! What browsers may do (Fetch standard, "CORS protocol"): telemetry of web pages comes from other
//! origins.

use hyper::body::Incoming;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS,
    ACCESS_CONTROL_REQUEST_METHOD, HeaderMap, HeaderValue, ORIGIN, VARY,
};
use hyper::{Method, Request, Response, StatusCode};

use super::http::Reply;
use crate::config::components::shared::http::Cors;

/// The origin of a request, where it is allowed.
pub(super) fn origin(cors: &Cors, headers: &HeaderMap) -> Option<HeaderValue> {
    let origin = headers.get(ORIGIN)?;
    let text = origin.to_str().ok()?;
    let mut allowed = cors.allowed_origins.iter();
    allowed
        .any(|pattern| fits(pattern, text))
        .then(|| origin.clone())
}

/// Whether a browser asks what it may do. It tells nobody's credentials then.
pub(super) fn is_preflight<B>(request: &Request<B>) -> bool {
    let asks = request
        .headers()
        .contains_key(ACCESS_CONTROL_REQUEST_METHOD);
    request.method() == Method::OPTIONS && asks
}

/// The answer to a preflight; none where the request is none.
pub(super) fn preflight(cors: &Cors, request: &Request<Incoming>) -> Option<Response<Reply>> {
    let headers = request.headers();
    if !is_preflight(request) {
        return None;
    }
    let mut response = Response::new(Reply::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let origin = origin(cors, headers);
    let asked = headers.get(ACCESS_CONTROL_REQUEST_HEADERS);
    let names = asked.and_then(|asked| asked.to_str().ok()).unwrap_or("");
    if origin.is_some() && allows_all(cors, names) {
        let answer = response.headers_mut();
        let post = HeaderValue::from_static("POST");
        answer.insert(ACCESS_CONTROL_ALLOW_METHODS, post);
        if let Some(asked) = asked {
            answer.insert(ACCESS_CONTROL_ALLOW_HEADERS, asked.clone());
        }
        if cors.max_age_s > 0 {
            answer.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from(cors.max_age_s));
        }
        mark(cors, origin, answer);
    }
    Some(response)
}

/// Tells a browser that its page may read the answer.
pub(super) fn mark(cors: &Cors, origin: Option<HeaderValue>, headers: &mut HeaderMap) {
    headers.append(VARY, HeaderValue::from_static("Origin"));
    let Some(origin) = origin else { return };
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    if let Ok(exposed) = HeaderValue::from_str(&cors.exposed_headers.join(", "))
        && !exposed.is_empty()
    {
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    }
}

/// Fields that need no allowance.
const ALWAYS: [&str; 6] = [
    "accept",
    "accept-language",
    "content-language",
    "content-type",
    "origin",
    "x-requested-with",
];

fn allows_all(cors: &Cors, names: &str) -> bool {
    let names = names
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty());
    let allowed = |name: &str| {
        let listed = cors.allowed_headers.iter();
        ALWAYS
            .iter()
            .any(|always| name.eq_ignore_ascii_case(always))
            || { listed }.any(|one| one == "*" || one.eq_ignore_ascii_case(name))
    };
    names.into_iter().all(allowed)
}

/// `*` is any number of characters; each pattern has one at most that is looked for from the right.
fn fits(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern.eq_ignore_ascii_case(text),
        Some((before, after)) => {
            text.len() >= before.len() + after.len()
                && text.is_char_boundary(before.len())
                && text.is_char_boundary(text.len() - after.len())
                && text[..before.len()].eq_ignore_ascii_case(before)
                && text[text.len() - after.len()..].eq_ignore_ascii_case(after)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_fit_patterns() {
        for (pattern, text, expected) in [
            ("https://a.example", "https://A.example", true),
            ("https://*.example", "https://a.b.example", true),
            ("https://*.example", "https://.example", true),
            ("https://*.example", "https://example", false),
            ("*", "null", true),
            ("http://a", "http://ab", false),
            ("h*é", "hé", true),
        ] {
            assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
        }
    }
}
