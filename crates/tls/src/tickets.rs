//! Session tickets with configured keys, so that several machines accept each other's tickets (RFC
//! 5077; RFC 8446 §4.6.1).

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::{hkdf, rand};
use rustls::server::ProducesTickets;

use crate::binding::{BINDING_BYTES, Binding};

/// The name of a key, with which a ticket begins.
const NAME_BYTES: usize = 16;
/// The salt from which each ticket's own key is derived. Each key encrypts only once, so the nonce
/// need not be random.
const SALT_BYTES: usize = 32;
/// How long a client may use a ticket, seconds (`tune.ssl.lifetime`'s default is shorter; keys are
/// rotated anyway).
const LIFETIME_S: u32 = 6 * 3600;

/// Sizes of a ticket key in HAProxy's files: 16 bytes for its name, then keys for AES-128 or for
/// AES-256.
pub const TICKET_KEY_BYTES: [usize; 2] = [48, 80];

/// Ticket keys. One encrypts, all decrypt. Copies share the keys: a rotation applies to all of
/// them.
#[derive(Clone)]
pub struct TicketKeys(Arc<RwLock<Keys>>);

struct Keys {
    keys: Vec<TicketKey>,
    current: usize,
}

struct TicketKey {
    /// The key as it was given.
    bytes: Vec<u8>,
    name: [u8; NAME_BYTES],
    secret: hkdf::Prk,
}

struct KeyBytes;

impl hkdf::KeyType for KeyBytes {
    fn len(&self) -> usize {
        AES_256_GCM.key_len()
    }
}

impl TicketKeys {
    /// Keys in the order of a file (`tls-ticket-keys`): the last but one encrypts, so that the
    /// newest is known everywhere before it is used. None if there is no key, or the size of one is
    /// not in [`TICKET_KEY_BYTES`].
    #[must_use]
    pub fn new<'a>(keys: impl IntoIterator<Item = &'a [u8]>) -> Option<TicketKeys> {
        let keys: Option<Vec<_>> = keys.into_iter().map(TicketKey::new).collect();
        let keys = keys.filter(|keys| !keys.is_empty())?;
        let current = keys.len().saturating_sub(2);
        Some(TicketKeys(Arc::new(RwLock::new(Keys { keys, current }))))
    }

    /// The keys as they were given, the oldest first.
    #[must_use]
    pub fn secrets(&self) -> Vec<Vec<u8>> {
        let keys = self.keys();
        keys.keys.iter().map(|key| key.bytes.clone()).collect()
    }

    /// Adds a key to be used after the next rotation, and drops the oldest one. False if its size
    /// differs from that of the others.
    #[must_use]
    pub fn rotate(&self, key: &[u8]) -> bool {
        let Some(key) = TicketKey::new(key) else {
            return false;
        };
        let mut keys = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if keys.keys[0].bytes.len() != key.bytes.len() {
            return false;
        }
        keys.keys.remove(0);
        keys.keys.push(key);
        true
    }

    /// A producer of tickets that only a producer with the same binding can read.
    pub(crate) fn bound_to(&self, binding: Binding) -> Tickets {
        Tickets {
            keys: self.clone(),
            binding,
        }
    }

    fn keys(&self) -> RwLockReadGuard<'_, Keys> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TicketKey {
    fn new(bytes: &[u8]) -> Option<TicketKey> {
        if !TICKET_KEY_BYTES.contains(&bytes.len()) {
            return None;
        }
        let (name, secret) = bytes.split_first_chunk()?;
        let salt = hkdf::Salt::new(hkdf::HKDF_SHA256, b"session tickets");
        Some(TicketKey {
            bytes: bytes.to_vec(),
            name: *name,
            secret: salt.extract(secret),
        })
    }

    /// The key for a ticket with this salt.
    fn of_ticket(&self, salt: &[u8]) -> Option<LessSafeKey> {
        let mut key = [0; 32];
        let info = [salt];
        let derived = self.secret.expand(&info, KeyBytes).ok()?;
        derived.fill(&mut key).ok()?;
        Some(LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &key).ok()?))
    }
}

fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; NONCE_LEN])
}

/// Produces the tickets of an acceptor.
#[derive(Debug)]
pub(crate) struct Tickets {
    keys: TicketKeys,
    binding: Binding,
}

impl Tickets {
    /// The data that a ticket's tag also authenticates.
    fn associated(&self, key: &TicketKey) -> Aad<[u8; NAME_BYTES + BINDING_BYTES]> {
        let mut bytes = [0; NAME_BYTES + BINDING_BYTES];
        let (name, binding) = bytes.split_at_mut(NAME_BYTES);
        name.copy_from_slice(&key.name);
        binding.copy_from_slice(self.binding.as_ref());
        Aad::from(bytes)
    }
}

impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        LIFETIME_S
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let keys = self.keys.keys();
        let key = &keys.keys[keys.current];
        let mut salt = [0; SALT_BYTES];
        rand::fill(&mut salt).ok()?;
        let mut sealed = plain.to_vec();
        let of_ticket = key.of_ticket(&salt)?;
        of_ticket
            .seal_in_place_append_tag(nonce(), self.associated(key), &mut sealed)
            .ok()?;
        Some([&key.name[..], &salt, &sealed].concat())
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let (name, rest) = ticket.split_first_chunk::<NAME_BYTES>()?;
        let (salt, sealed) = rest.split_first_chunk::<SALT_BYTES>()?;
        let keys = self.keys.keys();
        let key = keys.keys.iter().find(|key| key.name == *name)?;
        let mut bytes = sealed.to_vec();
        let of_ticket = key.of_ticket(salt)?;
        let plain = of_ticket.open_in_place(nonce(), self.associated(key), &mut bytes);
        plain.ok().map(|plain| plain.to_vec())
    }
}

impl fmt::Debug for TicketKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TicketKeys")
            .field("keys", &self.keys().keys.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Offer;

    fn key(number: u8, len: usize) -> Vec<u8> {
        vec![number; len]
    }

    fn tickets(keys: &TicketKeys, scope: &str) -> Tickets {
        keys.bound_to(Binding::new(scope, &Offer::default(), None))
    }

    #[test]
    fn a_ticket_of_another_binding_is_none() {
        let keys = TicketKeys::new([&key(1, 80)[..]]).unwrap();
        let ticket = tickets(&keys, "one").encrypt(b"session").unwrap();
        assert_eq!(tickets(&keys, "two").decrypt(&ticket), None);
        let same = TicketKeys::new([&key(1, 80)[..]]).unwrap();
        let plain = tickets(&same, "one").decrypt(&ticket);
        assert_eq!(plain.as_deref(), Some(&b"session"[..]));
    }

    #[test]
    fn the_last_key_but_one_encrypts_and_all_decrypt() {
        let (old, now, next) = (key(1, 48), key(2, 80), key(3, 80));
        let before = TicketKeys::new([&old[..], &now]).unwrap();
        let after = TicketKeys::new([&old[..], &now, &next]).unwrap();
        let (before, after) = (tickets(&before, ""), tickets(&after, ""));
        let ticket = before.encrypt(b"session").unwrap();
        assert_eq!(ticket[..16], [1; 16]);
        assert_eq!(after.decrypt(&ticket).as_deref(), Some(&b"session"[..]));
        let ticket = after.encrypt(b"session").unwrap();
        assert_eq!(ticket[..16], [2; 16]);
        assert_eq!(before.decrypt(&ticket).as_deref(), Some(&b"session"[..]));
        assert_ne!(after.encrypt(b"session"), Some(ticket));
    }

    #[test]
    fn a_ticket_that_was_changed_or_cut_is_none() {
        let keys = TicketKeys::new([&key(1, 80)[..]]).unwrap();
        let keys = tickets(&keys, "");
        let ticket = keys.encrypt(b"session").unwrap();
        for at in 0..ticket.len() {
            let mut changed = ticket.clone();
            changed[at] ^= 1;
            assert_eq!(keys.decrypt(&changed), None, "byte {at}");
            assert_eq!(keys.decrypt(&ticket[..at]), None, "cut at {at}");
        }
    }

    #[test]
    fn a_rotated_key_encrypts_after_the_next_rotation() {
        let keys = TicketKeys::new([&key(1, 80)[..], &key(2, 80), &key(3, 80)]).unwrap();
        let copy = tickets(&keys, "");
        let ticket = copy.encrypt(b"session").unwrap();
        assert!(keys.rotate(&key(4, 80)));
        assert_eq!(copy.keys.secrets(), [key(2, 80), key(3, 80), key(4, 80)]);
        assert_eq!(copy.encrypt(b"session").unwrap()[..16], [3; 16]);
        assert_eq!(copy.decrypt(&ticket).as_deref(), Some(&b"session"[..]));
        assert!(!keys.rotate(&key(5, 48)));
        assert!(!keys.rotate(&key(5, 7)));
        assert!(keys.rotate(&key(5, 80)));
        assert_eq!(copy.encrypt(b"session").unwrap()[..16], [4; 16]);
        assert_eq!(copy.decrypt(&ticket), None);
    }

    #[test]
    fn keys_of_other_lengths_are_none() {
        assert!(TicketKeys::new([&key(1, 47)[..]]).is_none());
        assert!(TicketKeys::new([]).is_none());
    }
}
