//! Passwords that a thread verified: it keeps a keyed digest of each, but no password.
//!
//! The memory is bounded. A digest's first byte is its index, and a newer digest overwrites an
//! older one. Each list has an id of its own, so that a list of another configuration does not find
//! its users here.

use std::cell::RefCell;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

use sha2::{Digest, Sha256};

/// The number of digests.
const ENTRIES: usize = 256;

type Digest32 = [u8; 32];

#[derive(Default)]
struct Verified {
    /// Secret, so that an attacker cannot construct two passwords with one digest.
    key: [u8; 32],
    /// Empty until the first password was verified.
    entries: Vec<Digest32>,
}

thread_local! {
    static VERIFIED: RefCell<Verified> = RefCell::default();
}

/// A user of a list.
#[derive(Clone, Copy, Debug)]
pub(super) struct UserName {
    /// The list's id.
    pub list: u64,
    /// The user's place in the list.
    pub place: usize,
}

/// Whether this password of a user of a list is correct: remembered, or checked with `verify`.
pub(super) fn once(user: UserName, password: &[u8], verify: impl FnOnce() -> bool) -> bool {
    VERIFIED.with_borrow_mut(|verified| {
        let digest = verified.digest(user, password);
        if verified
            .entries
            .get(place(&digest))
            .is_some_and(|known| super::same(known, &digest))
        {
            return true;
        }
        let right = verify();
        if right {
            verified.remember(digest);
        }
        right
    })
}

fn place(digest: &Digest32) -> usize {
    usize::from(digest[0]) % ENTRIES
}

impl Verified {
    fn digest(&self, user: UserName, password: &[u8]) -> Digest32 {
        let mut hasher = Sha256::new();
        hasher.update(self.key);
        hasher.update(user.list.to_le_bytes());
        hasher.update((user.place as u64).to_le_bytes());
        hasher.update(password);
        hasher.finalize().into()
    }

    fn remember(&mut self, mut digest: Digest32) {
        if self.entries.is_empty() {
            self.entries = vec![[0; 32]; ENTRIES];
            // The first digest was made without a key, so it is discarded.
            let random = RandomState::new();
            for (word, chunk) in self.key.chunks_mut(8).enumerate() {
                let mut hasher = random.build_hasher();
                hasher.write_usize(word);
                chunk.copy_from_slice(&hasher.finish().to_le_bytes());
            }
            digest = [0; 32];
        }
        self.entries[place(&digest)] = digest;
    }
}
