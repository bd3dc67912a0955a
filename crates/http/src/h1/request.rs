//! The rules of whole requests, and HAProxy's normalisation of them.

use super::facts::Facts;
use super::hops::keep_end_to_end;
use super::parse::{Parser, Stop};
use super::{Framing, ParseError, Parsed};
use crate::bytes::{list, skip_target};
use crate::head::span;
use crate::target::{Form, host_port, is_bad_authority, is_default_port, is_same_host, split};
use crate::{Head, Method, Name, Version};

/// The length of a `Sec-WebSocket-Key`: 16 bytes in base64 (RFC 6455 §4.1).
const WEBSOCKET_KEY_BYTES: usize = 24;

/// Parses a request head with all its rules.
pub(super) fn parse(parser: &mut Parser<'_>) -> Result<Parsed, Stop> {
    parser.empty_lines()?;
    let mut facts = Facts::request(parser.relaxed);
    if request_line(parser)? {
        parser.fields(&mut facts)?;
    }
    let relaxed = parser.relaxed;
    let (head, consumed) = (&mut *parser.head, parser.at);
    target_rules(head, relaxed)?;
    let framing = framing(head, &facts)?;
    let upgrade = facts.upgrade_option && facts.upgrade_field;
    if upgrade && facts.websocket && !relaxed {
        let key = head.get(Name::SecWebsocketKey);
        if key.is_none_or(|key| key.len() != WEBSOCKET_KEY_BYTES) {
            return Err(ParseError::BadWebSocketKey.into());
        }
    }
    keep_end_to_end(head, &facts);
    if facts.upgrade_field && !facts.upgrade_option {
        head.remove_id(Name::Upgrade);
    }
    if facts.te {
        keep_te_trailers(head);
    }
    let http11 = head.version() == Version::Http11;
    let insecure = facts.transfer_encoding && (facts.length.is_some() || !http11);
    Ok(Parsed {
        consumed,
        framing,
        keep_alive: !facts.close && !insecure && (http11 || facts.keep_alive),
        keep_alive_asked: facts.keep_alive,
        upgrade,
        expect_continue: facts.expect_continue && http11,
    })
}

/// Parses the request line (RFC 9112 §3). Returns whether fields follow: not in HTTP/0.9, which
/// only a relaxed parser accepts, and only for GET.
fn request_line(parser: &mut Parser<'_>) -> Result<bool, Stop> {
    let from = parser.at;
    let method = match parser.usual_method() {
        Some(method) => method,
        None => Method::from_bytes(parser.token()),
    };
    let method_len = parser.at - from;
    if method_len == 0 {
        return Err(parser.bad(from, ParseError::BadMethod));
    }
    parser.spaces(ParseError::BadMethod)?;

    let target = parser.at;
    parser.at = target_end(parser)?;
    let target_len = parser.at - target;
    if target_len == 0 {
        return Err(parser.bad(target, ParseError::BadTarget));
    }
    parser.head.start.method = method;
    parser.head.start.method_text = span(from, method_len);
    parser.head.locate_target(span(target, target_len));
    if matches!(parser.byte(parser.at), b'\r' | b'\n') {
        return http09(parser);
    }
    parser.spaces(ParseError::BadTarget)?;

    let version = parser.at;
    let mut version_len = Some(8);
    if !parser.usual_version() {
        while parser.byte(parser.at) > b' ' {
            parser.at += 1;
        }
        if parser.relaxed && parser.at == version && matches!(parser.byte(version), b'\r' | b'\n') {
            return http09(parser);
        }
        let version_end = parser.at;
        parser.line_end(ParseError::BadVersion)?;
        version_len = parser.version(version, version_end)?;
    }
    if let Some(version_len) = version_len {
        parser.keep_line(from, method_len + target_len + version_len);
    }
    Ok(true)
}

fn http09(parser: &mut Parser<'_>) -> Result<bool, Stop> {
    if !parser.relaxed || parser.head.method() != Method::Get {
        return Err(ParseError::BadVersion.into());
    }
    parser.head.start.version = Version::Http10;
    parser.line_end(ParseError::BadVersion)?;
    parser.head.buf.truncate(parser.at);
    Ok(false)
}

/// The end of the request target: the next white space. A relaxed parser accepts `#` and bytes
/// above 127.
fn target_end(parser: &Parser<'_>) -> Result<usize, Stop> {
    let mut at = parser.at;
    loop {
        at = skip_target(&parser.head.buf, at);
        match parser.byte(at) {
            b' ' | b'\r' | b'\n' => return Ok(at),
            b'\t' if parser.relaxed => return Ok(at),
            b'#' | 0x80.. if parser.relaxed => at += 1,
            _ => return Err(parser.bad(at, ParseError::BadTarget)),
        }
    }
}

/// Checks that the form of the target fits the method (RFC 9112 §3.2), and that `Host` equals the
/// target's authority.
fn target_rules(head: &mut Head, relaxed: bool) -> Result<(), ParseError> {
    let method = head.method();
    if head.target().first() == Some(&b'/') {
        return if method == Method::Connect {
            Err(ParseError::BadTargetForm)
        } else {
            Ok(())
        };
    }
    let parts = split(head.target());
    let authority = &head.target()[parts.authority.clone()];
    let scheme = &head.target()[parts.scheme.clone()];
    let bad_authority = is_bad_authority(authority);
    match parts.form {
        Form::Asterisk
            if head.target() == b"*" && matches!(method, Method::Options | Method::Other) =>
        {
            Ok(())
        }
        Form::Authority if method == Method::Connect => {
            if bad_authority && !relaxed {
                return Err(ParseError::BadAuthority);
            }
            match connect_host(authority, head.get(Name::Host)) {
                Ok(None) => {}
                Ok(Some(len)) => cut_host(head, len),
                Err(error) if !relaxed => return Err(error),
                Err(_) => {}
            }
            Ok(())
        }
        Form::Absolute if method != Method::Connect => {
            if bad_authority && !relaxed {
                return Err(ParseError::BadAuthority);
            }
            let host = head.get(Name::Host);
            if !relaxed && host.is_some_and(|host| !is_same_host(scheme, authority, host)) {
                return Err(ParseError::HostMismatch);
            }
            if !bad_authority {
                normalise_absolute(head);
                name_host(head);
            }
            Ok(())
        }
        _ => Err(ParseError::BadTargetForm),
    }
}

/// The authority of `CONNECT` needs a port, and `Host` must name the same host and port; it may
/// omit a default port. Returns the length to which `Host` is cut if it has a default port.
fn connect_host(authority: &[u8], host: Option<&[u8]>) -> Result<Option<usize>, ParseError> {
    let (name, Some(port @ [_, ..])) = host_port(authority) else {
        return Err(ParseError::BadAuthority);
    };
    let Some(host) = host else { return Ok(None) };
    let (host_name, given) = host_port(host);
    let default = is_default_port(b"", port);
    match given {
        _ if !host_name.eq_ignore_ascii_case(name) => Err(ParseError::HostMismatch),
        Some(given @ [_, ..]) if given != port => Err(ParseError::HostMismatch),
        Some([_, ..]) => Ok(default.then_some(host_name.len())),
        _ if default => Ok(None),
        _ => Err(ParseError::HostMismatch),
    }
}

/// Removes the default port from an absolute target and adds a missing path; `Host` then follows
/// the target (RFC 3986 §6.2.3).
fn normalise_absolute(head: &mut Head) {
    let parts = split(head.target());
    let target = head.start.target;
    let authority = &head.target()[parts.authority.clone()];
    let (name, port) = host_port(authority);
    let scheme = &head.target()[parts.scheme];
    let keep = match port {
        Some(port) if is_default_port(scheme, port) => name.len(),
        _ => authority.len(),
    };
    let add_path = parts.path_at == target.len as usize && head.method() != Method::Options;
    if keep == authority.len() && !add_path {
        return;
    }
    let (from, at) = (target.at as usize, head.buf.len());
    head.buf
        .extend_from_within(from..from + parts.authority.start + keep);
    head.buf
        .extend_from_within(from + parts.path_at..from + target.len as usize);
    if add_path {
        head.buf.push(b'/');
    }
    head.start.line = span(0, 0);
    let host = span(at + parts.authority.start, keep);
    head.locate_target(span(at, head.buf.len() - at));
    head.point_values(Name::Host, host);
}

/// Adds the `Host` of the target to a request without one (RFC 9112 §3.2.2).
fn name_host(head: &mut Head) {
    if !head.has(Name::Host)
        && let Some(authority) = head.authority()
    {
        let host = authority.to_vec();
        head.append(b"host", &host);
    }
}

/// Cuts the only `Host` to its first `len` bytes.
fn cut_host(head: &mut Head, len: usize) {
    let found = head
        .fields
        .iter()
        .find(|field| field.id == Name::Host && field.live);
    if let Some(at) = found.map(|field| field.value.at) {
        head.point_values(Name::Host, span(at as usize, len));
    }
}

/// RFC 9112 §6.3 for requests, with HAProxy's error statuses.
fn framing(head: &mut Head, facts: &Facts) -> Result<Framing, ParseError> {
    let mut framing = facts.length.map_or(Framing::None, Framing::Length);
    if facts.transfer_encoding {
        if !facts.chunked {
            return Err(ParseError::ChunkedNotLast);
        }
        if facts.other_coding {
            return Err(ParseError::UnknownTransferCoding);
        }
        head.remove_id(Name::ContentLength);
        framing = Framing::Chunked;
    }
    if head.method() == Method::Connect {
        head.remove_id(Name::ContentLength);
        head.remove_id(Name::TransferEncoding);
        return Ok(Framing::None);
    }
    let bare = matches!(head.method(), Method::Get | Method::Head | Method::Delete);
    if bare
        && head.version() == Version::Http10
        && !matches!(framing, Framing::None | Framing::Length(0))
    {
        return Err(ParseError::PayloadNotAllowed);
    }
    Ok(framing)
}

/// `TE` is hop-by-hop: of its values, only `trailers` also holds for a proxy (RFC 9110 §10.1.4).
fn keep_te_trailers(head: &mut Head) {
    let mut trailers = false;
    for (_, value) in head.get_all(Name::Te) {
        trailers |= list(value).any(|coding| coding.eq_ignore_ascii_case(b"trailers"));
    }
    head.remove_id(Name::Te);
    if trailers {
        head.append(b"te", b"trailers");
    }
}
