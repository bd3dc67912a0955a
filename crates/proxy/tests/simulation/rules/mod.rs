//! Message rules, one script each.

mod connections;
mod failures;
mod messages;
mod patterns;
mod script;
mod sessions;
mod smuggling;
mod timeouts;
mod tunnels;
mod waits;
