//! The output of `tail-sampling`: one row per collector and arm, and the course of a run.

use serde_json::{Value, json};

use super::Subject;
use super::arms::Arm;
use crate::findings::{Axis, Cell, Plot, Scale, Series, Table};
use crate::report::median;

/// A collector in an arm.
pub struct Row {
    /// The collector.
    pub subject: Subject,
    /// The arm.
    pub arm: &'static Arm,
    /// One per round.
    pub samples: Vec<Sample>,
}

/// One run.
#[derive(Clone, Debug, Default)]
pub struct Sample {
    /// Spans sent.
    pub sent: u64,
    /// Spans accepted.
    pub accepted: u64,
    /// The duration of sending.
    pub seconds: f64,
    /// CPU time of the collector.
    pub cpu_us: f64,
    /// Its maximum memory.
    pub resident_bytes: u64,
    /// Spans that arrived at the receiver.
    pub exported: u64,
    /// Spans that decisions dropped, if the collector reports them.
    pub dropped: Option<u64>,
    /// The course of the run.
    pub course: Vec<Moment>,
    /// Seconds, and spans accepted until then, as the sender reports.
    pub pace: Vec<(f64, f64)>,
}

/// A moment of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moment {
    /// Seconds since its start.
    pub seconds: f64,
    /// The collector's memory.
    pub resident_bytes: u64,
    /// Spans that had arrived at the receiver.
    pub exported: u64,
}

impl Sample {
    /// Spans that were accepted, but neither dropped by a decision nor received.
    fn lost(&self) -> Option<i64> {
        let settled = self.exported + self.dropped?;
        Some(self.accepted as i64 - settled as i64)
    }
}

/// The table.
pub fn table(rows: &[Row]) -> Table {
    Table {
        title: "Spans through a collector that samples whole traces".into(),
        columns: vec![
            "collector",
            "arm",
            "accepted",
            "refused",
            "exported",
            "accepted/s",
            "CPU ns per span",
            "peak MB",
            "kept %",
            "lost",
        ],
        rows: rows.iter().map(cells).collect(),
    }
}

fn cells(row: &Row) -> Vec<Cell> {
    let median = |value: fn(&Sample) -> f64, decimals| {
        Cell::Number(median(row.samples.iter().map(value).collect()), decimals)
    };
    let lost: Option<i64> = row.samples.iter().map(Sample::lost).sum();
    vec![
        row.subject.name.into(),
        row.arm.name.into(),
        median(|one| one.accepted as f64, 0),
        median(|one| (one.sent - one.accepted) as f64, 0),
        median(|one| one.exported as f64, 0),
        median(|one| one.accepted as f64 / one.seconds, 0),
        median(|one| one.cpu_us * 1000.0 / one.accepted.max(1) as f64, 0),
        median(|one| one.resident_bytes as f64 / 1e6, 1),
        median(
            |one| one.exported as f64 * 100.0 / one.accepted.max(1) as f64,
            2,
        ),
        Cell::maybe(lost.map(|lost| lost as f64), 0),
    ]
}

/// The course of the last round.
pub fn plots(rows: &[Row]) -> Vec<Plot> {
    let plot = |title: &str, label, points: fn(&Sample) -> Vec<(f64, f64)>| Plot {
        title: title.to_owned(),
        x: Axis::new("seconds", Scale::Linear),
        y: Axis::new(label, Scale::Linear),
        series: rows
            .iter()
            .filter_map(|row| {
                Some(Series {
                    name: format!("{}, {}", row.subject.name, row.arm.name),
                    points: points(row.samples.last()?),
                })
            })
            .collect(),
    };
    vec![
        plot("Accepted spans over time", "spans/s", |one| {
            per_second(&one.pace)
        }),
        plot("Memory over time", "resident MB", |one| {
            one.course
                .iter()
                .map(|one| (one.seconds, one.resident_bytes as f64 / 1e6))
                .collect()
        }),
        plot("Exported spans over time", "spans/s", |one| {
            let course = one.course.iter();
            per_second(
                &course
                    .map(|one| (one.seconds, one.exported as f64))
                    .collect::<Vec<_>>(),
            )
        }),
    ]
}

/// The rates between counts at given times.
fn per_second(counts: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let pairs = counts.windows(2).filter_map(|pair| match *pair {
        [(before, had), (now, has)] if now > before => Some((now, (has - had) / (now - before))),
        _ => None,
    });
    pairs.collect()
}

/// Every run.
pub fn json(rows: &[Row]) -> Value {
    let moment = |one: &Moment| json!([one.seconds, one.resident_bytes, one.exported]);
    let one = |row: &Row, sample: &Sample| {
        json!({
            "collector": row.subject.name,
            "arm": row.arm.name,
            "sent": sample.sent,
            "accepted": sample.accepted,
            "exported": sample.exported,
            "dropped": sample.dropped,
            "seconds": sample.seconds,
            "cpu_us": sample.cpu_us,
            "peak_resident_bytes": sample.resident_bytes,
            "seconds_accepted": sample.pace,
            "seconds_resident_bytes_exported": sample.course.iter().map(moment).collect::<Vec<_>>(),
        })
    };
    rows.iter()
        .flat_map(|row| row.samples.iter().map(move |sample| one(row, sample)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::arms::ARMS;
    use super::*;

    fn row() -> Row {
        let moment = |seconds, exported| Moment {
            seconds,
            exported,
            resident_bytes: 2_000_000,
        };
        let sample = |accepted| Sample {
            sent: accepted,
            accepted,
            seconds: 1.0,
            cpu_us: 1.0,
            resident_bytes: 1_000_000,
            exported: 1,
            dropped: Some(0),
            course: vec![moment(0.0, 0), moment(0.5, 100)],
            pace: vec![(1.0, 100.0), (2.0, 400.0)],
        };
        Row {
            subject: Subject {
                name: "x",
                program: "x".into(),
                words: Vec::new(),
                version: "-v",
            },
            arm: &ARMS[0],
            samples: vec![sample(1), sample(30), sample(5)],
        }
    }

    #[test]
    fn rows_have_medians_and_all_that_is_lost() {
        let rows = table(&[row()]).rows;
        assert_eq!(
            (&rows[0][2], &rows[0][9]),
            (&Cell::Number(5.0, 0), &Cell::Number(33.0, 0))
        );
        let mut silent = row();
        silent.samples[1].dropped = None;
        assert_eq!(table(&[silent]).rows[0][9], Cell::None);
    }

    #[test]
    fn the_course_has_rates() {
        let plots = plots(&[row()]);
        assert_eq!(plots[0].series[0].points, [(2.0, 300.0)]);
        assert_eq!(plots[1].series[0].points, [(0.0, 2.0), (0.5, 2.0)]);
        assert_eq!(plots[2].series[0].points, [(0.5, 200.0)]);
        assert_eq!(json(&[row()])[1]["accepted"], 30);
    }
}
