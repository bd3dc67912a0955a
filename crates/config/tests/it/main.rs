//! The configuration language, from text to the typed configuration and its diagnostics.

mod accepted;
mod collectors;
mod common;
mod docs;
mod faults;
mod keywords;
mod otel;
mod persistence;
