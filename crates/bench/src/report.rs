//! The output of the load benchmark: a table for users, JSON for programs.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::wrk::Outcome;

/// One measured run.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The client's result.
    pub outcome: Outcome,
    /// CPU time of the proxy's process tree, in microseconds.
    pub cpu_us: f64,
    /// The part of it in user mode.
    pub user_us: f64,
    /// Resident memory of the tree at the end.
    pub resident_bytes: u64,
    /// Log messages that arrived.
    pub log_messages: u64,
    /// Connections from the proxy to the origin. If there are many, the run measured reconnecting.
    pub origin_connections: u64,
}

/// The description of a case in a report.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Its name.
    pub name: String,
    /// The length of the body that is fetched.
    pub body_bytes: u64,
    /// Client connections at a time.
    pub connections: u32,
    /// Whether a client connection serves many requests.
    pub keep_alive: bool,
    /// Threads or processes of each proxy.
    pub workers: u32,
    /// Whether access logs are sent.
    pub log: bool,
    /// Whether each request intentionally has a new connection to the origin.
    pub fresh_servers: bool,
}

/// All runs of one case: for each proxy, the subject first, its samples.
#[derive(Clone, Debug)]
pub struct Row {
    /// The case.
    pub case: Shape,
    /// The proxies by name.
    pub proxies: Vec<(&'static str, Vec<Sample>)>,
}

/// Runs with fewer requests than this per connection to the origin are marked.
const REQUESTS_PER_CONNECTION: u64 = 20;

/// The medians of one proxy's runs.
struct Medians {
    per_second: f64,
    p50_us: f64,
    p99_us: f64,
    /// CPU microseconds per request.
    cpu_us: f64,
    user_us: f64,
    resident_bytes: f64,
    /// The sum, not the median.
    errors: u64,
    /// No log message arrived in a run with logs.
    unlogged: bool,
    /// The origin accepted more than one connection per [`REQUESTS_PER_CONNECTION`] requests.
    reconnects: bool,
}

impl Medians {
    fn of(case: &Shape, samples: &[Sample]) -> Self {
        let each = |value: &dyn Fn(&Sample) -> f64| median(samples.iter().map(value).collect());
        let requests = |sample: &Sample| sample.outcome.requests.max(1) as f64;
        Self {
            per_second: each(&|sample| sample.outcome.per_second),
            p50_us: each(&|sample| sample.outcome.p50_us),
            p99_us: each(&|sample| sample.outcome.p99_us),
            cpu_us: each(&|sample| sample.cpu_us / requests(sample)),
            user_us: each(&|sample| sample.user_us / requests(sample)),
            resident_bytes: each(&|sample| sample.resident_bytes as f64),
            errors: samples.iter().map(|sample| sample.outcome.errors).sum(),
            reconnects: !case.fresh_servers
                && samples.iter().any(|sample| {
                    sample.origin_connections * REQUESTS_PER_CONNECTION > sample.outcome.requests
                        && sample.origin_connections > u64::from(case.connections)
                }),
            unlogged: case.log && samples.iter().any(|sample| sample.log_messages == 0),
        }
    }

    /// Whether its figures are not reliable.
    fn marked(&self) -> bool {
        self.errors > 0 || self.unlogged
    }

    /// CPU seconds per 10⁹ bytes of body.
    fn cpu_s_per_gb(&self, case: &Shape) -> f64 {
        self.cpu_us * 1000.0 / case.body_bytes as f64
    }
}

impl Row {
    /// The medians of each proxy, and the CPU of the best peer without errors (the first proxy is
    /// not a peer).
    fn medians(&self) -> (Vec<(&'static str, Medians)>, Option<f64>) {
        let all: Vec<_> = self
            .proxies
            .iter()
            .map(|(name, samples)| (*name, Medians::of(&self.case, samples)))
            .collect();
        let peers = all.iter().skip(1).filter(|(_, medians)| !medians.marked());
        let best = peers
            .map(|(_, medians)| medians.cpu_us)
            .min_by(f64::total_cmp);
        (all, best)
    }
}

/// The table: one line per proxy, one paragraph per case.
pub fn table(rows: &[Row]) -> String {
    let mut text = String::from(
        "\nMedians over the rounds. CPU: microseconds per request, of the proxy's process tree.\n\
         x peer: CPU against the best peer of the same run (under 1 is better). !: runs with errors.\n\n",
    );
    let _ = writeln!(
        text,
        "{:<24}{:<10}{:>9}{:>9}{:>9}{:>9}{:>8}{:>8}{:>8}{:>9}{:>8}",
        "case",
        "proxy",
        "req/s",
        "p50 ms",
        "p99 ms",
        "CPU us",
        "user",
        "system",
        "x peer",
        "CPU s/GB",
        "RSS MB"
    );
    for row in rows {
        let (all, best) = row.medians();
        for (index, (proxy, medians)) in all.iter().enumerate() {
            let per_gb = if row.case.body_bytes < 1 << 20 {
                "-".into()
            } else {
                format!("{:.3}", medians.cpu_s_per_gb(&row.case))
            };
            let _ = write!(
                text,
                "{:<24}{proxy:<10}{:>9.0}{:>9.3}{:>9.3}{:>9.2}{:>8.2}{:>8.2}{:>8}{:>9}{:>8.1}",
                if index == 0 {
                    row.case.name.as_str()
                } else {
                    ""
                },
                medians.per_second,
                medians.p50_us / 1000.0,
                medians.p99_us / 1000.0,
                medians.cpu_us,
                medians.user_us,
                medians.cpu_us - medians.user_us,
                best.map_or("-".into(), |best| format!("{:.2}", medians.cpu_us / best)),
                per_gb,
                medians.resident_bytes / 1e6,
            );
            for (peer, of_peer) in all.iter().skip(1).filter(|_| index == 0) {
                let _ = write!(text, "  {:.2}x {peer}", medians.cpu_us / of_peer.cpu_us);
            }
            if medians.errors > 0 {
                let _ = write!(text, "  ! {} errors", medians.errors);
            }
            if medians.reconnects {
                text.push_str("  ? reconnects to the origin");
            }
            text.push_str(if medians.unlogged {
                "  ! no logs arrived\n"
            } else {
                "\n"
            });
        }
        text.push('\n');
    }
    text
}

/// All data of the table, and every run.
pub fn json(benchmark: &str, rows: &[Row], rounds: u32, seconds: u32) -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let cases: Vec<Value> = rows.iter().map(json_row).collect();
    let all = json!({ "benchmark": benchmark, "cores": cores, "rounds": rounds, "seconds": seconds, "cases": cases });
    format!("{all:#}\n")
}

fn json_row(row: &Row) -> Value {
    let (all, best) = row.medians();
    let proxies: Vec<Value> = all
        .iter()
        .zip(&row.proxies)
        .map(|((name, medians), (_, samples))| {
            json!({
                "proxy": name,
                "requests_per_second": medians.per_second,
                "p50_us": medians.p50_us,
                "p99_us": medians.p99_us,
                "cpu_us_per_request": medians.cpu_us,
                "cpu_user_us_per_request": medians.user_us,
                "cpu_system_us_per_request": medians.cpu_us - medians.user_us,
                "cpu_s_per_gb": medians.cpu_s_per_gb(&row.case),
                "cpu_ratio_to_best_peer": best.map(|best| medians.cpu_us / best),
                "cpu_ratio_to": ratios(medians, &all),
                "resident_bytes": medians.resident_bytes,
                "errors": medians.errors,
                "believable": !medians.marked(),
                "runs": samples.iter().map(json_sample).collect::<Vec<_>>(),
            })
        })
        .collect();
    json!({
        "case": row.case.name,
        "body_bytes": row.case.body_bytes,
        "connections": row.case.connections,
        "keep_alive": row.case.keep_alive,
        "workers": row.case.workers,
        "log": row.case.log,
        "proxies": proxies,
    })
}

/// The CPU of `medians` relative to each proxy except the first.
fn ratios(medians: &Medians, all: &[(&'static str, Medians)]) -> Value {
    all.iter()
        .skip(1)
        .map(|(peer, of_peer)| ((*peer).to_owned(), json!(medians.cpu_us / of_peer.cpu_us)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn json_sample(sample: &Sample) -> Value {
    json!({
        "requests": sample.outcome.requests,
        "requests_per_second": sample.outcome.per_second,
        "p50_us": sample.outcome.p50_us,
        "p99_us": sample.outcome.p99_us,
        "cpu_us": sample.cpu_us,
        "cpu_user_us": sample.user_us,
        "resident_bytes": sample.resident_bytes,
        "log_messages": sample.log_messages,
        "origin_connections": sample.origin_connections,
        "errors": sample.outcome.errors,
    })
}

/// The middle of `values`, or the mean of the two in the middle; 0 without values.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.as_slice() {
        [] => 0.0,
        odd if odd.len() % 2 == 1 => odd[middle],
        even => f64::midpoint(even[middle - 1], even[middle]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(cpu_us: f64, errors: u64) -> Sample {
        let outcome = Outcome {
            requests: 100,
            per_second: 50.0,
            p50_us: 10.0,
            p99_us: 20.0,
            errors,
        };
        Sample {
            outcome,
            cpu_us,
            user_us: cpu_us / 4.0,
            resident_bytes: 5_000_000,
            log_messages: 0,
            origin_connections: 0,
        }
    }

    fn row() -> Row {
        let case = crate::cases::select(&[1], &["1MiB-c64".into()], false)[0].shape();
        let subject = [500.0, 800.0, 600.0].map(|cpu| sample(cpu, 0)).to_vec();
        Row {
            case,
            proxies: vec![
                ("spangate", subject),
                ("haproxy", vec![sample(1000.0, 0)]),
                ("nginx", vec![sample(1.0, 7)]),
            ],
        }
    }

    #[test]
    fn the_ratio_is_to_the_best_peer_without_errors() {
        let value: Value = serde_json::from_str(&json("http", &[row()], 3, 1)).unwrap();
        let proxies = &value["cases"][0]["proxies"];
        assert_eq!(proxies[0]["cpu_us_per_request"], 6.0);
        assert_eq!(proxies[0]["cpu_ratio_to_best_peer"], 0.6);
        assert_eq!(proxies[1]["cpu_ratio_to_best_peer"], 1.0);
        assert_eq!(
            (&proxies[2]["believable"], &proxies[2]["errors"]),
            (&json!(false), &json!(7))
        );
    }

    #[test]
    fn the_table_marks_errors() {
        let text = table(&[row()]);
        let lines: Vec<&str> = text
            .lines()
            .filter(|line| line.contains("! 7 errors"))
            .collect();
        assert!(
            matches!(lines.as_slice(), [line] if line.contains("nginx")),
            "{text}"
        );
        assert!(text.contains("0.60"), "{text}");
    }

    #[test]
    fn the_table_tells_of_reconnects() {
        let mut row = row();
        assert!(!table(&[row.clone()]).contains("? reconnects"));
        row.proxies[1].1[0].origin_connections = 65;
        assert_eq!(table(&[row]).matches("? reconnects").count(), 1);
    }

    #[test]
    fn medians() {
        assert_eq!(
            [
                median(vec![]),
                median(vec![3.0, 1.0, 2.0]),
                median(vec![4.0, 1.0, 2.0, 3.0])
            ],
            [0.0, 2.0, 2.5]
        );
    }
}
