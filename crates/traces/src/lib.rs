//! The embedded trace store: the traces of the last minutes, in memory, for the dashboard.
//!
//! Spans arrive as encoded OTLP and stay encoded. A [`Store`] limits their bytes and their age, and
//! removes the oldest traces first. In addition to its spans, a trace has the values that searches
//! compare: its times, its root's name, route and status, and its operations, as numbers of texts
//! that all traces share. So a search scans the traces and reads no span.
//!
//! Nothing here does I/O, reads a clock or uses random numbers. A call that needs the time gets it
//! as an argument, in milliseconds of the UNIX epoch.
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
