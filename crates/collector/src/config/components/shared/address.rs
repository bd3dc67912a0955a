//! Addresses to listen on and to send to.

use crate::config::options::Section;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    /// `host:port`; an empty host is every address.
    Tcp {
        /// Host or address, without brackets.
        host: String,
        /// 0: any free one.
        port: u16,
        /// Which addresses of the host count.
        family: Family,
    },
    /// The path of a Unix socket.
    Unix(String),
}

/// Version of the Internet protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Family {
    /// Either.
    #[default]
    Any,
    /// Version 4.
    V4,
    /// Version 6.
    V6,
}

/// Values of `transport`.
#[rustfmt::skip]
pub(crate) const TRANSPORTS: &[&str] = &["tcp", "tcp4", "tcp6", "unix"];

/// The address of `endpoint`, by `transport`. An error is noted.
pub(crate) fn listen(section: &Section<'_>) -> Listen {
    let transport = section.text("transport");
    let family = match transport.as_str() {
        "unix" => {
            let endpoint = section.text("endpoint");
            if endpoint.is_empty() {
                section.error("endpoint", "must be the path of a socket");
            }
            return Listen::Unix(endpoint);
        }
        "tcp4" => Family::V4,
        "tcp6" => Family::V6,
        _ => Family::Any,
    };
    let (host, port) = endpoint(section);
    Listen::Tcp { host, port, family }
}

/// The host and port of `endpoint`. An error is noted.
pub(crate) fn endpoint(section: &Section<'_>) -> (String, u16) {
    let endpoint = section.text("endpoint");
    host_port(&endpoint).unwrap_or_else(|reason| {
        section.error("endpoint", &format!("'{endpoint}' {reason}"));
        (String::new(), 0)
    })
}

/// `host:port`, `[address]:port` or `:port`.
pub(crate) fn host_port(text: &str) -> Result<(String, u16), &'static str> {
    if text.contains("://") {
        return Err("is a URL: write host:port");
    }
    let Some((host, port)) = text.rsplit_once(':') else {
        return Err("has no port: write host:port");
    };
    let port = port.parse::<u16>();
    let port = port.map_err(|_| "must end in a port, a number from 0 to 65535")?;
    let host = match host.strip_prefix('[') {
        Some(inner) => inner.strip_suffix(']').ok_or("has '[' without ']'")?,
        None if host.contains(':') => {
            return Err("must have an IPv6 address in brackets: [::1]:4317");
        }
        None => host,
    };
    let is_name = |c: char| !c.is_whitespace() && !c.is_control() && !"/@?#".contains(c);
    if host.chars().all(is_name) {
        Ok((host.to_owned(), port))
    } else {
        Err("is no address: write host:port")
    }
}
