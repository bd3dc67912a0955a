//! Checks of texts in settings.

use std::net::Ipv6Addr;

/// Checks the URL of a receiver and adds `http` if it has no scheme. `tls`: the scheme becomes
/// `https` in any case.
///
/// # Errors
/// Why it is not a valid URL, to be appended to its text.
pub fn check_url(text: &str, tls: bool) -> Result<String, &'static str> {
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (scheme.to_ascii_lowercase(), rest),
        None => ("http".to_owned(), text),
    };
    if scheme != "http" && scheme != "https" {
        return Err("must begin with http:// or https://");
    }
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.contains('@') {
        return Err("a user in a URL is not supported: write a header field");
    }
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (authority, None),
    };
    let printable = |byte: u8| byte.is_ascii_graphic() && !b"\"<>\\^`{}|".contains(&byte);
    if host.is_empty() || !rest.bytes().all(printable) {
        return Err("must name a host, without blanks or control characters");
    }
    let bracketed = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    let is_host = match bracketed {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => !host.contains(['[', ']', ':']),
    };
    if !is_host {
        return Err("an IPv6 address stands in brackets");
    }
    if port.is_some_and(|port| port.parse::<u16>().is_err()) {
        return Err("the port must be a number from 0 to 65535");
    }
    let scheme = if tls { "https" } else { scheme.as_str() };
    Ok(format!("{scheme}://{rest}"))
}

/// The section name in an endpoint `collector://<name>`; none for other endpoints.
#[must_use]
pub fn collector_name(endpoint: &str) -> Option<&str> {
    endpoint.strip_prefix("collector://")
}

/// Whether a name and a value are a valid header field (RFC 9110 section 5.5).
pub(super) fn header(name: &str, value: &str) -> Result<(), String> {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(token) {
        return Err(format!("'{}' is no name of a field", name.escape_debug()));
    }
    if value
        .bytes()
        .any(|byte| byte < b' ' && byte != b'\t' || byte == 0x7f)
    {
        return Err(format!("the value of '{name}' has a control character"));
    }
    Ok(())
}
