//! The codecs from outside.

mod allocation;
mod h2;
mod httparse;
