//! Forwarding headers: `option forwardfor`, `originalto`, `forwarded` (manual §4.2, RFC 7239).

use std::net::IpAddr;

use config::model::{ForwardFor, Forwarded, ForwardedHost, ForwardedNode, Proxy};
use net::{Addr, Driver};
use sample::text::{push_ip, push_uint};

use super::Cx;
use crate::evaluation::Eval;
use crate::runtime_config::adds_forwarding_headers;
use crate::stream::Stream;

impl<D: Driver> Cx<'_, D> {
    /// Adds the headers that the frontend and the backend ask for; the backend's settings take
    /// precedence.
    #[inline]
    pub(super) fn add_forwarding_headers(&mut self, stream: &mut Stream) {
        let frontend = self.runtime_config.proxy(stream.frontend);
        let backend = self.runtime_config.proxy(stream.backend);
        if adds_forwarding_headers(frontend) || adds_forwarding_headers(backend) {
            self.with_eval(stream, |eval, stream| {
                add_headers(eval, stream, frontend, backend);
            });
        }
    }
}

fn add_headers(eval: &mut Eval<'_>, stream: &mut Stream, frontend: &Proxy, backend: &Proxy) {
    if let Some(option) = backend.forwarded.as_ref().or(frontend.forwarded.as_ref()) {
        let mut text = std::mem::take(eval.text);
        write_forwarded(eval, stream, option, &mut text);
        stream.request.append(b"forwarded", &text);
        text.clear();
        *eval.text = text;
    }
    let mut text = std::mem::take(eval.text);
    let txn = Some(&stream.txn);
    let (src, dst) = (eval.session.src_of(txn), eval.session.dst_of(txn));
    for (front, back, addr) in [
        (&frontend.forwardfor, &backend.forwardfor, src),
        (&frontend.originalto, &backend.originalto, dst),
    ] {
        let Some(option) = back.as_ref().or(front.as_ref()) else {
            continue;
        };
        let both = [front, back].into_iter().flatten();
        let excepted = |option: &ForwardFor| {
            let ip = addr.ip();
            ip.zip(option.except)
                .is_some_and(|(ip, net)| contains(net, ip))
        };
        // If both are set, both must have `if-none`.
        let present = both.clone().all(|option| option.if_none)
            && stream
                .request
                .find(option.header.as_bytes())
                .next()
                .is_some();
        if present || both.clone().any(excepted) {
            continue;
        }
        if let Some(ip) = addr.ip() {
            text.clear();
            push_ip(&mut text, ip);
            stream.request.append(option.header.as_bytes(), &text);
        }
    }
    text.clear();
    *eval.text = text;
}

/// Writes `Forwarded` (RFC 7239 §4), its parameters in HAProxy's order.
fn write_forwarded(eval: &Eval<'_>, stream: &Stream, option: &Forwarded, out: &mut Vec<u8>) {
    let (session, txn) = (&eval.session, Some(&stream.txn));
    let mut part = |name: &[u8], write: &dyn Fn(&mut Vec<u8>)| {
        if !out.is_empty() {
            out.push(b';');
        }
        out.extend_from_slice(name);
        out.push(b'=');
        write(out);
    };
    if option.proto {
        let proto: &[u8] = if session.tls.is_some() {
            b"https"
        } else {
            b"http"
        };
        part(b"proto", &|out| out.extend_from_slice(proto));
    }
    match &option.host {
        Some(ForwardedHost::Default) => {
            if let Some(host) = stream.request.get(http::Name::Host) {
                part(b"host", &|out| push_quoted(host, out));
            }
        }
        Some(ForwardedHost::Expr(expr)) => {
            let host = text_of(eval, stream, expr);
            part(b"host", &|out| push_quoted(&host, out));
        }
        None => {}
    }
    if let Some(by) = &option.by {
        let node = node(
            eval,
            stream,
            by,
            option.by_port.as_ref(),
            session.dst_of(txn),
        );
        part(b"by", &|out| push_value(&node, out));
    }
    if let Some(from) = &option.for_ {
        let node = node(
            eval,
            stream,
            from,
            option.for_port.as_ref(),
            session.src_of(txn),
        );
        part(b"for", &|out| push_value(&node, out));
    }
}

/// A node identifier (RFC 7239 §6).
fn node(
    eval: &Eval<'_>,
    stream: &Stream,
    name: &ForwardedNode,
    port: Option<&ForwardedNode>,
    addr: &Addr,
) -> Vec<u8> {
    let mut node = Vec::new();
    match name {
        ForwardedNode::Default => match addr.ip() {
            Some(ip) => push_node_ip(ip, &mut node),
            None => node.extend_from_slice(b"unknown"),
        },
        ForwardedNode::Expr(expr) => {
            let text = text_of(eval, stream, expr);
            let ip = std::str::from_utf8(&text)
                .ok()
                .and_then(|ip| ip.parse().ok());
            match ip {
                Some(ip) => push_node_ip(ip, &mut node),
                None if text.is_empty() => node.extend_from_slice(b"unknown"),
                None => push_obfuscated(&text, &mut node),
            }
        }
    }
    match port {
        None => {}
        Some(ForwardedNode::Default) => {
            node.push(b':');
            push_uint(&mut node, u64::from(addr.port()));
        }
        Some(ForwardedNode::Expr(expr)) => {
            node.push(b':');
            let text = text_of(eval, stream, expr);
            let number = std::str::from_utf8(&text)
                .ok()
                .and_then(|port| port.parse().ok());
            match number {
                Some::<u16>(port) => push_uint(&mut node, u64::from(port)),
                None => push_obfuscated(&text, &mut node),
            }
        }
    }
    node
}

fn push_node_ip(ip: IpAddr, out: &mut Vec<u8>) {
    match ip {
        IpAddr::V4(_) => push_ip(out, ip),
        IpAddr::V6(_) => {
            out.push(b'[');
            push_ip(out, ip);
            out.push(b']');
        }
    }
}

/// Writes an obfuscated identifier (RFC 7239 §6.3).
fn push_obfuscated(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'_');
    out.extend_from_slice(text);
}

fn text_of(eval: &Eval<'_>, stream: &Stream, expr: &sample::Expr) -> Vec<u8> {
    let mut text = Vec::new();
    eval.with_scope(stream, true, |scope| expr.append_text(scope, &mut text));
    text
}

/// A token as it is, anything else as a quoted string (RFC 7239 §4).
fn push_value(text: &[u8], out: &mut Vec<u8>) {
    if http::is_token(text) {
        out.extend_from_slice(text)
    } else {
        push_quoted(text, out)
    }
}

/// Writes a quoted string (RFC 9110 §5.6.4). Bytes of a client cannot end it.
fn push_quoted(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in text {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', *byte]),
            b'\t' | b' '..=b'~' | 0x80.. => out.push(*byte),
            // A quoted string cannot have a control character.
            _ => out.push(b' '),
        }
    }
    out.push(b'"');
}

/// Whether an address lies in a network given by an address and its prefix length.
fn contains((network, bits): (IpAddr, u8), ip: IpAddr) -> bool {
    match (network, ip) {
        (IpAddr::V4(network), IpAddr::V4(ip)) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            u32::from(network) & mask == u32::from(ip) & mask
        }
        (IpAddr::V6(network), IpAddr::V6(ip)) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            u128::from(network) & mask == u128::from(ip) & mask
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_says_stays_within_its_quotes() {
        let quoted = |text: &str| {
            let mut out = Vec::new();
            push_quoted(text.as_bytes(), &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(quoted("a"), r#""a""#);
        assert_eq!(
            quoted(r#"a";for=10.0.0.1;x="b"#),
            r#""a\";for=10.0.0.1;x=\"b""#
        );
        assert_eq!(quoted("a\\\r\nb"), r#""a\\  b""#);
        let value = |text: &str| {
            let mut out = Vec::new();
            push_value(text.as_bytes(), &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(value("_x.y"), "_x.y");
        assert_eq!(value("10.0.0.1"), "10.0.0.1");
        assert_eq!(value("10.0.0.1:80"), r#""10.0.0.1:80""#);
        assert_eq!(value("_a,for=b"), r#""_a,for=b""#);
    }

    #[test]
    fn networks() {
        let net = |text: &str, bits| (text.parse().unwrap(), bits);
        assert!(contains(net("10.0.0.0", 8), "10.2.3.4".parse().unwrap()));
        assert!(!contains(net("10.0.0.0", 8), "11.2.3.4".parse().unwrap()));
        assert!(contains(net("0.0.0.0", 0), "11.2.3.4".parse().unwrap()));
        assert!(contains(
            net("2001:db8::", 32),
            "2001:db8::1".parse().unwrap()
        ));
        assert!(!contains(net("10.0.0.0", 8), "::1".parse().unwrap()));
    }
}
