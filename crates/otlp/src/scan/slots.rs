//! Attributes of a span that are looked up by their place, and what stands around a span.

use super::{Any, Spot};

/// Attributes that are looked up, all together.
pub const KEYS_MAX: usize = 64;

/// Names of attributes that policies read, each with a place in [`Slots`].
#[derive(Debug, Default)]
pub struct Keys {
    names: Vec<Box<[u8]>>,
    /// Lengths that there are, modulo 64.
    lengths: u64,
}

impl Keys {
    /// The place of a name; none if there are too many.
    pub fn place(&mut self, name: &[u8]) -> Option<u8> {
        if let Some(at) = self.find(name) {
            return Some(at);
        }
        if self.names.len() == KEYS_MAX {
            return None;
        }
        self.lengths |= 1_u64.wrapping_shl(name.len() as u32);
        self.names.push(name.into());
        Some(self.names.len() as u8 - 1)
    }

    /// The place of a name that is there.
    #[inline]
    #[must_use]
    pub fn find(&self, name: &[u8]) -> Option<u8> {
        let at = self.names.iter().position(|known| **known == *name);
        at.map(|at| at as u8)
    }
}

/// The values that a span has for the named attributes: the first of each, as the Collector looks
/// them up.
#[derive(Debug)]
pub struct Slots<'a, 'k> {
    keys: &'k Keys,
    set: u64,
    values: [&'a [u8]; KEYS_MAX],
}

impl<'a, 'k> Slots<'a, 'k> {
    /// None yet.
    #[inline]
    #[must_use]
    pub fn new(keys: &'k Keys) -> Slots<'a, 'k> {
        Slots {
            keys,
            set: 0,
            values: [b""; KEYS_MAX],
        }
    }

    /// Whether no value is set.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.set == 0
    }

    /// The value at a place.
    #[inline]
    #[must_use]
    pub fn get(&self, place: u8) -> Option<Any<'a>> {
        if self.set >> place & 1 == 0 {
            return None;
        }
        self.values
            .get(usize::from(place))
            .map(|value| Any::read(value))
    }
}

impl<'a> Spot<'a> for Slots<'a, '_> {
    #[inline]
    fn lengths(&self) -> u64 {
        self.keys.lengths
    }

    #[inline]
    fn clear(&mut self) {
        self.set = 0;
    }

    // Few attributes come here; it stands apart from the loop that passes over the others.
    #[inline(never)]
    fn attribute(&mut self, name: &'a [u8], value: &'a [u8]) {
        if let Some(place) = self.keys.find(name) {
            self.put(place, value);
        }
    }

    #[inline]
    fn put(&mut self, place: u8, value: &'a [u8]) {
        if self.set >> place & 1 == 0
            && let Some(slot) = self.values.get_mut(usize::from(place))
        {
            self.set |= 1 << place;
            *slot = value;
        }
    }
}

/// What stands around a record, for those who look at it too.
#[derive(Clone, Copy, Debug, Default)]
pub struct Around<'a> {
    /// The message `Resource`.
    pub resource: &'a [u8],
    /// The message `InstrumentationScope`.
    pub scope: &'a [u8],
}
