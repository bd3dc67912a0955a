//! Cookies of one receiver (RFC 6265): cookies set in its responses are sent back to it.
//!
//! A jar belongs to one URL, so it only needs to check that the receiver may set a cookie.

use hyper::Uri;
use hyper::header::{HeaderMap, HeaderValue, SET_COOKIE};
use hyper::http::uri::Scheme;

/// The most cookies that are kept; the oldest are dropped (RFC 6265 section 6.1).
pub const COOKIES_MAX: usize = 50;
/// The most bytes of a cookie's name and value; larger cookies are not kept.
pub const COOKIE_BYTES_MAX: usize = 4 << 10;
/// The most bytes of a `Cookie` field; the oldest cookies are dropped.
pub const COOKIES_BYTES_MAX: usize = 16 << 10;

/// The cookies of one URL.
#[derive(Debug)]
pub struct Jar {
    host: String,
    path: String,
    is_https: bool,
    /// In the order in which each was first set.
    cookies: Vec<Cookie>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Cookie {
    name: String,
    value: String,
    /// None: a cookie of exactly this host.
    domain: Option<String>,
    path: String,
    secure: bool,
    /// When it expires, seconds of the UNIX epoch.
    expires_s: Option<i64>,
}

impl Jar {
    /// An empty jar for requests to a URL.
    #[must_use]
    pub fn new(url: &Uri) -> Jar {
        Jar {
            host: url.host().unwrap_or_default().to_ascii_lowercase(),
            path: url.path().to_owned(),
            is_https: url.scheme() == Some(&Scheme::HTTPS),
            cookies: Vec::new(),
        }
    }

    /// Keeps the cookies that a response sets; `now_s` is in seconds of the UNIX epoch. Ignores
    /// malformed cookies and those that the receiver may not set.
    pub fn keep(&mut self, headers: &HeaderMap, now_s: i64) {
        for field in headers.get_all(SET_COOKIE) {
            let cookie = field.to_str().ok().and_then(|text| self.read(text, now_s));
            if let Some(cookie) = cookie {
                self.put(cookie);
            }
        }
        self.cookies.retain(|cookie| !cookie.is_gone(now_s));
        while self.cookies.len() > COOKIES_MAX || self.bytes() > COOKIES_BYTES_MAX {
            self.cookies.remove(0);
        }
    }

    /// The value of `Cookie` for a request (RFC 6265 section 5.4); none if there are no cookies.
    #[must_use]
    pub fn field(&self, now_s: i64) -> Option<HeaderValue> {
        let is_sent = |cookie: &&Cookie| {
            !cookie.is_gone(now_s)
                && (self.is_https || !cookie.secure)
                && is_below(&self.path, &cookie.path)
        };
        let mut sent: Vec<&Cookie> = self.cookies.iter().filter(is_sent).collect();
        sent.sort_by_key(|cookie| std::cmp::Reverse(cookie.path.len()));
        let pairs = sent.iter().map(|one| format!("{}={}", one.name, one.value));
        let text = pairs.collect::<Vec<_>>().join("; ");
        let mut value = HeaderValue::try_from(text).ok()?;
        value.set_sensitive(true);
        (!value.is_empty()).then_some(value)
    }

    fn bytes(&self) -> usize {
        let bytes = |one: &Cookie| one.name.len() + one.value.len() + "=; ".len();
        self.cookies.iter().map(bytes).sum()
    }

    /// Stores a cookie; replaces an earlier one with the same name, domain and path.
    fn put(&mut self, cookie: Cookie) {
        let is_same = |other: &Cookie| {
            (&other.name, &other.domain, &other.path)
                == (&cookie.name, &cookie.domain, &cookie.path)
        };
        match self.cookies.iter().position(is_same) {
            Some(at) => self.cookies[at] = cookie,
            None => self.cookies.push(cookie),
        }
    }

    /// RFC 6265 sections 5.2 and 5.3.
    fn read(&self, text: &str, now_s: i64) -> Option<Cookie> {
        let mut parts = text.split(';');
        let (name, value) = parts.next()?.split_once('=')?;
        let (name, value) = (name.trim(), value.trim());
        if name.is_empty() || name.len() + value.len() > COOKIE_BYTES_MAX {
            return None;
        }
        let mut cookie = Cookie {
            name: name.to_owned(),
            value: value.to_owned(),
            domain: None,
            path: directory(&self.path).to_owned(),
            secure: false,
            expires_s: None,
        };
        let mut age = None;
        for part in parts {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let value = value.trim();
            match key.trim().to_ascii_lowercase().as_str() {
                "expires" => cookie.expires_s = date(value).or(cookie.expires_s),
                "max-age" => age = seconds(value).or(age),
                "domain" => {
                    let domain = value.strip_prefix('.').unwrap_or(value);
                    cookie.domain = (!domain.is_empty()).then(|| domain.to_ascii_lowercase());
                }
                "path" if value.starts_with('/') => value.clone_into(&mut cookie.path),
                "path" => directory(&self.path).clone_into(&mut cookie.path),
                "secure" => cookie.secure = true,
                _ => {}
            }
        }
        if let Some(age) = age {
            cookie.expires_s = Some(now_s.saturating_add(age));
        }
        let may_set = cookie
            .domain
            .as_ref()
            .is_none_or(|domain| self.is_of(domain));
        may_set.then_some(cookie)
    }

    /// Whether the host is in a domain (RFC 6265 section 5.1.3).
    fn is_of(&self, domain: &str) -> bool {
        let is_address =
            self.host.starts_with('[') || self.host.parse::<std::net::IpAddr>().is_ok();
        let above = self.host.strip_suffix(domain);
        above.is_some_and(|above| above.is_empty() || above.ends_with('.') && !is_address)
    }
}

impl Cookie {
    fn is_gone(&self, now_s: i64) -> bool {
        self.expires_s.is_some_and(|expires_s| expires_s <= now_s)
    }
}

/// The path of a cookie without `Path` (RFC 6265 section 5.1.4).
fn directory(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some((above, _)) if !above.is_empty() => above,
        _ => "/",
    }
}

/// Whether a request path matches a cookie's path (RFC 6265 section 5.1.4).
fn is_below(path: &str, cookie: &str) -> bool {
    let rest = path.strip_prefix(cookie);
    rest.is_some_and(|rest| rest.is_empty() || cookie.ends_with('/') || rest.starts_with('/'))
}

/// `Max-Age`; 0 if it is in the past.
fn seconds(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    if digits.len() < text.len() {
        Some(0)
    } else {
        Some(digits.parse().unwrap_or(i64::MAX))
    }
}

/// `Expires`: an HTTP date, also with dashes. Other forms are ignored, as in Go.
fn date(text: &str) -> Option<i64> {
    let spaced = text.replace('-', " ");
    let date = jiff::fmt::rfc2822::parse(&spaced).ok()?;
    Some(date.timestamp().as_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_S: i64 = 1_800_000_000;

    fn jar(url: &str) -> Jar {
        Jar::new(&url.parse().unwrap())
    }

    fn set(jar: &mut Jar, fields: &[&str]) {
        let mut headers = HeaderMap::new();
        for field in fields {
            headers.append(SET_COOKIE, HeaderValue::from_str(field).unwrap());
        }
        jar.keep(&headers, NOW_S);
    }

    fn sent(jar: &Jar, now_s: i64) -> String {
        let field = jar.field(now_s);
        field.map_or(String::new(), |field| field.to_str().unwrap().to_owned())
    }

    #[test]
    fn what_is_set_is_sent_back() {
        for (url, fields, expected) in [
            (
                "http://a.b/v1/traces",
                &["x=1", "y=\"2\"; HttpOnly"][..],
                "x=1; y=\"2\"",
            ),
            ("http://a.b/v1/traces", &["x=1", "x=2"], "x=2"),
            ("http://a.b/v1/traces", &["x=1; Secure"], ""),
            ("https://a.b/v1/traces", &["x=1; secure"], "x=1"),
            (
                "http://a.b/v1/traces",
                &["x", "=1", "", ";", "x = 1 ; z"],
                "x=1",
            ),
            (
                "http://a.b/v1/traces",
                &["x=1; Path=/", "y=2; path=/v1"],
                "y=2; x=1",
            ),
            (
                "http://a.b/v1/traces",
                &["x=1; Path=/v", "y=2; path=/v1/traces/a"],
                "",
            ),
            (
                "http://a.b/v1/traces",
                &["x=1; Path=v", "y=2; path=/v1/"],
                "y=2; x=1",
            ),
            ("http://a.b/", &["x=1"], "x=1"),
            (
                "http://a.b/v1/traces",
                &["x=1; Domain=.B", "y=2; domain=a.b"],
                "x=1; y=2",
            ),
            (
                "http://a.b/v1/traces",
                &["x=1; Domain=c.b", "y=2; domain=z.a.b"],
                "",
            ),
            ("http://ca.b/v1/traces", &["x=1; Domain=a.b"], ""),
            (
                "http://10.0.0.1/",
                &["x=1; Domain=0.0.1", "y=2; Domain=10.0.0.1"],
                "y=2",
            ),
            (
                "http://a.b/",
                &["x=1; Max-Age=0", "y=2; Max-Age=-5", "z=3; max-age=9"],
                "z=3",
            ),
            (
                "http://a.b/",
                &["x=1; Max-Age=x", "y=2; Max-Age=99999999999999999999"],
                "x=1; y=2",
            ),
            (
                "http://a.b/",
                &["x=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT"],
                "",
            ),
            (
                "http://a.b/",
                &["x=1; Expires=Thu, 01-Jan-1970 00:00:00 GMT"],
                "",
            ),
            (
                "http://a.b/",
                &["x=1; Expires=Fri, 01 Jan 2100 00:00:00 GMT; Expires=soon"],
                "x=1",
            ),
            (
                "http://a.b/",
                &["x=1; Expires=Thu, 01 Jan 1970 00:00:00 GMT; Max-Age=9"],
                "x=1",
            ),
        ] {
            let mut jar = jar(url);
            set(&mut jar, fields);
            assert_eq!(sent(&jar, NOW_S), expected, "{url} {fields:?}");
        }
    }

    #[test]
    fn cookies_end_and_are_taken_back() {
        let mut jar = jar("http://a.b/");
        set(&mut jar, &["x=1; Max-Age=10", "y=2"]);
        assert_eq!(sent(&jar, NOW_S + 9), "x=1; y=2");
        assert_eq!(sent(&jar, NOW_S + 10), "y=2");
        set(&mut jar, &["y=; Max-Age=0", "x=3"]);
        assert_eq!(sent(&jar, NOW_S + 10), "x=3");
    }

    #[test]
    fn there_are_only_so_many() {
        let mut jar = jar("http://a.b/");
        let many: Vec<String> = (0..200).map(|number| format!("x{number}=1")).collect();
        set(
            &mut jar,
            &many.iter().map(String::as_str).collect::<Vec<_>>(),
        );
        let field = sent(&jar, NOW_S);
        assert_eq!(field.split("; ").count(), COOKIES_MAX);
        assert!(field.starts_with("x150=1; ") && field.ends_with("; x199=1"));
        let large = "v".repeat(COOKIE_BYTES_MAX - 1);
        let larger = format!("z={large}v");
        set(&mut jar, &[&larger]);
        assert_eq!(sent(&jar, NOW_S), field);
        for name in ["a", "b", "c", "d", "e"] {
            set(&mut jar, &[&format!("{name}={large}")]);
        }
        let field = sent(&jar, NOW_S);
        assert!(field.len() <= COOKIES_BYTES_MAX && field.starts_with("c="));
    }
}
