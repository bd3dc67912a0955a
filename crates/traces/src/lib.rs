//! The embedded trace store: the traces of the last minutes, in memory, for the dashboard.
//!
//! Spans come as encoded OTLP and stay encoded. A [`Store`] holds them bounded in bytes and in age, and forgets the oldest
//! traces first. Beside its spans a trace has what searches compare: its times, its root's name, route and status, and which
//! operations it has, as numbers of texts that all traces share. So a search walks over the traces and reads no span.
//!
//! Nothing here does I/O, reads a clock or draws random numbers: every call that needs the time is told it, in
//! milliseconds of the UNIX epoch.
#![forbid(unsafe_code)]

pub mod answer;
mod detail;
pub mod dry_run;
mod filter;
mod heat_map;
mod intern;
pub mod query;
mod read;
mod services;
mod store;
mod value;

pub use query::{HeatMapQuery, TraceQuery, trace_id};
pub use store::{BYTES_MIN, Decision, Limits, Stage, Store};

#[cfg(test)]
mod tests;
