//! What the configuration languages share: YAML as a tree that knows its places, text as bytes, hexadecimal digits, the nearest known word, and `%`
//! escapes.
#![forbid(unsafe_code)]

pub mod escape;
pub mod hex;
pub mod octets;
pub mod suggest;
pub mod yaml;
