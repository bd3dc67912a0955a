//! What the configuration languages share: YAML as a tree that knows its places, the nearest known word, and `%` escapes.
#![forbid(unsafe_code)]

pub mod escape;
pub mod suggest;
pub mod yaml;
