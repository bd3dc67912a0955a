//! `retry_on_failure`: what becomes of data that could not be sent.

use crate::config::options::{Kind, Opt, Section, Table, opt};

/// Waits between attempts, which grow.
#[derive(Clone, Debug, PartialEq)]
pub struct Retry {
    /// After the first failure.
    pub initial_interval_ns: u64,
    /// Each wait is drawn from its own length, less and more this share of it; 0 to 1.
    pub randomization_factor: f64,
    /// Each wait is longer than the one before by this factor.
    pub multiplier: f64,
    /// The longest wait.
    pub max_interval_ns: u64,
    /// Data are given up after this time; 0: never.
    pub max_elapsed_ns: u64,
}

/// Options of `retry_on_failure`.
#[rustfmt::skip]
pub(crate) const TABLE: Table = &[OPTIONS];
#[rustfmt::skip]
pub(crate) const OPTIONS: &[Opt] = &[
    opt("enabled", Kind::Flag, "true", "data that could not be sent are sent again"),
    opt("initial_interval", Kind::Duration, "5s", "wait after the first failure"),
    opt("randomization_factor", Kind::Number(0.0, 1.0), "0.5", "share of a wait by which it may be shorter or longer"),
    opt("multiplier", Kind::Number(0.0, f64::MAX), "1.5", "growth from wait to wait"),
    opt("max_interval", Kind::Duration, "30s", "the longest wait"),
    opt("max_elapsed_time", Kind::Duration, "5m", "data are given up after this time; 0: never"),
];

/// From its section; nothing where it is disabled.
pub(crate) fn retry(section: &Section<'_>) -> Option<Retry> {
    if !section.flag("enabled") {
        return None;
    }
    let retry = Retry {
        initial_interval_ns: section.duration_ns("initial_interval"),
        randomization_factor: section.number("randomization_factor"),
        multiplier: section.number("multiplier"),
        max_interval_ns: section.duration_ns("max_interval"),
        max_elapsed_ns: section.duration_ns("max_elapsed_time"),
    };
    let longest = retry.max_interval_ns.max(retry.initial_interval_ns);
    if retry.max_elapsed_ns > 0 && retry.max_elapsed_ns < longest {
        let message = "must not be less than 'initial_interval' or 'max_interval'";
        section.error("max_elapsed_time", message);
    }
    Some(retry)
}
