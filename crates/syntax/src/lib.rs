//! Shared parts of the configuration languages: YAML as a tree with source places, text as bytes,
//! hexadecimal digits, the nearest known word, and `%` escapes.
#![forbid(unsafe_code)]

pub mod escape;
pub mod hex;
pub mod octets;
pub mod suggest;
pub mod yaml;
