//! The series of one instrument, found by the bytes of their attributes.

use super::instrument::Plan;
use super::point::Point;
use super::{ATTRIBUTES_BYTES_MAX, SERIES_MAX};

/// A hash table with open addressing into a dense list, so that a lookup touches little memory and
/// an iteration has no gaps.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// In the order of their first values.
    pub series: Vec<Series>,
    /// The series for values that found no room or had too many attribute bytes.
    pub overflow: Option<Series>,
    /// 1 + an index into `series`, or 0; a power of two, at least twice the number of series.
    slots: Vec<u32>,
    /// Some series have new values.
    pub touched: bool,
    /// Series without new values have already been removed.
    purged: bool,
}

#[derive(Debug)]
pub(super) struct Series {
    pub hash: u64,
    pub attributes: Box<[u8]>,
    pub point: Point,
    /// The series has had a value since it was last emptied.
    pub touched: bool,
}

impl Table {
    /// The series with these attributes, which is about to receive a value. `hash` is that of the
    /// attributes.
    #[inline]
    pub fn touch(&mut self, hash: u64, attributes: &[u8], plan: &Plan) -> &mut Series {
        self.touched = true;
        let series = match self.find(hash, attributes) {
            Some(place) => &mut self.series[place],
            None => self.insert(hash, attributes, plan),
        };
        series.touched = true;
        series
    }

    #[inline]
    fn find(&self, hash: u64, attributes: &[u8]) -> Option<usize> {
        let mask = self.slots.len().checked_sub(1)?;
        let mut slot = hash as usize & mask;
        // There is always a free slot.
        loop {
            let place = (self.slots[slot] as usize).checked_sub(1)?;
            let series = &self.series[place];
            if series.hash == hash && *series.attributes == *attributes {
                return Some(place);
            }
            slot = (slot + 1) & mask;
        }
    }

    #[cold]
    fn insert(&mut self, hash: u64, attributes: &[u8], plan: &Plan) -> &mut Series {
        let series = |attributes: &[u8]| Series {
            hash,
            attributes: attributes.into(),
            point: plan.point(),
            touched: false,
        };
        if self.series.len() + 1 >= SERIES_MAX && !self.purged {
            self.purge();
        }
        // One series is reserved for the overflow.
        if self.series.len() + 1 >= SERIES_MAX || attributes.len() > ATTRIBUTES_BYTES_MAX {
            return self.overflow_series(plan);
        }
        let place = self.series.len();
        self.series.push(series(attributes));
        if self.slots.len() < 2 * self.series.len() {
            self.index();
        } else {
            self.point_at(place);
        }
        &mut self.series[place]
    }

    /// The overflow series, for values without a series of their own.
    pub fn overflow_series(&mut self, plan: &Plan) -> &mut Series {
        self.touched = true;
        self.overflow.get_or_insert_with(|| Series {
            hash: 0,
            attributes: OVERFLOW.into(),
            point: plan.point(),
            touched: false,
        })
    }

    fn point_at(&mut self, place: usize) {
        let mask = self.slots.len() - 1;
        let mut slot = self.series[place].hash as usize & mask;
        while self.slots[slot] != 0 {
            slot = (slot + 1) & mask;
        }
        self.slots[slot] = place as u32 + 1;
    }

    /// Rebuilds the slots.
    fn index(&mut self) {
        let slots = (2 * self.series.len()).next_power_of_two().max(16);
        self.slots.clear();
        self.slots.resize(slots, 0);
        for place in 0..self.series.len() {
            self.point_at(place);
        }
    }

    /// The series with new values, the overflow series last.
    pub fn news(&self) -> impl Iterator<Item = &Series> {
        let all = self.series.iter().chain(&self.overflow);
        all.filter(|series| series.touched)
    }

    /// Removes the series without recent values to make room; at most once until the table is
    /// settled.
    fn purge(&mut self) {
        self.series.retain(|series| series.touched);
        self.index();
        self.purged = true;
    }

    /// After the new values were taken: marks all series as without new values.
    pub fn settle(&mut self) {
        for series in self.series.iter_mut().chain(&mut self.overflow) {
            series.touched = false;
        }
        self.touched = false;
        self.purged = false;
    }

    /// After the new values were written: resets the series, and removes those that had no value.
    pub fn restart(&mut self, plan: &Plan) {
        if self.series.iter().any(|series| !series.touched) {
            self.purge();
        }
        for series in self.series.iter_mut().chain(&mut self.overflow) {
            series.point.reset(plan);
        }
        self.settle();
    }
}

/// The attribute `otel.metric.overflow` = true (OpenTelemetry: Metrics SDK, overflow attribute),
/// encoded.
const OVERFLOW: &[u8] = b"\x0a\x1a\x0a\x14otel.metric.overflow\x12\x02\x10\x01";
