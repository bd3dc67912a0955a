//! A proxy of HTTP between an exporter and its receiver (RFC 9110 sections 3.7 and 9.3.6).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::Uri;
use hyper::header::HeaderValue;
use hyper::http::uri::{Authority, Scheme};
use syntax::escape::{self, Plus};

/// See the module. What goes to `https://` addresses goes through a tunnel; the rest is asked of the proxy itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxy {
    /// Its address, without a user.
    pub(crate) uri: Uri,
    /// What `Proxy-Authorization` says.
    pub(crate) credential: Option<HeaderValue>,
}

impl Proxy {
    /// Reads `http://host:port` or `http://user:password@host:port`, both parts as they are sent but for `%` escapes.
    ///
    /// # Errors
    /// What is wrong with it, without its text: that may hold a password.
    pub fn parse(text: &str) -> Result<Proxy, String> {
        let rest = text.strip_prefix("http://");
        let rest = rest.ok_or("must begin with http://: there are no other proxies")?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (user, host) = match rest.rsplit_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, rest),
        };
        let authority = host.parse::<Authority>();
        let authority = authority.map_err(|_| "must name a host and a port")?;
        if authority.host().is_empty() {
            return Err("must name a host".into());
        }
        let has_port = authority.as_str().len() > authority.host().len();
        if has_port && authority.port_u16().is_none() {
            return Err("has no port from 0 to 65535".into());
        }
        let uri = Uri::builder()
            .scheme(Scheme::HTTP)
            .authority(authority)
            .path_and_query("/")
            .build()
            .map_err(|error| error.to_string())?;
        let credential = match user {
            Some(user) => Some(credential(user)?),
            None => None,
        };
        Ok(Proxy { uri, credential })
    }
}

/// `Basic` (RFC 7617).
fn credential(user: &str) -> Result<HeaderValue, String> {
    let (name, password) = user.split_once(':').unwrap_or((user, ""));
    let (name, password) = (unescaped(name)?, unescaped(password)?);
    let pair = [&name[..], b":", &password[..]].concat();
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
        let plain = Proxy::parse("http://proxy:3128/").unwrap();
        assert_eq!(
            (plain.uri.to_string(), plain.credential),
            ("http://proxy:3128/".into(), None)
        );
        let known = Proxy::parse("http://me:p%40ss@[::1]:3128").unwrap();
        assert_eq!(known.uri.to_string(), "http://[::1]:3128/");
        assert_eq!(known.credential.unwrap(), "Basic bWU6cEBzcw==");
        for wrong in [
            "",
            "proxy:3128",
            "https://proxy",
            "socks5://proxy",
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
