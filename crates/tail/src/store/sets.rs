//! Templates, a set of them for each service and scope: all processes of a service name and write
//! their spans alike, so that what one of them sent serves the others.
//!
//! A set goes with the last header that has it.

use super::template::{Buffer, Learner};
use super::templates::{Tag, Templates};
use otlp::scan::Keys;
use otlp::scan::{Span, Spot};
use slab::Slab;
use std::collections::HashMap;

/// All sets.
#[derive(Debug, Default)]
pub struct Sets {
    sets: Slab<Set>,
    by_key: HashMap<u64, u32>,
    held_bytes: u64,
}

#[derive(Debug)]
struct Set {
    templates: Templates,
    key: u64,
    /// Headers that have it.
    headers: u32,
}

impl Sets {
    /// Bytes of all templates.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// The templates of a set.
    #[inline]
    #[must_use]
    pub fn get(&self, at: u32) -> Option<&Templates> {
        Some(&self.sets.get(at as usize)?.templates)
    }

    /// A new header gets the set of this key: a new one if there is none, or if its templates did
    /// not do. Whoever makes keys collide makes his own spans be kept as they came.
    pub fn join(&mut self, key: u64) -> u32 {
        if let Some(at) = self.by_key.get(&key)
            && let Some(set) = self.sets.get_mut(*at as usize)
            && !set.templates.are_worn()
        {
            set.headers += 1;
            return *at;
        }
        let at = self.sets.insert(Set {
            templates: Templates::default(),
            key,
            headers: 1,
        }) as u32;
        self.by_key.insert(key, at);
        at
    }

    /// A header is gone.
    pub fn leave(&mut self, at: u32) {
        let Some(set) = self.sets.get_mut(at as usize) else {
            return;
        };
        set.headers -= 1;
        if set.headers > 0 {
            return;
        }
        let set = self.sets.remove(at as usize);
        self.held_bytes -= set.templates.held_bytes();
        // A later one may have its key.
        if self.by_key.get(&set.key) == Some(&at) {
            self.by_key.remove(&set.key);
        }
    }

    /// Reads a span with a template that is known; see `Templates::read`.
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
        self.work(at, learn, |templates, learn| {
            templates.read(tag, (span, rest), spot, learn, out)
        })
    }

    /// Writes a span, whose trace identifier is left out, with a template, which may be a new one;
    /// false where there is none for it. See `Templates::encode`.
    pub fn encode(
        &mut self,
        at: u32,
        span: &[u8],
        keys: &Keys,
        learn: &mut Learner,
        out: &mut Buffer<'_>,
    ) -> bool {
        self.work(at, learn, |templates, learn| {
            templates.encode(span, keys, learn, out)
        })
    }

    /// Does something with the templates of a set, which may learn by it; false where there is no
    /// such set.
    #[inline]
    fn work(
        &mut self,
        at: u32,
        learn: &mut Learner,
        work: impl FnOnce(&mut Templates, &mut Learner) -> bool,
    ) -> bool {
        let Some(set) = self.sets.get_mut(at as usize) else {
            return false;
        };
        let before = learn.taken;
        let done = work(&mut set.templates, learn);
        self.held_bytes += learn.taken - before;
        done
    }
}
