//! The HTTP/1 codec from outside.

mod allocation;
mod httparse;
