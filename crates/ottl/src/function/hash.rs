//! Hashes of texts.

use super::text::text;
use super::{Function, eval};
use crate::fnv::{OFFSET, fnv1a};
use crate::value::Value;
use sha1::Digest;
use syntax::hex;
use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

pub const FUNCTIONS: &[Function] = &[
    eval("FNV", &["value"], |args| {
        // The Collector's is Go's `fnv.New64a`, as a signed number.
        Ok(Value::Int(fnv1a(OFFSET, text(&args[0])?) as i64))
    }),
    eval("MD5", &["value"], |args| {
        Ok(Value::text(hex::text(&md5::Md5::digest(text(&args[0])?))))
    }),
    eval("SHA1", &["value"], |args| {
        Ok(Value::text(hex::text(&sha1::Sha1::digest(text(&args[0])?))))
    }),
    eval("SHA256", &["value"], |args| {
        Ok(Value::text(hex::text(&sha2::Sha256::digest(text(
            &args[0],
        )?))))
    }),
    eval("SHA512", &["value"], |args| {
        Ok(Value::text(hex::text(&sha2::Sha512::digest(text(
            &args[0],
        )?))))
    }),
    eval("XXH3", &["value"], |args| {
        Ok(Value::text(hex::text(
            &xxh3_64(text(&args[0])?).to_be_bytes(),
        )))
    }),
    eval("XXH128", &["value"], |args| {
        Ok(Value::text(hex::text(
            &xxh3_128(text(&args[0])?).to_be_bytes(),
        )))
    }),
];
