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
