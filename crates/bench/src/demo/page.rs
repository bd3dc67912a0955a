//! The page of a demo origin: who answered, and the request as it arrived.

use std::borrow::Cow;

use crate::origin::Site;

/// A demo origin.
pub struct Page {
    name: &'static str,
}

impl Page {
    /// The origin that calls itself `name`.
    pub fn new(name: &'static str) -> Self {
        Self { name }
    }

    fn html(&self, head: &str) -> String {
        let name = self.name;
        let head = head.replace('&', "&amp;").replace('<', "&lt;");
        format!(
            "<!doctype html>\n<title>Spangate demo: origin {name}</title>\n\
             <style>body{{font-family:system-ui;max-width:50em;margin:3em auto}}pre{{background:#eee;padding:1em;overflow:auto}}</style>\n\
             <h1>Origin {name} answered</h1>\n<p>The request as it came through Spangate:</p>\n<pre>{head}</pre>\n\
             <p><a href=/>in turn</a> · <a href=/a/hello>origin A</a> · <a href=/b/hello>origin B</a></p>\n\
             <p>Spangate listens for HTTPS on port 8443, too: <code>make demo</code> prints the file of the authority to trust.</p>\n"
        )
    }
}

impl Site for Page {
    fn answer(&self, head: &[u8]) -> Cow<'static, [u8]> {
        let head = String::from_utf8_lossy(head);
        let plain = head
            .split(' ')
            .nth(1)
            .is_some_and(|path| path.ends_with("/text"));
        let (kind, body) = if plain {
            ("text/plain", format!("origin {}\n", self.name))
        } else {
            ("text/html", self.html(head.trim_end()))
        };
        let shown = if head.starts_with("HEAD ") {
            ""
        } else {
            body.as_str()
        };
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {kind}; charset=utf-8\r\nx-origin: {}\r\ncontent-length: {}\r\n\r\n{shown}",
            self.name,
            body.len()
        );
        Cow::Owned(answer.into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(head: &str) -> String {
        String::from_utf8(Page::new("A").answer(head.as_bytes()).into_owned()).unwrap()
    }

    #[test]
    fn shows_the_request_without_its_markup() {
        let answer = answer("GET /?<script> HTTP/1.1\r\nhost: a&b\r\n\r\n");
        assert!(
            answer.contains("GET /?&lt;script> HTTP/1.1") && answer.contains("a&amp;b"),
            "{answer}"
        );
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(
            head.ends_with(&format!("content-length: {}", body.len())),
            "{head}"
        );
    }

    #[test]
    fn answers_head_without_a_body_and_text_plainly() {
        assert!(answer("HEAD /text HTTP/1.1\r\n\r\n").ends_with("content-length: 9\r\n\r\n"));
        assert!(answer("GET /a/text HTTP/1.1\r\n\r\n").ends_with("\r\n\r\norigin A\n"));
    }
}
