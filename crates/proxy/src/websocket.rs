//! WebSocket keys (RFC 6455 §4), which HTTP/2 does not have (RFC 8441 §5): they are made and
//! checked here where one side uses HTTP/1 and the other HTTP/2.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha1::{Digest as _, Sha1};

/// A key made of these random bytes.
pub(crate) fn key(random: [u64; 2]) -> String {
    let [a, b] = random.map(u64::to_be_bytes);
    STANDARD.encode([a, b].concat())
}

/// The value that proves to a client that its key was seen.
pub(crate) fn accept(key: &[u8]) -> String {
    const SUFFIX: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
    STANDARD.encode(Sha1::digest([key, SUFFIX].concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_rfc_6455() {
        let found = accept(b"dGhlIHNhbXBsZSBub25jZQ==");
        assert_eq!(found, "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_eq!(key([0, 0]), "AAAAAAAAAAAAAAAAAAAAAA==");
    }
}
