//! Settings that prevent failures from spreading, beyond HAProxy's language (docs/resilience.md).

use std::time::Duration;

/// `retry-budget`: the limit of a backend's retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryBudget {
    /// Retries per 100 requests.
    pub percent: u32,
    /// Retries per second that are allowed in addition.
    pub min_per_s: u32,
}

/// `outlier-ejection`: when the results of traffic eject a server, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutlierEjection {
    /// Consecutive errors that eject; 0 for no limit.
    pub errors: u32,
    /// The least percentage of successful requests in a window; 0 for no limit.
    pub success_percent: u32,
    /// The highest mean latency in a window, in percent of that of the other servers; 0 for no
    /// limit.
    pub latency_percent: u32,
    /// With fewer requests in a window, success and latency are not evaluated.
    pub requests: u32,
    /// The length of a window.
    pub interval: Duration,
    /// The duration of the first ejection.
    pub ejection: Duration,
    /// The highest percentage of a backend's servers that are ejected at a time.
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
