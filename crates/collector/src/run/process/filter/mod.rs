//! `filter`: records, events and data points are dropped by conditions in OTTL, or by what records
//! have. What is left empty goes too; all else stays as it came.

mod kept;
mod walk;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use otlp::Signal;
use otlp::scan::Keys;
use ottl::{Condition, Context, Subject};
use tail::settings::ErrorMode;

use super::client::Clients;
use super::edit::{Edited, hand_on, room_for};
use super::failures::{Failures, Fault};
use crate::config::components::processors::filter::Filter as Settings;
use crate::config::components::processors::statements::Group;
use crate::run::consume::{Consumer, Pass, Refused, Through};
use crate::run::data::Batch;
use crate::run::metrics::{self, Sheet};
use crate::run::origin::Origin;
use crate::run::part::{Part, PartName};
use crate::run::process::{ProcessorDeps, StartProcessor};
use kept::Kept;

/// See the module.
pub struct Filter {
    rules: Rules,
    /// Of its pipeline.
    signal: Signal,
    next: Arc<dyn Consumer>,
    filtered: Arc<AtomicU64>,
}

/// The compiled rules, without a place in a pipeline.
#[derive(Debug)]
pub struct Rules {
    traces: SignalRules,
    metrics: SignalRules,
    logs: SignalRules,
    keys: Keys,
    clients: Clients,
    failures: Failures,
}

/// The compiled rules of one signal.
#[derive(Debug)]
struct SignalRules {
    /// By context.
    conditions: [Vec<Rule>; Context::ALL.len()],
    /// Whether any condition reads a `schema_url`.
    reads_schemas: bool,
    /// The match that counts if there are no conditions.
    kept: Kept,
}

#[derive(Debug)]
struct Rule {
    text: String,
    condition: Condition,
    error_mode: ErrorMode,
}

impl StartProcessor for Settings {
    fn start(
        &self,
        mut deps: ProcessorDeps<'_, '_>,
        next: Arc<dyn Consumer>,
    ) -> Result<Arc<dyn Consumer>, String> {
        let failures = Failures::new(&deps.id.to_string(), &deps.setup.log);
        let filter = Arc::new(Filter {
            rules: Rules::new(self, failures)?,
            signal: deps.signal(),
            next,
            filtered: Arc::default(),
        });
        deps.register(Arc::clone(&filter) as Arc<dyn Part>);
        Ok(filter)
    }
}

impl Part for Filter {
    /// Records that it dropped, by the names that a Prometheus reader makes of
    /// `otelcol_processor_filter_spans.filtered` and its like.
    fn describe(&self, name: &PartName, sheet: &mut Sheet) {
        let metric = match self.signal {
            Signal::Traces => "otelcol_processor_filter_spans_filtered",
            Signal::Metrics => "otelcol_processor_filter_datapoints_filtered",
            Signal::Logs => "otelcol_processor_filter_logs_filtered",
        };
        let [pipeline, processor] = name.labels();
        sheet.about(metrics::Kind::Counter, metric, "1", "as in the Collector");
        let labels = [pipeline, processor, ("filter", &name.id)];
        sheet.point(&labels, self.filtered.load(Ordering::Relaxed));
    }
}

impl Rules {
    /// Compiles the settings.
    ///
    /// # Errors
    /// Which condition or expression cannot be read, and why.
    pub fn new(settings: &Settings, failures: Failures) -> Result<Rules, String> {
        let (mut keys, mut clients) = (Keys::default(), Clients::default());
        let mut rules = |signal| -> Result<SignalRules, String> {
            let groups = settings.of(signal);
            let mut rules = SignalRules::new(groups, &mut keys, &mut clients)?;
            if groups.is_empty() {
                rules.kept = Kept::new(settings, signal)?;
            }
            Ok(rules)
        };
        Ok(Rules {
            traces: rules(Signal::Traces)?,
            metrics: rules(Signal::Metrics)?,
            logs: rules(Signal::Logs)?,
            keys,
            clients,
            failures,
        })
    }

    /// Filters a request of a signal. `origin` is the client metadata of the batch.
    ///
    /// # Errors
    /// The request is malformed, or a condition failed whose failures are to be propagated.
    pub fn filter(
        &self,
        signal: Signal,
        request: &[u8],
        origin: Option<&Origin>,
    ) -> Result<Edited, Fault> {
        let rules = self.of(signal);
        if rules.conditions.iter().all(Vec::is_empty) && rules.kept.is_all() {
            return Ok(Edited::default());
        }
        let mut out = room_for(request);
        let told = self.clients.told(origin);
        let (outcome, dropped) = walk::walk(self, signal, told.as_ref(), request, &mut out)?;
        Ok(Edited::new(outcome, out, dropped))
    }

    fn of(&self, signal: Signal) -> &SignalRules {
        match signal {
            Signal::Traces => &self.traces,
            Signal::Metrics => &self.metrics,
            Signal::Logs => &self.logs,
        }
    }
}

impl SignalRules {
    fn new(
        groups: &[Group],
        keys: &mut Keys,
        clients: &mut Clients,
    ) -> Result<SignalRules, String> {
        let mut rules = SignalRules {
            conditions: Default::default(),
            reads_schemas: false,
            kept: Kept::All,
        };
        for group in groups {
            for text in &group.conditions {
                let condition = Condition::parse(text, group.context, keys)
                    .map_err(|error| format!("'{text}': {error}"))?;
                clients.add(condition.client());
                rules.reads_schemas |= condition.reads_schemas();
                rules.conditions[group.context as usize].push(Rule {
                    text: text.clone(),
                    condition,
                    error_mode: group.error_mode,
                });
            }
        }
        Ok(rules)
    }

    fn has(&self, context: Context) -> bool {
        !self.conditions[context as usize].is_empty()
    }

    /// Whether anything within a context may be dropped.
    fn looks_within(&self, context: Context) -> bool {
        let is_within = |other: &Context| *other != context && other.sees(context);
        let mut within = Context::ALL.into_iter().filter(is_within);
        within.any(|other| self.has(other)) || !self.kept.is_all()
    }

    /// Whether any condition is true; one that fails is false.
    fn is_true(
        &self,
        context: Context,
        subject: &Subject<'_, '_, '_>,
        failures: &Failures,
    ) -> Result<bool, Fault> {
        for rule in &self.conditions[context as usize] {
            match rule.condition.is_true(subject) {
                Ok(true) => return Ok(true),
                Ok(false) => {}
                Err(failure) => failures.take(failure, &rule.text, rule.error_mode)?,
            }
        }
        Ok(false)
    }
}

impl Through for Filter {
    fn pass<P: Pass>(&self, batch: Batch) -> Result<P::Taken, Box<Refused>> {
        let origin = batch.origin.as_deref();
        let filtered = self.rules.filter(batch.signal, &batch.bytes, origin);
        let dropped = filtered.as_ref().map_or(0, |edited| edited.dropped);
        let taken = hand_on::<P>(&self.next, batch, filtered)?;
        // Only once: a batch that is given back comes again.
        let count = Arc::clone(&self.filtered);
        let count = move || {
            count.fetch_add(dropped, Ordering::Relaxed);
        };
        Ok(P::then(taken, count))
    }

    fn next(&self) -> &dyn Consumer {
        &*self.next
    }
}
