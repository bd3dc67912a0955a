//! Message rules, one script each.

mod connections;
mod cookies;
mod credentials;
mod failures;
mod messages;
mod retries;
mod script;
mod sessions;
mod smuggling;
mod timeouts;
mod tunnels;
mod waits;
