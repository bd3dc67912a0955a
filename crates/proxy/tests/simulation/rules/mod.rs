//! Message rules, one script each.

mod connections;
mod failures;
mod messages;
mod script;
mod sessions;
mod smuggling;
mod timeouts;
mod tunnels;
mod variables;
mod waits;
