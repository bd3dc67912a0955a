//! What Prometheus reads (HAProxy's `addons/promex`): first the metrics of the process, then those of each kind of rows. The rows of a
//! kind are sampled before its first metric is written, since all series of a metric stand together.

use std::collections::HashMap;

use stats::Kind;
use stats::prometheus::{Aggregates, Metric, ProcessMetric, Sample, metrics};

use super::{Cursor, Selection, View};

/// Rows that are sampled, and series that are written, at a step.
const ITEMS_A_STEP: usize = 64;

/// What is asked for, in the query of the request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    process: bool,
    kinds: Vec<Kind>,
    /// Metrics that are named, and whether they are left out.
    named: HashMap<String, bool>,
    /// Those that are not named are left out.
    only_named: bool,
    hides_maintenance: bool,
}

/// The order in which HAProxy writes kinds.
const KINDS: [Kind; 4] = [Kind::Frontend, Kind::Listener, Kind::Backend, Kind::Server];

impl Wanted {
    /// Reads the parameters of a request. None where one of them is wrong.
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
                // Counters of modules do not exist here; other words are left alone, as in HAProxy.
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
                self.kinds.clear();
                return Some(());
            }
            "*" => {
                self.process = true;
                self.kinds = KINDS.to_vec();
                return Some(());
            }
            "global" => {
                self.process = true;
                return Some(());
            }
            // Nothing of these exists yet: there is nothing to tell of them.
            "sticktable" | "resolver" => return Some(()),
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

/// Where the writing of metrics is.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    metric: usize,
    sample: usize,
    /// The metric has series: the lines above them are written.
    is_begun: bool,
}

#[derive(Clone, Debug)]
enum State {
    Process,
    /// Rows of a kind are sampled.
    Sampling(Cursor),
    /// Metrics of a kind are written.
    Writing(Place),
    Over,
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Export {
    wanted: Wanted,
    /// Kinds that are still to come; the first is at work.
    kinds: Vec<Kind>,
    samples: Vec<Sample>,
    metrics: Vec<Metric>,
    state: State,
}

impl Export {
    pub fn new(wanted: Wanted) -> Export {
        let kinds = KINDS.into_iter();
        let kinds = kinds.filter(|kind| wanted.kinds.contains(kind)).collect();
        Export {
            wanted,
            kinds,
            samples: Vec::new(),
            metrics: Vec::new(),
            state: State::Process,
        }
    }

    /// Writes the next piece; whether it was the last.
    pub fn step(&mut self, view: &View<'_>, out: &mut String) -> bool {
        match std::mem::replace(&mut self.state, State::Over) {
            State::Process => {
                if self.wanted.process {
                    let all = process(view).into_iter();
                    let wanted = all.filter(|metric| self.wanted.has(&metric.full_name()));
                    wanted.for_each(|metric| metric.write(out));
                }
                self.begin_kind();
            }
            State::Sampling(cursor) => self.sample(view, cursor),
            State::Writing(place) => self.write(place, out),
            State::Over => {}
        }
        matches!(self.state, State::Over)
    }

    fn begin_kind(&mut self) {
        self.samples.clear();
        self.state = match self.kinds.first() {
            Some(_) => State::Sampling(Cursor::default()),
            None => State::Over,
        };
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
                let all = metrics(kind);
                self.metrics = all.filter(|metric| self.wanted.has(&metric.name)).collect();
                self.state = State::Writing(Place::default());
                return;
            };
            let servers = (kind == Kind::Backend).then(|| view.aggregates(place));
            self.samples.push(Sample::of(&row, servers));
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
            metric.series(sample, &mut series);
            place.sample += 1;
        }
        if !series.is_empty() && !std::mem::replace(&mut place.is_begun, true) {
            metric.header(out);
        }
        out.push_str(&series);
        self.state = State::Writing(match place.sample < self.samples.len() {
            true => place,
            false => Place {
                metric: place.metric + 1,
                ..Place::default()
            },
        });
    }
}

impl View<'_> {
    /// The servers of a backend by state.
    fn aggregates(&self, backend: usize) -> Aggregates {
        let selection = Selection {
            iid: Some(self.running.config.proxies[backend].id),
            kinds: Some(vec![Kind::Server]),
            ..Selection::default()
        };
        let (mut aggregates, mut cursor) = (Aggregates::default(), Cursor::at(backend));
        while let Some((_, row)) = cursor.next(self, &selection) {
            aggregates.add(&row);
        }
        aggregates
    }
}

fn process(view: &View<'_>) -> Vec<ProcessMetric> {
    let config = &view.running.config.global;
    let facts = &view.running.process;
    let activity = view.shared.activity(view.now.ms());
    let gauge = |name, about, value: f64| ProcessMetric {
        name,
        about,
        is_counter: false,
        label: None,
        value,
    };
    let counter = |name, about, value: u64| ProcessMetric {
        is_counter: true,
        ..gauge(name, about, value as f64)
    };
    let labelled = |name, about, label, text: &str| ProcessMetric {
        label: Some((label, text.to_owned())),
        ..gauge(name, about, 1.0)
    };
    let number = |value: Option<u32>| f64::from(value.unwrap_or(0));
    let uptime_s = view.now.mono_ns.saturating_sub(facts.started.mono_ns) / 1_000_000_000;
    let started_s = facts.started.wall_ns / 1_000_000_000;
    let node = config.node.as_deref().unwrap_or(&facts.hostname);
    vec![
        gauge("nbthread", "Worker threads", f64::from(facts.nbthread)),
        gauge("nbproc", "Worker processes, always 1", 1.0),
        gauge(
            "relative_process_id",
            "Number of this worker process, always 1",
            1.0,
        ),
        gauge("uptime_seconds", "Seconds since the start", uptime_s as f64),
        gauge(
            "start_time_seconds",
            "When the process started, in seconds since the epoch",
            started_s as f64,
        ),
        gauge(
            "max_connections",
            "Most client connections at once",
            number(config.maxconn),
        ),
        gauge(
            "hard_max_connections",
            "Most client connections at once, as started",
            number(config.maxconn),
        ),
        gauge(
            "current_connections",
            "Client connections now",
            f64::from(view.shared.clients()),
        ),
        counter(
            "connections_total",
            "Client connections since the start",
            activity.connections,
        ),
        counter(
            "requests_total",
            "Requests since the start",
            activity.requests,
        ),
        gauge(
            "current_connection_rate",
            "Client connections of the last second",
            f64::from(activity.connection_rate),
        ),
        gauge(
            "limit_connection_rate",
            "Most client connections a second (maxconnrate)",
            number(config.maxconnrate),
        ),
        gauge(
            "max_connection_rate",
            "Most client connections within a second",
            f64::from(activity.connection_rate_max),
        ),
        gauge(
            "current_session_rate",
            "Sessions of the last second",
            f64::from(activity.session_rate),
        ),
        gauge(
            "limit_session_rate",
            "Most sessions a second (maxsessrate)",
            number(config.maxsessrate),
        ),
        gauge(
            "max_session_rate",
            "Most sessions within a second",
            f64::from(activity.session_rate_max),
        ),
        labelled("node", "Name of the node", "node", node),
        gauge(
            "listeners",
            "Addresses that are listened on",
            view.running.listener_count() as f64,
        ),
        counter(
            "internal_errors_total",
            "Internal errors, each of which ended what it happened on",
            view.shared.panics(),
        ),
        labelled(
            "build_info",
            "Version of this program",
            "version",
            env!("CARGO_PKG_VERSION"),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_a_request() {
        let wanted = |query: &str| Wanted::of(query.as_bytes());
        let all = wanted("").expect("no parameter");
        assert!(all.process && all.kinds.len() == KINDS.len() && all.has("any"));
        let none = wanted("scope=").expect("an empty scope");
        assert!(!none.process && none.kinds.is_empty());
        let two = wanted("scope=frontend&scope=%73erver&no-maint").expect("scopes");
        assert_eq!(two.kinds, [Kind::Frontend, Kind::Server]);
        assert!(two.hides_maintenance && !two.process);
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
