//! The collector: an OpenTelemetry Collector's configuration, and what runs it.
#![forbid(unsafe_code)]

pub mod config;
pub mod dashboard;
pub mod generate;
pub mod run;
