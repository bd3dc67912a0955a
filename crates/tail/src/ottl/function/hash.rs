//! Hashes of texts.

use super::text::text;
use super::{Function, eval};
use crate::ottl::path::hex;
use crate::ottl::value::Value;
use sha1::Digest;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

pub const FUNCTIONS: &[Function] = &[
    eval("FNV", &["value"], |args| {
        Ok(Value::Int(fnv(text(&args[0])?)))
    }),
    eval("MD5", &["value"], |args| {
        Ok(Value::text(hex(&md5::Md5::digest(text(&args[0])?))))
    }),
    eval("SHA1", &["value"], |args| {
        Ok(Value::text(hex(&sha1::Sha1::digest(text(&args[0])?))))
    }),
    eval("SHA256", &["value"], |args| {
        Ok(Value::text(hex(&sha2::Sha256::digest(text(&args[0])?))))
    }),
    eval("SHA512", &["value"], |args| {
        Ok(Value::text(hex(&sha2::Sha512::digest(text(&args[0])?))))
    }),
    eval("XXH3", &["value"], |args| {
        Ok(Value::text(hex(&xxh3_64(text(&args[0])?).to_be_bytes())))
    }),
    eval("XXH128", &["value"], |args| {
        Ok(Value::text(hex(&xxh3_128(text(&args[0])?).to_be_bytes())))
    }),
];

/// FNV-1a of 64 bits as a signed number: the Collector's `FNV` is Go's `fnv.New64a`.
fn fnv(text: &[u8]) -> i64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    text.iter().fold(0xcbf2_9ce4_8422_2325, step) as i64
}
