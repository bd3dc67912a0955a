//! The metrics of `tail_sampling` and `groupbytrace`.

use tail::account::{Ages, Cause, Counters};
use tail::policy::Votes;
use tail::shard::Shard;

use super::Sheet;
use super::sheet::Kind;
use crate::run::process::tail::Tail;
use crate::run::start::View;

/// The numbers of all shards of a component.
#[derive(Default)]
pub(crate) struct Sum {
    pub pending_traces: u64,
    pub pending_spans: u64,
    pub in_export: u64,
    pub not_sampled: u64,
    pub late_dropped: u64,
    pub too_large: u64,
    /// Spans that were handed on.
    pub released: u64,
    /// `num_traces`
    pub traces_max: u64,
    pub counters: Counters,
    pub policies: Vec<(String, Votes)>,
}

impl Sum {
    /// Those of a component.
    pub fn of(tail: &Tail) -> Sum {
        let mut sum = Sum {
            traces_max: tail.traces_max(),
            ..Sum::default()
        };
        tail.each_shard(|shard| sum.add(shard));
        sum
    }

    fn add(&mut self, shard: &Shard) {
        let (account, counters) = (shard.account(), shard.counters());
        self.pending_traces += shard.pending_traces();
        self.pending_spans += account.pending;
        self.in_export += account.in_export;
        let lost = [Cause::ExportRefused, Cause::ExportFailed].map(|cause| account.lost_to(cause));
        self.released += account.in_export + account.exported + lost.iter().sum::<u64>();
        self.not_sampled += account.not_sampled;
        self.late_dropped += account.late_dropped;
        self.too_large += account.lost_to(Cause::TooLarge);
        let sum = &mut self.counters;
        sum.new_traces += counters.new_traces;
        sum.traces_sampled += counters.traces_sampled;
        sum.traces_not_sampled += counters.traces_not_sampled;
        sum.traces_dropped += counters.traces_dropped;
        sum.traces_early += counters.traces_early;
        sum.traces_dropped_early += counters.traces_dropped_early;
        sum.traces_too_large += counters.traces_too_large;
        sum.late_sampled += counters.late_sampled;
        sum.late_not_sampled += counters.late_not_sampled;
        add_ages(&mut sum.late_span_ages, &counters.late_span_ages);
        add_ages(&mut sum.trace_removal_ages, &counters.trace_removal_ages);
        for (at, (name, votes)) in shard
            .program()
            .into_iter()
            .flat_map(|one| one.votes())
            .enumerate()
        {
            match self.policies.get_mut(at) {
                Some((_, sum)) => add_votes(sum, votes),
                None => self.policies.push((name.to_owned(), *votes)),
            }
        }
    }
}

fn add_ages(sum: &mut Ages, ages: &Ages) {
    for (sum, count) in sum.counts.iter_mut().zip(ages.counts) {
        *sum += count;
    }
    sum.sum_s += ages.sum_s;
}

fn add_votes(sum: &mut Votes, votes: &Votes) {
    let pairs = [
        (&mut sum.sampled, &votes.sampled),
        (&mut sum.not_sampled, &votes.not_sampled),
        (&mut sum.dropped, &votes.dropped),
    ];
    for (sum, tally) in pairs {
        sum.traces += tally.traces;
        sum.spans += tally.spans;
        sum.bytes += tally.bytes;
    }
    sum.errors += votes.errors;
    sum.evaluations += votes.evaluations;
}

pub(super) fn write(view: &View, page: &mut Sheet) {
    let mut sums = Vec::new();
    for (pipeline, id, tail) in &view.tails {
        sums.push((pipeline.as_str(), id.as_str(), Sum::of(tail)));
    }
    if sums.is_empty() {
        return;
    }
    page.about(
        Kind::Gauge,
        "spangate_tail_budget_bytes",
        "By",
        "bytes that waiting traces may take",
    );
    page.point(&[], view.budget.bytes_max());
    page.about(
        Kind::Gauge,
        "spangate_tail_held_bytes",
        "By",
        "bytes that they take",
    );
    page.point(&[], view.budget.used_bytes());
    type Value = fn(&Sum) -> u64;
    let spans: [(&str, Value); 5] = [
        ("pending", |sum| sum.pending_spans),
        ("in_export", |sum| sum.in_export),
        ("not_sampled", |sum| sum.not_sampled),
        ("late_dropped", |sum| sum.late_dropped),
        ("too_large", |sum| sum.too_large),
    ];
    page.about(
        Kind::Gauge,
        "spangate_tail_spans",
        "{spans}",
        "spans by what has become of them",
    );
    for (pipeline, id, sum) in &sums {
        for (state, value) in spans {
            let labels = [
                ("pipeline", *pipeline),
                ("processor", *id),
                ("state", state),
            ];
            page.point(&labels, value(sum));
        }
    }
    const EARLY: &str = "spangate_tail_traces_decided_early";
    let help = "traces decided before their time, because num_traces was reached";
    page.about(Kind::Counter, EARLY, "{traces}", help);
    for (pipeline, id, sum) in &sums {
        let labels = [("pipeline", *pipeline), ("processor", *id)];
        page.point(&labels, sum.counters.traces_early);
    }
    let (sampling, grouping): (Vec<_>, Vec<_>) =
        sums.into_iter().partition(|(_, id, _)| is_sampling(id));
    tail_sampling(&sampling, page);
    decision_times(view, page);
    group_by_trace(&grouping, page);
}

/// Whether the processor of an id is a `tail_sampling` or a `policysampling`.
fn is_sampling(id: &str) -> bool {
    matches!(
        id.split('/').next(),
        Some("tail_sampling" | "policysampling")
    )
}

type Sums<'a> = [(&'a str, &'a str, Sum)];

/// A metric: its name, its kind, its unit, further labels, and its value.
type Row<'a> = (&'a str, Kind, &'static str, Labels<'a>, fn(&Sum) -> u64);
type Labels<'a> = &'a [(&'a str, &'a str)];

fn numbers(sums: &Sums<'_>, page: &mut Sheet, prefix: &str, rows: &[Row<'_>]) {
    let mut last = "";
    for (name, kind, unit, more, value) in rows {
        let full = format!("{prefix}{name}");
        if *name != last {
            page.about(*kind, &full, unit, "as in the Collector");
            last = name;
        }
        for (pipeline, id, sum) in sums {
            let mut labels = vec![("pipeline", *pipeline), ("processor", *id)];
            labels.extend_from_slice(more);
            page.point(&labels, value(sum));
        }
    }
}

fn tail_sampling(sums: &Sums<'_>, page: &mut Sheet) {
    if sums.is_empty() {
        return;
    }
    numbers(sums, page, SAMPLING, SAMPLING_ROWS);
    histograms(sums, page, "sampling_late_span_age", |sum| {
        &sum.counters.late_span_ages
    });
    histograms(sums, page, "sampling_trace_removal_age", |sum| {
        &sum.counters.trace_removal_ages
    });
    policies(sums, page);
}

fn decision_times(view: &View, page: &mut Sheet) {
    let name = format!("{SAMPLING}sampling_decision_timer_latency");
    page.about(
        Kind::Histogram,
        &name,
        "ms",
        "times of decisions on what was due",
    );
    for (pipeline, id, tail) in view.tails.iter().filter(|(_, id, _)| is_sampling(id)) {
        let labels = [("pipeline", pipeline.as_str()), ("processor", id)];
        page.counted(&labels, &tail.decision_times);
    }
}

const SAMPLING: &str = "otelcol_processor_tail_sampling_";
const SAMPLED: Labels<'_> = &[("sampled", "true"), ("decision", "sampled")];
const NOT_SAMPLED: Labels<'_> = &[("sampled", "false"), ("decision", "not_sampled")];
const DROPPED: Labels<'_> = &[("sampled", "false"), ("decision", "dropped")];

#[rustfmt::skip]
const SAMPLING_ROWS: &[Row<'_>] = &[
    ("global_count_traces_sampled", Kind::Counter, "{traces}", SAMPLED, |sum| sum.counters.traces_sampled),
    ("global_count_traces_sampled", Kind::Counter, "{traces}", NOT_SAMPLED, |sum| sum.counters.traces_not_sampled),
    ("global_count_traces_sampled", Kind::Counter, "{traces}", DROPPED, |sum| sum.counters.traces_dropped),
    ("early_releases_from_cache_decision", Kind::Counter, "{spans}", &[("sampled", "true")], |sum| sum.counters.late_sampled),
    ("early_releases_from_cache_decision", Kind::Counter, "{spans}", &[("sampled", "false")], |sum| sum.counters.late_not_sampled),
    ("new_trace_id_received", Kind::Counter, "{traces}", &[], |sum| sum.counters.new_traces),
    ("sampling_traces_on_memory", Kind::Gauge, "{traces}", &[], |sum| sum.pending_traces),
    ("sampling_trace_dropped_too_early", Kind::Counter, "{traces}", &[], |sum| sum.counters.traces_dropped_early),
    ("traces_dropped_too_large", Kind::Counter, "{traces}", &[], |sum| sum.counters.traces_too_large),
    ("sampling_policy_evaluation_error", Kind::Counter, "{errors}", &[], |sum| {
        sum.policies.iter().map(|(_, votes)| votes.errors).sum()
    }),
];

fn histograms(sums: &Sums<'_>, page: &mut Sheet, name: &str, of: fn(&Sum) -> &Ages) {
    let name = format!("{SAMPLING}{name}");
    page.about(Kind::Histogram, &name, "s", "as in the Collector");
    for (pipeline, id, sum) in sums {
        let ages = of(sum);
        let labels = [("pipeline", *pipeline), ("processor", *id)];
        page.buckets(&labels, (&Ages::BOUNDS_S, &ages.counts), ages.sum_s);
    }
}

/// A metric of policies: its name, its unit, further labels, and its value.
type PolicyRow<'a> = (&'a str, &'static str, Labels<'a>, fn(&Votes) -> u64);

#[rustfmt::skip]
const POLICY_ROWS: &[PolicyRow<'_>] = &[
    ("count_traces_sampled", "{traces}", SAMPLED, |votes| votes.sampled.traces),
    ("count_traces_sampled", "{traces}", NOT_SAMPLED, |votes| votes.not_sampled.traces),
    ("count_traces_sampled", "{traces}", DROPPED, |votes| votes.dropped.traces),
    ("count_spans_sampled", "{spans}", SAMPLED, |votes| votes.sampled.spans),
    ("count_spans_sampled", "{spans}", NOT_SAMPLED, |votes| votes.not_sampled.spans),
    ("count_spans_sampled", "{spans}", DROPPED, |votes| votes.dropped.spans),
    ("sampling_policy_execution_count", "{executions}", &[], |votes| votes.evaluations),
];

fn policies(sums: &Sums<'_>, page: &mut Sheet) {
    let mut last = "";
    for (name, unit, more, value) in POLICY_ROWS {
        if *name != last {
            let full = format!("{SAMPLING}{name}");
            page.about(Kind::Counter, &full, unit, "as in the Collector");
            last = name;
        }
        for (pipeline, id, sum) in sums {
            for (policy, votes) in &sum.policies {
                let own = [
                    ("pipeline", *pipeline),
                    ("processor", *id),
                    ("policy", policy),
                ];
                let labels: Vec<_> = own.iter().chain(*more).copied().collect();
                page.point(&labels, value(votes));
            }
        }
    }
}

#[rustfmt::skip]
const GROUPING_ROWS: &[Row<'_>] = &[
    ("conf_num_traces", Kind::Gauge, "1", &[], |sum| sum.traces_max),
    ("num_traces_in_memory", Kind::Gauge, "1", &[], |sum| sum.pending_traces),
    ("traces_released", Kind::Counter, "1", &[], |sum| sum.counters.traces_sampled),
    ("spans_released", Kind::Counter, "1", &[], |sum| sum.released),
    ("traces_evicted", Kind::Counter, "1", &[], |sum| sum.counters.traces_early),
];

fn group_by_trace(sums: &Sums<'_>, page: &mut Sheet) {
    if !sums.is_empty() {
        numbers(sums, page, "otelcol_processor_groupbytrace_", GROUPING_ROWS);
    }
}
