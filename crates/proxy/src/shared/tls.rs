//! TLS connections, those with clients and those with servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// How many there are, how many there were, and how many there may be.
#[derive(Debug, Default)]
pub(crate) struct TlsConnections {
    now: AtomicU32,
    total: AtomicU64,
    max: Option<u32>,
}

/// A connection's place among them, until it is dropped.
#[derive(Debug)]
pub struct TlsPlace(Arc<TlsConnections>);

impl TlsConnections {
    /// `max`: the most TLS connections at a time (`maxsslconn`); none: no limit.
    pub fn new(max: Option<u32>) -> Arc<TlsConnections> {
        Arc::new(TlsConnections {
            max,
            ..TlsConnections::default()
        })
    }

    /// One more, unless there are as many as there may be. Any worker may drop its place: connections move between them.
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

    /// Those that there are now.
    pub fn now(&self) -> u32 {
        self.now.load(Relaxed)
    }

    /// Those since the start.
    pub fn total(&self) -> u64 {
        self.total.load(Relaxed)
    }

    /// The most at a time; 0 for any number.
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
