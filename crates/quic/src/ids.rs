//! Connection ids (RFC 9000 §5.1), and the secrets that all processes of a service share.

use std::fmt;
use std::time::Duration;

use aws_lc_rs::{hkdf, hmac};
use quinn_proto::{ConnectionId, ConnectionIdGenerator};

use crate::tokens::UsedTokens;

/// The length of our connection ids, bytes: the numbers of the worker and of the process, and what
/// nobody can guess or connect with another id of the same connection (RFC 9000 §9.5).
pub const ID_BYTES: usize = 10;
/// How many of them are numbers.
const OWNER_BYTES: usize = 2;

/// Who has a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The number of the worker in its process.
    pub worker: u8,
    /// The number of the process among those that have followed each other.
    pub process: u8,
}

/// The secrets that outlive a process: the next one understands tokens of the previous one, and
/// resets its connections.
#[derive(Clone)]
pub struct Keys {
    pub(crate) reset: hmac::Key,
    pub(crate) tokens: [u8; 32],
    pub(crate) used_tokens: UsedTokens,
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
            used_tokens: UsedTokens::default(),
        }
    }

    /// The keys of the configuration that follows `before` in the same process: no token is used
    /// under both.
    #[must_use]
    pub fn after(self, before: &Keys) -> Keys {
        Keys {
            used_tokens: before.used_tokens.clone(),
            ..self
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

/// Who has the connection that a packet's connection id names, if it is one of ours. Initial and
/// 0-RTT packets name nobody: their ids may be a client's choice.
#[must_use]
pub fn owner_of(packet: &[u8]) -> Option<Owner> {
    /// RFC 9000 §17.2.
    const LONG: u8 = 0x80;
    const HANDSHAKE: u8 = 2;
    let (worker, process) = match packet {
        [first, worker, process, ..] if first & LONG == 0 => (*worker, *process),
        [first, 0, 0, 0, 1, len, worker, process, ..]
            if first >> 4 & 3 == HANDSHAKE && usize::from(*len) == ID_BYTES =>
        {
            (*worker, *process)
        }
        _ => return None,
    };
    Some(Owner { worker, process })
}

/// Makes the ids of a worker: a keyed hash of a counter.
pub(crate) struct Ids {
    owner: Owner,
    key: hmac::Key,
    count: u64,
}

impl Ids {
    pub fn new(owner: Owner, seed: &[u8]) -> Ids {
        Ids {
            owner,
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
        id[..OWNER_BYTES].copy_from_slice(&[self.owner.worker, self.owner.process]);
        id[OWNER_BYTES..].copy_from_slice(&hash.as_ref()[..ID_BYTES - OWNER_BYTES]);
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
    fn packets_name_their_owner() {
        let owner = Owner {
            worker: 7,
            process: 200,
        };
        let mut ids = Ids::new(owner, b"seed");
        let id = ids.generate_cid();
        let short = [&[0x40][..], &id].concat();
        assert_eq!(owner_of(&short), Some(owner));
        let long = |first: u8, id: &[u8]| {
            [&[first, 0, 0, 0, 1, id.len() as u8][..], id, &[0; 20]].concat()
        };
        assert_eq!(owner_of(&long(0xe0, &id)), Some(owner));
        // Initial, 0-RTT and Retry; an id of another length; cut packets.
        for packet in [
            long(0xc0, &id),
            long(0xd0, &id),
            long(0xf0, &id),
            long(0xe0, &id[1..]),
            long(0xe0, &id)[..7].to_vec(),
            vec![0x40, 1],
            Vec::new(),
        ] {
            assert_eq!(owner_of(&packet), None, "{packet:?}");
        }
    }
}
