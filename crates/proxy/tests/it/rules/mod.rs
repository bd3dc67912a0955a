//! Message rules, one script each.

mod actions;
mod connections;
mod cookies;
mod credentials;
mod facts;
mod failures;
mod fairness;
mod framing;
mod h2;
mod messages;
mod names;
mod octets;
mod otel_messages;
mod pace;
mod patterns;
mod retries;
mod rewrites;
mod rings;
pub mod script;
mod servers;
mod sessions;
mod smuggling;
mod timeouts;
mod traces;
mod tunnels;
mod variables;
mod waits;
