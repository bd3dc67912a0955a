//! Writes heads as header blocks (RFC 9113 §8.2, §8.3, RFC 9114 §4.2, §4.3), for HTTP/2 and HTTP/3.

use super::Scheme;
use super::hpack::FieldEncoder;
use crate::bytes::trim;
use crate::{Head, Method, Name};

/// Appends the block of a request. `scheme` is used if the target has none.
pub(crate) fn request(
    head: &Head,
    scheme: Scheme,
    encoder: &mut impl FieldEncoder,
    out: &mut Vec<u8>,
) {
    let method = head.method();
    encoder.method(method, head.method_bytes(), out);
    let host = || head.get(Name::Host).or(head.authority());
    if method == Method::Connect && head.protocol().is_none() {
        let target = Some(head.target()).filter(|target| !target.starts_with(b"/"));
        encoder.authority(target.or_else(host).unwrap_or_default(), out);
    } else {
        if let Some(protocol) = head.protocol() {
            encoder.protocol(protocol, out);
        }
        encoder.scheme(head.scheme().unwrap_or(scheme.as_str().as_bytes()), out);
        if let Some(host) = host().filter(|host| !host.is_empty()) {
            encoder.authority(host, out);
        }
        path(head, encoder, out);
    }
    fields(head, true, encoder, out);
}

/// Appends the block of a response.
pub(crate) fn response(head: &Head, encoder: &mut impl FieldEncoder, out: &mut Vec<u8>) {
    encoder.status(head.status(), out);
    fields(head, false, encoder, out);
}

/// Appends the block of a trailer section.
pub(crate) fn trailers(head: &Head, encoder: &mut impl FieldEncoder, out: &mut Vec<u8>) {
    fields(head, false, encoder, out);
}

fn path(head: &Head, encoder: &mut impl FieldEncoder, out: &mut Vec<u8>) {
    match head.path_and_query() {
        path @ [b'/', ..] => encoder.path(path, out),
        // Asterisk form, and an absolute target without a path (RFC 9113 §8.3.1).
        [] if head.method() == Method::Options => encoder.path(b"*", out),
        [] if head.target() == b"*" => encoder.path(b"*", out),
        rest => encoder.path(&[b"/", rest].concat(), out),
    }
}

/// Encodes all live fields except hop-by-hop ones (RFC 9113 §8.2.2); a request's `Host` is sent as
/// `:authority`.
fn fields(head: &Head, is_request: bool, encoder: &mut impl FieldEncoder, out: &mut Vec<u8>) {
    for (_, id, name, value) in head.fields() {
        let value = match value {
            [b' ' | b'\t', ..] | [.., b' ' | b'\t'] => trim(value),
            value => value,
        };
        let goes = match id {
            Name::Connection
            | Name::KeepAlive
            | Name::ProxyConnection
            | Name::TransferEncoding
            | Name::Upgrade => false,
            Name::Host => !is_request,
            Name::Te => value.eq_ignore_ascii_case(b"trailers"),
            _ => true,
        };
        if goes {
            encoder.field(id, name, value, out);
        }
    }
}
