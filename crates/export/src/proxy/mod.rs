//! A proxy between an exporter and its receiver: an HTTP proxy (RFC 9110 sections 3.7 and 9.3.6),
//! or SOCKS 5 (RFC 1928).

mod environment;

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::Uri;
use hyper::header::HeaderValue;
use hyper::http::uri::{Authority, Scheme};
use syntax::escape::{self, Plus};

pub use environment::Proxies;

/// A proxy. Requests to `https://` URLs use a tunnel; an HTTP proxy forwards all others itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxy {
    /// Its URL without user information; `https` if connections to it use TLS.
    pub(crate) uri: Uri,
    pub(crate) kind: Kind,
}

/// The protocol of a proxy, and our credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The value of `Proxy-Authorization`.
    Http(Option<HeaderValue>),
    Socks(Option<User>),
}

/// A SOCKS user (RFC 1929).
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct User {
    pub name: String,
    pub password: String,
}

impl fmt::Debug for User {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("User")
    }
}

const SCHEMES: &str = "must begin with http://, https:// or socks5://: there are no other proxies";
/// The default port of SOCKS proxies (RFC 1928 section 3).
const SOCKS_PORT: u16 = 1080;
/// The most bytes of a SOCKS user's name, and of the password.
const SOCKS_USER_BYTES_MAX: usize = 255;

impl Proxy {
    /// Reads `http://host:port` or `http://user:password@host:port`, where user and password may
    /// contain `%` escapes; or the same with `https`, `socks5` or `socks5h`. With either of the
    /// last two, the proxy resolves the receiver's name.
    ///
    /// # Errors
    /// The URL is invalid. The error does not contain its text, which may hold a password.
    pub fn parse(text: &str) -> Result<Proxy, String> {
        let (scheme, rest) = text.split_once("://").ok_or(SCHEMES)?;
        let is_socks = match scheme {
            "http" | "https" => false,
            "socks5" | "socks5h" => true,
            _ => return Err(SCHEMES.into()),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (user, host) = match rest.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, rest),
        };
        let user = user.map(credentials).transpose()?;
        let uri = Uri::builder()
            .scheme(if scheme == "https" {
                Scheme::HTTPS
            } else {
                Scheme::HTTP
            })
            .authority(authority(host, is_socks.then_some(SOCKS_PORT))?)
            .path_and_query("/")
            .build()
            .map_err(|error| error.to_string())?;
        let kind = if is_socks {
            Kind::Socks(user.map(socks_user).transpose()?)
        } else {
            Kind::Http(user.as_ref().map(basic).transpose()?)
        };
        Ok(Proxy { uri, kind })
    }

    /// Whether connections to the proxy use TLS.
    pub(crate) fn is_https(&self) -> bool {
        self.uri.scheme() == Some(&Scheme::HTTPS)
    }
}

/// A host and its port, or the default port.
fn authority(host: &str, default: Option<u16>) -> Result<Authority, String> {
    let parse = |text: &str| {
        let authority = text.parse::<Authority>();
        authority.map_err(|_| "must name a host and a port".to_owned())
    };
    let authority = parse(host)?;
    if authority.host().is_empty() {
        return Err("must name a host".into());
    }
    let has_port = authority.as_str().len() > authority.host().len();
    match default {
        _ if has_port && authority.port_u16().is_none() => {
            Err("has no port from 0 to 65535".into())
        }
        Some(port) if !has_port => parse(&format!("{host}:{port}")),
        _ => Ok(authority),
    }
}

/// The user of a proxy as its URL names it.
struct Credentials {
    name: Vec<u8>,
    password: Vec<u8>,
}

fn credentials(user: &str) -> Result<Credentials, String> {
    let (name, password) = user.split_once(':').unwrap_or((user, ""));
    Ok(Credentials {
        name: unescaped(name)?,
        password: unescaped(password)?,
    })
}

/// The user in the form for SOCKS (RFC 1929).
fn socks_user(credentials: Credentials) -> Result<User, String> {
    let text = |bytes: Vec<u8>| {
        let fits = bytes.len() <= SOCKS_USER_BYTES_MAX;
        let text = String::from_utf8(bytes).ok().filter(|_| fits);
        text.ok_or("has a user that SOCKS cannot say: 255 bytes of text are the most")
    };
    Ok(User {
        name: text(credentials.name)?,
        password: text(credentials.password)?,
    })
}

/// `Basic` (RFC 7617).
fn basic(credentials: &Credentials) -> Result<HeaderValue, String> {
    let pair = [&credentials.name[..], b":", &credentials.password[..]].concat();
    let value = HeaderValue::try_from(format!("Basic {}", STANDARD.encode(pair)));
    let mut value = value.map_err(|error| error.to_string())?;
    value.set_sensitive(true);
    Ok(value)
}

fn unescaped(text: &str) -> Result<Vec<u8>, String> {
    let bytes = escape::unescaped(text, Plus::Plus);
    bytes.ok_or_else(|| "has a '%' that is no escape in its user".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_proxies() {
        for (text, uri, kind) in [
            ("http://proxy:3128/", "http://proxy:3128/", Kind::Http(None)),
            (
                "http://me:p%40ss@[::1]:3128",
                "http://[::1]:3128/",
                Kind::Http(Some(HeaderValue::from_static("Basic bWU6cEBzcw=="))),
            ),
            ("https://proxy", "https://proxy/", Kind::Http(None)),
            ("socks5://proxy", "http://proxy:1080/", Kind::Socks(None)),
            (
                "socks5h://me:p%40ss@[::1]:1",
                "http://[::1]:1/",
                Kind::Socks(Some(User {
                    name: "me".into(),
                    password: "p@ss".into(),
                })),
            ),
        ] {
            let proxy = Proxy::parse(text).unwrap();
            assert_eq!((proxy.uri.to_string(), proxy.kind), (uri.to_owned(), kind));
        }
        let secret = Proxy::parse("socks5://me:secret@a").unwrap();
        assert!(!format!("{secret:?}").contains("secret"));
        for wrong in [
            "",
            "proxy:3128",
            "ftp://proxy",
            "socks4://proxy",
            "socks5://x%ff@a",
            "http://",
            "http:///",
            "http://:1",
            "http://a b",
            "http://a/b",
            "http://a:99999",
            "http://x%4@a",
            "http://x%zz@a",
        ] {
            let why = Proxy::parse(wrong).unwrap_err();
            assert!(!why.is_empty() && !why.contains("x%"), "{wrong}");
        }
    }
}
