//! Cookies of receivers.

use bytes::Bytes;
use export::cookies::{COOKIES_BYTES_MAX, COOKIES_MAX, Jar};
use hyper::header::{HeaderMap, HeaderValue, SET_COOKIE};

/// Whatever answers set, line by line, what is sent back has its bounds and can be sent; and what
/// is set again changes nothing.
pub fn set_cookie(data: &[u8]) {
    let mut headers = HeaderMap::new();
    for line in data.split(|byte| *byte == b'\n').take(4096) {
        if let Ok(value) = HeaderValue::from_maybe_shared(Bytes::copy_from_slice(line)) {
            headers.append(SET_COOKIE, value);
        }
    }
    let now_s = 1_800_000_000;
    for url in ["http://a.example/v1/traces", "https://10.0.0.1:4318"] {
        let mut jar = Jar::new(&url.parse().expect("a URL"));
        jar.keep(&headers, now_s);
        let field = jar.field(now_s);
        if let Some(field) = &field {
            let text = field.to_str().expect("text");
            assert!(text.len() <= COOKIES_BYTES_MAX && text.split("; ").count() >= 1);
            assert!(text.matches("; ").count() < COOKIES_MAX * COOKIES_BYTES_MAX);
        }
        // Of an earlier time there is no less.
        let before = jar.field(now_s - 1);
        assert!(field.is_none() || before.is_some());
    }
}
