//! `cookie`, `dynamic-cookie-key` and `capture cookie` (manual §4.2).

use super::line::{Cursor, Line, Parse};
use super::proxy::ProxyBuild;
use super::values::{self, Bad};
use crate::model::{CaptureCookie, Cookie, CookieMode, Server, ServerAddress};
use net::Addr;
use sample::hashes::xxh64;
use std::net::IpAddr;
use std::sync::Arc;
use syntax::octets::Octets;

/// `cookie <name> [<options>]`
pub fn cookie(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    line.need(1, || "'cookie' expects <cookie_name> as argument.".into())?;
    let mut cookie = Cookie {
        name: line.octets(1),
        ..Cookie::default()
    };
    let (mut modes, mut domains, mut rest) = (Vec::new(), Vec::new(), Vec::new());
    let (mut httponly, mut secure) = (false, false);
    let mut cursor = Cursor { line: *line, at: 2 };
    while !cursor.peek().is_empty() {
        match cursor.take() {
            "rewrite" => modes.push(CookieMode::Rewrite),
            "insert" => modes.push(CookieMode::Insert),
            "prefix" => modes.push(CookieMode::Prefix),
            "indirect" => cookie.indirect = true,
            "nocache" => cookie.nocache = true,
            "postonly" => cookie.postonly = true,
            "preserve" => cookie.preserve = true,
            "httponly" => httponly = true,
            "secure" => secure = true,
            "dynamic" => cookie.dynamic = true,
            "domain" => {
                domains.extend_from_slice(b"; domain=");
                domains.extend_from_slice(domain(build, &mut cursor)?.as_bytes());
            }
            "maxidle" => cookie.maxidle_s = seconds(build, &mut cursor, "<idletime>")?,
            "maxlife" => cookie.maxlife_s = seconds(build, &mut cursor, "<lifetime>")?,
            "attr" => {
                rest.extend_from_slice(b"; ");
                rest.extend_from_slice(attribute(&mut cursor)?);
            }
            _ => {
                return Err(cursor.fault(
                    "'cookie' supports 'rewrite', 'insert', 'prefix', 'indirect', 'nocache', 'postonly', 'domain', \
                     'maxidle', 'dynamic', 'maxlife' and 'attr' options.",
                ));
            }
        }
    }
    let flags = [(httponly, "; HttpOnly"), (secure, "; Secure")];
    for (_, flag) in flags.iter().filter(|(set, _)| *set) {
        domains.extend_from_slice(flag.as_bytes());
    }
    cookie.attributes = [domains, rest].concat().into();
    cookie.mode = modes.first().copied().unwrap_or_default();
    let fault = |message: &str| Err(line.fault(0, message));
    if cookie.indirect && modes.contains(&CookieMode::Rewrite) {
        return fault("cookie 'rewrite' and 'indirect' modes are incompatible.");
    }
    if modes.iter().any(|mode| *mode != cookie.mode) {
        return fault("cookie 'rewrite', 'insert' and 'prefix' modes are incompatible.");
    }
    if cookie.preserve && !cookie.indirect && cookie.mode != CookieMode::Insert {
        return fault("cookie 'preserve' requires at least 'insert' or 'indirect'.");
    }
    build.proxy.cookie = Some(cookie);
    Ok(())
}

fn domain<'a>(build: &mut ProxyBuild<'_, '_>, cursor: &mut Cursor<'a>) -> Parse<&'a str> {
    let domain = cursor.value("<domain>")?;
    let allowed = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if let Some(bad) = domain.chars().find(|c| !allowed(c)) {
        return Err(cursor.fault(format!(
            "character '{bad}' is not permitted in domain name '{domain}'."
        )));
    }
    if !domain.contains('.') {
        let message = format!(
            "domain '{domain}' contains no embedded dot, this configuration may not work properly (see RFC6265#5.2.3)."
        );
        let fault = cursor.fault(message).as_warning();
        build.shared.settle(Err(fault));
    }
    Ok(domain)
}

fn seconds(build: &mut ProxyBuild<'_, '_>, cursor: &mut Cursor<'_>, what: &str) -> Parse<u32> {
    let name = cursor.last();
    let text = cursor.value(&format!("{what} in seconds"))?;
    build.shared.note_time(&cursor.line, cursor.at - 1);
    match values::time_in(text, "s", 1_000_000) {
        Ok(time) => Ok(time.as_secs() as u32),
        // Rounded up.
        Err(Bad::Underflow) => Ok(1),
        Err(Bad::Overflow) => Err(cursor.fault(format!(
            "timer overflow in argument <{text}> to <{name}>, maximum value is 2147483647 s (~68 years)."
        ))),
        Err(Bad::Character(bad)) => Err(cursor.fault(format!(
            "unexpected character '{bad}' in argument to <{name}>."
        ))),
    }
}

fn attribute<'a>(cursor: &mut Cursor<'a>) -> Parse<&'a [u8]> {
    cursor.value("<value>")?;
    let value = cursor.line.bytes(cursor.at - 1);
    match value
        .iter()
        .find(|byte| byte.is_ascii_control() || **byte == b';')
    {
        Some(bad) => Err(cursor.fault(format!(
            "character '%x{bad:02X}' is not permitted in attribute value."
        ))),
        None => Ok(value),
    }
}

/// `dynamic-cookie-key <key>`
pub fn dynamic_key(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    line.need(1, || {
        "'dynamic-cookie-key' expects <secret_key> as argument.".into()
    })?;
    build.proxy.dynamic_cookie_key = Some(line.octets(1));
    line.at_most(1)
}

/// `capture cookie <name> len <length>`
pub fn capture(build: &mut ProxyBuild<'_, '_>, line: &Line<'_>) -> Parse {
    line.at_most_after(1, 3)?;
    let expected = || "'capture' expects 'cookie' <cookie_name> 'len' <len>.".to_owned();
    line.need(2, expected)?;
    line.need(4, expected)?;
    let len = Cursor { line: *line, at: 4 }.number(1..=65535usize)?;
    let most = build.global.tune.http_cookielen_bytes;
    if len > most {
        let message = format!(
            "truncating capture length to {most} bytes for {}.",
            build.title()
        );
        let fault = line.fault(4, message).as_warning();
        build.shared.settle(Err(fault));
    }
    build.proxy.capture_cookie = Some(CaptureCookie {
        prefix: line.octets(2),
        len: len.min(most),
    });
    Ok(())
}

/// Sets the cookie values of servers without one, for `cookie … dynamic`: a hash of the key, the
/// address and the port. It is the same in every proxy with the same key.
pub fn give_dynamic_values(servers: &mut [Arc<Server>], key: &[u8]) {
    // While the proxy is built, no server is shared, so every `get_mut` succeeds.
    for server in servers.iter_mut().filter_map(Arc::get_mut) {
        give_dynamic_value(server, key);
    }
}

/// Gives a server without a cookie value the one for its address.
fn give_dynamic_value(server: &mut Server, key: &[u8]) {
    if server.cookie.is_none()
        && let Some(value) = dynamic_value(&server.address, key)
    {
        server.options.cookie = Some(value);
        server.options.has_dynamic_cookie = true;
    }
}

/// The cookie value for an address and a key; None if the socket has no network address.
pub fn dynamic_value(address: &ServerAddress, key: &[u8]) -> Option<Octets> {
    let (ip, port) = match address {
        ServerAddress::Fixed(Addr::Inet(addr)) => (addr.ip(), addr.port()),
        ServerAddress::PortOffset { ip, .. } => (*ip, 0),
        ServerAddress::Fixed(_) => return None,
    };
    let mut text = key.to_vec();
    match ip {
        IpAddr::V4(ip) => text.extend_from_slice(&ip.octets()),
        IpAddr::V6(ip) => text.extend_from_slice(&ip.octets()),
    }
    text.extend_from_slice(&u32::from(port).to_be_bytes());
    Some(format!("{:016x}", xxh64(&text, 0)).into())
}
