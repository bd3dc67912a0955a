//! The client side of the SOCKS4 handshake.

use std::net::SocketAddr;

use crate::Addr;

const VERSION: u8 = 4;
const CONNECT: u8 = 1;
/// The user name that we send, the same as HAProxy's.
const USER: &[u8] = b"HAProxy\0";
const GRANTED: u8 = 90;

/// Size of a reply, bytes.
pub const REPLY_BYTES: usize = 8;

/// The request for a connection; none if the address is not IPv4, the only family of the protocol.
#[must_use]
pub fn request(to: &Addr) -> Option<Vec<u8>> {
    let Addr::Inet(SocketAddr::V4(to)) = to else {
        return None;
    };
    let mut bytes = vec![VERSION, CONNECT];
    bytes.extend(to.port().to_be_bytes());
    bytes.extend(to.ip().octets());
    bytes.extend(USER);
    Some(bytes)
}

/// Whether the proxy reports success.
#[must_use]
pub fn is_granted(reply: &[u8; REPLY_BYTES]) -> bool {
    reply[1] == GRANTED
}
