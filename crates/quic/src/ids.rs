//! Connection ids (RFC 9000 §5.1), and the secrets that all processes of a service share.

use std::fmt;
use std::time::Duration;

use aws_lc_rs::{hkdf, hmac};
use quinn_proto::{ConnectionId, ConnectionIdGenerator};

/// The length of our connection ids, bytes: the number of the worker, and what nobody can guess or
/// connect with another id of the same connection (RFC 9000 §9.5).
pub const ID_BYTES: usize = 10;

/// The secrets that outlive a process: the next one understands tokens of the previous one, and
/// resets its connections.
#[derive(Clone)]
pub struct Keys {
    pub(crate) reset: hmac::Key,
    pub(crate) tokens: [u8; 32],
}

impl Keys {
    /// The keys that follow from a secret (`cluster-secret`, or random bytes).
    #[must_use]
    pub fn new(secret: &[u8]) -> Keys {
        let derived = |label: &[u8]| {
            let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
            let mut bytes = [0; 32];
            bytes.copy_from_slice(hmac::sign(&key, label).as_ref());
            bytes
        };
        Keys {
            reset: hmac::Key::new(hmac::HMAC_SHA256, &derived(b"stateless reset")),
            tokens: derived(b"address validation"),
        }
    }

    /// Random bytes for the endpoint of a worker, which nobody can guess. `number`: differs for each
    /// endpoint that the worker makes.
    #[must_use]
    pub fn seed(&self, worker: u8, number: u64) -> [u8; 32] {
        let mut label = b"endpoint".to_vec();
        label.push(worker);
        label.extend_from_slice(&number.to_le_bytes());
        let mut seed = [0; 32];
        seed.copy_from_slice(hmac::sign(&self.reset, &label).as_ref());
        seed
    }

    pub(crate) fn tokens(&self) -> hkdf::Prk {
        hkdf::Salt::new(hkdf::HKDF_SHA256, &[]).extract(&self.tokens)
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Keys")
    }
}

/// The worker that the connection id of a packet names, if it is one of ours. Initial and 0-RTT
/// packets name none: their ids may be a client's choice.
#[must_use]
pub fn worker_of(packet: &[u8]) -> Option<u8> {
    /// RFC 9000 §17.2.
    const LONG: u8 = 0x80;
    const HANDSHAKE: u8 = 2;
    match packet {
        [first, worker, ..] if first & LONG == 0 => Some(*worker),
        [first, 0, 0, 0, 1, len, worker, ..]
            if first >> 4 & 3 == HANDSHAKE && usize::from(*len) == ID_BYTES =>
        {
            Some(*worker)
        }
        _ => None,
    }
}

/// Makes the ids of a worker: a keyed hash of a counter.
pub(crate) struct Ids {
    worker: u8,
    key: hmac::Key,
    count: u64,
}

impl Ids {
    pub fn new(worker: u8, seed: &[u8]) -> Ids {
        Ids {
            worker,
            key: hmac::Key::new(hmac::HMAC_SHA256, seed),
            count: 0,
        }
    }
}

impl ConnectionIdGenerator for Ids {
    fn generate_cid(&mut self) -> ConnectionId {
        self.count += 1;
        let hash = hmac::sign(&self.key, &self.count.to_le_bytes());
        let mut id = [0; ID_BYTES];
        id[0] = self.worker;
        id[1..].copy_from_slice(&hash.as_ref()[..ID_BYTES - 1]);
        ConnectionId::new(&id)
    }

    fn cid_len(&self) -> usize {
        ID_BYTES
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_name_their_worker() {
        let mut ids = Ids::new(7, b"seed");
        let id = ids.generate_cid();
        let short = [&[0x40][..], &id].concat();
        assert_eq!(worker_of(&short), Some(7));
        let long = |first: u8, id: &[u8]| {
            [&[first, 0, 0, 0, 1, id.len() as u8][..], id, &[0; 20]].concat()
        };
        assert_eq!(worker_of(&long(0xe0, &id)), Some(7));
        // Initial, 0-RTT and Retry; an id of another length; cut packets.
        for packet in [
            long(0xc0, &id),
            long(0xd0, &id),
            long(0xf0, &id),
            long(0xe0, &id[1..]),
            long(0xe0, &id)[..6].to_vec(),
            vec![0x40],
            Vec::new(),
        ] {
            assert_eq!(worker_of(&packet), None, "{packet:?}");
        }
    }
}
