//! What the workers do now: the activity of their drivers, and the rates of bytes.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use net::Now;
use net::activity::Activity;

/// The shortest interval over which the rate of bytes is measured, nanoseconds.
const RATE_NS: u64 = 1_000_000_000;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Activities {
    /// By worker; none until the workers start.
    drivers: OnceLock<Vec<Arc<Activity>>>,
    rates: Mutex<[ByteRate; 3]>,
}

/// Bytes whose rate is measured.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Bytes {
    /// Sent to clients.
    Sent,
    /// Given to compression.
    Compressed,
    /// Made by compression.
    AfterCompression,
}

/// The bytes per second between two readings.
#[derive(Clone, Copy, Debug, Default)]
struct ByteRate {
    at_ns: u64,
    total: u64,
    per_second: u64,
}

/// The bytes at a moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByteReading {
    /// When the process started, monotonic nanoseconds.
    pub started_ns: u64,
    pub now_ns: u64,
    /// Bytes since the start.
    pub total: u64,
}

impl ByteRate {
    /// The rate since the last reading that was at least [`RATE_NS`] ago.
    fn read(&mut self, now_ns: u64, total: u64) -> u64 {
        let passed_ns = now_ns.saturating_sub(self.at_ns);
        if passed_ns >= RATE_NS {
            // Counters that were cleared in between do not make a rate.
            let sent = total.saturating_sub(self.total);
            let per_second = u128::from(sent) * 1_000_000_000 / u128::from(passed_ns);
            *self = ByteRate {
                at_ns: now_ns,
                total,
                per_second: per_second as u64,
            };
        }
        self.per_second
    }
}

impl Activities {
    pub fn set_drivers(&self, drivers: Vec<Arc<Activity>>) {
        // A second call has no effect.
        let _ = self.drivers.set(drivers);
    }

    pub fn drivers(&self) -> &[Arc<Activity>] {
        self.drivers.get().map_or(&[], Vec::as_slice)
    }

    /// The share of time in which the workers used no processor, per cent; 100 before they start.
    pub fn idle_percent(&self, now: Now) -> u32 {
        let drivers = self.drivers();
        let sum: u32 = drivers.iter().map(|own| own.idle_percent(now)).sum();
        match drivers.len() as u32 {
            0 => 100,
            count => sum / count,
        }
    }

    /// Bytes per second since the last reading of `what`; at the first one, since the start.
    pub fn byte_rate(&self, what: Bytes, reading: ByteReading) -> u64 {
        let mut rates = self.rates.lock().unwrap_or_else(PoisonError::into_inner);
        let rate = &mut rates[what as usize];
        if rate.at_ns == 0 {
            rate.at_ns = reading.started_ns;
        }
        rate.read(reading.now_ns, reading.total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_since_the_last_reading() {
        let activities = Activities::default();
        let read = |seconds: f64, total| {
            let ns = |seconds: f64| (seconds * 1e9) as u64;
            let reading = ByteReading {
                started_ns: ns(1.0),
                now_ns: ns(seconds),
                total,
            };
            activities.byte_rate(Bytes::Sent, reading)
        };
        assert_eq!(read(3.0, 600), 300, "since the start");
        assert_eq!(read(3.9, 9_000), 300, "too soon to measure again");
        assert_eq!(read(4.0, 1_600), 1_000);
        assert_eq!(read(6.0, 0), 0, "the counters were cleared");
    }

    #[test]
    fn a_process_without_workers_is_idle() {
        assert_eq!(Activities::default().idle_percent(Now::default()), 100);
    }
}
