//! Which part of the entries a key belongs to (`shards`, manual §11.2), with HAProxy's hash, so that
//! both programs tell a peer the same entries.

use tables::{Definition, KeyType};
use xxhash_rust::xxh64::xxh64;

/// The hash seed of a table.
pub(crate) fn seed(of: &Definition) -> u64 {
    xxh64(of.name.as_bytes(), 0)
}

/// The part of a stored key, from 1 to `shards`; 0 without `shards`.
#[must_use]
pub fn shard(of: &Definition, key: &[u8], shards: u32) -> u32 {
    seeded(of, key, shards, seed(of))
}

/// As [`shard`], with the table's [`seed`].
pub(crate) fn seeded(of: &Definition, key: &[u8], shards: u32, seed: u64) -> u32 {
    if shards == 0 {
        return 0;
    }
    let hash = match (of.key, key.first_chunk::<4>()) {
        // HAProxy keeps integers in the machine's order.
        (KeyType::Integer, Some(number)) => xxh64(&u32::from_be_bytes(*number).to_ne_bytes(), seed),
        _ => xxh64(&of.shown(key), seed),
    };
    (hash % u64::from(shards)) as u32 + 1
}
