//! From spans and resources to bits, while they are scanned.

use super::latency::Latencies;
use super::ottl_condition::Condition;
use super::status_code::{Statuses, is_sampled};
use super::string_attribute::Texts;
use super::trace_state::State;
use super::{boolean_attribute, numeric_attribute};
use crate::store::Entry;
use otlp::scan::{Any, Around, Attributes, Keys, RESOURCE_ATTRIBUTES, Slots, Span, Spot};

/// What is asked of an attribute.
#[derive(Debug)]
pub enum Test {
    Text(Texts),
    Number(numeric_attribute::Range),
    Bool(bool),
}

impl Test {
    fn matches(&self, value: Any<'_>, on_span: bool) -> bool {
        match self {
            Test::Text(texts) => texts.matches(value, on_span),
            Test::Number(range) => range.matches(value),
            Test::Bool(wanted) => boolean_attribute::matches(*wanted, value),
        }
    }
}

/// All that sets bits.
#[derive(Debug, Default)]
pub struct Matcher {
    pub(super) keys: Keys,
    /// A key's place, the bit, and what is asked.
    pub(super) tests: Vec<(u8, u64, Test)>,
    pub(super) statuses: Statuses,
    pub(super) sampled_flag: u64,
    pub(super) latencies: Latencies,
    pub(super) states: Vec<State>,
    pub(super) conditions: Vec<Condition>,
    /// What sets the further words, by the keys of this one.
    pub(super) more: Vec<Matcher>,
}

impl Matcher {
    /// The attributes that policies name.
    #[must_use]
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// The bits of a resource.
    #[must_use]
    pub fn resource_bits(&self, resource: &[u8]) -> u64 {
        if self.tests.is_empty() {
            return 0;
        }
        let mut slots = Slots::new(&self.keys);
        Attributes::new(resource, RESOURCE_ATTRIBUTES)
            .for_each(|(name, value)| slots.attribute(name, value));
        self.attribute_bits(&slots, false)
    }

    /// The bits of a span alone; those of [`Matcher::arrive`] come to them.
    #[inline]
    #[must_use]
    pub fn span_bits(&self, span: &Span<'_>, slots: &Slots<'_, '_>, around: Around<'_>) -> u64 {
        let mut bits = self.statuses.bits(span.status);
        if is_sampled(span.flags) {
            bits |= self.sampled_flag;
        }
        if !slots.is_empty() {
            bits |= self.attribute_bits(slots, true);
        }
        for state in &self.states {
            bits |= if state.matches(span.trace_state) {
                state.bit
            } else {
                0
            };
        }
        for condition in &self.conditions {
            bits |= condition.bits(span, slots, around);
        }
        bits
    }

    #[inline]
    fn attribute_bits(&self, slots: &Slots<'_, '_>, on_span: bool) -> u64 {
        let mut bits = 0;
        for (place, bit, test) in &self.tests {
            let value = slots.get(*place);
            if value.is_some_and(|value| test.matches(value, on_span)) {
                bits |= bit;
            }
        }
        bits
    }

    /// How many further words of bits traces have.
    #[must_use]
    pub fn words(&self) -> usize {
        self.more.len()
    }

    /// The further words of a resource.
    pub fn resource_words(&self, resource: &[u8], words: &mut Vec<u64>) {
        let mut slots = Slots::new(&self.keys);
        Attributes::new(resource, RESOURCE_ATTRIBUTES)
            .for_each(|(name, value)| slots.attribute(name, value));
        words.clear();
        let own = self.more.iter();
        words.extend(own.map(|matcher| matcher.attribute_bits(&slots, false)));
    }

    /// Takes a span into the further words of its trace, whose entry has it already.
    pub fn arrive_more(
        &self,
        (words, entry): (&mut [u64], &Entry),
        (span, slots): (&Span<'_>, &Slots<'_, '_>),
        around: Around<'_>,
        resource_words: &[u64],
    ) {
        for ((matcher, word), resource) in self.more.iter().zip(words).zip(resource_words) {
            let mut bits = matcher.span_bits(span, slots, around) | resource;
            for condition in &matcher.conditions {
                if *word & condition.both() != 0 {
                    bits &= !condition.both();
                }
            }
            *word |= bits | matcher.latencies.windows(entry);
        }
    }

    /// Takes a span into its trace: its bits, those of its resource, and its times.
    #[inline]
    pub fn arrive(&self, entry: &mut Entry, mut bits: u64, start_ns: u64, end_ns: u64) {
        // Of a condition's two bits the first one counts.
        for condition in &self.conditions {
            if entry.bits & condition.both() != 0 {
                bits &= !condition.both();
            }
        }
        self.latencies.update(entry, start_ns, end_ns);
        entry.bits |= bits;
    }
}
