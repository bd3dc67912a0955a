//! Headers: what stands around spans, a resource, a scope and their schema URLs, each kept once.
//!
//! A header lives as long as the last segment whose records name it.

use super::template::{Buffer, Learner};
use super::templates::{Tag, Templates};
use crate::policy::Keys;
use crate::scan::{Span, Spot};
use std::collections::HashMap;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// A header that does not exist.
const NONE: u32 = u32::MAX;

/// Bytes that a header takes beside its own.
pub const HEADER_BYTES: u64 = 192;

/// One header.
#[derive(Debug)]
pub struct Header {
    /// The fields of `ResourceSpans` but for its scopes, then those of `ScopeSpans` but for its spans.
    bytes: Box<[u8]>,
    resource_len: u32,
    /// Another one with the same hash.
    next: u32,
    /// The last segment that has a record of it.
    segment: u32,
    hash: u64,
    /// Never used twice, while the place in the table is.
    pub serial: u64,
    /// Policy bits of its resource.
    pub bits: u64,
    templates: Templates,
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

    /// Appends a span that [`Headers::encode`] wrote.
    pub fn decode(&self, kept: &[u8], out: &mut Vec<u8>) -> Option<()> {
        self.templates.decode(kept, out)
    }

    fn held_bytes(&self) -> u64 {
        self.bytes.len() as u64 + HEADER_BYTES + self.templates.held_bytes()
    }
}

/// All headers.
#[derive(Debug, Default)]
pub struct Headers {
    slots: Vec<Option<Header>>,
    free: Vec<u32>,
    by_hash: HashMap<u64, u32>,
    serials: u64,
    held_bytes: u64,
}

impl Headers {
    /// Bytes of all headers.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// A header's hash, from that of its resource's fields.
    #[must_use]
    pub fn hash(resource_hash: u64, scope_fields: &[u8]) -> u64 {
        xxh3_64_with_seed(scope_fields, resource_hash)
    }

    /// The hash of a resource's fields; `seed` is secret, so that senders cannot make hashes collide.
    #[must_use]
    pub fn resource_hash(resource_fields: &[u8], seed: u64) -> u64 {
        xxh3_64_with_seed(resource_fields, seed)
    }

    /// The header of these fields.
    #[must_use]
    fn find(&self, hash: u64, resource: &[u8], scope: &[u8]) -> Option<u32> {
        let mut at = *self.by_hash.get(&hash)?;
        while let Some(Some(header)) = self.slots.get(at as usize) {
            if header.resource_fields() == resource && header.scope_fields() == scope {
                return Some(at);
            }
            at = header.next;
        }
        None
    }

    /// Adds one that `Headers::find` did not find.
    pub fn insert(&mut self, hash: u64, resource: &[u8], scope: &[u8], bits: u64) -> u32 {
        let at = self.free.pop().unwrap_or(self.slots.len() as u32);
        let next = self.by_hash.insert(hash, at).unwrap_or(NONE);
        self.serials += 1;
        let header = Header {
            bytes: [resource, scope].concat().into(),
            resource_len: resource.len() as u32,
            next,
            segment: NONE,
            hash,
            serial: self.serials,
            bits,
            templates: Templates::default(),
        };
        self.held_bytes += header.held_bytes();
        if at as usize == self.slots.len() {
            self.slots.push(Some(header));
        } else {
            self.slots[at as usize] = Some(header);
        }
        at
    }

    /// A header that exists.
    #[must_use]
    pub fn get(&self, at: u32) -> Option<&Header> {
        self.slots.get(at as usize)?.as_ref()
    }

    /// The templates of a header.
    #[inline]
    pub fn templates(&self, at: u32) -> Option<&Templates> {
        Some(&self.slots.get(at as usize)?.as_ref()?.templates)
    }

    /// Reads a span with a template of its header that is known; see `Templates::read`.
    #[inline]
    pub fn read<'a>(
        &mut self,
        at: u32,
        tag: Tag,
        (span, rest): (&mut Span<'a>, &'a [u8]),
        spot: &mut impl Spot<'a>,
        learn: &mut Learner,
        out: &mut Buffer<'_>,
    ) -> bool {
        let Some(Some(header)) = self.slots.get_mut(at as usize) else {
            return false;
        };
        let before = learn.taken;
        let read = header.templates.read(tag, (span, rest), spot, learn, out);
        self.held_bytes += learn.taken - before;
        read
    }

    /// Writes a span, whose trace identifier is left out, with a template of its header, which may be a new one; false where
    /// there is none for it. See `Templates::encode`.
    pub fn encode(
        &mut self,
        at: u32,
        span: &[u8],
        keys: &Keys,
        learn: &mut Learner,
        out: &mut Buffer<'_>,
    ) -> bool {
        let Some(Some(header)) = self.slots.get_mut(at as usize) else {
            return false;
        };
        let before = learn.taken;
        let done = header.templates.encode(span, keys, learn, out);
        self.held_bytes += learn.taken - before;
        done
    }

    /// The header of these fields, unless its templates did not do.
    pub fn current(&mut self, hash: u64, resource: &[u8], scope: &[u8]) -> Option<u32> {
        let header = self.find(hash, resource, scope)?;
        (!self.retire(header)).then_some(header)
    }

    /// Makes [`Headers::find`] forget a header whose templates did not do, so that another one is made with others. It stays
    /// as long as its segments; true if it did so.
    fn retire(&mut self, at: u32) -> bool {
        let Some(slot) = self.slots.get_mut(at as usize) else {
            return false;
        };
        let worn = |header: &mut Header| header.segment != NONE && header.templates.are_worn();
        let Some(header) = slot.take_if(worn) else {
            return false;
        };
        self.unlink(at, &header);
        self.slots[at as usize] = Some(header);
        true
    }

    /// A segment uses the header; true if it is the first time in that segment.
    #[inline]
    pub fn used_in(&mut self, at: u32, segment: u32) -> bool {
        match self.slots.get_mut(at as usize) {
            Some(Some(header)) if header.segment != segment => {
                header.segment = segment;
                true
            }
            _ => false,
        }
    }

    /// A segment is gone; the header goes too if no later one uses it.
    pub fn segment_gone(&mut self, at: u32, segment: u32) {
        let Some(slot) = self.slots.get_mut(at as usize) else {
            return;
        };
        let Some(header) = slot.take_if(|header| header.segment == segment) else {
            return;
        };
        self.held_bytes -= header.held_bytes();
        self.free.push(at);
        self.unlink(at, &header);
    }

    fn unlink(&mut self, at: u32, gone: &Header) {
        let Some(first) = self.by_hash.get_mut(&gone.hash) else {
            return;
        };
        if *first == at {
            *first = gone.next;
            if gone.next == NONE {
                self.by_hash.remove(&gone.hash);
            }
            return;
        }
        let mut before = *first;
        while let Some(Some(header)) = self.slots.get_mut(before as usize) {
            if header.next == at {
                header.next = gone.next;
                return;
            }
            before = header.next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_kept_once_and_goes_with_its_last_segment() {
        let mut headers = Headers::default();
        // All of one hash, as an attacker would have it.
        let ids: Vec<u32> = (0..10)
            .map(|n: u8| headers.insert(7, &[n], b"scope", 0))
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
}
