//! `cpu`: time of processors (`/proc/stat`), their number and their frequency.

use std::collections::{BTreeSet, HashMap};

use super::files::{Root, number};
use super::points::Points;
use super::{Fault, Probe, processors};

/// Ticks of a second in `/proc` (`USER_HZ`, which Linux fixes at 100 for user space).
const TICKS_PER_SECOND: f64 = 100.0;

/// States, and the places of their times in a line of `/proc/stat` (proc(5)). The times of guests
/// are parts of `user` and `nice`.
const STATES: [(&str, usize); 8] = [
    ("user", 1),
    ("system", 3),
    ("idle", 4),
    ("interrupt", 6),
    ("nice", 2),
    ("softirq", 7),
    ("steal", 8),
    ("wait", 5),
];

/// The scraper. It remembers the last times for the utilization.
#[derive(Default)]
pub(super) struct Cpu {
    last: Vec<Times>,
}

/// Times of a processor.
struct Times {
    /// `cpu0`
    name: String,
    /// Ticks, in the order of [`STATES`].
    ticks: [u64; STATES.len()],
}

impl Probe for Cpu {
    fn read(&mut self, root: &Root, points: &mut Points<'_>) -> Vec<Fault> {
        let stat = match root.read("proc/stat") {
            Ok(stat) => stat,
            Err(why) => return vec![Fault::new(1, why)],
        };
        let times: Vec<Times> = processors(&stat).map(|fields| Times::of(&fields)).collect();
        for one in &times {
            for ((state, _), ticks) in STATES.iter().zip(one.ticks) {
                let attributes = [("cpu", one.name.as_str()), ("state", *state)];
                points.double(
                    "system.cpu.time",
                    &attributes,
                    ticks as f64 / TICKS_PER_SECOND,
                );
            }
        }
        self.utilization(&times, points);
        let is_counted = |name: &str| points.wants(name);
        let mut faults = Vec::new();
        let needs_info = is_counted("system.cpu.frequency")
            || is_counted("system.cpu.physical.count")
            || is_counted("system.cpu.logical.count");
        if needs_info {
            faults.extend(info(root, times.len(), points).err());
        }
        self.last = times;
        faults
    }
}

impl Cpu {
    /// The part of the time since the last scrape that each state took. A processor that was not
    /// there has no point.
    fn utilization(&self, times: &[Times], points: &mut Points<'_>) {
        let times: HashMap<&str, &Times> =
            times.iter().map(|one| (one.name.as_str(), one)).collect();
        for last in &self.last {
            let Some(now) = times.get(last.name.as_str()) else {
                continue;
            };
            let spent = |place: usize| now.ticks[place].saturating_sub(last.ticks[place]);
            let sum: f64 = (0..STATES.len()).map(|place| spent(place) as f64).sum();
            for (place, (state, _)) in STATES.iter().enumerate() {
                let part = if sum > 0.0 {
                    spent(place) as f64 / sum
                } else {
                    0.0
                };
                let attributes = [("cpu", last.name.as_str()), ("state", *state)];
                points.double("system.cpu.utilization", &attributes, part);
            }
        }
    }
}

impl Times {
    fn of(fields: &[&str]) -> Times {
        Times {
            name: fields.first().copied().unwrap_or_default().to_owned(),
            ticks: STATES.map(|(_, place)| number(fields, place)),
        }
    }
}

/// Numbers and frequencies of processors (`/proc/cpuinfo`). `in_stat` is the number of processors
/// that `/proc/stat` has.
fn info(root: &Root, in_stat: usize, points: &mut Points<'_>) -> Result<(), Fault> {
    let text = root.read("proc/cpuinfo");
    let text = text.map_err(|why| Fault::new(1, why))?;
    let (mut count, mut package) = (0, "");
    let (mut processor, mut cores) = ("", BTreeSet::new());
    for line in text.lines() {
        let Some((key, value)) = line.split_once(':') else {
            continue;
        };
        let value = value.trim();
        match key.trim() {
            "processor" => {
                (count, processor) = (count + 1, value);
            }
            "physical id" => package = value,
            "core id" => {
                cores.insert((package, value));
            }
            "cpu MHz" => {
                let name = format!("cpu{processor}");
                let mhz: f64 = value.parse().unwrap_or(0.0);
                points.double("system.cpu.frequency", &[("cpu", &name)], mhz * 1e6);
            }
            _ => {}
        }
    }
    let logical = if count == 0 { in_stat } else { count };
    // Without topology, as in many virtual machines and on ARM, each is a core of its own.
    let physical = if cores.is_empty() {
        logical
    } else {
        cores.len()
    };
    points.int("system.cpu.logical.count", &[], logical as u64);
    points.int("system.cpu.physical.count", &[], physical as u64);
    Ok(())
}
