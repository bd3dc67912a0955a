//! The series that an exporter holds, by the names of their metrics and their labels.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::accumulate;
use super::labels::{Identity, Labels, Target};
use super::point::{Incoming, Kind, Point};

/// Series that an exporter holds.
pub(super) const SERIES_MAX: usize = 500_000;
/// Bytes that its series take in memory, about.
pub(super) const HELD_BYTES_MAX: usize = 1 << 30;
/// Bytes of a metric's name, and of its description.
pub(super) const NAME_BYTES_MAX: usize = 4 << 10;
pub(super) const HELP_BYTES_MAX: usize = 64 << 10;
/// Expired series are looked for no more often than this as points come.
const SWEEP_EVERY: Duration = Duration::from_secs(10);

/// Limits of a store.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub series_max: usize,
    pub held_bytes_max: usize,
}

/// Why a point is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// There are as many series as there may be.
    Full,
    /// The metric's name belongs to one of another type.
    Type,
}

/// A metric as it comes.
#[derive(Clone, Debug)]
pub(super) struct Metric {
    pub name: Arc<str>,
    pub kind: Kind,
    pub help: Arc<str>,
    pub unit: Option<Arc<str>>,
}

/// Last values.
pub(super) struct Store {
    families: BTreeMap<Arc<str>, Family>,
    /// The labels of each `target_info`.
    targets: BTreeMap<Arc<Identity>, Arc<Labels>>,
    limits: Limits,
    expiration: Duration,
    swept: Instant,
    series: usize,
    held_bytes: usize,
}

struct Family {
    metric: Metric,
    series: BTreeMap<Arc<Labels>, Series>,
}

struct Series {
    point: Arc<Point>,
    updated: Instant,
    /// Keeps the entry of its target.
    _target: Option<Arc<Identity>>,
}

/// A metric and its series at one moment.
#[derive(Debug)]
pub(super) struct View {
    pub metric: Metric,
    pub series: Vec<Sample>,
    /// Its samples have times.
    pub has_times: bool,
}

/// The last value of a series.
#[derive(Debug)]
pub(super) struct Sample {
    pub labels: Arc<Labels>,
    pub point: Arc<Point>,
}

/// All that a page shows.
#[derive(Debug)]
pub(super) struct Snapshot {
    /// Ascending by the name.
    pub metrics: Vec<View>,
    /// The labels of each target.
    pub targets: Vec<Arc<Labels>>,
}

impl Store {
    pub(super) fn new(expiration: Duration, limits: Limits, now: Instant) -> Store {
        Store {
            families: BTreeMap::new(),
            targets: BTreeMap::new(),
            limits,
            expiration,
            swept: now,
            series: 0,
            held_bytes: 0,
        }
    }

    /// Notes the labels of a target. Gives what series of it hold, so that it stays as long as they
    /// do; none where there is no room.
    pub(super) fn target(&mut self, target: &Target) -> Option<Arc<Identity>> {
        let new_bytes = target.labels.held_bytes();
        if let Some((identity, _)) = self.targets.get_key_value(&target.identity) {
            let identity = Arc::clone(identity);
            if let Some(labels) = self.targets.get_mut(&identity) {
                self.held_bytes = self.held_bytes - labels.held_bytes() + new_bytes;
                *labels = Arc::clone(&target.labels);
            }
            return Some(identity);
        }
        if self.held_bytes + new_bytes > self.limits.held_bytes_max {
            return None;
        }
        self.held_bytes += new_bytes;
        let identity = Arc::clone(&target.identity);
        self.targets
            .insert(Arc::clone(&identity), Arc::clone(&target.labels));
        Some(identity)
    }

    /// Takes a point of a series.
    ///
    /// # Errors
    /// Why it is not taken; what was there stays.
    pub(super) fn put(
        &mut self,
        metric: &Metric,
        labels: Labels,
        target: Option<&Arc<Identity>>,
        incoming: Incoming,
        now: Instant,
    ) -> Result<(), Refusal> {
        if now.duration_since(self.swept) >= SWEEP_EVERY {
            self.sweep(now);
        }
        let family = self.families.get_mut(&metric.name);
        if let Some(family) = family {
            if family.metric.kind != metric.kind {
                return Err(Refusal::Type);
            }
            if let Some(series) = family.series.get_mut(&labels) {
                let Some(point) = accumulate::next(&series.point, incoming) else {
                    return Ok(());
                };
                let held_bytes = self.held_bytes - series.point.held_bytes() + point.held_bytes();
                if held_bytes > self.limits.held_bytes_max.max(self.held_bytes) {
                    return Err(Refusal::Full);
                }
                self.held_bytes = held_bytes;
                *series = Series {
                    point: Arc::new(point),
                    updated: now,
                    _target: target.cloned(),
                };
                return Ok(());
            }
        }
        self.add(metric, labels, target, incoming.point, now)
    }

    fn add(
        &mut self,
        metric: &Metric,
        labels: Labels,
        target: Option<&Arc<Identity>>,
        point: Point,
        now: Instant,
    ) -> Result<(), Refusal> {
        let held_bytes = self.held_bytes + series_bytes(&labels, &point) + metric.held_bytes();
        if self.series >= self.limits.series_max || held_bytes > self.limits.held_bytes_max {
            return Err(Refusal::Full);
        }
        self.series += 1;
        self.held_bytes += series_bytes(&labels, &point);
        let family = match self.families.get_mut(&metric.name) {
            Some(family) => family,
            None => {
                self.held_bytes += metric.held_bytes();
                let family = Family {
                    metric: metric.clone(),
                    series: BTreeMap::new(),
                };
                let name = Arc::clone(&metric.name);
                self.families.entry(name).or_insert(family)
            }
        };
        let series = Series {
            point: Arc::new(point),
            updated: now,
            _target: target.cloned(),
        };
        family.series.insert(Arc::new(labels), series);
        Ok(())
    }

    /// Removes a series that has no value any more.
    pub(super) fn remove(&mut self, name: &str, labels: &Labels) {
        let Some(family) = self.families.get_mut(name) else {
            return;
        };
        if let Some(series) = family.series.remove(labels) {
            self.series -= 1;
            self.held_bytes -= series_bytes(labels, &series.point);
        }
        if family.series.is_empty() {
            self.held_bytes -= family.metric.held_bytes();
            self.families.remove(name);
        }
    }

    /// Present content.
    pub(super) fn snapshot(&mut self, now: Instant) -> Snapshot {
        self.sweep(now);
        let metrics = self.families.values().map(|family| View {
            metric: family.metric.clone(),
            series: { family.series.iter() }
                .map(|(labels, series)| Sample {
                    labels: Arc::clone(labels),
                    point: Arc::clone(&series.point),
                })
                .collect(),
            has_times: false,
        });
        Snapshot {
            metrics: metrics.collect(),
            targets: self.targets.values().cloned().collect(),
        }
    }

    /// Removes what is expired.
    fn sweep(&mut self, now: Instant) {
        self.swept = now;
        let (expiration, mut gone, mut gone_bytes) = (self.expiration, 0, 0);
        self.families.retain(|_, family| {
            family.series.retain(|labels, series| {
                let stays = now.duration_since(series.updated) <= expiration;
                if !stays {
                    gone += 1;
                    gone_bytes += series_bytes(labels, &series.point);
                }
                stays
            });
            if family.series.is_empty() {
                gone_bytes += family.metric.held_bytes();
            }
            !family.series.is_empty()
        });
        self.targets.retain(|identity, labels| {
            let stays = Arc::strong_count(identity) > 1;
            if !stays {
                gone_bytes += labels.held_bytes();
            }
            stays
        });
        self.series -= gone;
        self.held_bytes -= gone_bytes;
    }
}

impl Metric {
    fn held_bytes(&self) -> usize {
        let unit = self.unit.as_ref().map_or(0, |unit| unit.len());
        size_of::<Family>() + self.name.len() + self.help.len() + unit
    }
}

fn series_bytes(labels: &Labels, point: &Point) -> usize {
    size_of::<Series>() + labels.held_bytes() + point.held_bytes()
}

#[cfg(test)]
mod tests;
