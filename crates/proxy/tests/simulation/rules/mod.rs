//! Message rules, one script each.

mod actions;
mod connections;
mod facts;
mod failures;
mod messages;
mod patterns;
mod rewrites;
mod script;
mod sessions;
mod smuggling;
mod timeouts;
mod tunnels;
mod variables;
mod waits;
