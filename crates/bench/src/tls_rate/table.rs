//! What `tls-rate` shows: a line a step, JSON for programs.

use serde_json::{Value, json};

use super::FAILED_SHARE;

/// One proxy at one rate.
#[derive(Clone, Debug)]
pub struct Step {
    /// The proxy.
    pub proxy: &'static str,
    /// Requests a second that were due.
    pub rate: u32,
    /// How many that were.
    pub intended: u64,
    /// How many were answered well.
    pub served: u64,
    /// How many were not.
    pub errors: u64,
    /// How many were never sent.
    pub dropped: u64,
    /// The median latency.
    pub p50_us: f64,
    /// The latency that 5 of 100 pass.
    pub p95_us: f64,
    /// The latency that 1 of 100 passes.
    pub p99_us: f64,
    /// How late 1 of 100 was when the generator looked at it.
    pub late_p99_us: f64,
    /// CPU seconds of the proxy a second.
    pub cores: f64,
    /// How busy the whole machine was: 1 is all cores.
    pub busy: f64,
}

/// From this share of the 99th percentile on, the generator's lateness is told: the machine, not the proxy, may be what is slow.
const LATE_SHARE: f64 = 0.5;
/// From this share of all cores on, the machine may be what is full.
const BUSY_SHARE: f64 = 0.95;

impl Step {
    /// Whether the rate was too high.
    pub fn failed(&self) -> bool {
        (self.errors + self.dropped) * FAILED_SHARE > self.intended
    }
}

/// Stands above the lines.
pub const HEAD: &str =
    "Latency: from when a request was due until its answer was there. late: of that, until the generator looked, 99th percentile.
cores: CPU seconds of the proxy a second. busy: of all cores, for the proxy, the origin, the generator and everything else.

    rate  proxy        served    errors   dropped   p50 ms   p95 ms   p99 ms  late ms   cores    busy
";

/// The line of a step.
pub fn line(step: &Step) -> String {
    let mut text = format!(
        "{:>8}  {:<9}{:>10}{:>10}{:>10}{:>9.2}{:>9.2}{:>9.2}{:>9.2}{:>8.2}{:>7.0}%",
        step.rate,
        step.proxy,
        step.served,
        step.errors,
        step.dropped,
        step.p50_us / 1000.0,
        step.p95_us / 1000.0,
        step.p99_us / 1000.0,
        step.late_p99_us / 1000.0,
        step.cores,
        100.0 * step.busy,
    );
    if step.late_p99_us > LATE_SHARE * step.p99_us {
        text.push_str("  ? the generator was late");
    }
    if step.busy > BUSY_SHARE {
        text.push_str("  ? the machine was full");
    }
    if step.failed() {
        text.push_str("  ! more than 1 % not served: no higher rates");
    }
    text.push('\n');
    text
}

/// All steps.
pub fn json(steps: &[Step], seconds: u32, connections: u32) -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let steps: Vec<Value> = steps.iter().map(json_step).collect();
    let all = json!({ "benchmark": "tls-rate", "cores": cores, "seconds": seconds, "connections": connections, "steps": steps });
    format!("{all:#}\n")
}

fn json_step(step: &Step) -> Value {
    json!({
        "proxy": step.proxy,
        "rate": step.rate,
        "intended": step.intended,
        "served": step.served,
        "errors": step.errors,
        "dropped": step.dropped,
        "p50_us": step.p50_us,
        "p95_us": step.p95_us,
        "p99_us": step.p99_us,
        "generator_late_p99_us": step.late_p99_us,
        "proxy_cores": step.cores,
        "machine_busy": step.busy,
        "failed": step.failed(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(errors: u64, dropped: u64) -> Step {
        Step {
            proxy: "spangate",
            rate: 500,
            intended: 1000,
            served: 1000 - errors - dropped,
            errors,
            dropped,
            p50_us: 700.0,
            p95_us: 900.0,
            p99_us: 1500.0,
            late_p99_us: 40.0,
            cores: 0.25,
            busy: 0.5,
        }
    }

    #[test]
    fn more_than_one_of_a_hundred_is_too_many() {
        assert!(!step(5, 5).failed() && step(5, 6).failed() && step(0, 11).failed());
        assert!(line(&step(11, 0)).contains("more than 1 %"));
        assert!(!line(&step(0, 0)).contains(['!', '?']));
    }

    #[test]
    fn tells_when_the_generator_or_the_machine_is_what_is_slow() {
        let late = Step {
            late_p99_us: 800.0,
            ..step(0, 0)
        };
        assert!(line(&late).contains("the generator was late"));
        let full = Step {
            busy: 0.97,
            ..step(0, 0)
        };
        assert!(line(&full).contains("the machine was full"));
    }

    #[test]
    fn columns_stand_below_their_names() {
        let names = HEAD.lines().last().unwrap_or_default();
        assert_eq!(names.len(), line(&step(0, 0)).trim_end().len());
    }
}
