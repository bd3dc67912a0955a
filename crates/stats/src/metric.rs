//! Metrics from rows and histograms: their names, labels and series, for every output format. All
//! series of a metric are written together, so rows are sampled first.

use std::ops::Range;

use crate::column::{Column, FIELDS};
use crate::latency::{Histogram, Latency, PART_FIELDS};
use crate::row::{Kind, Row};
use crate::tags::Nature;

/// The states of servers that split metrics.
const SERVER_STATES: &[&str] = &["DOWN", "UP", "MAINT", "DRAIN", "NOLB"];
const PROXY_STATES: &[&str] = &["DOWN", "UP"];
const LISTENER_STATES: &[&str] = &["WAITING", "OPEN", "FULL"];
/// The results of a health check. Metrics of checks have one series for each of them.
const CHECK_STATES: &[&str] = &[
    "HANA", "SOCKERR", "L4OK", "L4TOUT", "L4CON", "L6OK", "L6TOUT", "L6RSP", "L7TOUT", "L7RSP",
    "L7OK", "L7OKC", "L7STS", "PROCERR", "PROCTOUT", "PROCOK",
];

/// The values of a row, kept until all metrics of its kind are written.
#[derive(Clone, Debug)]
pub struct Sample {
    proxy: String,
    /// For servers and listeners: the label of their name, and the name.
    own: Option<(&'static str, String)>,
    /// By [`Column`]; NaN if there is no value.
    values: Box<[f64]>,
    status: String,
    check_status: String,
    agent_status: String,
    /// For a backend: its servers by state, and by the result of their checks.
    servers: Option<Box<Aggregates>>,
    latency: Option<Box<Latency>>,
}

/// The number of a backend's servers in each state.
#[derive(Clone, Debug, Default)]
pub struct Aggregates {
    states: [u32; SERVER_STATES.len()],
    checks: [u32; CHECK_STATES.len()],
}

impl Aggregates {
    /// Counts a server.
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

/// The state in [`SERVER_STATES`] for a server's status.
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

/// The label of a kind of row, after its proxy's.
const fn own_label(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Frontend | Kind::Backend => None,
        Kind::Server => Some("server"),
        Kind::Listener => Some("listener"),
    }
}

impl Sample {
    /// The current values of a row. `servers`: for a backend.
    #[must_use]
    pub fn of(row: &Row<'_>, servers: Option<Aggregates>) -> Sample {
        let value = |column: &Column| {
            let number = row.get(*column).and_then(crate::Value::number);
            number.unwrap_or(f64::NAN)
        };
        Sample {
            proxy: row.text(Column::Pxname).to_owned(),
            own: own_label(row.kind).map(|label| (label, row.text(Column::Svname).to_owned())),
            values: Column::ALL.iter().map(value).collect(),
            status: row.text(Column::Status).to_owned(),
            check_status: row.text(Column::CheckStatus).to_owned(),
            agent_status: row.text(Column::AgentStatus).to_owned(),
            servers: servers.map(Box::new),
            latency: row.latency.clone(),
        }
    }

    /// The labels of all its series, with their values.
    pub fn labels(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let own = self.own.iter().map(|(label, name)| (*label, &**name));
        [("proxy", &*self.proxy)].into_iter().chain(own)
    }

    fn value(&self, column: Column) -> f64 {
        self.values[column as usize]
    }
}

/// A metric of a kind of rows.
#[derive(Clone, Debug)]
pub struct Metric {
    /// Its whole name.
    pub name: String,
    kind: Kind,
    source: Source,
}

/// The source of a metric's series.
#[derive(Clone, Debug)]
enum Source {
    /// These columns.
    Columns(Range<usize>),
    /// A part of the times of streams, by its index.
    Latency(usize),
}

/// The type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// It only grows.
    Counter,
    /// It goes up and down.
    Gauge,
    /// Counts by bucket.
    Histogram,
}

/// The value of a series.
#[derive(Clone, Copy, Debug)]
pub enum Point<'a> {
    /// A number, with the label that distinguishes it from the other numbers of the metric. NaN:
    /// there is no value.
    Number(Option<(&'static str, &'a str)>, f64),
    /// A histogram of seconds.
    Histogram(&'a Histogram),
}

/// The prefix of the metrics of a kind of rows.
const fn prefix(kind: Kind) -> &'static str {
    match kind {
        Kind::Frontend => "haproxy_frontend_",
        Kind::Backend => "haproxy_backend_",
        Kind::Server => "haproxy_server_",
        Kind::Listener => "haproxy_listener_",
    }
}

/// The metrics of the fields of HAProxy's modules, in the order of the table. HAProxy's exporter
/// has them on request.
pub fn module_metrics(kind: Kind) -> impl Iterator<Item = Metric> {
    columns(kind).filter(|metric| metric.module().is_some())
}

/// The metrics of a kind of rows, in the order of the tables, without those of modules.
pub fn metrics(kind: Kind) -> impl Iterator<Item = Metric> {
    let has_times = kind != Kind::Listener;
    let parts = PART_FIELDS.iter().enumerate().filter(move |_| has_times);
    let columns = columns(kind).filter(|metric| metric.module().is_none());
    columns.chain(parts.map(move |(place, part)| Metric {
        name: format!("{}{}", prefix(kind), part.metric),
        kind,
        source: Source::Latency(place),
    }))
}

fn columns(kind: Kind) -> impl Iterator<Item = Metric> {
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
                source: Source::Columns(from..next),
            });
        }
        None
    })
}

/// Whether a column has milliseconds and the metric has seconds.
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

impl Metric {
    /// One line of description.
    #[must_use]
    pub fn about(&self) -> &'static str {
        match &self.source {
            Source::Columns(columns) if columns.len() == 1 => {
                Column::ALL[columns.start].field().about
            }
            Source::Columns(_) => "Responses by class of their status",
            Source::Latency(part) => PART_FIELDS[*part].about,
        }
    }

    /// The module of HAProxy that has the metric.
    fn module(&self) -> Option<&'static str> {
        match &self.source {
            Source::Columns(columns) => Column::ALL[columns.start].module(),
            Source::Latency(_) => None,
        }
    }

    /// Its type.
    #[must_use]
    pub fn form(&self) -> Form {
        match &self.source {
            Source::Columns(columns) => {
                let (_, nature, _) = Column::ALL[columns.start].tags(self.kind);
                match nature {
                    Nature::Counter => Form::Counter,
                    _ => Form::Gauge,
                }
            }
            Source::Latency(_) => Form::Histogram,
        }
    }

    /// Passes the series of a row to `each`.
    pub fn points(&self, sample: &Sample, each: &mut dyn FnMut(Point<'_>)) {
        match &self.source {
            Source::Columns(columns) => self.column_points(columns, sample, each),
            Source::Latency(part) => {
                if let Some(latency) = &sample.latency {
                    each(Point::Histogram(&latency.parts[*part]));
                }
            }
        }
    }

    fn column_points(
        &self,
        columns: &Range<usize>,
        sample: &Sample,
        each: &mut dyn FnMut(Point<'_>),
    ) {
        match (Column::ALL[columns.start], self.kind) {
            (Column::Status, Kind::Frontend | Kind::Backend) => {
                let is_up = sample.status.starts_with("OPEN") || sample.status.starts_with("UP");
                states(PROXY_STATES, if is_up { "UP" } else { "DOWN" }, each);
            }
            (Column::Status, Kind::Server) => {
                states(SERVER_STATES, server_state(&sample.status), each);
            }
            (Column::Status, Kind::Listener) => states(LISTENER_STATES, &sample.status, each),
            (Column::CheckStatus, _) => {
                if !sample.check_status.is_empty() {
                    states(CHECK_STATES, check_state(&sample.check_status), each);
                }
            }
            (Column::AgentStatus, _) => {
                if !sample.agent_status.is_empty() {
                    states(CHECK_STATES, check_state(&sample.agent_status), each);
                }
            }
            // A server without checks has no such values.
            (Column::CheckCode | Column::CheckDuration, _) if sample.check_status.is_empty() => {}
            (Column::AgentCode | Column::AgentDuration, _) if sample.agent_status.is_empty() => {}
            (Column::AggSrvStatus | Column::AggSrvCheckStatus, _) => {
                if let Some(servers) = &sample.servers {
                    counts(SERVER_STATES, &servers.states, each);
                }
            }
            (Column::AggCheckStatus, _) => {
                if let Some(servers) = &sample.servers {
                    counts(CHECK_STATES, &servers.checks, each);
                }
            }
            (column @ (Column::CheckCode | Column::AgentCode), _) => {
                // 0 if the result has no code, as in HAProxy's exporter.
                let code = sample.value(column);
                each(Point::Number(None, if code.is_nan() { 0.0 } else { code }));
            }
            (first @ Column::Hrsp1xx, _) => {
                // TCP proxies have no responses.
                if sample.value(first).is_nan() {
                    return;
                }
                for place in columns.clone() {
                    let column = Column::ALL[place];
                    let code = column.field().name.trim_start_matches("hrsp_");
                    each(Point::Number(Some(("code", code)), sample.value(column)));
                }
            }
            (column, _) => {
                let value = sample.value(column);
                let shown = if is_milliseconds(column) {
                    value / 1000.0
                } else {
                    value
                };
                let module = self.module().map(|module| ("mod", module));
                each(Point::Number(module, shown));
            }
        }
    }
}

fn states(states: &[&str], now: &str, each: &mut dyn FnMut(Point<'_>)) {
    for state in states {
        let value = f64::from(u8::from(*state == now));
        each(Point::Number(Some(("state", state)), value));
    }
}

fn counts(states: &[&str], counts: &[u32], each: &mut dyn FnMut(Point<'_>)) {
    for (state, count) in states.iter().zip(counts) {
        each(Point::Number(Some(("state", state)), f64::from(*count)));
    }
}
