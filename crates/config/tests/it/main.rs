//! The configuration language, from text to the typed configuration and its diagnostics.

mod accepted;
mod arguments;
mod bandwidth;
mod checks;
mod collectors;
mod common;
mod dashboard;
mod docs;
mod faults;
mod h2;
mod inheritance;
mod keywords;
mod no_effect;
mod octets;
mod otel;
mod peers;
mod persistence;
mod previous;
mod quic;
mod quic_rules;
mod resilience;
mod resolvers;
mod rings;
mod share;
mod statistics;
mod tls;
