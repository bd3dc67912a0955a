//! Proxies from the environment: `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`, or the same in lower
//! case, with the rules of Go programs (golang.org/x/net/http/httpproxy).

use std::net::IpAddr;

use hyper::Uri;
use ipnet::IpNet;

use super::Proxy;

/// The configured proxies. The loopback addresses of this machine are never reached through a
/// proxy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Proxies {
    http: Option<Proxy>,
    https: Option<Proxy>,
    direct: Vec<Direct>,
}

/// An entry of `NO_PROXY`: destinations reached without a proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Direct {
    /// `*`
    All,
    /// Addresses of a network.
    Network(IpNet),
    /// An address, optionally at one port only.
    Address(IpAddr, Option<u16>),
    /// A domain, optionally at one port only.
    Domain {
        /// With a leading dot.
        suffix: String,
        /// The domain itself matches too, not only its subdomains.
        with_itself: bool,
        port: Option<u16>,
    },
}

impl Proxies {
    /// Reads the variables with `variable`. Also returns errors; faulty variables are ignored.
    pub fn from_environment(variable: impl Fn(&str) -> Option<String>) -> (Proxies, Vec<String>) {
        let mut wrong = Vec::new();
        let of = |name: &str| {
            let written = |name: &str| variable(name).filter(|value| !value.is_empty());
            written(name).or_else(|| written(&name.to_ascii_lowercase()))
        };
        let mut proxy = |name: &str| {
            let text = of(name)?;
            // A host without a scheme is an HTTP proxy.
            let text = if text.contains("://") {
                text
            } else {
                format!("http://{text}")
            };
            let proxy = Proxy::parse(&text);
            proxy
                .map_err(|why| wrong.push(format!("{name} {why}: it is ignored")))
                .ok()
        };
        // In a CGI program the variable would hold the request field `Proxy`.
        let is_cgi = variable("REQUEST_METHOD").is_some_and(|method| !method.is_empty());
        let http = proxy("HTTP_PROXY").filter(|_| !is_cgi);
        let https = proxy("HTTPS_PROXY");
        let direct = of("NO_PROXY").map_or(Vec::new(), |text| directs(&text));
        (
            Proxies {
                http,
                https,
                direct,
            },
            wrong,
        )
    }

    /// The proxy for a URL.
    #[must_use]
    pub fn to_url(&self, url: &str) -> Option<Proxy> {
        let uri: Uri = url.parse().ok()?;
        let (proxy, port) = match uri.scheme_str()? {
            "https" => (&self.https, 443),
            _ => (&self.http, 80),
        };
        let port = uri.port_u16().unwrap_or(port);
        self.unless_direct(proxy.as_ref()?, uri.host()?, port)
    }

    /// The proxy for `host:port` over gRPC, with or without TLS.
    #[must_use]
    pub fn to_grpc(&self, target: &str) -> Option<Proxy> {
        self.to_url(&format!("https://{target}"))
    }

    fn unless_direct(&self, proxy: &Proxy, host: &str, port: u16) -> Option<Proxy> {
        let host = host.trim_matches(['[', ']']).to_ascii_lowercase();
        let address = host.parse::<IpAddr>().ok().map(|it| it.to_canonical());
        let is_here = host == "localhost" || address.is_some_and(|it| it.is_loopback());
        let mut directs = self.direct.iter();
        let is_direct = is_here || directs.any(|one| one.is_of(&host, address, port));
        (!is_direct).then(|| proxy.clone())
    }
}

impl Direct {
    fn is_of(&self, host: &str, address: Option<IpAddr>, at: u16) -> bool {
        match (self, address) {
            (Direct::All, _) => true,
            (Direct::Network(network), Some(address)) => network.contains(&address),
            (Direct::Address(own, port), Some(address)) => {
                *own == address && port.is_none_or(|port| port == at)
            }
            (
                Direct::Domain {
                    suffix,
                    with_itself,
                    port,
                },
                None,
            ) => {
                let is_itself = *with_itself && suffix.strip_prefix('.') == Some(host);
                (is_itself || host.ends_with(suffix)) && port.is_none_or(|port| port == at)
            }
            _ => false,
        }
    }
}

fn directs(text: &str) -> Vec<Direct> {
    let parts = text.split(',').map(|part| part.trim().to_ascii_lowercase());
    let parts: Vec<String> = parts.collect();
    if parts.iter().any(|part| part == "*") {
        return vec![Direct::All];
    }
    parts.iter().filter_map(|part| direct(part)).collect()
}

/// Parses one entry; none if it is empty or invalid.
fn direct(part: &str) -> Option<Direct> {
    if let Ok(network) = part.parse() {
        return Some(Direct::Network(network));
    }
    if let Ok(address) = part.parse::<IpAddr>() {
        return Some(Direct::Address(address.to_canonical(), None));
    }
    let (host, port) = match part.rsplit_once(':') {
        Some((host, port)) => (host, Some(port.parse().ok()?)),
        None => (part, None),
    };
    let bare = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    if let Ok(address) = bare.unwrap_or(host).parse::<IpAddr>() {
        return Some(Direct::Address(address.to_canonical(), port));
    }
    let host = host
        .strip_prefix('*')
        .filter(|it| it.starts_with('.'))
        .unwrap_or(host);
    (!host.is_empty()).then(|| Direct::Domain {
        suffix: if host.starts_with('.') {
            host.to_owned()
        } else {
            format!(".{host}")
        },
        with_itself: !host.starts_with('.'),
        port,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> (Proxies, Vec<String>) {
        Proxies::from_environment(|name| {
            let found = variables.iter().find(|(own, _)| *own == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    fn uri(proxy: Option<Proxy>) -> String {
        proxy.map_or(String::new(), |proxy| proxy.uri.to_string())
    }

    #[test]
    fn each_scheme_has_its_variable_in_either_case() {
        let (both, wrong) = of(&[("HTTP_PROXY", "one:3128"), ("https_proxy", "http://two:1")]);
        assert!(wrong.is_empty());
        assert_eq!(uri(both.to_url("http://a/v1")), "http://one:3128/");
        assert_eq!(uri(both.to_url("https://a/v1")), "http://two:1/");
        assert_eq!(uri(both.to_grpc("a:4317")), "http://two:1/");
        let (large, _) = of(&[("https_proxy", "small:1"), ("HTTPS_PROXY", "large:1")]);
        assert_eq!(uri(large.to_grpc("a:4317")), "http://large:1/");
        assert_eq!(large.to_url("http://a"), None);
        let (empty, _) = of(&[("https_proxy", "small:1"), ("HTTPS_PROXY", "")]);
        assert_eq!(uri(empty.to_grpc("a:4317")), "http://small:1/");
        let (cgi, _) = of(&[("HTTP_PROXY", "one:1"), ("REQUEST_METHOD", "GET")]);
        assert_eq!(cgi.to_url("http://a"), None);
        let (none, wrong) = of(&[("HTTPS_PROXY", "ftp://me:secret@a")]);
        assert_eq!(none, Proxies::default());
        assert!(
            wrong[0].starts_with("HTTPS_PROXY must begin with") && !wrong[0].contains("secret")
        );
    }

    #[test]
    fn what_is_named_or_here_is_reached_directly() {
        let through = |no: &str, url: &str| {
            let all = [
                ("HTTP_PROXY", "p:1"),
                ("HTTPS_PROXY", "p:2"),
                ("NO_PROXY", no),
            ];
            of(&all).0.to_url(url).is_some()
        };
        for (no, url, expected) in [
            ("", "http://a.example", true),
            ("", "http://localhost:80", false),
            ("", "https://LOCALHOST", false),
            ("", "http://127.1.2.3", false),
            ("", "http://[::1]:4318", false),
            ("", "http://[::ffff:127.0.0.1]", false),
            ("*", "http://a.example", false),
            ("b, *", "http://a.example", false),
            ("a.example", "http://a.example", false),
            ("a.example", "http://b.A.example", false),
            ("a.example", "http://ba.example", true),
            (".a.example", "http://a.example", true),
            (".a.example", "http://b.a.example", false),
            ("*.a.example", "http://a.example", true),
            ("*.a.example", "http://c.b.a.example", false),
            ("A.example:81", "http://a.example:81", false),
            ("a.example:81", "http://a.example", true),
            ("a.example:80", "http://a.example", false),
            ("a.example:443", "https://a.example", false),
            ("x, ,b , a.example", "http://a.example", false),
            ("10.0.0.0/8", "http://10.1.2.3:4318", false),
            ("10.0.0.0/8", "http://11.1.2.3:4318", true),
            ("10.0.0.0/0", "http://11.1.2.3", false),
            ("10.0.0.0/33", "http://10.0.0.0", true),
            ("fd00::/8", "http://[fd00::1]:1", false),
            ("fd00::/8", "http://[fe00::1]:1", true),
            ("fd00::/8", "http://10.0.0.1", true),
            ("10.0.0.1", "http://10.0.0.1:9", false),
            ("10.0.0.1:9", "http://10.0.0.1:9", false),
            ("10.0.0.1:9", "http://10.0.0.1", true),
            ("::ffff:10.0.0.1", "http://10.0.0.1", false),
            ("[fd00::1]:9", "http://[fd00::1]:9", false),
            ("[fd00::1]:9", "http://[fd00::1]:8", true),
            ("fd00::1", "http://[fd00::1]:8", false),
            ("0.0.1", "http://10.0.0.1", true),
            (":80,a:x,/8,[,:", "http://a", true),
        ] {
            assert_eq!(through(no, url), expected, "{no} {url}");
        }
    }
}
