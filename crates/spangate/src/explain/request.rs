//! Builds the heads of a request and of an assumed response from the question.

use std::net::IpAddr;

use proxy::explain::Question;

/// Most bytes of a URL, and of all fields together.
const URL_BYTES_MAX: usize = 8 << 10;
const FIELDS_BYTES_MAX: usize = 8 << 10;

/// The question as the user wrote it.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub method: String,
    pub url: String,
    /// `name: value`
    pub fields: Vec<String>,
    /// The client's address; empty: unknown.
    pub source: String,
    /// The name of the frontend; empty: the port selects it.
    pub frontend: String,
    /// The assumed response: a status, or a status line; empty: none.
    pub response: String,
    /// Its fields, `name: value`.
    pub response_fields: Vec<String>,
}

impl Default for Asked {
    fn default() -> Asked {
        Asked {
            method: "GET".to_owned(),
            url: String::new(),
            fields: Vec::new(),
            source: String::new(),
            frontend: String::new(),
            response: String::new(),
            response_fields: Vec::new(),
        }
    }
}

impl Asked {
    /// The request.
    ///
    /// # Errors
    /// What is wrong with the question.
    pub(crate) fn question(&self) -> Result<Question, String> {
        let url = &self.url;
        if url.len() > URL_BYTES_MAX {
            return Err(format!("the URL has more than {URL_BYTES_MAX} bytes"));
        }
        let is_text = |byte: u8| byte.is_ascii_graphic();
        if !url.bytes().all(is_text) {
            return Err(format!(
                "'{url}' is not a URL: it contains a character that must be written as %XX"
            ));
        }
        let wrong = || format!("'{url}' is not an http or https URL");
        let (is_tls, rest) = match url.split_once("://") {
            Some(("http", rest)) => (false, rest),
            Some(("https", rest)) => (true, rest),
            _ => return Err(wrong()),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, target) = rest.split_at(end);
        let authority = authority.rsplit('@').next().unwrap_or_default();
        let port = match authority.rsplit_once(':') {
            Some((_, last)) if !last.ends_with(']') => last.parse().map_err(|_| wrong())?,
            _ if is_tls => 443,
            _ => 80,
        };
        if authority.is_empty() || authority.starts_with(':') {
            return Err(wrong());
        }
        let slash = if target.starts_with('/') { "" } else { "/" };
        let method = self.method.to_ascii_uppercase();
        if method.is_empty()
            || !method
                .bytes()
                .all(|byte| byte.is_ascii_alphabetic() || byte == b'-')
        {
            return Err(format!("'{}' is not a method", self.method));
        }
        let mut head = format!("{method} {slash}{target} HTTP/1.1\r\n");
        head.push_str(&self.head_fields(authority)?);
        let source = match &*self.source {
            "" => None,
            text => {
                let address: Result<IpAddr, _> = text.parse();
                Some(address.map_err(|_| format!("'{text}' is not an IP address"))?)
            }
        };
        Ok(Question {
            head: head.into_bytes(),
            port,
            is_tls,
            source,
            frontend: (!self.frontend.is_empty()).then(|| self.frontend.clone()),
            response: self.response()?,
        })
    }

    /// The head of the assumed response; none without one.
    fn response(&self) -> Result<Option<Vec<u8>>, String> {
        let text = self.response.trim();
        if text.is_empty() {
            return if self.response_fields.is_empty() {
                Ok(None)
            } else {
                Err("fields of a response need its status".to_owned())
            };
        }
        let wrong = || {
            format!(
                "'{text}' is not a status such as 404, or a status line such as 'HTTP/1.1 404 Not Found'"
            )
        };
        let is_text = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
        if text.len() > URL_BYTES_MAX || !text.bytes().all(is_text) {
            return Err(wrong());
        }
        let rest = match text.split_once(' ') {
            Some((version, rest)) if version.starts_with("HTTP/") => rest.trim_start(),
            _ => text,
        };
        let (status, reason) = rest.split_once(' ').unwrap_or((rest, ""));
        let is_status = status.len() == 3 && status.bytes().all(|byte| byte.is_ascii_digit());
        if !is_status {
            return Err(wrong());
        }
        let mut head = format!("HTTP/1.1 {status} {reason}\r\n");
        push_fields(&self.response_fields, &mut head)?;
        head.push_str("\r\n");
        Ok(Some(head.into_bytes()))
    }

    /// The header fields and the empty line after them. `Host` is that of the URL unless the
    /// question has its own.
    fn head_fields(&self, authority: &str) -> Result<String, String> {
        let mut out = String::new();
        let named = |field: &&String, name: &str| {
            field
                .split(':')
                .next()
                .is_some_and(|found| found.trim().eq_ignore_ascii_case(name))
        };
        if !self.fields.iter().any(|field| named(&field, "host")) {
            out.push_str(&format!("host: {authority}\r\n"));
        }
        push_fields(&self.fields, &mut out)?;
        out.push_str("\r\n");
        Ok(out)
    }
}

/// Appends header fields, one a line.
fn push_fields(fields: &[String], out: &mut String) -> Result<(), String> {
    for field in fields {
        let (name, value) = field
            .split_once(':')
            .ok_or_else(|| format!("'{field}' is not a header field: it has no colon"))?;
        if field.contains(['\r', '\n', '\0']) {
            return Err("a header field contains a line end or a NUL byte".to_owned());
        }
        out.push_str(&format!("{}: {}\r\n", name.trim(), value.trim()));
        if out.len() > FIELDS_BYTES_MAX {
            return Err(format!(
                "the header fields have more than {FIELDS_BYTES_MAX} bytes"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(url: &str, fields: &[&str]) -> Result<Question, String> {
        let fields = fields.iter().map(|field| (*field).to_owned()).collect();
        Asked {
            url: url.to_owned(),
            fields,
            ..Asked::default()
        }
        .question()
    }

    #[test]
    fn heads() {
        for (url, head, port, is_tls) in [
            ("http://a", "GET / HTTP/1.1\r\nhost: a\r\n\r\n", 80, false),
            (
                "https://a:8443/b?c#d",
                "GET /b?c HTTP/1.1\r\nhost: a:8443\r\n\r\n",
                8443,
                true,
            ),
            (
                "https://[::1]/",
                "GET / HTTP/1.1\r\nhost: [::1]\r\n\r\n",
                443,
                true,
            ),
            (
                "http://[::1]:81?x",
                "GET /?x HTTP/1.1\r\nhost: [::1]:81\r\n\r\n",
                81,
                false,
            ),
        ] {
            let question = asked(url, &[]).unwrap();
            assert_eq!(String::from_utf8_lossy(&question.head), head);
            assert_eq!((question.port, question.is_tls), (port, is_tls), "{url}");
        }
        let question = asked("http://a/", &["Host: b", "x:y"]).unwrap();
        assert_eq!(question.head, b"GET / HTTP/1.1\r\nHost: b\r\nx: y\r\n\r\n");
    }

    #[test]
    fn responses() {
        let assumed = |response: &str, fields: &[&str]| {
            let fields = fields.iter().map(|field| (*field).to_owned()).collect();
            let asked = Asked {
                url: "http://a/".to_owned(),
                response: response.to_owned(),
                response_fields: fields,
                ..Asked::default()
            };
            let head = asked.question()?.response;
            Ok::<_, String>(head.map(|head| String::from_utf8_lossy(&head).into_owned()))
        };
        assert_eq!(assumed("", &[]), Ok(None));
        for (response, fields, head) in [
            ("404", &[][..], "HTTP/1.1 404 \r\n\r\n"),
            (" 404 Not Found ", &[], "HTTP/1.1 404 Not Found\r\n\r\n"),
            (
                "HTTP/1.0  200 OK",
                &["X:y"],
                "HTTP/1.1 200 OK\r\nX: y\r\n\r\n",
            ),
        ] {
            assert_eq!(assumed(response, fields), Ok(Some(head.to_owned())));
        }
        for response in ["x", "HTTP/1.1", "HTTP/1.1 x", "20", "2000", "200\r\nx: y"] {
            assert!(assumed(response, &[]).is_err(), "{response}");
        }
        assert!(assumed("200", &["x"]).is_err());
        assert!(assumed("", &["x: y"]).is_err());
    }

    #[test]
    fn what_is_no_request_is_refused() {
        for url in [
            "",
            "/",
            "a/b",
            "ftp://a/",
            "http://",
            "http://:80/",
            "http://a:x/",
            "http://a/ b",
            "http://a/\u{e9}",
        ] {
            assert!(asked(url, &[]).is_err(), "{url}");
        }
        for field in ["x", "x: y\r\nz: 1", "x: \0"] {
            assert!(asked("http://a/", &[field]).is_err(), "{field}");
        }
        assert!(asked(&format!("http://a/{}", "x".repeat(9000)), &[]).is_err());
        assert!(asked("http://a/", &[&format!("x: {}", "y".repeat(9000))]).is_err());
    }
}
