//! Requests that wait for the second of their spans.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use super::Connection;

/// Bytes of the texts of requests that wait.
const STORE_BYTES_MAX: usize = 64 << 20;
/// So many entries of requests that have gone are left in the order of expiry.
const GONE_MAX: usize = 1024;

/// A request: its trace, and the span of its client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    pub trace_id: [u8; 16],
    pub span_id: [u8; 8],
}

/// Known facts of a request.
#[derive(Clone, Debug, Default)]
pub struct Edge {
    pub connection: Connection,
    /// Names of services; empty: there was no span yet.
    pub client: Vec<u8>,
    pub server: Vec<u8>,
    pub client_s: f64,
    pub server_s: f64,
    pub is_failed: bool,
    /// Name of the server in the client's attributes.
    pub peer: Option<Vec<u8>>,
    dimensions: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Edge {
    /// Sets an attribute.
    pub fn dimension(&mut self, name: Vec<u8>, value: Vec<u8>) {
        match self.dimensions.iter_mut().find(|(own, _)| *own == name) {
            Some((_, own)) => *own = value,
            None => self.dimensions.push((name, value)),
        }
    }

    /// The attributes in the order of their names.
    pub fn dimensions(&self) -> Vec<&(Vec<u8>, Vec<u8>)> {
        let mut all: Vec<_> = self.dimensions.iter().collect();
        all.sort();
        all
    }

    fn is_complete(&self) -> bool {
        !self.client.is_empty() && !self.server.is_empty()
    }

    fn bytes(&self) -> usize {
        let dimensions = self.dimensions.iter();
        let dimensions: usize = dimensions
            .map(|(name, value)| name.len() + value.len())
            .sum();
        let peer = self.peer.as_ref().map_or(0, Vec::len);
        self.client.len() + self.server.len() + peer + dimensions
    }
}

#[derive(Debug)]
struct Waiting {
    edge: Edge,
    /// Tells a request from an earlier one with the same key.
    number: u64,
}

/// See the module.
#[derive(Debug)]
pub struct Store {
    items_max: usize,
    ttl: Duration,
    waiting: HashMap<Key, Waiting>,
    /// In the order of their expiry, together with some that have gone.
    by_expiry: VecDeque<(Instant, Key, u64)>,
    bytes: usize,
    number: u64,
}

/// There is no room for another request.
#[derive(Debug)]
pub struct Full;

/// A request that was changed.
#[derive(Debug)]
pub struct Upserted {
    /// The request was not in the store.
    pub is_new: bool,
    /// The request with both spans, which has left the store.
    pub complete: Option<Edge>,
}

impl Store {
    /// With so many requests at most, each for this long.
    pub fn new(items_max: usize, ttl: Duration) -> Store {
        Store {
            items_max,
            ttl,
            waiting: HashMap::new(),
            by_expiry: VecDeque::new(),
            bytes: 0,
            number: 0,
        }
    }

    /// Requests that wait.
    pub fn count(&self) -> usize {
        self.waiting.len()
    }

    /// Changes a request, a new one where there is none.
    ///
    /// # Errors
    /// A new one that is not complete finds no room.
    pub fn upsert(
        &mut self,
        key: Key,
        now: Instant,
        update: impl FnOnce(&mut Edge),
    ) -> Result<Upserted, Full> {
        let (mut edge, number) = match self.waiting.remove(&key) {
            Some(Waiting { edge, number }) => {
                self.bytes -= edge.bytes();
                (edge, Some(number))
            }
            None => (Edge::default(), None),
        };
        update(&mut edge);
        let is_new = number.is_none();
        if edge.is_complete() {
            return Ok(Upserted {
                is_new,
                complete: Some(edge),
            });
        }
        let bytes = self.bytes.saturating_add(edge.bytes());
        if bytes > STORE_BYTES_MAX || is_new && self.waiting.len() >= self.items_max {
            return Err(Full);
        }
        self.bytes = bytes;
        let number = number.unwrap_or_else(|| {
            self.number += 1;
            self.by_expiry.push_back((now + self.ttl, key, self.number));
            self.number
        });
        self.waiting.insert(key, Waiting { edge, number });
        self.compact();
        Ok(Upserted {
            is_new,
            complete: None,
        })
    }

    /// Takes out the next request that has waited long enough.
    pub fn expired(&mut self, now: Instant) -> Option<(Key, Edge)> {
        while let Some((expiry, key, number)) = self.by_expiry.front().copied() {
            let is_there = self.is_there(&key, number);
            if is_there && expiry > now {
                return None;
            }
            self.by_expiry.pop_front();
            if is_there && let Some(Waiting { edge, .. }) = self.waiting.remove(&key) {
                self.bytes -= edge.bytes();
                return Some((key, edge));
            }
        }
        None
    }

    fn is_there(&self, key: &Key, number: u64) -> bool {
        let waiting = self.waiting.get(key);
        waiting.is_some_and(|waiting| waiting.number == number)
    }

    /// Forgets the order of those that have gone, where they are more than those that wait.
    fn compact(&mut self) {
        if self.by_expiry.len() <= 2 * self.waiting.len() + GONE_MAX {
            return;
        }
        let waiting = &self.waiting;
        self.by_expiry.retain(|(_, key, number)| {
            let own = waiting.get(key);
            own.is_some_and(|own| own.number == *number)
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u8) -> Key {
        Key {
            trace_id: [number; 16],
            span_id: [1; 8],
        }
    }

    fn client(store: &mut Store, number: u8, now: Instant) -> Result<Upserted, Full> {
        store.upsert(key(number), now, |edge| edge.client = b"c".to_vec())
    }

    fn server(store: &mut Store, number: u8, now: Instant) -> Result<Upserted, Full> {
        store.upsert(key(number), now, |edge| edge.server = b"s".to_vec())
    }

    #[test]
    fn requests_are_complete_with_both_spans() {
        let (mut store, now) = (Store::new(2, Duration::from_secs(2)), Instant::now());
        let first = client(&mut store, 1, now).unwrap();
        assert!(first.is_new && first.complete.is_none());
        let second = server(&mut store, 1, now).unwrap();
        let edge = second.complete.expect("both are there");
        assert_eq!((&edge.client[..], &edge.server[..]), (&b"c"[..], &b"s"[..]));
        assert!(!second.is_new);
        assert_eq!((store.count(), store.bytes), (0, 0));
    }

    #[test]
    fn requests_that_wait_are_bounded_and_expire() {
        let (mut store, now) = (Store::new(2, Duration::from_secs(2)), Instant::now());
        let later = now + Duration::from_secs(1);
        client(&mut store, 1, now).unwrap();
        client(&mut store, 2, later).unwrap();
        assert!(client(&mut store, 3, later).is_err());
        assert!(server(&mut store, 3, later).is_err());
        // One that is there may still be changed.
        assert!(client(&mut store, 1, later).is_ok());
        let long = Store::upsert(&mut store, key(2), later, |edge| {
            edge.peer = Some(vec![0; STORE_BYTES_MAX]);
        });
        assert!(long.is_err());
        assert_eq!((store.count(), store.bytes), (1, 1));
        assert!(store.expired(later).is_none());
        let (expired, _) = store.expired(now + Duration::from_secs(2)).unwrap();
        assert_eq!(expired, key(1));
        assert!(store.expired(now + Duration::from_secs(9)).is_none());
        assert_eq!((store.count(), store.bytes), (0, 0));
    }

    #[test]
    fn what_has_gone_does_not_stay_in_the_order() {
        let (mut store, now) = (Store::new(10, Duration::from_secs(9999)), Instant::now());
        for number in 0..5000_u32 {
            let number = (number % 200) as u8;
            client(&mut store, number, now).unwrap();
            assert!(server(&mut store, number, now).unwrap().complete.is_some());
            assert!(store.by_expiry.len() <= GONE_MAX + 3);
        }
    }
}
