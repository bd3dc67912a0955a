//! Where every accepted span is. At every moment: accepted = exported + dropped + pending + in
//! export.

/// Why a span left that no decision dropped and that was not exported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Its trace became larger than `maximum_trace_size_bytes`.
    TooLarge,
    /// The process ended, and pending traces were to be dropped.
    Shutdown,
    /// The back end refused it for good.
    ExportRefused,
    /// The exporter gave up on it.
    ExportFailed,
}

/// How many causes there are.
const CAUSES: usize = 4;

impl Cause {
    /// All of them.
    pub const ALL: [Cause; CAUSES] = [
        Cause::TooLarge,
        Cause::Shutdown,
        Cause::ExportRefused,
        Cause::ExportFailed,
    ];
}

/// The account of one shard, in spans.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Taken from senders.
    pub accepted: u64,
    /// Acknowledged by the back end.
    pub exported: u64,
    /// Waiting for a decision.
    pub pending: u64,
    /// Kept, and not settled by the exporter yet.
    pub in_export: u64,
    /// Decided against: no policy sampled the trace.
    pub not_sampled: u64,
    /// Decided against by a policy that drops, by the policy's number.
    pub dropped: Vec<u64>,
    /// Came after their trace was decided against.
    pub late_dropped: u64,
    /// Lost for another cause.
    pub lost: [u64; CAUSES],
}

impl Account {
    /// Spans that were lost for a cause.
    #[must_use]
    pub fn lost_to(&self, cause: Cause) -> u64 {
        self.lost[cause as usize]
    }

    /// Accepted less where they are: 0.
    #[must_use]
    pub fn difference(&self) -> i128 {
        let dropped: u64 = self.dropped.iter().chain(&self.lost).sum();
        let known =
            self.exported + self.pending + self.in_export + self.not_sampled + self.late_dropped;
        i128::from(self.accepted) - i128::from(known) - i128::from(dropped)
    }

    pub(crate) fn arrive(&mut self, spans: u64) {
        self.accepted += spans;
        self.pending += spans;
    }

    pub(crate) fn keep(&mut self, spans: u64) {
        self.pending -= spans;
        self.in_export += spans;
    }

    pub(crate) fn not_sampled(&mut self, spans: u64) {
        self.pending -= spans;
        self.not_sampled += spans;
    }

    pub(crate) fn drop_by(&mut self, policy: u16, spans: u64) {
        let policy = usize::from(policy);
        if self.dropped.len() <= policy {
            self.dropped.resize(policy + 1, 0);
        }
        self.pending -= spans;
        self.dropped[policy] += spans;
    }

    pub(crate) fn lose(&mut self, cause: Cause, spans: u64) {
        self.pending -= spans;
        self.lost[cause as usize] += spans;
    }

    pub(crate) fn late_kept(&mut self, spans: u64) {
        self.accepted += spans;
        self.in_export += spans;
    }

    pub(crate) fn late_dropped(&mut self, spans: u64) {
        self.accepted += spans;
        self.late_dropped += spans;
    }

    /// The exporter settled kept spans; more than there are is a mistake of its own, which is not
    /// taken into the account.
    pub(crate) fn settle(&mut self, spans: u64, lost: Option<Cause>) {
        debug_assert!(spans <= self.in_export, "what is settled was in export");
        let spans = spans.min(self.in_export);
        self.in_export -= spans;
        match lost {
            None => self.exported += spans,
            Some(cause) => self.lost[cause as usize] += spans,
        }
    }
}

/// A histogram of ages, in whole seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ages {
    /// Ages up to each of [`Ages::BOUNDS_S`], and above.
    pub counts: [u64; Ages::BOUNDS_S.len() + 1],
    /// All of them.
    pub sum_s: u64,
}

impl Ages {
    /// Upper bounds, the defaults of OpenTelemetry's SDKs.
    pub const BOUNDS_S: [u64; 15] = [
        0, 5, 10, 25, 50, 75, 100, 250, 500, 750, 1000, 2500, 5000, 7500, 10_000,
    ];

    pub(crate) fn add(&mut self, age_ns: u64) {
        let age_s = age_ns / 1_000_000_000;
        let at = Ages::BOUNDS_S.iter().position(|bound| age_s <= *bound);
        self.counts[at.unwrap_or(Ages::BOUNDS_S.len())] += 1;
        self.sum_s += age_s;
    }
}

/// What happened, beside the account: the numbers behind the Collector's metrics of `tail_sampling`
/// and `groupbytrace`. What single policies voted is in [`crate::policy::Program::votes`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// `new_trace_id_received`
    pub new_traces: u64,
    /// `global_count_traces_sampled{decision="sampled"}`; groupbytrace: `traces_released`.
    pub traces_sampled: u64,
    /// The same, `not_sampled`.
    pub traces_not_sampled: u64,
    /// The same, `dropped`.
    pub traces_dropped: u64,
    /// Traces that were decided before their time, on the spans that had come, because `num_traces`
    /// was reached; groupbytrace: `traces_evicted`.
    pub traces_early: u64,
    /// Those of them that were not kept: `sampling_trace_dropped_too_early`.
    pub traces_dropped_early: u64,
    /// `traces_dropped_too_large`
    pub traces_too_large: u64,
    /// `early_releases_from_cache_decision{sampled="true"}`: late spans that were kept.
    pub late_sampled: u64,
    /// The same, `false`.
    pub late_not_sampled: u64,
    /// `sampling_late_span_age`, of spans; as exact as the memory of decisions, which knows when a
    /// generation began.
    pub late_span_ages: Ages,
    /// `sampling_trace_removal_age`, of traces.
    pub trace_removal_ages: Ages,
    /// Requests that were accepted.
    pub requests: u64,
    /// Requests that were refused for lack of room, and their bytes.
    pub refused_requests: u64,
    /// See above.
    pub refused_bytes: u64,
    /// Requests that were malformed.
    pub malformed_requests: u64,
    /// Decisions that the memory had to forget early, because their place was full.
    pub decisions_forgotten: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_always_adds_up() {
        let mut account = Account::default();
        account.arrive(100);
        account.keep(10);
        account.not_sampled(20);
        account.drop_by(3, 5);
        account.lose(Cause::TooLarge, 7);
        account.late_kept(2);
        account.late_dropped(4);
        account.settle(6, None);
        account.settle(3, Some(Cause::ExportFailed));
        assert_eq!(account.difference(), 0);
        assert_eq!(
            (account.accepted, account.pending, account.in_export),
            (106, 58, 3)
        );
        assert_eq!(account.lost_to(Cause::ExportFailed), 3);
    }

    #[test]
    fn ages_go_to_their_bucket() {
        let mut ages = Ages::default();
        for age_s in [0, 5, 6, 20_000] {
            ages.add(age_s * 1_000_000_000 + 5);
        }
        assert_eq!(
            (
                ages.counts[0],
                ages.counts[1],
                ages.counts[2],
                ages.counts[15]
            ),
            (1, 1, 1, 1)
        );
        assert_eq!(ages.sum_s, 20_011);
    }
}
