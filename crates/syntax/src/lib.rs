//! What the configuration languages share: YAML as a tree that knows its places, and the nearest known word.
#![forbid(unsafe_code)]

pub mod suggest;
pub mod yaml;
