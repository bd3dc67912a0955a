//! One request to a responder over HTTP/1 (RFC 6960 appendix A): GET if it is short, else POST.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Name;
use net::Addr;
use resolvers::system::of_process;
use tokio::time::timeout;

use super::{Fault, OcspOutcome};
use crate::conn::{Conn, Layer, Lost};
use crate::http::{Exchange, Request};
use crate::target::Way;

/// A request with a longer target is sent by POST (RFC 6960 appendix A.1).
const GET_BYTES_MAX: usize = 255;
/// The most bytes of a response.
const RESPONSE_BYTES_MAX: usize = 64 << 10;
/// The most bytes of its head.
const HEAD_BYTES_MAX: usize = 16 << 10;
/// The time limit of a connection attempt.
const CONNECT: Duration = Duration::from_secs(5);
/// The time limit of the whole exchange.
const EXCHANGE: Duration = Duration::from_secs(30);
/// The most addresses of a name that are tried.
const ADDRESSES_MAX: usize = 4;
const HTTP_PORT: u16 = 80;

/// The response to a request (both DER), from the responder or through a proxy. It is not parsed
/// here.
pub(super) async fn fetch(
    uri: &str,
    request: &[u8],
    http_proxy: Option<&Addr>,
) -> Result<Vec<u8>, Fault> {
    let failed = |why: String| (OcspOutcome::Http, why);
    let uri = Uri::parse(uri).map_err(|why| failed(why.to_owned()))?;
    let request = uri.request(request, http_proxy.is_some());
    let asked = async {
        let conn = match http_proxy {
            Some(proxy) => open(proxy.clone()).await,
            None => uri.connect().await,
        };
        let mut conn = conn.map_err(failed)?;
        ask(&mut conn, &request).await
    };
    match timeout(EXCHANGE, asked).await {
        Ok(asked) => asked,
        Err(_) => Err(failed("timeout".to_owned())),
    }
}

async fn ask(conn: &mut Conn, request: &Request) -> Result<Vec<u8>, Fault> {
    let failed = |why: &str| (OcspOutcome::Http, why.to_owned());
    let mut exchange = Exchange::over_h1();
    let bytes = exchange.send(request, false);
    let bytes = bytes.ok_or_else(|| failed("the responder's address cannot be written"))?;
    let lost = |lost: Lost| (OcspOutcome::Http, text(lost));
    conn.send(&bytes).await.map_err(lost)?;
    let mut input = Vec::new();
    while !exchange.is_whole() {
        let goes_on = conn.read(&mut input).await.map_err(lost)?;
        exchange.take(&mut input, !goes_on, RESPONSE_BYTES_MAX);
        if exchange.is_broken() || input.len() > HEAD_BYTES_MAX {
            return Err(failed("not HTTP"));
        }
    }
    let Some(head) = exchange.head() else {
        return Err(failed("no answer"));
    };
    if head.status() != 200 {
        return Err(failed(&format!("status {}", head.status())));
    }
    let mut types = head.get_all(Name::ContentType);
    if !types.any(|(_, value)| value.eq_ignore_ascii_case(b"application/ocsp-response")) {
        return Err((OcspOutcome::Header, String::new()));
    }
    match exchange.body().len() {
        RESPONSE_BYTES_MAX.. => Err(failed("the answer is too long")),
        _ => Ok(exchange.body().to_vec()),
    }
}

async fn open(to: Addr) -> Result<Conn, String> {
    let way = Way {
        is_quic: false,
        to,
        tls: false,
        sni: None,
        alpn: None,
        proxy_header: None,
        socks4: None,
        proto: None,
        source: None,
    };
    let opened = timeout(CONNECT, Conn::open(&way, None, true, &mut Layer::Four)).await;
    match opened {
        Ok(opened) => opened.map_err(text),
        Err(_) => Err("timeout".to_owned()),
    }
}

fn text(lost: Lost) -> String {
    match lost {
        Lost::Io(error) => net::sys::plain_error(&error),
        Lost::Handshake(why) => why,
        Lost::Socks4(why) => why.to_owned(),
    }
}

/// The address of a responder.
#[derive(Debug, PartialEq, Eq)]
struct Uri<'a> {
    /// Host and port as written.
    authority: &'a str,
    host: &'a str,
    port: u16,
    /// The path and query.
    path: &'a str,
}

impl<'a> Uri<'a> {
    /// Reads `http://host[:port][/path]`.
    fn parse(uri: &'a str) -> Result<Uri<'a>, &'static str> {
        const SCHEME: &str = "http://";
        if !uri.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("the responder's address is malformed");
        }
        let rest = match uri.get(..SCHEME.len()) {
            Some(scheme) if scheme.eq_ignore_ascii_case(SCHEME) => &uri[SCHEME.len()..],
            _ => return Err("only responders at http:// are asked"),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, Some(port)),
            _ => (authority, None),
        };
        let port = match port {
            None | Some("") => Some(HTTP_PORT),
            Some(port) => port.parse().ok(),
        };
        let host = match host.strip_prefix('[') {
            Some(host) => host.strip_suffix(']').unwrap_or_default(),
            None => host,
        };
        match port {
            Some(port) if !host.is_empty() && !authority.contains('@') => Ok(Uri {
                authority,
                host,
                port,
                path,
            }),
            _ => Err("the responder's address is malformed"),
        }
    }

    /// The request; for a proxy it contains the absolute URI.
    fn request(&self, der: &[u8], is_for_proxy: bool) -> Request {
        let Uri {
            authority, path, ..
        } = self;
        let prefix = if is_for_proxy {
            format!("http://{authority}")
        } else {
            String::new()
        };
        let encoded = percent(&STANDARD.encode(der));
        let short = format!(
            "{prefix}{}/{encoded}",
            path.strip_suffix('/').unwrap_or(path)
        );
        let is_short = short.len() <= GET_BYTES_MAX;
        let mut headers = vec![
            (b"host".to_vec(), authority.as_bytes().to_vec()),
            (b"accept".to_vec(), b"application/ocsp-response".to_vec()),
        ];
        if !is_short {
            let kind = b"application/ocsp-request".to_vec();
            headers.push((b"content-type".to_vec(), kind));
        }
        let slash = if path.starts_with('/') { "" } else { "/" };
        let uri = if is_short {
            short
        } else {
            format!("{prefix}{slash}{path}")
        };
        Request {
            method: if is_short { "GET" } else { "POST" }.into(),
            uri: uri.into_bytes(),
            version: b"HTTP/1.1".to_vec(),
            headers,
            body: (!is_short).then(|| der.to_vec()),
        }
    }

    /// Connects to the first of its addresses that accepts.
    async fn connect(&self) -> Result<Conn, String> {
        let found = of_process().lookup(self.host, self.port).await;
        let found = found.map_err(|error| format!("'{}': {error}", self.host))?;
        let mut why = format!("'{}' has no address", self.host);
        for address in found.into_iter().take(ADDRESSES_MAX) {
            match open(Addr::Inet(address)).await {
                Ok(conn) => return Ok(conn),
                Err(error) => why = error,
            }
        }
        Err(why)
    }
}

/// Percent-encodes the base64 characters other than letters and digits (RFC 3986 §2.1).
fn percent(base64: &str) -> String {
    let mut out = String::with_capacity(base64.len() + 16);
    for character in base64.chars() {
        match character {
            '+' => out.push_str("%2B"),
            '/' => out.push_str("%2F"),
            '=' => out.push_str("%3D"),
            other => out.push(other),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_responders() {
        let uri = |text| Uri::parse(text).map(|uri| (uri.host, uri.port, uri.path));
        for (text, expected) in [
            ("http://a.test", Ok(("a.test", 80, ""))),
            ("HTTP://a.test:", Ok(("a.test", 80, ""))),
            ("http://a.test:8080/x?y", Ok(("a.test", 8080, "/x?y"))),
            ("http://[::1]:81/", Ok(("::1", 81, "/"))),
            ("http://[::1]", Ok(("::1", 80, ""))),
            (
                "https://a.test/",
                Err("only responders at http:// are asked"),
            ),
            ("é", Err("the responder's address is malformed")),
            (
                "http://a.test/\r\nx: y",
                Err("the responder's address is malformed"),
            ),
            ("http://", Err("the responder's address is malformed")),
            (
                "http://u@a.test/",
                Err("the responder's address is malformed"),
            ),
            (
                "http://a.test:65536/",
                Err("the responder's address is malformed"),
            ),
            ("http://[::1/", Err("the responder's address is malformed")),
        ] {
            assert_eq!(uri(text), expected, "{text}");
        }
    }

    #[test]
    fn long_requests_are_posted() {
        let uri = Uri::parse("http://a.test:81/ca/").unwrap();
        let get = uri.request(&[0xfb, 0xff], false);
        assert_eq!(
            (&get.method[..], &get.uri[..]),
            (&b"GET"[..], &b"/ca/%2B%2F8%3D"[..])
        );
        assert_eq!(get.headers[0].1, b"a.test:81");
        let by_proxy = uri.request(&[0xfb, 0xff], true);
        assert_eq!(by_proxy.uri, b"http://a.test:81/ca/%2B%2F8%3D");
        let post = uri.request(&[0; 300], false);
        assert_eq!(
            (&post.method[..], &post.uri[..]),
            (&b"POST"[..], &b"/ca/"[..])
        );
        assert_eq!(post.body.map(|body| body.len()), Some(300));
        let bare = Uri::parse("http://a.test").unwrap();
        assert_eq!(bare.request(&[0; 300], false).uri, b"/");
    }
}
