//! `UUID` and `UUIDv7`: unique identifiers (RFC 9562).

use super::{Function, outside};
use crate::value::Value;
use syntax::hex;

pub const FUNCTIONS: &[Function] = &[
    outside("UUID", |outside| {
        let bits = u128::from(outside.random()?) << 64 | u128::from(outside.random()?);
        Ok(Value::text(uuid(4, bits)))
    }),
    // Milliseconds since 1970, and random bits (section 5.7).
    outside("UUIDv7", |outside| {
        let ms = outside.now()?.div_euclid(1_000_000) as u64;
        let random = u128::from(outside.random()?) << 64 | u128::from(outside.random()?);
        let bits = u128::from(ms) << 80 | random & u128::MAX >> 48;
        Ok(Value::text(uuid(7, bits)))
    }),
];

/// Formats 128 bits as a UUID, with the version and variant bits replaced (section 4).
fn uuid(version: u8, bits: u128) -> String {
    let mut bytes = bits.to_be_bytes();
    bytes[6] = bytes[6] & 0x0f | version << 4;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let text = hex::text(&bytes);
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32];
    parts.map(|part| &text[part]).join("-")
}
