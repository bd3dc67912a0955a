//! `URL`: the parts of a URL by the names of OpenTelemetry's conventions, parsed as Go's `net/url`
//! does.

use super::text::utf8;
use super::{Function, eval};
use crate::eval::Failure;
use crate::value::{ENTRIES, Value, entry};
use otlp::write;
use std::fmt::Write as _;
use syntax::escape::{escaped, is_unreserved};

pub const FUNCTIONS: &[Function] = &[eval("URL", &["uri"], |args| {
    let text = utf8(&args[0])?;
    let mut map = Entries::default();
    match text.strip_prefix('?') {
        Some(query) => map.query(query)?,
        None => map.url(&parse(text)?)?,
    }
    Ok(Value::Map(map.0.into(), ENTRIES))
})];

/// A URL that was parsed; what is written with `%` is decoded, but for the query.
#[derive(Default)]
struct Url {
    scheme: String,
    opaque: String,
    user: Option<(String, Option<String>)>,
    /// With brackets and the port.
    host: String,
    path: String,
    raw_path: String,
    query: Option<String>,
    fragment: String,
    raw_fragment: String,
}

/// Where a text stands in a URL: what is written as it is there (Go: `shouldEscape`).
#[derive(Clone, Copy, PartialEq)]
enum Part {
    Path,
    User,
    Host,
    Fragment,
}

fn parse(text: &str) -> Result<Url, Failure> {
    if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return Err(Failure::Syntax);
    }
    let (text, fragment) = text.split_once('#').unwrap_or((text, ""));
    let mut url = Url {
        fragment: decoded(fragment, Part::Fragment)?,
        raw_fragment: fragment.to_owned(),
        ..Url::default()
    };
    if text == "*" {
        url.path = "*".to_owned();
        url.raw_path = url.path.clone();
        return Ok(url);
    }
    let (scheme, rest) = scheme(text)?;
    url.scheme = scheme.to_ascii_lowercase();
    let mut rest = rest;
    if let Some((before, query)) = rest.split_once('?') {
        url.query = Some(query.to_owned());
        rest = before;
    }
    if !rest.starts_with('/') {
        if !url.scheme.is_empty() {
            url.opaque = rest.to_owned();
            return Ok(url);
        }
        let segment = rest.split('/').next().unwrap_or_default();
        if segment.contains(':') {
            return Err(Failure::Syntax);
        }
    }
    let has_authority = !url.scheme.is_empty() || !rest.starts_with("///");
    if let Some(after) = rest.strip_prefix("//").filter(|_| has_authority) {
        let end = after.find('/').unwrap_or(after.len());
        url.authority(&after[..end])?;
        rest = &after[end..];
    }
    url.path = decoded(rest, Part::Path)?;
    url.raw_path = rest.to_owned();
    Ok(url)
}

/// The scheme, and what follows its colon.
fn scheme(text: &str) -> Result<(&str, &str), Failure> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at > 0 => return Ok((&text[..at], &text[at + 1..])),
            b':' => return Err(Failure::Syntax),
            _ => break,
        }
    }
    Ok(("", text))
}

impl Url {
    fn authority(&mut self, text: &str) -> Result<(), Failure> {
        let host = match text.rsplit_once('@') {
            None => text,
            Some((user, host)) => {
                let is_user = |byte: u8| {
                    byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte)
                };
                if !user.bytes().all(is_user) {
                    return Err(Failure::Syntax);
                }
                self.user = Some(match user.split_once(':') {
                    None => (decoded(user, Part::User)?, None),
                    Some((name, password)) => (
                        decoded(name, Part::User)?,
                        Some(decoded(password, Part::User)?),
                    ),
                });
                host
            }
        };
        let port = if host.starts_with('[') {
            let end = host.rfind(']').ok_or(Failure::Syntax)?;
            &host[end + 1..]
        } else {
            host.rfind(':').map_or("", |at| &host[at..])
        };
        let is_port = match port.strip_prefix(':') {
            Some(digits) => digits.bytes().all(|byte| byte.is_ascii_digit()),
            None => port.is_empty(),
        };
        if !is_port {
            return Err(Failure::Syntax);
        }
        self.host = decoded(host, Part::Host)?;
        Ok(())
    }

    /// The host and the port without what stands around them.
    fn host_and_port(&self) -> (&str, &str) {
        let (host, port) = match self.host.rfind(':') {
            Some(at) if !self.host[at..].contains(']') => (&self.host[..at], &self.host[at + 1..]),
            _ => (&*self.host, ""),
        };
        let inner = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'));
        (inner.unwrap_or(host), port)
    }

    fn user_info(&self) -> Option<String> {
        let (name, password) = self.user.as_ref()?;
        let mut text = encoded(name, Part::User);
        if let Some(password) = password {
            let _ = write!(text, ":{}", encoded(password, Part::User));
        }
        Some(text)
    }

    /// Prints the URL as Go does: unchanged except for characters that need percent-encoding.
    fn text(&self) -> String {
        let mut out = String::new();
        if !self.scheme.is_empty() {
            let _ = write!(out, "{}:", self.scheme);
        }
        if self.opaque.is_empty() {
            let user = self.user_info();
            let has_authority = !self.host.is_empty() || user.is_some();
            if has_authority || !self.scheme.is_empty() && !self.path.is_empty() {
                out.push_str("//");
                if let Some(user) = user {
                    let _ = write!(out, "{user}@");
                }
                out.push_str(&encoded(&self.host, Part::Host));
            }
            let path = as_written(&self.raw_path, &self.path, Part::Path);
            if !path.is_empty() && !path.starts_with('/') && !self.host.is_empty() {
                out.push('/');
            }
            out.push_str(&path);
        } else {
            out.push_str(&self.opaque);
        }
        if let Some(query) = &self.query {
            let _ = write!(out, "?{query}");
        }
        if !self.fragment.is_empty() {
            out.push('#');
            out.push_str(&as_written(
                &self.raw_fragment,
                &self.fragment,
                Part::Fragment,
            ));
        }
        out
    }
}

/// Keeps the original encoding if it is valid, else encodes the decoded text again.
fn as_written(raw: &str, decoded: &str, part: Part) -> String {
    let stands = |byte: u8| byte == b'%' || b"[]".contains(&byte) || !must_encode(byte, part);
    if raw.bytes().all(stands) {
        raw.to_owned()
    } else {
        encoded(decoded, part)
    }
}

fn must_encode(byte: u8, part: Part) -> bool {
    if is_unreserved(byte) {
        return false;
    }
    let others: &[u8] = match part {
        Part::Path => b"$&+,/:;=@!'()*",
        Part::User => b"$&+,;=",
        Part::Host => b"!$&'()*+,;=:[]<>\"",
        Part::Fragment => b"$&+,/:;=?@!()*'",
    };
    !others.contains(&byte)
}

fn encoded(text: &str, part: Part) -> String {
    escaped(text, |byte| !must_encode(byte, part))
}

fn decoded(text: &str, part: Part) -> Result<String, Failure> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            // A host may have no blanks and such.
            if part == Part::Host && byte.is_ascii() && must_encode(byte, part) {
                return Err(Failure::Syntax);
            }
            out.push(byte);
            continue;
        }
        let digits = rest.first_chunk::<2>().ok_or(Failure::Syntax)?;
        let value = syntax::hex::decode(digits).ok_or(Failure::Syntax)?;
        // In a host, only what is no ASCII may be written with `%`; `%25` begins a zone.
        let is_zone = digits == b"25";
        if part == Part::Host && value[0].is_ascii() && !is_zone {
            return Err(Failure::Syntax);
        }
        out.extend_from_slice(&value);
        rest = &rest[2..];
    }
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// A map that is written.
#[derive(Default)]
struct Entries(Vec<u8>);

impl Entries {
    fn text(&mut self, key: &str, value: &str) {
        let mut any = Vec::new();
        write::bytes(&mut any, 1, value.as_bytes());
        entry(&mut self.0, key.as_bytes(), &any);
    }

    fn text_unless_empty(&mut self, key: &str, value: &str) {
        if !value.is_empty() {
            self.text(key, value);
        }
    }

    fn url(&mut self, url: &Url) -> Result<(), Failure> {
        let (host, port) = url.host_and_port();
        self.text("url.original", &url.text());
        self.text("url.domain", host);
        self.text("url.scheme", &url.scheme);
        self.text("url.path", &url.path);
        if !port.is_empty() {
            let port: i64 = port.parse().map_err(|_| Failure::Math)?;
            let mut any = Vec::new();
            write::uint(&mut any, 3, port as u64);
            entry(&mut self.0, b"url.port", &any);
        }
        self.text_unless_empty("url.fragment", &url.fragment);
        if let Some((name, password)) = &url.user {
            self.text("url.user_info", &url.user_info().unwrap_or_default());
            self.text_unless_empty("url.username", name);
            if let Some(password) = password {
                self.text("url.password", password);
            }
        }
        self.text_unless_empty("url.query", url.query.as_deref().unwrap_or_default());
        if let Some((_, extension)) = url.path.rsplit_once('.') {
            self.text_unless_empty("url.extension", extension);
        }
        Ok(())
    }

    /// A query alone: a list of values for each name.
    fn query(&mut self, query: &str) -> Result<(), Failure> {
        let mut names: Vec<(String, Vec<String>)> = Vec::new();
        let mut places = std::collections::HashMap::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            if pair.contains(';') {
                return Err(Failure::Syntax);
            }
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let plain = |text: &str| decoded(&text.replace('+', " "), Part::Path);
            let (name, value) = (plain(name)?, plain(value)?);
            let place = *places.entry(name.clone()).or_insert(names.len());
            if place == names.len() {
                names.push((name, Vec::new()));
            }
            names[place].1.push(value);
        }
        if names.is_empty() {
            return Ok(());
        }
        let mut any = Vec::new();
        write::message(&mut any, 6, |out| {
            for (name, values) in &names {
                write::key_value(out, 1, name.as_bytes(), |out| {
                    write::message(out, 5, |out| {
                        for value in values {
                            write::message(out, 1, |out| write::bytes(out, 1, value.as_bytes()));
                        }
                    });
                });
            }
        });
        entry(&mut self.0, b"query", &any);
        Ok(())
    }
}
