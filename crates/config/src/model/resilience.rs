//! What keeps a failure from spreading, beyond HAProxy's language (docs/resilience.md).

use std::time::Duration;

/// `retry-budget`: how many retries a backend may make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryBudget {
    /// Retries per 100 requests.
    pub percent: u32,
    /// Retries a second that are allowed beside these.
    pub min_per_s: u32,
}

/// `outlier-ejection`: when traffic takes a server out, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutlierEjection {
    /// Errors in a row that eject; 0 for any number.
    pub errors: u32,
    /// The least share of requests of a window that have to succeed, percent; 0 for none.
    pub success_percent: u32,
    /// The most that the mean latency of a window may be, percent of that of the other servers; 0 for any.
    pub latency_percent: u32,
    /// Requests of a window below which neither share nor latency is judged.
    pub requests: u32,
    /// The length of a window.
    pub interval: Duration,
    /// How long the first ejection lasts.
    pub ejection: Duration,
    /// The share of a backend's servers that may be ejected at once, percent.
    pub max_percent: u32,
}

impl Default for OutlierEjection {
    fn default() -> Self {
        OutlierEjection {
            errors: 0,
            success_percent: 0,
            latency_percent: 0,
            requests: 10,
            interval: Duration::from_secs(10),
            ejection: Duration::from_secs(30),
            max_percent: 50,
        }
    }
}
