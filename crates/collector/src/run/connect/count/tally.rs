//! What the rules of one kind have counted of one resource.

use std::collections::HashMap;

use otlp::write;
use ottl::Failure;

use super::rule::{Rule, Seen};
use crate::run::process::failures::Fault;

/// `AGGREGATION_TEMPORALITY_DELTA`
const DELTA: u64 = 1;

/// See the module.
pub struct Tallies<'r> {
    rules: &'r [Rule],
    tallies: Vec<Tally>,
    /// The first and the last time of what was seen, in nanoseconds of the UNIX epoch; 0: none.
    first_ns: u64,
    last_ns: u64,
    /// The attributes of one record, as they are written.
    attributes: Vec<u8>,
}

/// Counts of one rule, by attributes as they are written, in the order in which they came.
#[derive(Default)]
struct Tally {
    places: HashMap<Vec<u8>, usize>,
    counts: Vec<(Vec<u8>, u64)>,
}

impl Tally {
    fn add(&mut self, attributes: &[u8]) {
        // Most records are like the one before.
        if let Some((last, count)) = self.counts.last_mut()
            && last == attributes
        {
            *count += 1;
        } else if let Some(place) = self.places.get(attributes) {
            self.counts[*place].1 += 1;
        } else {
            self.places.insert(attributes.to_owned(), self.counts.len());
            self.counts.push((attributes.to_owned(), 1));
        }
    }
}

impl<'r> Tallies<'r> {
    /// Nothing is counted yet.
    pub fn new(rules: &'r [Rule]) -> Tallies<'r> {
        Tallies {
            rules,
            tallies: rules.iter().map(|_| Tally::default()).collect(),
            first_ns: 0,
            last_ns: 0,
            attributes: Vec::new(),
        }
    }

    /// A time of a record, in nanoseconds of the UNIX epoch; 0: it has none.
    pub fn see(&mut self, time_ns: u64) {
        if time_ns == 0 {
            return;
        }
        if self.first_ns == 0 || time_ns < self.first_ns {
            self.first_ns = time_ns;
        }
        self.last_ns = self.last_ns.max(time_ns);
    }

    /// Counts a record by each rule whose attributes it has and whose conditions are true of it.
    ///
    /// # Errors
    /// A condition cannot be evaluated.
    pub fn add(
        &mut self,
        seen: &Seen<'_>,
        is_true: impl Fn(&Rule) -> Result<bool, Failure>,
    ) -> Result<(), Fault> {
        for (rule, tally) in self.rules.iter().zip(&mut self.tallies) {
            self.attributes.clear();
            if rule.attributes_of(seen, &mut self.attributes)
                && is_true(rule).map_err(Fault::Ottl)?
            {
                tally.add(&self.attributes);
            }
        }
        Ok(())
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.tallies.iter().all(|tally| tally.counts.is_empty())
    }

    /// Appends the metrics of a `ScopeMetrics`; `now_ns` is the time where no record had one. How
    /// many data points they have.
    pub fn write(&self, now_ns: u64, out: &mut Vec<u8>) -> u64 {
        let (first_ns, last_ns) = match self.first_ns {
            0 => (now_ns, now_ns),
            first_ns => (first_ns, self.last_ns),
        };
        let mut points = 0;
        for (rule, tally) in self.rules.iter().zip(&self.tallies) {
            if tally.counts.is_empty() {
                continue;
            }
            points += tally.counts.len() as u64;
            write::message(out, 2, |out| {
                write::bytes(out, 1, rule.name.as_bytes());
                write::bytes(out, 2, rule.description.as_bytes());
                // `Metric.sum`
                write::message(out, 7, |out| {
                    for (attributes, count) in &tally.counts {
                        write::message(out, 1, |out| {
                            write::fixed64(out, 2, first_ns);
                            write::fixed64(out, 3, last_ns);
                            write::fixed64(out, 6, *count);
                            out.extend_from_slice(attributes);
                        });
                    }
                    write::uint(out, 2, DELTA);
                    // `is_monotonic`
                    write::uint(out, 3, 1);
                });
            });
        }
        points
    }
}
