//! Converts between upgrades of HTTP/1 (RFC 9110 §7.8) and the extended CONNECT of HTTP/2 (RFC
//! 8441). Inside the proxy, an upgrade has the form of HTTP/1: GET with `Upgrade`, answered with
//! 101.

use crate::{Head, Name};

impl Head {
    /// Converts an extended CONNECT to an HTTP/1 request with `Upgrade`. False if it is not an
    /// extended CONNECT.
    pub fn make_upgrade(&mut self) -> bool {
        let Some(protocol) = self.protocol().map(<[u8]>::to_vec) else {
            return false;
        };
        let is_done = self.set_method(b"GET") && self.set_protocol(b"");
        self.append(b"connection", b"upgrade");
        self.append(b"upgrade", &protocol);
        is_done
    }

    /// Converts an HTTP/1 request with `Upgrade` to an extended CONNECT for the first protocol that
    /// it names. False if it names none, or one that is forbidden (RFC 9113 §8.6, §3.1).
    pub fn make_extended_connect(&mut self) -> bool {
        let Some(protocol) = self.upgrade_protocol().map(<[u8]>::to_vec) else {
            return false;
        };
        self.remove_id(Name::SecWebsocketKey);
        self.set_method(b"CONNECT") && self.set_protocol(&protocol)
    }

    /// The first protocol of `Upgrade`.
    #[must_use]
    pub fn upgrade_protocol(&self) -> Option<&[u8]> {
        let value = self.get(Name::Upgrade)?;
        let first = value.split(|byte| *byte == b',').next()?;
        Some(crate::bytes::trim(first)).filter(|first| !first.is_empty())
    }

    /// Whether the message requests WebSocket, or agrees to it (RFC 6455).
    #[must_use]
    pub fn is_websocket(&self) -> bool {
        let protocol = self.upgrade_protocol();
        protocol.is_some_and(|protocol| protocol.eq_ignore_ascii_case(b"websocket"))
    }

    /// Converts a response 101 to that of an extended CONNECT.
    pub fn make_connected(&mut self) {
        self.set_status(200, b"");
        self.remove_id(Name::SecWebsocketAccept);
    }

    /// Converts the response to an extended CONNECT to one of HTTP/1. `accept`: for WebSocket, the
    /// proof that the server saw the key.
    pub fn make_switched(&mut self, protocol: &[u8], accept: Option<&[u8]>) {
        self.set_status(101, b"Switching Protocols");
        self.append(b"connection", b"upgrade");
        self.append(b"upgrade", protocol);
        if let Some(accept) = accept {
            self.append(b"sec-websocket-accept", accept);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Method;

    #[test]
    fn there_and_back() {
        let mut head = Head::default();
        assert!(head.set_method(b"CONNECT") && head.set_protocol(b"websocket"));
        head.set_target(b"/chat");
        head.append(b"host", b"a");
        assert!(head.make_upgrade());
        assert_eq!((head.method(), head.protocol()), (Method::Get, None));
        assert!(head.is_websocket());
        assert_eq!(head.get(Name::Connection), Some(&b"upgrade"[..]));
        head.append(b"sec-websocket-key", b"k");
        assert!(head.make_extended_connect());
        assert_eq!(head.method(), Method::Connect);
        assert_eq!(head.protocol(), Some(&b"websocket"[..]));
        assert!(!head.has(Name::SecWebsocketKey));
        assert!(!Head::default().make_upgrade() && !Head::default().make_extended_connect());
    }

    #[test]
    fn answers() {
        let mut head = Head::default();
        head.set_status(200, b"");
        head.make_switched(b"websocket", Some(b"a"));
        assert_eq!((head.status(), head.is_websocket()), (101, true));
        assert!(head.has(Name::SecWebsocketAccept));
        head.make_connected();
        assert_eq!(head.status(), 200);
        assert!(!head.has(Name::SecWebsocketAccept));
    }
}
