//! TLS connections with clients and with servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// The current number, the total, and the limit.
#[derive(Debug, Default)]
pub(crate) struct TlsConnections {
    now: AtomicU32,
    total: AtomicU64,
    max: Option<u32>,
}

/// A connection's place in the count, until it is dropped.
#[derive(Debug)]
pub struct TlsPlace(Arc<TlsConnections>);

impl TlsConnections {
    /// `max`: the most TLS connections at a time (`maxsslconn`); none for no limit.
    pub fn new(max: Option<u32>) -> Arc<TlsConnections> {
        Arc::new(TlsConnections {
            max,
            ..TlsConnections::default()
        })
    }

    /// Counts one more TLS connection; none if the limit is reached. The returned place counts it
    /// until it is dropped, on any worker, because connections move between workers.
    pub fn enter(self: &Arc<Self>) -> Option<TlsPlace> {
        match self.max {
            None => {
                self.now.fetch_add(1, Relaxed);
            }
            Some(max) => {
                let more = |now: u32| (now < max).then_some(now + 1);
                self.now.fetch_update(Relaxed, Relaxed, more).ok()?;
            }
        }
        self.total.fetch_add(1, Relaxed);
        Some(TlsPlace(Arc::clone(self)))
    }

    /// The current number.
    pub fn now(&self) -> u32 {
        self.now.load(Relaxed)
    }

    /// The total since the start.
    pub fn total(&self) -> u64 {
        self.total.load(Relaxed)
    }

    /// The limit; 0 for none.
    pub fn max(&self) -> u32 {
        self.max.unwrap_or(0)
    }
}

impl Drop for TlsPlace {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_given_until_the_limit_and_again_when_one_is_left() {
        let connections = TlsConnections::new(Some(2));
        let first = connections.enter();
        let second = connections.enter();
        assert!(first.is_some() && second.is_some());
        assert!(connections.enter().is_none());
        drop(first);
        assert!(connections.enter().is_some());
        assert_eq!((connections.now(), connections.total()), (1, 3));
    }
}
