//! `variables`: the cost of an access to a variable, for growing numbers of variables.

use std::fmt::Write;

use serde_json::json;

use crate::Failure;
use crate::comparison::{Case, Comparison, Cost, Load};
use crate::findings::{self, Axis, Cell, Findings, Options, Plot, Scale, Series, Table};
use crate::wrk;

/// The options.
pub const HELP: &str = findings::help!(
    "requests that set N variables, each the sum of the ten before it, compared with HAProxy: CPU and rate",
    "--counts LIST      numbers of variables, beginning with 0 (0,25,100,1000)
--rounds N         rounds of each case (5)
--seconds N        length of one run (2)
--connections N    client connections (64)
--workers N        threads of each proxy (1)
"
);

/// The default numbers of variables.
const COUNTS: [u32; 4] = [0, 25, 100, 1000];
/// Most variables of a configuration.
const COUNT_MAX: u32 = 10_000;

/// Each variable adds this many of the preceding ones.
const ADDED: u32 = 10;

/// Runs the command.
///
/// # Errors
/// An option is invalid, a program is missing, or a proxy fails.
pub fn run(parser: lexopt::Parser) -> Result<(), Failure> {
    let quick = |shape: &mut Shape| (shape.load.rounds, shape.load.seconds) = (1, 1);
    let shape = Shape {
        counts: COUNTS.to_vec(),
        load: Load::default(),
    };
    let (options, Shape { counts, load }) = Options::parse(parser, shape, quick, Shape::take)?;
    let mut findings = Findings::begin(
        "variables",
        "Variables: setting N variables, each from the ten before it",
        "HAProxy replaced the list of a transaction's variables by a tree: 117,000 instead of 85,000 requests/s at 100 variables, and 18 times as many \
         at 1,000.",
    );
    let comparison = Comparison::of(options.proxies()?, load, "bench-variables")?;
    let mut progress = comparison.progress(counts.len());
    let mut cases = Vec::new();
    for count in counts {
        let name = format!("{count} variables");
        let case = Case {
            name: &name,
            rules: &rules(count),
            ..Case::default()
        };
        let costs = comparison.case(&case, &mut progress, |_| Ok(()))?;
        cases.push((count, costs));
    }
    drop(progress);
    findings.method = method(load);
    findings.versions = versions(&comparison);
    findings.tables = vec![table(&cases)];
    findings.plots = vec![
        plot(&cases, "CPU per request", "CPU us per request", |cost| {
            cost.cpu_us
        }),
        plot(
            &cases,
            "Requests per second, closed loop",
            "requests/s",
            |cost| cost.per_second,
        ),
    ];
    findings.runs = json!({ "rounds": load.rounds, "seconds": load.seconds });
    findings.end(&options)
}

/// The parameters of the experiment.
#[derive(Clone, Debug)]
struct Shape {
    counts: Vec<u32>,
    load: Load,
}

impl Shape {
    fn take(&mut self, name: &str, parser: &mut lexopt::Parser) -> Result<bool, Failure> {
        if name != "counts" {
            return self.load.take(name, parser);
        }
        let list: String = findings::value(parser)?;
        self.counts = list.split(',').map(str::parse).collect::<Result<_, _>>()?;
        if self.counts.first() == Some(&0) && self.counts.iter().all(|&count| count <= COUNT_MAX) {
            Ok(true)
        } else {
            Err(format!("--counts must begin with 0 and be at most {COUNT_MAX}").into())
        }
    }
}

fn method(load: Load) -> Vec<String> {
    vec![format!(
        "Medians of {} rounds of {} s after one second that is not measured, fresh processes in each round, proxies in turn; nbthread {}. \
         wrk with {} persistent connections fetches 50 bytes. Each variable is set by http-request set-var to 1 plus the ten before it: one set and \
         at most ten lookups, which are the accesses. CPU is that of the whole proxy process; 'ns per access' is the difference to the CPU with no \
         variables, divided by the accesses.",
        load.rounds, load.seconds, load.workers, load.connections
    )]
}

fn versions(comparison: &Comparison) -> Vec<(String, String)> {
    let programs = comparison.programs.iter();
    let mut versions: Vec<_> = programs
        .map(|program| (program.peer.name.to_owned(), program.version()))
        .collect();
    versions.push(("wrk".to_owned(), wrk::version()));
    versions
}

fn table(cases: &[(u32, Vec<Cost>)]) -> Table {
    let mut rows = Vec::new();
    let idle = cases
        .first()
        .map(|(_, costs)| costs.as_slice())
        .unwrap_or_default();
    for (count, costs) in cases {
        let haproxy = costs.iter().find(|cost| cost.name == "haproxy");
        for (cost, idle) in costs.iter().zip(idle) {
            let added_ns =
                (cost.cpu_us - idle.cpu_us) * 1000.0 / f64::from(accesses(*count).max(1));
            rows.push(vec![
                u64::from(*count).into(),
                u64::from(accesses(*count)).into(),
                cost.name.into(),
                Cell::Number(cost.per_second, 0),
                Cell::Number(cost.cpu_us, 2),
                Cell::Number(cost.user_us, 2),
                Cell::maybe((*count > 0).then_some(added_ns), 1),
                Cell::maybe(haproxy.map(|peer| cost.cpu_us / peer.cpu_us), 3),
                cost.errors.into(),
            ]);
        }
    }
    Table {
        title: "A request that sets variables".into(),
        columns: vec![
            "variables",
            "accesses",
            "proxy",
            "requests/s",
            "CPU us",
            "user us",
            "ns per access",
            "CPU x haproxy",
            "errors",
        ],
        rows,
    }
}

fn plot(
    cases: &[(u32, Vec<Cost>)],
    title: &str,
    label: &'static str,
    value: fn(&Cost) -> f64,
) -> Plot {
    let names = cases
        .first()
        .map(|(_, costs)| costs.as_slice())
        .unwrap_or_default();
    let series = names.iter().enumerate().map(|(place, cost)| Series {
        name: cost.name.to_owned(),
        points: cases
            .iter()
            .filter_map(|(count, costs)| Some((f64::from(*count), value(costs.get(place)?))))
            .collect(),
    });
    Plot {
        title: title.to_owned(),
        x: Axis::new("variables", Scale::Log),
        y: Axis::new(label, Scale::Log),
        series: series.collect(),
    }
}

/// Sets and lookups per request.
fn accesses(count: u32) -> u32 {
    (0..count).map(|number| 1 + number.min(ADDED)).sum()
}

fn rules(count: u32) -> String {
    let mut text = String::new();
    for number in 0..count {
        let _ = write!(text, "    http-request set-var(txn.v{number}) int(1)");
        for before in number.saturating_sub(ADDED)..number {
            let _ = write!(text, ",add(txn.v{before})");
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_variable_adds_the_ten_before_it() {
        let text = rules(12);
        assert_eq!(text.lines().count(), 12);
        assert_eq!(text.matches("(txn.v").count() as u32, accesses(12));
        let last = text.lines().last().unwrap();
        assert!(
            last.contains("set-var(txn.v11)")
                && last.contains("add(txn.v1)")
                && !last.contains("add(txn.v0)")
        );
    }

    #[test]
    fn the_cost_of_an_access_is_what_it_adds_to_none() {
        let cost = |name, cpu_us| Cost {
            name,
            cpu_us,
            user_us: 1.0,
            per_second: 10.0,
            errors: 0,
        };
        let cases = [
            (0, vec![cost("spangate", 10.0), cost("haproxy", 20.0)]),
            (2, vec![cost("spangate", 13.0), cost("haproxy", 26.0)]),
        ];
        let rows = table(&cases).rows;
        // Two sets and one lookup.
        assert_eq!(rows[2][1], Cell::Number(3.0, 0));
        assert_eq!(rows[2][6], Cell::Number(1000.0, 1));
        assert_eq!(rows[3][6], Cell::Number(2000.0, 1));
        assert_eq!(
            (&rows[0][6], &rows[2][7]),
            (&Cell::None, &Cell::Number(0.5, 3))
        );
    }
}
