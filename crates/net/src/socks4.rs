//! The handshake with a SOCKS4 proxy, from the client's side.

use std::net::SocketAddr;

use crate::Addr;

const VERSION: u8 = 4;
const CONNECT: u8 = 1;
/// Who we say that we are, as HAProxy does.
const USER: &[u8] = b"HAProxy\0";
const GRANTED: u8 = 90;

/// Bytes of an answer.
pub const REPLY_BYTES: usize = 8;

/// The request for a connection; none where the address is not of IPv4, the only one that the protocol knows.
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

/// Whether the proxy has connected.
#[must_use]
pub fn is_granted(reply: &[u8; REPLY_BYTES]) -> bool {
    reply[1] == GRANTED
}
