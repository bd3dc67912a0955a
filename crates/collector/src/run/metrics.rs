//! The collector's metrics, by the Collector's names, in Prometheus' text format (version 0.0.4).
//!
//! What the Collector lacks stands beside them: the account of every span.

mod balance;
mod otlp;
mod sheet;
mod sum;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use tail::account::Ages;

use super::send;
use super::start::View;
use crate::config::Signal;

pub(super) use otlp::Span;
pub(super) use sheet::Sheet;
pub(crate) use sum::Sum;

/// What the page is.
pub(super) const CONTENT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The page.
#[must_use]
pub(super) fn write(view: &View) -> String {
    let mut page = sheet(view);
    target(view, &mut page);
    page.prometheus()
}

/// All metrics.
#[must_use]
pub(super) fn sheet(view: &View) -> Sheet {
    let mut page = Sheet::default();
    accounts(view, &mut page);
    exporters(view, &mut page);
    queues(view, &mut page);
    storages(view, &mut page);
    samplers(view, &mut page);
    balance::write(view, &mut page);
    tails(view, &mut page);
    batches(view, &mut page);
    filters(view, &mut page);
    page
}

/// The resource, as Prometheus has it.
fn target(view: &View, page: &mut Sheet) {
    page.about("target_info", "gauge", "Target metadata");
    let label = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let names: Vec<String> = { view.resource.iter() }
        .map(|(name, _)| name.chars().map(label).collect())
        .collect();
    let values = view.resource.iter().map(|(_, value)| value.as_str());
    let labels: Vec<_> = names.iter().map(String::as_str).zip(values).collect();
    page.line("target_info", &labels, 1);
}

fn samplers(view: &View, page: &mut Sheet) {
    const PREFIX: &str = "otelcol_processor_probabilistic_sampler_count_";
    const NAMES: [(&str, Signal); 3] = [
        ("traces_sampled", Signal::Traces),
        ("spans_processed_total", Signal::Traces),
        ("logs_sampled", Signal::Logs),
    ];
    for (what, signal) in NAMES {
        let of_signal = view.samplers.iter().filter(|one| one.signal == signal);
        let mut rows = Vec::new();
        for one in of_signal {
            let counts = one.sampler.sampler.counts().into_iter();
            rows.extend(counts.map(|(policy, is_kept, count)| (one, policy, is_kept, count)));
        }
        if rows.is_empty() {
            continue;
        }
        let name = format!("{PREFIX}{what}");
        page.about(&name, "counter", "as in the Collector");
        for (one, policy, is_kept, count) in &rows {
            let labels = [
                ("pipeline", one.pipeline.as_str()),
                ("processor", &one.id),
                ("policy", policy),
                ("sampled", if *is_kept { "true" } else { "false" }),
            ];
            page.line(&name, &labels, *count);
        }
    }
}

fn records(signal: Signal) -> &'static str {
    match signal {
        Signal::Traces => "spans",
        Signal::Metrics => "metric_points",
        Signal::Logs => "log_records",
    }
}

fn accounts(view: &View, page: &mut Sheet) {
    for signal in Signal::ALL {
        let balance = view.accounts[signal as usize].balance();
        let what = records(signal);
        let counts = [
            ("receiver_accepted", balance.accepted, "taken by receivers"),
            (
                "receiver_refused",
                balance.refused,
                "not taken, for lack of room",
            ),
        ];
        for (name, count, help) in counts {
            let name = format!("otelcol_{name}_{what}");
            page.about(&name, "counter", &format!("{what} {help}"));
            page.line(&name, &[], count);
        }
        let name = format!("otelcol_account_{what}");
        page.about(
            &name,
            "gauge",
            "accepted = exported + dropped + failed + rejected + shutdown + held",
        );
        let states = [
            ("accepted", balance.accepted),
            ("exported", balance.exported),
            ("dropped", balance.dropped),
            ("failed", balance.failed),
            ("rejected", balance.rejected),
            ("shutdown", balance.shutdown),
            ("held", balance.held()),
        ];
        for (state, count) in states {
            page.line(&name, &[("state", state)], count);
        }
        let name = format!("otelcol_receiver_recovered_{what}");
        page.about(
            &name,
            "counter",
            &format!("{what} that an earlier process had taken, among those accepted"),
        );
        page.line(&name, &[], balance.recovered);
        let name = format!("otelcol_receiver_malformed_requests_{what}");
        page.about(&name, "counter", "requests that were not understood");
        page.line(&name, &[], balance.malformed);
        let name = format!("otelcol_receiver_panics_{what}");
        page.about(&name, "counter", "requests that a component panicked on");
        page.line(&name, &[], balance.panics);
    }
}

fn storages(view: &View, page: &mut Sheet) {
    type Value = fn(&journal::Space) -> u64;
    let gauges: [(&str, &str, Value); 2] = [
        ("otelcol_storage_bytes", "bytes of all files", |space| {
            space.used_bytes()
        }),
        (
            "otelcol_storage_capacity_bytes",
            "the most that there may be",
            |space| space.bytes_max(),
        ),
    ];
    for (name, help, value) in gauges {
        page.about(name, "gauge", help);
        for (id, space) in &view.storages {
            page.line(name, &[("storage", id)], value(space));
        }
    }
}

/// What became of the records of each exporter: one that has taken them counts them, whatever others do.
fn exporters(view: &View, page: &mut Sheet) {
    type Count = fn(&send::Counts) -> &AtomicU64;
    let counters: [(&str, &str, Count); 3] = [
        ("sent", "taken by the back end", |counts| &counts.sent),
        ("send_failed", "not taken by the back end", |counts| {
            &counts.failed
        }),
        (
            "enqueue_failed",
            "lost for lack of room while other exporters took theirs",
            |counts| &counts.passed_by,
        ),
    ];
    let senders = view.senders.iter();
    let mut all: Vec<(String, Signal, Arc<send::Sender>)> = senders
        .map(|(id, signal, sender)| (id.clone(), *signal, Arc::clone(sender)))
        .collect();
    for (id, balancer) in &view.balancers {
        // Backends are exporters of their own, by the names that the Collector gives them.
        let name = id.split_once('/').map(|(_, name)| format!("{name}_"));
        let name = name.unwrap_or_default();
        for backend in balancer.view() {
            let id = format!("otlp/{name}{}", backend.endpoint);
            all.push((id, Signal::Traces, backend.sender));
        }
    }
    for signal in Signal::ALL {
        let what = records(signal);
        for (name, help, count) in counters {
            let name = format!("otelcol_exporter_{name}_{what}");
            page.about(&name, "counter", &format!("{what} {help}"));
            for (id, _, sender) in all.iter().filter(|(_, own, _)| *own == signal) {
                let value = count(sender.counts()).load(Relaxed);
                page.line(&name, &[("exporter", id)], value);
            }
        }
    }
}

fn queues(view: &View, page: &mut Sheet) {
    type Value = fn(&super::send::Sender) -> u64;
    let gauges: [(&str, &str, Value); 3] = [
        ("otelcol_exporter_queue_size", "what waits", |sender| {
            sender.fill().0
        }),
        (
            "otelcol_exporter_queue_capacity",
            "the most that may wait",
            |sender| sender.fill().1,
        ),
        (
            "otelcol_exporter_queue_bytes",
            "bytes that wait",
            |sender| sender.depth().1,
        ),
    ];
    for (name, help, value) in gauges {
        page.about(name, "gauge", help);
        for (id, signal, sender) in &view.senders {
            let signal = signal.to_string();
            let labels = [("data_type", &*signal), ("exporter", id)];
            page.line(name, &labels, value(sender));
        }
    }
}

fn batches(view: &View, page: &mut Sheet) {
    const NAME: &str = "otelcol_processor_batch_metadata_cardinality";
    if view.batches.is_empty() {
        return;
    }
    page.about(NAME, "gauge", "Combinations of metadata with batches");
    for (pipeline, id, batcher) in &view.batches {
        let labels = [("pipeline", pipeline.as_str()), ("processor", id)];
        page.line(NAME, &labels, batcher.combinations());
    }
}

/// By the name that a Prometheus reader makes of `otelcol_processor_filter_spans.filtered`.
fn filters(view: &View, page: &mut Sheet) {
    const NAME: &str = "otelcol_processor_filter_spans_filtered";
    if view.filters.is_empty() {
        return;
    }
    page.about(NAME, "counter", "as in the Collector");
    for (pipeline, id, filter) in &view.filters {
        let labels = [
            ("pipeline", pipeline.as_str()),
            ("processor", id),
            ("filter", id),
        ];
        page.line(NAME, &labels, filter.filtered());
    }
}

fn tails(view: &View, page: &mut Sheet) {
    let mut sums = Vec::new();
    for (pipeline, id, tail) in &view.tails {
        sums.push((pipeline.as_str(), id.as_str(), Sum::of(tail)));
    }
    if sums.is_empty() {
        return;
    }
    page.about(
        "spangate_tail_budget_bytes",
        "gauge",
        "bytes that waiting traces may take",
    );
    page.line("spangate_tail_budget_bytes", &[], view.budget.bytes_max());
    page.about("spangate_tail_held_bytes", "gauge", "bytes that they take");
    page.line("spangate_tail_held_bytes", &[], view.budget.used_bytes());
    type Value = fn(&Sum) -> u64;
    let spans: [(&str, Value); 5] = [
        ("pending", |sum| sum.pending_spans),
        ("in_export", |sum| sum.in_export),
        ("not_sampled", |sum| sum.not_sampled),
        ("late_dropped", |sum| sum.late_dropped),
        ("too_large", |sum| sum.too_large),
    ];
    page.about(
        "spangate_tail_spans",
        "gauge",
        "spans by what has become of them",
    );
    for (pipeline, id, sum) in &sums {
        for (state, value) in spans {
            let labels = [
                ("pipeline", *pipeline),
                ("processor", *id),
                ("state", state),
            ];
            page.line("spangate_tail_spans", &labels, value(sum));
        }
    }
    const EARLY: &str = "spangate_tail_traces_decided_early";
    let help = "traces decided before their time, because num_traces was reached";
    page.about(EARLY, "counter", help);
    for (pipeline, id, sum) in &sums {
        let labels = [("pipeline", *pipeline), ("processor", *id)];
        page.line(EARLY, &labels, sum.counters.traces_early);
    }
    let is_sampling = |id: &str| id.split('/').next() == Some("tail_sampling");
    let (sampling, grouping): (Vec<_>, Vec<_>) =
        sums.into_iter().partition(|(_, id, _)| is_sampling(id));
    tail_sampling(&sampling, page);
    group_by_trace(&grouping, page);
}

type Sums<'a> = [(&'a str, &'a str, Sum)];

/// A metric: its name, its kind, further labels, and its value.
type Row<'a> = (&'a str, &'a str, Labels<'a>, fn(&Sum) -> u64);
type Labels<'a> = &'a [(&'a str, &'a str)];

fn numbers(sums: &Sums<'_>, page: &mut Sheet, prefix: &str, rows: &[Row<'_>]) {
    let mut last = "";
    for (name, kind, more, value) in rows {
        let full = format!("{prefix}{name}");
        if *name != last {
            page.about(&full, kind, "as in the Collector");
            last = name;
        }
        for (pipeline, id, sum) in sums {
            let mut labels = vec![("pipeline", *pipeline), ("processor", *id)];
            labels.extend_from_slice(more);
            page.line(&full, &labels, value(sum));
        }
    }
}

fn tail_sampling(sums: &Sums<'_>, page: &mut Sheet) {
    const PREFIX: &str = "otelcol_processor_tail_sampling_";
    const YES: &[(&str, &str)] = &[("sampled", "true"), ("decision", "sampled")];
    const NO: &[(&str, &str)] = &[("sampled", "false"), ("decision", "not_sampled")];
    const DROPPED: &[(&str, &str)] = &[("sampled", "false"), ("decision", "dropped")];
    if sums.is_empty() {
        return;
    }
    numbers(
        sums,
        page,
        PREFIX,
        &[
            ("global_count_traces_sampled", "counter", YES, |sum| {
                sum.counters.traces_sampled
            }),
            ("global_count_traces_sampled", "counter", NO, |sum| {
                sum.counters.traces_not_sampled
            }),
            ("global_count_traces_sampled", "counter", DROPPED, |sum| {
                sum.counters.traces_dropped
            }),
            (
                "early_releases_from_cache_decision",
                "counter",
                &[("sampled", "true")],
                |sum| sum.counters.late_sampled,
            ),
            (
                "early_releases_from_cache_decision",
                "counter",
                &[("sampled", "false")],
                |sum| sum.counters.late_not_sampled,
            ),
            ("new_trace_id_received", "counter", &[], |sum| {
                sum.counters.new_traces
            }),
            ("sampling_traces_on_memory", "gauge", &[], |sum| {
                sum.pending_traces
            }),
            ("sampling_trace_dropped_too_early", "counter", &[], |sum| {
                sum.counters.traces_dropped_early
            }),
            ("traces_dropped_too_large", "counter", &[], |sum| {
                sum.counters.traces_too_large
            }),
            ("sampling_policy_evaluation_error", "counter", &[], |sum| {
                sum.policies.iter().map(|(_, votes)| votes.errors).sum()
            }),
        ],
    );
    ages(sums, page, "sampling_late_span_age", |sum| {
        &sum.counters.late_span_ages
    });
    ages(sums, page, "sampling_trace_removal_age", |sum| {
        &sum.counters.trace_removal_ages
    });
    policies(sums, page);
}

fn ages(sums: &Sums<'_>, page: &mut Sheet, name: &str, of: fn(&Sum) -> &Ages) {
    let name = format!("otelcol_processor_tail_sampling_{name}");
    page.about(&name, "histogram", "seconds, as in the Collector");
    for (pipeline, id, sum) in sums {
        let ages = of(sum);
        let mut count = 0;
        let bounds = Ages::BOUNDS_S.iter().map(u64::to_string);
        for (bound, bucket) in bounds.chain(["+Inf".to_owned()]).zip(ages.counts) {
            count += bucket;
            let labels = [("pipeline", *pipeline), ("processor", *id), ("le", &bound)];
            page.line(&format!("{name}_bucket"), &labels, count);
        }
        let labels = [("pipeline", *pipeline), ("processor", *id)];
        page.line(&format!("{name}_sum"), &labels, ages.sum_s);
        page.line(&format!("{name}_count"), &labels, count);
    }
}

fn policies(sums: &Sums<'_>, page: &mut Sheet) {
    type Value = fn(&tail::policy::Votes) -> u64;
    let rows: [(&str, Labels<'_>, Value); 7] = [
        (
            "count_traces_sampled",
            &[("sampled", "true"), ("decision", "sampled")],
            |votes| votes.sampled.traces,
        ),
        (
            "count_traces_sampled",
            &[("sampled", "false"), ("decision", "not_sampled")],
            |votes| votes.not_sampled.traces,
        ),
        (
            "count_traces_sampled",
            &[("sampled", "false"), ("decision", "dropped")],
            |votes| votes.dropped.traces,
        ),
        (
            "count_spans_sampled",
            &[("sampled", "true"), ("decision", "sampled")],
            |votes| votes.sampled.spans,
        ),
        (
            "count_spans_sampled",
            &[("sampled", "false"), ("decision", "not_sampled")],
            |votes| votes.not_sampled.spans,
        ),
        (
            "count_spans_sampled",
            &[("sampled", "false"), ("decision", "dropped")],
            |votes| votes.dropped.spans,
        ),
        ("sampling_policy_execution_count", &[], |votes| {
            votes.evaluations
        }),
    ];
    let mut last = "";
    for (name, more, value) in rows {
        let full = format!("otelcol_processor_tail_sampling_{name}");
        if name != last {
            page.about(&full, "counter", "as in the Collector");
            last = name;
        }
        for (pipeline, id, sum) in sums {
            for (policy, votes) in &sum.policies {
                let own = [
                    ("pipeline", *pipeline),
                    ("processor", *id),
                    ("policy", policy),
                ];
                let labels: Vec<_> = own.iter().chain(more).copied().collect();
                page.line(&full, &labels, value(votes));
            }
        }
    }
}

fn group_by_trace(sums: &Sums<'_>, page: &mut Sheet) {
    if sums.is_empty() {
        return;
    }
    numbers(
        sums,
        page,
        "otelcol_processor_groupbytrace_",
        &[
            ("num_traces_in_memory", "gauge", &[], |sum| {
                sum.pending_traces
            }),
            ("traces_released", "counter", &[], |sum| {
                sum.counters.traces_sampled
            }),
            ("traces_evicted", "counter", &[], |sum| {
                sum.counters.traces_early
            }),
        ],
    );
}
