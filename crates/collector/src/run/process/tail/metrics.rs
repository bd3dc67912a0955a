//! The metrics of `tail_sampling` and `groupbytrace`.

use tail::account::{Ages, Cause, Counters};
use tail::policy::Votes;
use tail::shard::Shard;

use super::Tail;
use crate::run::metrics::{Kind, Sheet};
use crate::run::part::PartName;

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

/// Adds the metrics of a component; of `tail_sampling` if it `samples`, else of `groupbytrace`.
pub(super) fn write(tail: &Tail, samples: bool, name: &PartName, sheet: &mut Sheet) {
    let sum = Sum::of(tail);
    let mut page = Page { name, sheet };
    page.spans(&sum);
    if samples {
        page.rows(SAMPLING, SAMPLING_ROWS, &sum);
        page.ages("sampling_late_span_age", &sum.counters.late_span_ages);
        page.ages(
            "sampling_trace_removal_age",
            &sum.counters.trace_removal_ages,
        );
        page.policies(&sum);
        page.decision_times(tail);
    } else {
        page.rows("otelcol_processor_groupbytrace_", GROUPING_ROWS, &sum);
    }
}

/// A metric: its name, its kind, its unit, further labels, and its value.
type Row<'a> = (&'a str, Kind, &'static str, Labels<'a>, fn(&Sum) -> u64);
type Labels<'a> = &'a [(&'a str, &'a str)];

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

#[rustfmt::skip]
const GROUPING_ROWS: &[Row<'_>] = &[
    ("conf_num_traces", Kind::Gauge, "1", &[], |sum| sum.traces_max),
    ("num_traces_in_memory", Kind::Gauge, "1", &[], |sum| sum.pending_traces),
    ("traces_released", Kind::Counter, "1", &[], |sum| sum.counters.traces_sampled),
    ("spans_released", Kind::Counter, "1", &[], |sum| sum.released),
    ("traces_evicted", Kind::Counter, "1", &[], |sum| sum.counters.traces_early),
];

/// Where the metrics of one component are written.
struct Page<'a> {
    name: &'a PartName,
    sheet: &'a mut Sheet,
}

impl Page<'_> {
    fn spans(&mut self, sum: &Sum) {
        let spans = [
            ("pending", sum.pending_spans),
            ("in_export", sum.in_export),
            ("not_sampled", sum.not_sampled),
            ("late_dropped", sum.late_dropped),
            ("too_large", sum.too_large),
        ];
        let (name, help) = ("spangate_tail_spans", "spans by what has become of them");
        self.sheet.about(Kind::Gauge, name, "{spans}", help);
        let [pipeline, processor] = self.name.labels();
        for (state, value) in spans {
            let labels = [pipeline, processor, ("state", state)];
            self.sheet.point(&labels, value);
        }
        let name = "spangate_tail_traces_decided_early";
        let help = "traces decided before their time, because num_traces was reached";
        self.sheet.about(Kind::Counter, name, "{traces}", help);
        let early = sum.counters.traces_early;
        self.sheet.point(&[pipeline, processor], early);
    }

    fn rows(&mut self, prefix: &str, rows: &[Row<'_>], sum: &Sum) {
        for (metric, kind, unit, more, value) in rows {
            let metric = format!("{prefix}{metric}");
            self.sheet
                .about(*kind, &metric, unit, "as in the Collector");
            self.point(more, value(sum));
        }
    }

    /// A value with the labels of the component and more.
    fn point(&mut self, more: Labels<'_>, value: u64) {
        let own = self.name.labels();
        let labels: Vec<_> = own.iter().chain(more).copied().collect();
        self.sheet.point(&labels, value);
    }

    fn ages(&mut self, metric: &str, ages: &Ages) {
        let metric = format!("{SAMPLING}{metric}");
        let help = "as in the Collector";
        self.sheet.about(Kind::Histogram, &metric, "s", help);
        let counts = (&Ages::BOUNDS_S[..], &ages.counts[..]);
        self.sheet.buckets(&self.name.labels(), counts, ages.sum_s);
    }

    fn policies(&mut self, sum: &Sum) {
        for (metric, unit, more, value) in POLICY_ROWS {
            let metric = format!("{SAMPLING}{metric}");
            let help = "as in the Collector";
            self.sheet.about(Kind::Counter, &metric, unit, help);
            for (policy, votes) in &sum.policies {
                let policy = [("policy", policy.as_str())];
                let more: Vec<_> = policy.iter().chain(*more).copied().collect();
                self.point(&more, value(votes));
            }
        }
    }

    fn decision_times(&mut self, tail: &Tail) {
        let metric = format!("{SAMPLING}sampling_decision_timer_latency");
        let help = "times of decisions on what was due";
        self.sheet.about(Kind::Histogram, &metric, "ms", help);
        let labels = self.name.labels();
        self.sheet.counted(&labels, &tail.decision_times);
    }
}
