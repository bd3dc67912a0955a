//! Whether QUIC reaches a server that may be asked over TCP too (`alpn h3,h2`).
//!
//! Networks that drop UDP do so for long. So after a failure, connections are made over TCP for a
//! while, which doubles with each further failure; then one connection tries QUIC again.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// How long TCP is used after the first failure, milliseconds.
const AWAY_MS: u64 = 10_000;
/// How long at most.
const AWAY_MAX_MS: u64 = 600_000;
/// How long others use TCP while one connection tries QUIC again, milliseconds: longer than its try
/// takes, and shorter than [`AWAY_MS`].
const TRY_MS: u64 = 5_000;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Reach {
    /// TCP is used until this time, monotonic milliseconds; 0 while QUIC is.
    until_ms: AtomicU64,
    /// Failures in a row.
    failures: AtomicU32,
}

impl Reach {
    /// Whether a connection that is made now is made over QUIC.
    pub fn uses_quic(&self, now_ms: u64) -> bool {
        let until_ms = self.until_ms.load(Relaxed);
        let begin = || self.move_on(until_ms, now_ms + TRY_MS);
        until_ms == 0 || until_ms <= now_ms && begin()
    }

    /// A connection over QUIC was not established. Of several that began together, the first counts.
    pub fn failed(&self, now_ms: u64) {
        let until_ms = self.until_ms.load(Relaxed);
        if until_ms > now_ms + TRY_MS {
            return;
        }
        let failures = self.failures.load(Relaxed).min(16);
        let away_ms = (AWAY_MS << failures).min(AWAY_MAX_MS);
        if self.move_on(until_ms, now_ms + away_ms) {
            self.failures.store(failures + 1, Relaxed);
        }
    }

    /// Sets the time. False if another thread was first.
    fn move_on(&self, from_ms: u64, to_ms: u64) -> bool {
        let moved = self
            .until_ms
            .compare_exchange(from_ms, to_ms, Relaxed, Relaxed);
        moved.is_ok()
    }

    /// A connection over QUIC was established.
    pub fn stands(&self) {
        if self.until_ms.load(Relaxed) != 0 {
            self.until_ms.store(0, Relaxed);
            self.failures.store(0, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_connection_tries_again_after_a_while_that_doubles() {
        let reach = Reach::default();
        let mut now_ms = 1;
        for away_ms in [
            10_000, 20_000, 40_000, 80_000, 160_000, 320_000, 600_000, 600_000,
        ] {
            // Those that began before fail together.
            assert!(reach.uses_quic(now_ms));
            for _ in 0..3 {
                reach.failed(now_ms);
            }
            assert!(!reach.uses_quic(now_ms + away_ms - 1));
            now_ms += away_ms;
        }
        assert!(reach.uses_quic(now_ms));
        assert!(!reach.uses_quic(now_ms));
        // It was not told how that try ended.
        now_ms += TRY_MS;
        assert!(reach.uses_quic(now_ms));
        reach.stands();
        assert!(reach.uses_quic(now_ms) && reach.uses_quic(now_ms));
        reach.failed(now_ms);
        assert!(!reach.uses_quic(now_ms + AWAY_MS - 1));
        assert!(reach.uses_quic(now_ms + AWAY_MS));
    }
}
