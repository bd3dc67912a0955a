//! `load`: average loads (`/proc/loadavg`).

use super::files::Root;
use super::points::Points;
use super::{Fault, Probe, processors};

/// The metrics, in the order of the numbers of the file (proc(5)).
const METRICS: [&str; 3] = [
    "system.cpu.load_average.1m",
    "system.cpu.load_average.5m",
    "system.cpu.load_average.15m",
];

/// The scraper.
pub(super) struct Load {
    /// Loads are divided by the number of processors.
    pub is_per_cpu: bool,
}

impl Probe for Load {
    fn read(&mut self, root: &Root, points: &mut Points<'_>) -> Vec<Fault> {
        let added = self.add(root, points);
        let fault = added.map_err(|why| Fault::new(METRICS.len() as u64, why));
        fault.err().into_iter().collect()
    }
}

impl Load {
    fn add(&self, root: &Root, points: &mut Points<'_>) -> Result<(), String> {
        let text = root.read("proc/loadavg")?;
        let count = if self.is_per_cpu {
            processors(&root.read("proc/stat")?).count().max(1)
        } else {
            1
        };
        let fields: Vec<&str> = text.split_whitespace().take(METRICS.len()).collect();
        let loads: Result<Vec<f64>, _> = fields.iter().map(|field| field.parse()).collect();
        let loads = loads.ok().filter(|loads| loads.len() == METRICS.len());
        let path = root.path("proc/loadavg");
        let loads = loads.ok_or_else(|| format!("{}: has no loads", path.display()))?;
        for (name, load) in METRICS.iter().zip(loads) {
            points.double(name, &[], load / count as f64);
        }
        Ok(())
    }
}
