//! Headers: what stands around spans, a resource, a scope and their schema URLs, each kept once.
//!
//! A header lives as long as the last segment whose records name it.

use super::sets::Sets;
use super::templates::Templates;
use otlp::scan::{self, Attributes, RESOURCE_ATTRIBUTES};
use slab::Slab;
use std::collections::HashMap;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A header that does not exist.
const NONE: u32 = u32::MAX;

/// Bytes that a header takes beside its own, with its set of templates and its places in the tables
/// of both.
pub const HEADER_BYTES: u64 = 256;

/// One header.
#[derive(Debug)]
pub struct Header {
    /// The fields of `ResourceSpans` but for its scopes, then those of `ScopeSpans` but for its
    /// spans.
    bytes: Box<[u8]>,
    resource_len: u32,
    /// Another one with the same hash.
    next: u32,
    /// The last segment that has a record of it.
    segment: u32,
    hash: u64,
    /// Never used twice, while the place in the table is.
    pub serial: u64,
    /// Its templates in [`Headers::sets`].
    set: u32,
}

/// A header that is there, and its templates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// For [`Headers::get`].
    pub header: u32,
    /// For [`Sets::get`].
    pub set: u32,
}

impl Header {
    /// The fields of `ResourceSpans` but for its scopes.
    #[must_use]
    pub fn resource_fields(&self) -> &[u8] {
        &self.bytes[..self.resource_len as usize]
    }

    /// The fields of `ScopeSpans` but for its spans.
    #[must_use]
    pub fn scope_fields(&self) -> &[u8] {
        &self.bytes[self.resource_len as usize..]
    }

    fn held_bytes(&self) -> u64 {
        self.bytes.len() as u64 + HEADER_BYTES
    }
}

/// All headers.
#[derive(Debug, Default)]
pub struct Headers {
    slots: Slab<Header>,
    by_hash: HashMap<u64, u32>,
    serials: u64,
    held_bytes: u64,
    /// Their templates.
    pub sets: Sets,
}

impl Headers {
    /// Bytes of all headers.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes + self.sets.held_bytes()
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.slots.len()
    }

    /// A header's hash, from that of its resource's fields.
    #[must_use]
    pub fn hash(resource_hash: u64, scope_fields: &[u8]) -> u64 {
        xxh3_64_with_seed(scope_fields, resource_hash)
    }

    /// The hash of a resource's fields; `seed` is secret, so that senders cannot make hashes
    /// collide.
    #[must_use]
    pub fn resource_hash(resource_fields: &[u8], seed: u64) -> u64 {
        xxh3_64_with_seed(resource_fields, seed)
    }

    /// The header of these fields.
    #[must_use]
    fn find(&self, hash: u64, resource: &[u8], scope: &[u8]) -> Option<u32> {
        let mut at = *self.by_hash.get(&hash)?;
        while let Some(header) = self.slots.get(at as usize) {
            if header.resource_fields() == resource && header.scope_fields() == scope {
                return Some(at);
            }
            at = header.next;
        }
        None
    }

    /// Adds one that `Headers::find` did not find; `seed` is secret.
    pub fn insert(&mut self, hash: u64, resource: &[u8], scope: &[u8], seed: u64) -> Found {
        self.serials += 1;
        let service = service(resource, seed);
        let set = self
            .sets
            .join(service.map_or(hash, |service| Headers::hash(service, scope)));
        let entry = self.slots.vacant_entry();
        let header = entry.key() as u32;
        let next = self.by_hash.insert(hash, header).unwrap_or(NONE);
        let added = entry.insert(Header {
            bytes: [resource, scope].concat().into(),
            resource_len: resource.len() as u32,
            next,
            segment: NONE,
            hash,
            serial: self.serials,
            set,
        });
        self.held_bytes += added.held_bytes();
        Found { header, set }
    }

    /// A header that exists.
    #[must_use]
    pub fn get(&self, at: u32) -> Option<&Header> {
        self.slots.get(at as usize)
    }

    /// Appends a span that was written with a template of a header.
    pub fn decode(&self, header: &Header, kept: &[u8], out: &mut Vec<u8>) -> Option<()> {
        self.sets.get(header.set)?.decode(kept, out)
    }

    /// The first span of the template that a span was written with.
    #[must_use]
    pub fn first(&self, header: u32, kept: &[u8]) -> &[u8] {
        let set = self
            .get(header)
            .and_then(|header| self.sets.get(header.set));
        set.map_or(b"", |templates| templates.first_of(kept))
    }

    /// The header of these fields, unless its templates did not do: then it is forgotten, so that
    /// another one is made with others, and stays as long as its segments.
    pub fn current(&mut self, hash: u64, resource: &[u8], scope: &[u8]) -> Option<Found> {
        let at = self.find(hash, resource, scope)?;
        let header = self.slots.get(at as usize)?;
        let set = header.set;
        if header.segment != NONE && self.sets.get(set).is_some_and(Templates::are_worn) {
            self.unlink(at, hash, header.next);
            return None;
        }
        Some(Found { header: at, set })
    }

    /// A segment uses the header; true if it is the first time in that segment.
    #[inline]
    pub fn used_in(&mut self, at: u32, segment: u32) -> bool {
        match self.slots.get_mut(at as usize) {
            Some(header) if header.segment != segment => {
                header.segment = segment;
                true
            }
            _ => false,
        }
    }

    /// A segment is gone; the header goes too if no later one uses it.
    pub fn segment_gone(&mut self, at: u32, segment: u32) {
        let last = |header: &Header| header.segment == segment;
        if !self.slots.get(at as usize).is_some_and(last) {
            return;
        }
        let header = self.slots.remove(at as usize);
        self.held_bytes -= header.held_bytes();
        self.sets.leave(header.set);
        self.unlink(at, header.hash, header.next);
    }

    /// Makes [`Headers::find`] forget a header.
    fn unlink(&mut self, gone: u32, hash: u64, next: u32) {
        let Some(first) = self.by_hash.get_mut(&hash) else {
            return;
        };
        if *first == gone {
            *first = next;
            if next == NONE {
                self.by_hash.remove(&hash);
            }
            return;
        }
        let mut before = *first;
        while let Some(header) = self.slots.get_mut(before as usize) {
            if header.next == gone {
                header.next = next;
                return;
            }
            before = header.next;
        }
    }
}

/// A hash of the namespace and the name of the service that a resource is of, from the fields of a
/// `ResourceSpans`; none if it has no name.
fn service(resource_fields: &[u8], seed: u64) -> Option<u64> {
    let (resource, _) = scan::frame(resource_fields, &mut Vec::new()).ok()?;
    let value = |name: &str| {
        let mut attributes = Attributes::new(resource, RESOURCE_ATTRIBUTES);
        attributes.find(|(key, _)| *key == name.as_bytes())
    };
    let namespace =
        value("service.namespace").map_or(seed, |(_, value)| xxh3_64_with_seed(value, seed));
    value("service.name").map(|(_, name)| xxh3_64_with_seed(name, namespace))
}

#[cfg(test)]
mod tests {
    use super::*;
    use otlp::write;

    #[test]
    fn each_is_kept_once_and_goes_with_its_last_segment() {
        let mut headers = Headers::default();
        // All of one hash, as an attacker would have it.
        let ids: Vec<u32> = (0..10)
            .map(|n: u8| headers.insert(7, &[n], b"scope", 0).header)
            .collect();
        for (n, id) in ids.iter().enumerate() {
            assert_eq!(headers.find(7, &[n as u8], b"scope"), Some(*id));
            assert!(headers.used_in(*id, 3));
            assert!(!headers.used_in(*id, 3));
        }
        assert_eq!(headers.find(7, &[0], b"other"), None);
        assert!(headers.used_in(ids[4], 4));
        ids.iter().for_each(|id| headers.segment_gone(*id, 3));
        assert_eq!(headers.count(), 1);
        assert_eq!(headers.find(7, &[4], b"scope"), Some(ids[4]));
        assert_eq!(headers.find(7, &[5], b"scope"), None);
        headers.segment_gone(ids[4], 4);
        assert_eq!((headers.count(), headers.held_bytes()), (0, 0));
        assert!(headers.by_hash.is_empty());
    }

    /// The fields of a `ResourceSpans` with these attributes, whose values are texts.
    fn resource(attributes: &[(&str, &str)]) -> Vec<u8> {
        let mut out = Vec::new();
        write::message(&mut out, 1, |out| {
            for (key, value) in attributes {
                write::text_value(out, 1, key, value);
            }
        });
        out
    }

    #[test]
    fn processes_of_a_service_have_the_same_templates() {
        let mut headers = Headers::default();
        let mut found = |attributes: &[(&str, &str)], scope: &[u8]| {
            let resource = resource(attributes);
            let hash = Headers::hash(Headers::resource_hash(&resource, 5), scope);
            headers.insert(hash, &resource, scope, 5)
        };
        let name = |name| ("service.name", name);
        let pod = |pod| ("k8s.pod.name", pod);
        let all = [
            found(&[name("a"), pod("1")], b"scope"),
            found(&[pod("2"), name("a")], b"scope"),
            // All others are alone.
            found(&[name("a"), pod("1")], b"other"),
            found(&[name("b"), pod("1")], b"scope"),
            found(&[("service.namespace", "n"), name("a")], b"scope"),
            found(&[pod("1")], b"scope"),
            found(&[pod("2")], b"scope"),
        ];
        let sets: Vec<_> = all.iter().map(|found| found.set).collect();
        assert_eq!(sets, [0, 0, 1, 2, 3, 4, 5]);
        for found in all {
            headers.used_in(found.header, 1);
        }
        headers.segment_gone(all[0].header, 1);
        assert!(headers.sets.get(all[1].set).is_some(), "one has it yet");
        for found in &all[1..] {
            headers.segment_gone(found.header, 1);
        }
        assert!(
            all.iter()
                .all(|found| headers.sets.get(found.set).is_none())
        );
        assert_eq!((headers.count(), headers.held_bytes()), (0, 0));
    }
}
