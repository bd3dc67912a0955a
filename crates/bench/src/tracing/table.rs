//! What tracing costs, as a table.

use std::fmt::Write;

use super::cases::{Config, Level, OFF, Share};
use crate::report::median;

/// One measured run.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Answers that the client received.
    pub requests: u64,
    /// Answers that were not as they should.
    pub errors: u64,
    /// CPU time of all proxies, in microseconds.
    pub cpu_us: f64,
    /// The part of it in user mode.
    pub user_us: f64,
    /// Spans that the receiver counted.
    pub spans: u64,
    /// Messages that it refused.
    pub refused: u64,
}

/// All runs of one program at one level.
#[derive(Clone, Debug)]
pub struct Row {
    /// See there.
    pub level: Level,
    /// The program's name.
    pub program: &'static str,
    /// One a round.
    pub samples: Vec<Sample>,
}

impl Row {
    /// The median of a time, for each request.
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

/// The columns' names.
pub fn head() -> String {
    format!(
        "{:<8}{:<10}{:<10}{:>9}{:>9}{:>10}{:>12}{:>9}\n",
        "config", "level", "proxy", "CPU us", "user us", "added us", "spans/req", "lost"
    )
}

/// The lines of one configuration. `cut`: requests of a run that the client may have left unfinished at its end.
pub fn rows(config: &Config, rows: &[Row], cut: u64) -> String {
    let mut text = String::new();
    for (index, row) in rows.iter().enumerate() {
        let off = rows
            .iter()
            .find(|other| other.level.name == OFF && other.program == row.program);
        let cpu_us = row.each(|sample| sample.cpu_us);
        let added = match off {
            Some(off) if row.level.name != OFF => {
                format!("{:.2}", cpu_us - off.each(|sample| sample.cpu_us))
            }
            _ => "-".into(),
        };
        let spans = row.sum(|sample| sample.spans);
        let per_request = spans as f64 / row.sum(|sample| sample.requests).max(1) as f64;
        let (lost, surplus) = balance(config, row, cut);
        let _ = write!(
            text,
            "{:<8}{:<10}{:<10}{cpu_us:>9.2}{:>9.2}{added:>10}{per_request:>12.3}{:>9}",
            if index == 0 { config.name } else { "" },
            row.level.name,
            row.program,
            row.each(|sample| sample.user_us),
            match row.level.share {
                Share::All => lost.to_string(),
                Share::Some | Share::None => "-".into(),
            },
        );
        for (count, what) in [
            (row.sum(|sample| sample.errors), "errors"),
            (lost, "spans missing"),
            (surplus, "spans too many"),
            (row.sum(|sample| sample.refused), "messages refused"),
        ] {
            if count > 0 {
                let _ = write!(text, "  ! {count} {what}");
            }
        }
        text.push('\n');
    }
    text
}

/// Spans that are missing, and those that are too many, over all runs.
fn balance(config: &Config, row: &Row, cut: u64) -> (u64, u64) {
    let each = match row.level.share {
        Share::All => config.spans(),
        Share::None => 0,
        Share::Some => return (0, 0),
    };
    let lost = row.sum(|sample| (each * sample.requests).saturating_sub(sample.spans));
    let most = |sample: &Sample| each * (sample.requests + cut);
    let surplus = row.sum(|sample| sample.spans.saturating_sub(most(sample)));
    (lost, surplus)
}

#[cfg(test)]
mod tests {
    use super::super::cases::{CONFIGS, LEVELS};
    use super::*;

    fn row(level: &str, cpu_us: [f64; 3], spans: u64) -> Row {
        let sample = |cpu_us| Sample {
            requests: 100,
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

    fn lines(spans: u64) -> Vec<String> {
        let all = [
            row("100", [3000.0, 1000.0, 2000.0], spans),
            row("outcome", [1500.0; 3], 17),
            row("0", [1100.0; 3], u64::from(spans == 7)),
            row("off", [1000.0; 3], 0),
        ];
        let config = CONFIGS
            .iter()
            .find(|config| config.name == "fe-be")
            .unwrap();
        let text = rows(config, &all, 2);
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn medians_stand_beside_those_without_the_filter() {
        let words = |line: &str| {
            line.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let lines = lines(1700);
        assert_eq!(
            words(&lines[0]),
            [
                "fe-be", "100", "spangate", "20.00", "10.00", "10.00", "17.000", "0"
            ]
        );
        assert_eq!(
            words(&lines[1])[4..],
            ["5.00", "0.170", "-"].map(str::to_owned),
            "{lines:?}"
        );
        assert_eq!(
            words(&lines[3])[4..],
            ["-", "0.000", "-"].map(str::to_owned)
        );
    }

    #[test]
    fn what_is_missing_or_too_much_is_told() {
        assert!(lines(1700 + 2 * 17)[0].ends_with("  0"));
        assert!(lines(1700 + 2 * 17 + 1)[0].ends_with("! 3 spans too many"));
        assert!(lines(1690)[0].ends_with("  30  ! 30 spans missing"));
        assert!(lines(7)[2].ends_with("  -  ! 3 spans too many"));
    }
}
