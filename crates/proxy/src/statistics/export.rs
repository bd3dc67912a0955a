//! The Prometheus exporter (HAProxy's `addons/promex`): first the metrics of the process, then
//! those of each kind of rows. The rows of a kind are sampled before its first metric is written,
//! because all series of a metric must be together.

use std::collections::HashMap;

use stats::metric::{Aggregates, Metric, Sample, metrics, module_metrics};
use stats::prometheus::{Format, OPENMETRICS};
use stats::{Kind, Row, nameserver};

use super::{Cursor, Selection, View};

/// The number of rows that are sampled, or series that are written, per step.
const ITEMS_A_STEP: usize = 64;

/// The metrics that the query of the request asks for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    process: bool,
    /// Whether stick tables are included.
    tables: bool,
    /// Whether name servers are included.
    nameservers: bool,
    kinds: Vec<Kind>,
    /// Named metrics, and whether each is excluded.
    named: HashMap<String, bool>,
    /// Metrics that are not named are excluded.
    only_named: bool,
    hides_maintenance: bool,
    /// The fields of HAProxy's modules are included.
    modules: bool,
}

/// The format by the client's `Accept` fields: OpenMetrics if they name it, otherwise the text
/// format, which all clients read.
pub(crate) fn format<'a>(accepted: impl Iterator<Item = &'a [u8]>) -> Format {
    let is_open = |range: &[u8]| {
        let mut parts = range.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        let named = parts.next().unwrap_or_default();
        let refused = |parameter: &[u8]| {
            let quality = parameter.strip_prefix(b"q=");
            quality.is_some_and(|quality| quality.iter().all(|byte| matches!(byte, b'0' | b'.')))
        };
        named.eq_ignore_ascii_case(OPENMETRICS.as_bytes()) && !parts.any(refused)
    };
    let mut ranges = accepted.flat_map(|value| value.split(|byte| *byte == b','));
    if ranges.any(is_open) {
        Format::OpenMetrics
    } else {
        Format::Text
    }
}

/// The kinds in HAProxy's order.
pub(super) const KINDS: [Kind; 4] = [Kind::Frontend, Kind::Listener, Kind::Backend, Kind::Server];

impl Wanted {
    /// Parses the parameters of a request. None if one of them is invalid.
    pub fn of(query: &[u8]) -> Option<Wanted> {
        let mut wanted = Wanted::default();
        let mut scoped = false;
        let query = query.split(|byte| *byte == b'#').next().unwrap_or_default();
        for parameter in query
            .split(|byte| *byte == b'&')
            .filter(|text| !text.is_empty())
        {
            let mut parts = parameter.split(|byte| *byte == b'=');
            let key = super::request::decode(parts.next()?)?;
            let value = parts.next().map(super::request::decode);
            if parts.next().is_some() {
                return None;
            }
            match key.as_str() {
                "scope" => {
                    scoped = true;
                    wanted.add_scope(&value??)?;
                }
                "metrics" => wanted.add_metrics(&value??),
                "no-maint" => wanted.hides_maintenance = true,
                "extra-counters" => wanted.modules = true,
                // Unknown words are ignored, as in HAProxy.
                _ => {}
            }
        }
        if !scoped {
            wanted.add_scope("*")?;
        }
        Some(wanted)
    }

    fn add_scope(&mut self, scope: &str) -> Option<()> {
        let kind = match scope {
            "" => {
                self.process = false;
                self.tables = false;
                self.nameservers = false;
                self.kinds.clear();
                return Some(());
            }
            "*" => {
                self.process = true;
                self.tables = true;
                self.nameservers = true;
                self.kinds = KINDS.to_vec();
                return Some(());
            }
            "global" => {
                self.process = true;
                return Some(());
            }
            "sticktable" => {
                self.tables = true;
                return Some(());
            }
            "resolver" => {
                self.nameservers = true;
                return Some(());
            }
            "frontend" => Kind::Frontend,
            "backend" => Kind::Backend,
            "server" => Kind::Server,
            "listener" => Kind::Listener,
            _ => return None,
        };
        if !self.kinds.contains(&kind) {
            self.kinds.push(kind);
        }
        Some(())
    }

    fn add_metrics(&mut self, names: &str) {
        for name in names.split(',') {
            let (name, left_out) = match name.strip_prefix('-') {
                Some(name) => (name, true),
                None => (name, false),
            };
            if name.is_empty() {
                continue;
            }
            self.only_named |= !left_out;
            self.named.insert(name.to_owned(), left_out);
        }
    }

    fn has(&self, metric: &str) -> bool {
        match self.named.get(metric) {
            Some(left_out) => !left_out,
            None => !self.only_named,
        }
    }
}

/// A metric of stick tables.
struct TableGauge {
    name: &'static str,
    about: &'static str,
    /// The second argument is the current time, milliseconds.
    value: fn(&tables::Table, u64) -> u32,
}

const TABLE_GAUGES: [TableGauge; 3] = [
    TableGauge {
        name: "haproxy_sticktable_size",
        about: "Entries that a stick table has at most",
        value: |table, _| table.definition().size,
    },
    TableGauge {
        name: "haproxy_sticktable_used",
        about: "Entries of a stick table",
        value: tables::Table::used,
    },
    TableGauge {
        name: "haproxy_sticktable_local_updates",
        about: "Updates of a stick table; wraps at 2^32",
        value: |table, _| table.updates(),
    },
];

/// The position in the metrics of a kind.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    metric: usize,
    sample: usize,
    /// The header lines of the current metric are written.
    is_begun: bool,
}

#[derive(Clone, Debug)]
enum State {
    Process,
    /// Samples the rows of a kind.
    Sampling(Cursor),
    /// Writes the metrics of a kind.
    Writing(Place),
    /// Writes the metrics of stick tables next.
    Tables,
    /// Writes the metrics of name servers next.
    Nameservers,
    Over,
}

/// The state of an export.
#[derive(Clone, Debug)]
pub(crate) struct Export {
    format: Format,
    wanted: Wanted,
    /// The remaining kinds; the first one is in progress.
    kinds: Vec<Kind>,
    samples: Vec<Sample>,
    metrics: Vec<Metric>,
    state: State,
}

impl Export {
    pub fn new(wanted: Wanted, format: Format) -> Export {
        let kinds = KINDS.into_iter();
        let kinds = kinds.filter(|kind| wanted.kinds.contains(kind)).collect();
        Export {
            format,
            wanted,
            kinds,
            samples: Vec::new(),
            metrics: Vec::new(),
            state: State::Process,
        }
    }

    /// Writes the next piece. Whether it was the last one.
    pub fn step(&mut self, view: &View<'_>, out: &mut String) -> bool {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Process => {
                if self.wanted.process {
                    for (fact, value) in view.process().whole().filled() {
                        if fact.metric().is_some_and(|name| self.wanted.has(&name)) {
                            self.format.process(fact, value, out);
                        }
                    }
                }
                self.begin_kind();
            }
            State::Sampling(cursor) => self.sample(view, cursor),
            State::Writing(place) => self.write(place, out),
            State::Tables => {
                if self.wanted.tables {
                    self.tables(view, out);
                }
                self.state = State::Nameservers;
            }
            State::Nameservers => {
                if self.wanted.nameservers {
                    self.nameservers(view, out);
                }
            }
            State::Over => {}
        }
        let is_over = matches!(self.state, State::Over);
        if is_over {
            self.format.end(out);
        }
        is_over
    }

    fn begin_kind(&mut self) {
        self.samples.clear();
        self.state = match self.kinds.first() {
            Some(_) => State::Sampling(Cursor::default()),
            None => State::Tables,
        };
    }

    /// Writes the metrics of stick tables.
    fn tables(&self, view: &View<'_>, out: &mut String) {
        let tables = &view.runtime_config.config.tables;
        for gauge in TABLE_GAUGES
            .iter()
            .filter(|gauge| self.wanted.has(gauge.name))
        {
            let series = tables.iter().map(|table| {
                let of = table.definition();
                let labels = [("name", of.name.as_str()), ("type", of.key.name())];
                (labels, f64::from((gauge.value)(table, view.now.ms())))
            });
            if !tables.is_empty() {
                self.format.gauge(gauge.name, gauge.about, series, out);
            }
        }
    }

    /// Writes the metrics of name servers.
    fn nameservers(&self, view: &View<'_>, out: &mut String) {
        let rows = view.shared.nameservers(&view.runtime_config.config);
        if rows.is_empty() {
            return;
        }
        for (place, counter) in nameserver::COUNTERS.iter().enumerate() {
            let name = counter.metric();
            if self.wanted.has(&name) {
                let series = rows.iter().map(|row| {
                    let labels = [("resolver", row.section), ("nameserver", row.name)];
                    (labels, row.values[place] as f64)
                });
                self.format.gauge(&name, counter.about, series, out);
            }
        }
    }

    fn sample(&mut self, view: &View<'_>, mut cursor: Cursor) {
        let kind = self.kinds[0];
        let selection = Selection {
            kinds: Some(vec![kind]),
            hides_maintenance: self.wanted.hides_maintenance,
            ..Selection::default()
        };
        for _ in 0..ITEMS_A_STEP {
            let Some((place, row)) = cursor.next(view, &selection) else {
                let modules = self.wanted.modules;
                let all = metrics(kind).chain(module_metrics(kind).filter(|_| modules));
                self.metrics = all.filter(|metric| self.wanted.has(&metric.name)).collect();
                self.state = State::Writing(Place::default());
                return;
            };
            self.samples.push(view.sample(place, &row));
        }
        self.state = State::Sampling(cursor);
    }

    fn write(&mut self, mut place: Place, out: &mut String) {
        let Some(metric) = self.metrics.get(place.metric) else {
            self.kinds.remove(0);
            return self.begin_kind();
        };
        let mut series = String::new();
        let samples = self.samples.iter().skip(place.sample);
        for sample in samples.take(ITEMS_A_STEP) {
            self.format.series(metric, sample, &mut series);
            place.sample += 1;
        }
        if !series.is_empty() && !std::mem::replace(&mut place.is_begun, true) {
            self.format.header(metric, out);
        }
        out.push_str(&series);
        self.state = State::Writing(if place.sample < self.samples.len() {
            place
        } else {
            Place {
                metric: place.metric + 1,
                ..Place::default()
            }
        });
    }
}

impl View<'_> {
    /// Samples a row of the proxy at a place.
    pub(super) fn sample(&self, place: usize, row: &Row<'_>) -> Sample {
        let is_backend = row.kind == Kind::Backend;
        let servers = is_backend.then(|| self.aggregates(place)).flatten();
        Sample::of(row, servers)
    }

    /// The number of a backend's servers by state; none if it has no servers.
    fn aggregates(&self, backend: usize) -> Option<Aggregates> {
        let selection = Selection {
            iid: Some(self.runtime_config.config.proxies[backend].id),
            kinds: Some(vec![Kind::Server]),
            ..Selection::default()
        };
        let (mut aggregates, mut cursor) = (None, Cursor::at(backend));
        while let Some((_, row)) = cursor.next(self, &selection) {
            aggregates.get_or_insert_with(Aggregates::default).add(&row);
        }
        aggregates
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openmetrics_is_for_those_who_name_it() {
        let of = |value: &str| format([value.as_bytes()].into_iter());
        for value in [
            "application/openmetrics-text",
            "text/plain;q=0.2, Application/OpenMetrics-Text; version=1.0.0; q=0.5",
        ] {
            assert_eq!(of(value), Format::OpenMetrics, "{value}");
        }
        for value in [
            "",
            "*/*",
            "text/plain",
            "application/openmetrics-text;q=0.0",
            "application/openmetrics-text2",
            "x application/openmetrics-text",
        ] {
            assert_eq!(of(value), Format::Text, "{value}");
        }
        assert_eq!(format(std::iter::empty()), Format::Text);
    }

    #[test]
    fn parameters_of_a_request() {
        let wanted = |query: &str| Wanted::of(query.as_bytes());
        let all = wanted("").expect("no parameter");
        assert!(all.process && all.tables && all.kinds.len() == KINDS.len() && all.has("any"));
        let none = wanted("scope=").expect("an empty scope");
        assert!(!none.process && none.kinds.is_empty());
        let tables = wanted("scope=sticktable").expect("a scope");
        assert!(tables.tables && !tables.process && tables.kinds.is_empty());
        let resolvers = wanted("scope=resolver").expect("a scope");
        assert!(resolvers.nameservers && !resolvers.tables && all.nameservers);
        let two = wanted("scope=frontend&scope=%73erver&no-maint").expect("scopes");
        assert_eq!(two.kinds, [Kind::Frontend, Kind::Server]);
        assert!(two.hides_maintenance && !two.process);
        assert!(!two.modules && wanted("extra-counters").is_some_and(|all| all.modules));
        let named = wanted("metrics=a,b,-c").expect("names");
        assert!(named.has("a") && named.has("b") && !named.has("c") && !named.has("d"));
        let without = wanted("metrics=-c").expect("a name");
        assert!(!without.has("c") && without.has("d"));
        for wrong in [
            "scope",
            "scope=nothing",
            "metrics",
            "scope=a=b",
            "scope=%zz",
        ] {
            assert!(wanted(wrong).is_none(), "{wrong}");
        }
    }
}
