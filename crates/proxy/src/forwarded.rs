//! Forwarding headers: `option forwardfor`, `originalto`, `forwarded` (manual §4.2, RFC 7239).

use std::fmt::Write as _;
use std::net::IpAddr;

use config::model::{ForwardFor, Forwarded, ForwardedHost, ForwardedNode, Proxy};
use net::{Addr, Driver};
use sample::text::push_ip;

use crate::engine::{Core, Cx};
use crate::stream::Stream;

impl Core {
    /// Adds what the two sides of this stream ask for; the backend's settings go before the frontend's.
    pub fn add_forwarding_headers<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) {
        let frontend = cx.running.proxy(stream.frontend);
        let backend = cx.running.proxy(stream.backend);
        let asks = |proxy: &Proxy| {
            proxy.forwardfor.is_some() || proxy.originalto.is_some() || proxy.forwarded.is_some()
        };
        if !asks(frontend) && !asks(backend) {
            return;
        }
        if let Some(forwarded) = backend.forwarded.as_ref().or(frontend.forwarded.as_ref()) {
            self.add_forwarded(cx, stream, forwarded);
        }
        let Some(session) = stream
            .client
            .and_then(|client| self.conns.client_ref(client))
            .map(|client| &client.session)
        else {
            return;
        };
        let txn = Some(&stream.txn);
        let (src, dst) = (session.src_of(txn), session.dst_of(txn));
        let mut text = std::mem::take(&mut self.text);
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
            // With two of them, both must say `if-none`.
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
        self.text = text;
    }

    /// `forwarded` (RFC 7239 §4), its parameters in HAProxy's order.
    fn add_forwarded<D: Driver>(
        &mut self,
        cx: &Cx<'_, D>,
        stream: &mut Stream,
        option: &Forwarded,
    ) {
        let Some(session) = self.session(stream) else {
            return;
        };
        let mut parts: Vec<String> = Vec::new();
        if option.proto {
            parts.push(format!(
                "proto={}",
                if session.tls { "https" } else { "http" }
            ));
        }
        match &option.host {
            Some(ForwardedHost::Default) => {
                if let Some(host) = stream.request.get(http::Name::Host) {
                    parts.push(format!("host=\"{}\"", String::from_utf8_lossy(host)));
                }
            }
            Some(ForwardedHost::Expr(expr)) => {
                let host = self.eval_text(cx, stream, expr);
                parts.push(format!("host=\"{host}\""));
            }
            None => {}
        }
        let by = self.forwarded_node(
            cx,
            stream,
            option.by.as_ref(),
            option.by_port.as_ref(),
            session.dst_of(Some(&stream.txn)),
        );
        let from = self.forwarded_node(
            cx,
            stream,
            option.for_.as_ref(),
            option.for_port.as_ref(),
            session.src_of(Some(&stream.txn)),
        );
        parts.extend(by.map(|node| format!("by={node}")));
        parts.extend(from.map(|node| format!("for={node}")));
        stream
            .request
            .append(b"forwarded", parts.join(";").as_bytes());
    }

    /// A node identifier (RFC 7239 §6): quoted where a colon or a bracket stands in it.
    fn forwarded_node<D: Driver>(
        &self,
        cx: &Cx<'_, D>,
        stream: &Stream,
        name: Option<&ForwardedNode>,
        port: Option<&ForwardedNode>,
        addr: &Addr,
    ) -> Option<String> {
        let name = match name? {
            ForwardedNode::Default => match addr.ip() {
                Some(IpAddr::V4(ip)) => ip.to_string(),
                Some(IpAddr::V6(ip)) => format!("[{ip}]"),
                None => "unknown".to_owned(),
            },
            ForwardedNode::Expr(expr) => {
                let text = self.eval_text(cx, stream, expr);
                match text.parse::<IpAddr>() {
                    Ok(IpAddr::V4(ip)) => ip.to_string(),
                    Ok(IpAddr::V6(ip)) => format!("[{ip}]"),
                    Err(_) if text.is_empty() => "unknown".to_owned(),
                    Err(_) => format!("_{text}"),
                }
            }
        };
        let port = match port {
            None => None,
            Some(ForwardedNode::Default) => Some(addr.port().to_string()),
            Some(ForwardedNode::Expr(expr)) => {
                let text = self.eval_text(cx, stream, expr);
                Some(if text.parse::<u16>().is_ok() {
                    text
                } else {
                    format!("_{text}")
                })
            }
        };
        let mut node = name;
        if let Some(port) = port {
            let _ = write!(node, ":{port}");
        }
        Some(if node.contains(':') {
            format!("\"{node}\"")
        } else {
            node
        })
    }

    fn eval_text<D: Driver>(&self, cx: &Cx<'_, D>, stream: &Stream, expr: &sample::Expr) -> String {
        let mut text = Vec::new();
        self.with_scope(cx, stream, true, |scope| expr.append_text(scope, &mut text));
        String::from_utf8_lossy(&text).into_owned()
    }
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
