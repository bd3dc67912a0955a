//! The output of `tls-rate`: one row per step, latency and losses over the rate.

use serde_json::{Value, json};

use super::FAILED_SHARE;
use crate::findings::{Axis, Cell, Plot, Scale, Series, Table};

/// One proxy at one rate.
#[derive(Clone, Debug)]
pub struct Step {
    /// The proxy.
    pub proxy: &'static str,
    /// Scheduled requests per second.
    pub rate: u32,
    /// The number of scheduled requests.
    pub intended: u64,
    /// The number of good answers.
    pub served: u64,
    /// The number of failed requests.
    pub errors: u64,
    /// The number of requests that were never sent.
    pub dropped: u64,
    /// The median latency.
    pub p50_us: f64,
    /// The latency that 5 of 100 exceed.
    pub p95_us: f64,
    /// The latency that 1 of 100 exceeds.
    pub p99_us: f64,
    /// The 99th percentile of the generator's lateness.
    pub late_p99_us: f64,
    /// CPU time of the proxy.
    pub cpu_us: f64,
    /// CPU seconds of the proxy per second.
    pub cores: f64,
    /// How busy the whole machine was; 1 means all cores.
    pub busy: f64,
}

/// From this share of the 99th percentile on, the generator's lateness is reported: the machine may
/// be slow, not the proxy.
const LATE_SHARE: f64 = 0.5;
/// From this share of all cores on, the machine may be saturated.
const BUSY_SHARE: f64 = 0.95;

impl Step {
    /// Whether the rate was too high.
    pub fn failed(&self) -> bool {
        (self.errors + self.dropped) * FAILED_SHARE > self.intended
    }
}

impl Step {
    /// The percentage of requests without a good answer.
    fn not_served_percent(&self) -> f64 {
        100.0 * (self.errors + self.dropped) as f64 / self.intended.max(1) as f64
    }

    fn cpu_per_request(&self) -> f64 {
        self.cpu_us / self.served.max(1) as f64
    }

    /// Doubts about the figures, or why the proxy's steps end.
    fn remarks(&self) -> String {
        let all = [
            (
                self.late_p99_us > LATE_SHARE * self.p99_us,
                "the generator was late",
            ),
            (self.busy > BUSY_SHARE, "the machine was full"),
            (self.failed(), "more than 1 % not served: no higher rates"),
        ];
        let told: Vec<&str> = all
            .into_iter()
            .filter(|(holds, _)| *holds)
            .map(|(_, words)| words)
            .collect();
        told.join("; ")
    }
}

/// One row per step.
pub fn table(steps: &[Step]) -> Table {
    let row = |step: &Step| {
        let ms = |us: f64| Cell::Number(us / 1000.0, 2);
        vec![
            u64::from(step.rate).into(),
            step.proxy.into(),
            step.served.into(),
            step.errors.into(),
            step.dropped.into(),
            Cell::Number(step.not_served_percent(), 2),
            ms(step.p50_us),
            ms(step.p95_us),
            ms(step.p99_us),
            ms(step.late_p99_us),
            Cell::Number(step.cpu_per_request(), 1),
            Cell::Number(step.cores, 2),
            Cell::Number(100.0 * step.busy, 0),
            step.remarks().into(),
        ]
    };
    Table {
        title: "Requests at a constant rate".into(),
        columns: vec![
            "requests/s",
            "proxy",
            "served",
            "errors",
            "dropped",
            "not served %",
            "p50 ms",
            "p95 ms",
            "p99 ms",
            "late ms",
            "CPU us",
            "cores",
            "busy %",
            "remarks",
        ],
        rows: steps.iter().map(row).collect(),
    }
}

/// Latency, losses and CPU over the rate.
pub fn plots(steps: &[Step]) -> Vec<Plot> {
    let plot = |title: &str, label, scale, value: fn(&Step) -> f64| Plot {
        title: title.to_owned(),
        x: Axis::new("requests/s that were due", Scale::Log),
        y: Axis::new(label, scale),
        series: series(steps, value),
    };
    vec![
        plot("Latency, 95th percentile", "ms", Scale::Log, |step| {
            step.p95_us / 1000.0
        }),
        plot(
            "Requests not served",
            "%",
            Scale::Linear,
            Step::not_served_percent,
        ),
        plot(
            "CPU per request",
            "CPU us per request",
            Scale::Linear,
            Step::cpu_per_request,
        ),
    ]
}

fn series(steps: &[Step], value: fn(&Step) -> f64) -> Vec<Series> {
    let mut all: Vec<Series> = Vec::new();
    for step in steps {
        let point = (f64::from(step.rate), value(step));
        match all.iter_mut().find(|series| series.name == step.proxy) {
            Some(series) => series.points.push(point),
            None => all.push(Series {
                name: step.proxy.to_owned(),
                points: vec![point],
            }),
        }
    }
    all
}

/// All steps.
pub fn json(steps: &[Step]) -> Value {
    steps.iter().map(json_step).collect()
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
        "cpu_us": step.cpu_us,
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
            cpu_us: 49_500.0,
            cores: 0.25,
            busy: 0.5,
        }
    }

    #[test]
    fn more_than_one_of_a_hundred_is_too_many() {
        assert!(!step(5, 5).failed() && step(5, 6).failed() && step(0, 11).failed());
        assert!(step(11, 0).remarks().contains("more than 1 %"));
        assert_eq!(step(0, 0).remarks(), "");
    }

    #[test]
    fn tells_when_the_generator_or_the_machine_is_what_is_slow() {
        let late = Step {
            late_p99_us: 800.0,
            ..step(0, 0)
        };
        assert!(late.remarks().contains("the generator was late"));
        let full = Step {
            busy: 0.97,
            ..step(0, 0)
        };
        assert!(full.remarks().contains("the machine was full"));
    }

    #[test]
    fn a_row_has_a_cell_for_each_column() {
        let steps = [
            step(5, 5),
            Step {
                proxy: "nginx",
                ..step(0, 0)
            },
            Step {
                rate: 1000,
                ..step(0, 0)
            },
        ];
        let table = table(&steps);
        assert!(
            table
                .rows
                .iter()
                .all(|row| row.len() == table.columns.len())
        );
        assert_eq!(
            (&table.rows[0][5], &table.rows[0][10]),
            (&Cell::Number(1.0, 2), &Cell::Number(50.0, 1))
        );
        let plots = plots(&steps);
        let points = plots[0]
            .series
            .iter()
            .map(|series| (series.name.as_str(), series.points.len()));
        assert_eq!(points.collect::<Vec<_>>(), [("spangate", 2), ("nginx", 1)]);
        assert_eq!(json(&steps)[0]["errors"], 5);
    }
}
