//! The text format of Prometheus (version 0.0.4) with HAProxy's names (its `addons/promex`): all series of a metric stand together, so
//! rows are sampled first and written metric by metric.

use std::fmt::Write as _;
use std::ops::Range;

use crate::column::{Column, FIELDS};
use crate::row::{Kind, Row};
use crate::tags::Nature;

/// The media type of what is written.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4";

/// States of servers by which metrics are split.
const SERVER_STATES: &[&str] = &["DOWN", "UP", "MAINT", "DRAIN", "NOLB"];
const PROXY_STATES: &[&str] = &["DOWN", "UP"];
const LISTENER_STATES: &[&str] = &["WAITING", "OPEN", "FULL"];
/// Results of health checks by which metrics are split.
const CHECK_STATES: &[&str] = &[
    "HANA", "SOCKERR", "L4OK", "L4TOUT", "L4CON", "L6OK", "L6TOUT", "L6RSP", "L7TOUT", "L7RSP",
    "L7OK", "L7OKC", "L7STS", "PROCERR", "PROCTOUT", "PROCOK",
];

/// What a row shows, kept until all metrics of its kind are written.
#[derive(Clone, Debug)]
pub struct Sample {
    /// `proxy="be",server="s1"`
    labels: String,
    /// By [`Column`]; NaN where there is none.
    values: Box<[f64]>,
    status: String,
    check_status: String,
    agent_status: String,
    /// Of a backend: its servers by state, and by the result of their checks.
    servers: Option<Box<Aggregates>>,
}

/// How many servers of a backend are in each state.
#[derive(Clone, Debug, Default)]
pub struct Aggregates {
    states: [u32; SERVER_STATES.len()],
    checks: [u32; CHECK_STATES.len()],
}

impl Aggregates {
    /// Counts a server by its row.
    pub fn add(&mut self, server: &Row<'_>) {
        let state = server_state(server.text(Column::Status));
        let places = SERVER_STATES.iter().position(|known| *known == state);
        if let Some(place) = places {
            self.states[place] += 1;
        }
        let check = check_state(server.text(Column::CheckStatus));
        if let Some(place) = CHECK_STATES.iter().position(|known| *known == check) {
            self.checks[place] += 1;
        }
    }
}

/// The state among [`SERVER_STATES`] that a server's status means.
fn server_state(status: &str) -> &'static str {
    match status.split([' ', '/']).next().unwrap_or_default() {
        "UP" | "no" => "UP",
        "MAINT" => "MAINT",
        "DRAIN" => "DRAIN",
        "NOLB" => "NOLB",
        _ => "DOWN",
    }
}

fn check_state(status: &str) -> &str {
    status.trim_start_matches("* ")
}

/// Writes the value of a label with what would end it replaced.
fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            c => out.push(c),
        }
    }
}

/// The label of a kind of row behind its proxy's.
const fn own_label(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Frontend | Kind::Backend => None,
        Kind::Server => Some("server"),
        Kind::Listener => Some("listener"),
    }
}

impl Sample {
    /// A row as it is now. `servers`: of a backend.
    #[must_use]
    pub fn of(row: &Row<'_>, servers: Option<Aggregates>) -> Sample {
        let mut labels = String::from("proxy=\"");
        escape(row.text(Column::Pxname), &mut labels);
        labels.push('"');
        if let Some(label) = own_label(row.kind) {
            let _ = write!(labels, ",{label}=\"");
            escape(row.text(Column::Svname), &mut labels);
            labels.push('"');
        }
        let value = |column: &Column| {
            let number = row.get(*column).and_then(crate::Value::number);
            number.unwrap_or(f64::NAN)
        };
        Sample {
            labels,
            values: Column::ALL.iter().map(value).collect(),
            status: row.text(Column::Status).to_owned(),
            check_status: row.text(Column::CheckStatus).to_owned(),
            agent_status: row.text(Column::AgentStatus).to_owned(),
            servers: servers.map(Box::new),
        }
    }

    /// The labels of its series.
    #[must_use]
    pub fn labels(&self) -> &str {
        &self.labels
    }

    fn value(&self, column: Column) -> f64 {
        self.values[column as usize]
    }
}

/// A metric of a kind of rows: the columns that its series come from.
#[derive(Clone, Debug)]
pub struct Metric {
    /// Its whole name.
    pub name: String,
    kind: Kind,
    columns: Range<usize>,
}

/// What metrics of a kind of rows begin with.
const fn prefix(kind: Kind) -> &'static str {
    match kind {
        Kind::Frontend => "haproxy_frontend_",
        Kind::Backend => "haproxy_backend_",
        Kind::Server => "haproxy_server_",
        Kind::Listener => "haproxy_listener_",
    }
}

/// The metrics of a kind of rows, in the order of the table.
pub fn metrics(kind: Kind) -> impl Iterator<Item = Metric> {
    let mut next = 0;
    std::iter::from_fn(move || {
        while next < FIELDS.len() {
            let from = next;
            let field = &FIELDS[from];
            next += 1;
            if field.metric.is_empty() || !field.kinds.has(kind) {
                continue;
            }
            while next < FIELDS.len() && FIELDS[next].metric == field.metric {
                next += 1;
            }
            let name = match (kind, Column::ALL[from]) {
                (Kind::Server, Column::Act) => "active",
                (Kind::Server, Column::Bck) => "backup",
                _ => field.metric,
            };
            return Some(Metric {
                name: format!("{}{name}", prefix(kind)),
                kind,
                columns: from..next,
            });
        }
        None
    })
}

/// Whether a column holds milliseconds of which the metric tells seconds.
const fn is_milliseconds(column: Column) -> bool {
    matches!(
        column,
        Column::Qtime
            | Column::Ctime
            | Column::Rtime
            | Column::Ttime
            | Column::QtMax
            | Column::CtMax
            | Column::RtMax
            | Column::TtMax
            | Column::CheckDuration
            | Column::AgentDuration
    )
}

/// Writes a number as Prometheus reads it.
fn number(value: f64, out: &mut String) {
    // Writing to memory does not fail.
    let _ = match value.is_nan() {
        true => write!(out, "NaN"),
        false => write!(out, "{value}"),
    };
}

impl Metric {
    fn first(&self) -> Column {
        Column::ALL[self.columns.start]
    }

    /// The lines above its series.
    pub fn header(&self, out: &mut String) {
        let field = self.first().field();
        let (_, nature, _) = self.first().tags(self.kind);
        let about = match self.columns.len() {
            1 => field.about,
            _ => "Responses by class of their status",
        };
        header(&self.name, about, nature == Nature::Counter, out);
    }

    /// The series of a row, by what may split it.
    pub fn series(&self, sample: &Sample, out: &mut String) {
        match (self.first(), self.kind) {
            (Column::Status, Kind::Frontend | Kind::Backend) => {
                let is_up = sample.status.starts_with("OPEN") || sample.status.starts_with("UP");
                self.states(sample, PROXY_STATES, if is_up { "UP" } else { "DOWN" }, out);
            }
            (Column::Status, Kind::Server) => {
                let state = server_state(&sample.status);
                self.states(sample, SERVER_STATES, state, out);
            }
            (Column::Status, Kind::Listener) => {
                self.states(sample, LISTENER_STATES, &sample.status, out);
            }
            (Column::CheckStatus, _) => {
                if !sample.check_status.is_empty() {
                    let state = check_state(&sample.check_status);
                    self.states(sample, CHECK_STATES, state, out);
                }
            }
            (Column::AgentStatus, _) => {
                if !sample.agent_status.is_empty() {
                    let state = check_state(&sample.agent_status);
                    self.states(sample, CHECK_STATES, state, out);
                }
            }
            // Of servers without checks there is nothing to tell.
            (Column::CheckCode | Column::CheckDuration, _) if sample.check_status.is_empty() => {}
            (Column::AgentCode | Column::AgentDuration, _) if sample.agent_status.is_empty() => {}
            (Column::AggSrvStatus | Column::AggSrvCheckStatus, _) => {
                if let Some(servers) = &sample.servers {
                    self.counts(sample, SERVER_STATES, &servers.states, out);
                }
            }
            (Column::AggCheckStatus, _) => {
                if let Some(servers) = &sample.servers {
                    self.counts(sample, CHECK_STATES, &servers.checks, out);
                }
            }
            (column @ Column::Hrsp1xx, _) => self.responses(sample, column, out),
            (column, _) => {
                let value = sample.value(column);
                let shown = if is_milliseconds(column) {
                    value / 1000.0
                } else {
                    value
                };
                let _ = write!(out, "{}{{{}}} ", self.name, sample.labels);
                number(shown, out);
                out.push('\n');
            }
        }
    }

    fn states(&self, sample: &Sample, states: &[&str], now: &str, out: &mut String) {
        for state in states {
            let _ = writeln!(
                out,
                "{}{{{},state=\"{state}\"}} {}",
                self.name,
                sample.labels,
                u8::from(*state == now)
            );
        }
    }

    fn counts(&self, sample: &Sample, states: &[&str], counts: &[u32], out: &mut String) {
        for (state, count) in states.iter().zip(counts) {
            let _ = writeln!(
                out,
                "{}{{{},state=\"{state}\"}} {count}",
                self.name, sample.labels
            );
        }
    }

    fn responses(&self, sample: &Sample, first: Column, out: &mut String) {
        // TCP proxies have no responses.
        if sample.value(first).is_nan() {
            return;
        }
        for place in self.columns.clone() {
            let column = Column::ALL[place];
            let code = column.field().name.trim_start_matches("hrsp_");
            let _ = write!(out, "{}{{{},code=\"{code}\"}} ", self.name, sample.labels);
            number(sample.value(column), out);
            out.push('\n');
        }
    }
}

/// The lines above the series of a metric.
pub fn header(name: &str, about: &str, is_counter: bool, out: &mut String) {
    let kind = if is_counter { "counter" } else { "gauge" };
    let _ = write!(out, "# HELP {name} ");
    for c in about.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            c => out.push(c),
        }
    }
    let _ = writeln!(out, "\n# TYPE {name} {kind}");
}

/// A metric of the process.
#[derive(Clone, Debug)]
pub struct ProcessMetric {
    /// Behind `haproxy_process_`.
    pub name: &'static str,
    /// One line of description.
    pub about: &'static str,
    /// It only grows.
    pub is_counter: bool,
    /// A label and its value, where the metric is about a text.
    pub label: Option<(&'static str, String)>,
    /// Its value.
    pub value: f64,
}

impl ProcessMetric {
    /// Its whole name.
    #[must_use]
    pub fn full_name(&self) -> String {
        format!("haproxy_process_{}", self.name)
    }

    /// The metric with its one series.
    pub fn write(&self, out: &mut String) {
        let name = self.full_name();
        header(&name, self.about, self.is_counter, out);
        out.push_str(&name);
        if let Some((label, value)) = &self.label {
            let _ = write!(out, "{{{label}=\"");
            escape(value, out);
            out.push_str("\"}");
        }
        out.push(' ');
        number(self.value, out);
        out.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> Row<'static> {
        let mut row = Row::new(Kind::Server);
        row.set(Column::Pxname, "be");
        row.set(Column::Svname, "s\"1");
        row.set(Column::Status, "no check");
        row.set(Column::Stot, 3_u64);
        row.set(Column::Qtime, 1500_u32);
        row
    }

    fn written(kind: Kind, row: &Row<'_>) -> String {
        let sample = Sample::of(row, None);
        let mut out = String::new();
        for metric in metrics(kind) {
            metric.header(&mut out);
            metric.series(&sample, &mut out);
        }
        out
    }

    #[test]
    fn series_of_a_server() {
        let text = written(Kind::Server, &server());
        let labels = "proxy=\"be\",server=\"s\\\"1\"";
        for line in [
            format!("haproxy_server_sessions_total{{{labels}}} 3"),
            format!("haproxy_server_queue_time_average_seconds{{{labels}}} 1.5"),
            format!("haproxy_server_status{{{labels},state=\"UP\"}} 1"),
            format!("haproxy_server_status{{{labels},state=\"DOWN\"}} 0"),
            format!("haproxy_server_queue_limit{{{labels}}} NaN"),
            "# TYPE haproxy_server_sessions_total counter".to_owned(),
            "# TYPE haproxy_server_active gauge".to_owned(),
        ] {
            assert!(text.contains(&format!("{line}\n")), "{line}\n{text}");
        }
        assert!(!text.contains("haproxy_server_check_code{"), "no check");
    }

    #[test]
    fn responses_are_one_metric() {
        let mut row = Row::new(Kind::Frontend);
        row.set(Column::Pxname, "fe");
        row.set(Column::Status, "OPEN");
        for column in [Column::Hrsp1xx, Column::Hrsp2xx, Column::HrspOther] {
            row.set(column, 7_u64);
        }
        let text = written(Kind::Frontend, &row);
        let header = "# TYPE haproxy_frontend_http_responses_total counter";
        assert_eq!(text.matches(header).count(), 1);
        assert!(text.contains("http_responses_total{proxy=\"fe\",code=\"2xx\"} 7\n"));
        assert!(text.contains("http_responses_total{proxy=\"fe\",code=\"other\"} 7\n"));
        assert!(text.contains("haproxy_frontend_status{proxy=\"fe\",state=\"UP\"} 1\n"));
    }
}
