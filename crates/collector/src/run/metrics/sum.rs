//! The numbers of a sampler over all of its shards.

use tail::account::{Ages, Cause, Counters};
use tail::shard::Shard;

use crate::run::process::tail::Tail;

/// The numbers of all shards of a component.
#[derive(Default)]
pub(crate) struct Sum {
    pub pending_traces: u64,
    pub pending_spans: u64,
    pub in_export: u64,
    pub not_sampled: u64,
    pub late_dropped: u64,
    pub too_large: u64,
    pub counters: Counters,
    pub policies: Vec<(String, tail::policy::Votes)>,
}

impl Sum {
    /// Those of a component.
    pub fn of(tail: &Tail) -> Sum {
        let mut sum = Sum::default();
        tail.each_shard(|shard| sum.add(shard));
        sum
    }

    fn add(&mut self, shard: &Shard) {
        let (account, counters) = (shard.account(), shard.counters());
        self.pending_traces += shard.pending_traces();
        self.pending_spans += account.pending;
        self.in_export += account.in_export;
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

fn add_votes(sum: &mut tail::policy::Votes, votes: &tail::policy::Votes) {
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
