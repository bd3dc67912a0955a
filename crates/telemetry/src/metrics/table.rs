//! The series of one instrument, found by the bytes of their attributes.

use super::instrument::Plan;
use super::point::Point;
use super::{ATTRIBUTES_BYTES_MAX, SERIES_MAX};

/// A table with open addressing into a dense list, so that looking up touches little and walking touches no gaps.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// In the order of their first values.
    pub series: Vec<Series>,
    /// Takes what came when there was no more room, or had too much to tell it apart by.
    pub overflow: Option<Series>,
    /// 1 + a place in `series`, or 0; twice as many as there are series, and a power of two.
    slots: Vec<u32>,
    /// There are series with news.
    pub touched: bool,
    /// Series without news were looked for and forgotten already.
    purged: bool,
}

#[derive(Debug)]
pub(super) struct Series {
    pub hash: u64,
    pub attributes: Box<[u8]>,
    pub point: Point,
    /// It has had a value since it was last emptied.
    pub touched: bool,
}

impl Table {
    /// The series of these attributes, which will get a value. The hash is one of the attributes.
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
        // There is always a free one.
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
        // One is kept for the rest.
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

    /// The series of all that has none of its own.
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

    /// Makes the slots anew.
    fn index(&mut self) {
        let slots = (2 * self.series.len()).next_power_of_two().max(16);
        self.slots.clear();
        self.slots.resize(slots, 0);
        for place in 0..self.series.len() {
            self.point_at(place);
        }
    }

    /// The series with news, the one of the overflow at the end.
    pub fn news(&self) -> impl Iterator<Item = &Series> {
        let all = self.series.iter().chain(&self.overflow);
        all.filter(|series| series.touched)
    }

    /// Forgets the series that had no value of late, so that others find room; once until the table is settled.
    fn purge(&mut self) {
        self.series.retain(|series| series.touched);
        self.index();
        self.purged = true;
    }

    /// After what was new has been taken: nothing is new.
    pub fn settle(&mut self) {
        for series in self.series.iter_mut().chain(&mut self.overflow) {
            series.touched = false;
        }
        self.touched = false;
        self.purged = false;
    }

    /// After all that was new has been written: series begin anew, and those that had no value are forgotten.
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

/// The attribute `otel.metric.overflow` = true (OpenTelemetry: Metrics SDK, overflow attribute), encoded as attributes are.
const OVERFLOW: &[u8] = b"\x0a\x1a\x0a\x14otel.metric.overflow\x12\x02\x10\x01";
