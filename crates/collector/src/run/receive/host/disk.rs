//! `disk`: what block devices have read and written (`/proc/diskstats`).

use std::collections::HashSet;

use super::files::{Root, number};
use super::filter::Matcher;
use super::points::Points;
use super::{Fault, Probe};
use crate::config::components::receivers::host_metrics::Filter;

/// Metrics that are missing without the file.
const METRICS: u64 = 7;
/// Bytes of a sector in the file, whatever the device has
/// (`Documentation/admin-guide/iostats.rst` of Linux).
const SECTOR_BYTES: u64 = 512;
/// Fields of a line; one with less is of a partition of Linux before 2.6.25.
const FIELDS_MIN: usize = 14;

/// The scraper.
pub(super) struct Disk {
    devices: Matcher,
}

impl Disk {
    /// Of some devices.
    ///
    /// # Errors
    /// Why the filter cannot be compiled.
    pub fn new(filter: &Filter) -> Result<Disk, String> {
        let devices = Matcher::new(filter)?;
        Ok(Disk { devices })
    }
}

impl Probe for Disk {
    fn read(&mut self, root: &Root, points: &mut Points<'_>) -> Vec<Fault> {
        let text = match root.read("proc/diskstats") {
            Ok(text) => text,
            Err(why) => return vec![Fault::new(METRICS, why)],
        };
        let mut seen = HashSet::new();
        for line in text.lines() {
            let fields: Vec<&str> = line.split_whitespace().collect();
            if fields.len() < FIELDS_MIN {
                continue;
            }
            let device = fields[2];
            if self.devices.takes(device) && seen.insert(device) {
                add(device, &fields, points);
            }
        }
        Vec::new()
    }
}

fn add(device: &str, fields: &[&str], points: &mut Points<'_>) {
    let count = |place| number(fields, place);
    let seconds = |place| number(fields, place) as f64 / 1000.0;
    let device = ("device", device);
    for (direction, first) in [("read", 3), ("write", 7)] {
        let attributes = [device, ("direction", direction)];
        points.int("system.disk.operations", &attributes, count(first));
        points.int("system.disk.merged", &attributes, count(first + 1));
        let bytes = count(first + 2).saturating_mul(SECTOR_BYTES);
        points.int("system.disk.io", &attributes, bytes);
        points.double(
            "system.disk.operation_time",
            &attributes,
            seconds(first + 3),
        );
    }
    points.int("system.disk.pending_operations", &[device], count(11));
    points.double("system.disk.io_time", &[device], seconds(12));
    points.double("system.disk.weighted_io_time", &[device], seconds(13));
}
