//! The cost of tracing, as tables and plots.

use serde_json::{Value, json};

use super::cases::{Config, Level, OFF, Share};
use super::exporters::Exporter;
use crate::findings::{Axis, Cell, Plot, Scale, Series, Table};
use crate::report::median;

/// One measured run.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Answers that the client received.
    pub requests: u64,
    /// Answers per second.
    pub per_second: f64,
    /// Wrong answers.
    pub errors: u64,
    /// CPU time of all proxies, in microseconds.
    pub cpu_us: f64,
    /// The part of it in user mode.
    pub user_us: f64,
    /// Spans that the receiver counted; None if the exporter does not send to it.
    pub spans: Option<u64>,
    /// Messages that it refused.
    pub refused: u64,
}

/// All runs of one program at one level.
#[derive(Clone, Debug)]
pub struct Row {
    /// The level.
    pub level: Level,
    /// The program's name.
    pub program: &'static str,
    /// One per round.
    pub samples: Vec<Sample>,
}

impl Row {
    /// The median of a time per request.
    fn each(&self, time: impl Fn(&Sample) -> f64) -> f64 {
        let times = self.samples.iter();
        median(
            times
                .map(|sample| time(sample) / sample.requests.max(1) as f64)
                .collect(),
        )
    }

    fn sum(&self, number: impl Fn(&Sample) -> u64) -> u64 {
        self.samples.iter().map(number).sum()
    }
}

/// The rows of each configuration.
pub type Results = [(&'static Config, Vec<Row>)];

/// All results with an exporter. `cut`: requests of a run that the client may have left unfinished
/// at its end.
pub fn table(exporter: Exporter, results: &Results, cut: u64) -> Table {
    let rows = results
        .iter()
        .flat_map(|(config, rows)| rows.iter().map(move |row| cells(config, rows, row, cut)));
    Table {
        title: format!("Exporter {}", exporter.name()),
        columns: vec![
            "config",
            "level",
            "proxy",
            "requests/s",
            "% slower",
            "CPU us",
            "added us",
            "user us",
            "spans/request",
            "lost",
            "remarks",
        ],
        rows: rows.collect(),
    }
}

/// The row of the same program without the filter.
fn off<'a>(rows: &'a [Row], row: &Row) -> Option<&'a Row> {
    rows.iter()
        .find(|other| other.level.name == OFF && other.program == row.program)
}

impl Row {
    fn cpu_us(&self) -> f64 {
        self.each(|sample| sample.cpu_us)
    }

    fn per_second(&self) -> f64 {
        median(
            self.samples
                .iter()
                .map(|sample| sample.per_second)
                .collect(),
        )
    }

    /// The cost of the filter: CPU microseconds per request, and the loss of throughput in percent.
    /// None without a row without the filter.
    fn added(&self, rows: &[Row]) -> Option<(f64, f64)> {
        let off = off(rows, self).filter(|_| self.level.name != OFF)?;
        let slower = 100.0 * (1.0 - self.per_second() / off.per_second().max(1.0));
        Some((self.cpu_us() - off.cpu_us(), slower))
    }
}

fn cells(config: &Config, rows: &[Row], row: &Row, cut: u64) -> Vec<Cell> {
    let added = row.added(rows);
    let requests = row.sum(|sample| sample.requests).max(1) as f64;
    let received = row
        .samples
        .iter()
        .map(|sample| sample.spans)
        .sum::<Option<u64>>();
    let (lost, surplus) = balance(config, row, cut);
    let faults = [
        (row.sum(|sample| sample.errors), "errors"),
        (lost, "spans missing"),
        (surplus, "spans too many"),
        (row.sum(|sample| sample.refused), "messages refused"),
    ];
    let faults = faults.iter().filter(|(count, _)| *count > 0);
    let remarks: Vec<String> = faults
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    vec![
        config.name.into(),
        row.level.name.into(),
        row.program.into(),
        Cell::Number(row.per_second(), 0),
        Cell::maybe(added.map(|(_, slower)| slower), 1),
        Cell::Number(row.cpu_us(), 2),
        Cell::maybe(added.map(|(cpu_us, _)| cpu_us), 2),
        Cell::Number(row.each(|sample| sample.user_us), 2),
        Cell::maybe(received.map(|spans| spans as f64 / requests), 3),
        Cell::maybe(
            received
                .filter(|_| row.level.share == Share::All)
                .map(|_| lost as f64),
            0,
        ),
        remarks.join("; ").into(),
    ]
}

/// The cost of the filter over the share of traced requests.
pub fn plots(exporter: Exporter, results: &Results) -> Vec<Plot> {
    let plot = |title: &str, label, pick: fn((f64, f64)) -> f64| {
        let series = results.iter().map(|(config, rows)| Series {
            name: config.name.to_owned(),
            points: rows
                .iter()
                .filter_map(|row| Some((row.level.name.parse().ok()?, pick(row.added(rows)?))))
                .collect(),
        });
        Plot {
            title: format!("{title}, exporter {}", exporter.name()),
            x: Axis::new("rate-limit, % of requests that are traced", Scale::Linear),
            y: Axis::new(label, Scale::Linear),
            series: series.collect(),
        }
    };
    vec![
        plot(
            "CPU that the filter adds",
            "CPU us per request",
            |(cpu_us, _)| cpu_us,
        ),
        plot(
            "Throughput that the filter takes",
            "% of that without the filter",
            |(_, slower)| slower,
        ),
    ]
}

/// Every run.
pub fn json(exporter: Exporter, results: &Results) -> Vec<Value> {
    let one = |config: &Config, row: &Row, sample: &Sample| {
        json!({
            "exporter": exporter.name(),
            "config": config.name,
            "level": row.level.name,
            "proxy": row.program,
            "requests": sample.requests,
            "requests_per_second": sample.per_second,
            "errors": sample.errors,
            "cpu_us": sample.cpu_us,
            "cpu_user_us": sample.user_us,
            "spans": sample.spans,
            "messages_refused": sample.refused,
        })
    };
    let rows = results
        .iter()
        .flat_map(|(config, rows)| rows.iter().map(move |row| (config, row)));
    rows.flat_map(|(config, row)| {
        row.samples
            .iter()
            .map(move |sample| one(config, row, sample))
    })
    .collect()
}

/// Missing spans and extra spans, over all runs.
fn balance(config: &Config, row: &Row, cut: u64) -> (u64, u64) {
    let each = match row.level.share {
        Share::All => config.spans(),
        Share::None => 0,
        Share::Some => return (0, 0),
    };
    let count = |of: &dyn Fn(&Sample, u64) -> u64| {
        row.sum(|sample| sample.spans.map_or(0, |spans| of(sample, spans)))
    };
    let lost = count(&|sample, spans| (each * sample.requests).saturating_sub(spans));
    let surplus = count(&|sample, spans| spans.saturating_sub(each * (sample.requests + cut)));
    (lost, surplus)
}

#[cfg(test)]
mod tests {
    use super::super::cases::{CONFIGS, LEVELS};
    use super::*;

    fn row(level: &str, cpu_us: [f64; 3], spans: impl Into<Option<u64>>) -> Row {
        let spans = spans.into();
        let sample = |cpu_us| Sample {
            requests: 100,
            per_second: 1e6 / cpu_us,
            errors: 0,
            cpu_us,
            user_us: cpu_us / 2.0,
            spans,
            refused: 0,
        };
        Row {
            level: *LEVELS.iter().find(|known| known.name == level).unwrap(),
            program: "spangate",
            samples: cpu_us.map(sample).to_vec(),
        }
    }

    fn results(spans: u64) -> [(&'static Config, Vec<Row>); 1] {
        let all = vec![
            row("100", [3000.0, 1000.0, 2000.0], spans),
            row("outcome", [1500.0; 3], 17),
            row("0", [1100.0; 3], u64::from(spans == 7)),
            row("off", [1000.0; 3], 0),
        ];
        let mut configs = CONFIGS.iter();
        [(configs.find(|config| config.name == "fe-be").unwrap(), all)]
    }

    fn rows(spans: u64) -> Vec<Vec<Cell>> {
        table(Exporter::Otlp, &results(spans), 2).rows
    }

    #[test]
    fn medians_stand_beside_those_without_the_filter() {
        let rows = rows(1700);
        let expected = [
            "fe-be".into(),
            "100".into(),
            "spangate".into(),
            Cell::Number(500.0, 0),
            Cell::Number(50.0, 1),
            Cell::Number(20.0, 2),
            Cell::Number(10.0, 2),
            Cell::Number(10.0, 2),
            Cell::Number(17.0, 3),
            Cell::Number(0.0, 0),
            "".into(),
        ];
        assert_eq!(rows[0], expected);
        assert_eq!(
            (&rows[1][6], &rows[1][9]),
            (&Cell::Number(5.0, 2), &Cell::None)
        );
        assert_eq!((&rows[3][4], &rows[3][6]), (&Cell::None, &Cell::None));
    }

    #[test]
    fn what_is_missing_or_too_much_is_told() {
        let remarks = |spans, row: usize| rows(spans)[row][10].clone();
        assert_eq!(remarks(1700 + 2 * 17, 0), "".into());
        assert_eq!(remarks(1700 + 2 * 17 + 1, 0), "3 spans too many".into());
        assert_eq!(remarks(1690, 0), "30 spans missing".into());
        assert_eq!(remarks(7, 2), "3 spans too many".into());
    }

    #[test]
    fn what_is_not_received_is_not_lost() {
        let (config, _) = results(0)[0];
        let all = [(
            config,
            vec![row("100", [1.0; 3], None), row("off", [1.0; 3], None)],
        )];
        let row = &table(Exporter::Text, &all, 2).rows[0];
        assert_eq!(
            (&row[8], &row[9], &row[10]),
            (&Cell::None, &Cell::None, &"".into())
        );
    }

    #[test]
    fn plots_have_the_levels_that_are_shares() {
        let plots = plots(Exporter::Otlp, &results(1700));
        let points = &plots[0].series[0].points;
        assert_eq!(points[..], [(100.0, 10.0), (0.0, 1.0)]);
        assert_eq!(plots[1].series[0].points[0], (100.0, 50.0));
        assert_eq!(json(Exporter::Otlp, &results(1700)).len(), 12);
    }
}
