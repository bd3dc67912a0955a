//! Message rules, one script each.

mod actions;
mod connections;
mod cookies;
mod credentials;
mod failures;
mod messages;
mod names;
mod pace;
mod retries;
mod rewrites;
mod script;
mod sessions;
mod smuggling;
mod timeouts;
mod tunnels;
mod variables;
mod waits;
