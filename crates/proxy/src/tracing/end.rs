//! The end of a stream: its last events, the sampling decision, and the export of kept records.

use sample::Scope;
use telemetry::program::{Event, Program};
use telemetry::record::Kept;
use telemetry::sampling::{Policy, Rule};

use super::Worker;
use super::fault::Cause;
use crate::logging::Scene;
use crate::stream::{Attached, Stream};

/// The decision about a stream's spans.
#[derive(Clone, Copy, Debug)]
enum Decision<'p> {
    /// Kept as the sampler decided at their start.
    Sampled,
    /// Kept, because a remote parent is sampled.
    Parent,
    /// All kept by this policy.
    Policy(&'p Policy),
    Dropped,
}

/// The attribute of spans that are kept because of their parent: a `KeyValue`,
/// `tailsampling.policy` = `parent`.
const PARENT_MARK: &[u8] = b"\x0a\x13tailsampling.policy\x12\x08\x0a\x06parent";
/// Thresholds have 56 bits; threshold 0 keeps all.
const THRESHOLD_ALL: u64 = 0;

impl Worker {
    /// A stream has ended.
    pub fn end(&mut self, scene: &mut Scene<'_>, stream: &mut Stream) {
        self.kept = None;
        if !stream.tracing.attached.is_empty() {
            self.end_traces(scene, stream);
        } else if !stream.tracing.begun && (stream.txn.bytes_in > 0 || stream.unread_bytes > 0) {
            self.end_unread(scene, stream);
        }
    }

    /// Creates a span for a request that was invalid or incomplete.
    #[cold]
    fn end_unread(&mut self, scene: &mut Scene<'_>, stream: &mut Stream) {
        let filters = scene
            .eval
            .runtime_config
            .tracing
            .of_frontend(stream.frontend);
        let follows = |filter: &u32| {
            let program = &scene.eval.runtime_config.config.otel[*filter as usize].program;
            program.follows_requests
        };
        if stream.txn.is_http && stream.txn.status >= 400 && filters.iter().any(follows) {
            self.begin(scene, stream);
            self.end_traces(scene, stream);
        }
    }

    #[inline(never)]
    fn end_traces(&mut self, scene: &mut Scene<'_>, stream: &mut Stream) {
        self.trace(scene, stream, Event::ClientSessionEnd);
        if stream.tracing.server_began {
            self.trace(scene, stream, Event::ServerSessionEnd)
        } else {
            self.trace(scene, stream, Event::ServerUnavailable)
        }
        self.trace(scene, stream, Event::StreamStop);
        stream.tracing.events = 0;
        while let Some(attached) = stream.tracing.attached.pop() {
            let Some(mut attached) = attached else {
                continue;
            };
            if scene.eval.runtime_config.config.otel[attached.filter]
                .program
                .follows_requests
            {
                let at = scene.eval.io.clock();
                Worker::end_request(stream, &mut attached, at);
            }
            self.end_trace(scene, stream, &mut attached);
            self.recycle(attached);
        }
    }

    fn end_trace(&mut self, scene: &mut Scene<'_>, stream: &Stream, attached: &mut Attached) {
        let program = &scene.eval.runtime_config.config.otel[attached.filter].program;
        let decision = if program.policies.is_empty() {
            Decision::Sampled
        } else {
            self.decide(scene, stream, program, attached)
        };
        if attached.tape.is_on() {
            if matches!(decision, Decision::Dropped) {
                return self.drop_taped(scene, attached);
            }
            self.play(scene, attached);
        }
        if program.follows_requests && !matches!(decision, Decision::Dropped) {
            self.describe_request(scene, stream, attached);
        }
        let trace = &attached.trace;
        let end_mono_ns = scene.eval.io.clock().mono_ns;
        let outbox = &mut self.outboxes[attached.filter];
        let before = (outbox.spans.records, outbox.logs.records);
        let kept = match decision {
            Decision::Dropped => None,
            Decision::Sampled => Some(Kept::default()),
            Decision::Parent => Some(Kept {
                policy: Some(PARENT_MARK),
                threshold: None,
            }),
            Decision::Policy(policy) => Some(Kept {
                policy: Some(&policy.mark),
                threshold: Some(match policy.rule {
                    Rule::Probability(threshold) => threshold,
                    _ => THRESHOLD_ALL,
                }),
            }),
        };
        if let Some(kept) = kept {
            trace.encode(program, kept, end_mono_ns, outbox);
            let recorded = trace.spans().iter().find(|span| span.is_recorded);
            self.kept = recorded.map(|span| span.context.trace_id).or(self.kept);
        }
        let counts = &mut outbox.counts;
        let (spans, logs) = (trace.spans().len() as u64, trace.log_count() as u64);
        let over = (
            u64::from(trace.spans_dropped),
            u64::from(trace.logs_dropped),
        );
        counts.spans_started += spans + over.0;
        counts.spans_over_limit += over.0;
        counts.spans_sampled_out += spans - u64::from(outbox.spans.records - before.0);
        counts.logs_started += logs + over.1;
        counts.logs_over_limit += over.1;
        counts.logs_sampled_out += logs - u64::from(outbox.logs.records - before.1);
        self.schedule_flush(scene, attached.filter);
        if attached.trace.arena.is_cut() {
            self.trace_fault(scene, attached, Cause::TextsCut);
        }
    }

    /// Counts the records of a stream that is not kept; they were never created.
    fn drop_taped(&mut self, scene: &Scene<'_>, attached: &Attached) {
        let counts = &mut self.outboxes[attached.filter].counts;
        let (spans, logs) = (
            u64::from(attached.tape.spans()),
            u64::from(attached.tape.logs()),
        );
        counts.spans_started += spans;
        counts.spans_sampled_out += spans;
        counts.logs_started += logs;
        counts.logs_sampled_out += logs;
        self.schedule_flush(scene, attached.filter);
    }

    /// Evaluates the policies in order.
    fn decide<'p>(
        &mut self,
        scene: &Scene<'_>,
        stream: &Stream,
        program: &'p Program,
        attached: &mut Attached,
    ) -> Decision<'p> {
        if attached.tape.is_on() {
            if attached.tape.spans() == 0 {
                return Decision::Dropped;
            }
            let first = attached.tape.first_trace(|| self.ids.trace_id());
            return self.ask(scene, stream, program, Some(first.randomness()));
        }
        let spans = attached.trace.spans();
        let remote = spans.iter().find(|span| span.parent_is_remote);
        // The spans were started with the parent's sampled flag.
        let follows = remote.is_some_and(|span| span.context.is_sampled());
        if program.honours_parent && follows {
            return Decision::Parent;
        }
        let Some(first) = spans.first() else {
            return Decision::Dropped;
        };
        let drawn_elsewhere = program.honours_parent && remote.is_some();
        let randomness = first.context.trace_id.randomness();
        self.ask(
            scene,
            stream,
            program,
            (!drawn_elsewhere).then_some(randomness),
        )
    }

    /// The first policy that keeps a stream. `randomness`: the input of probabilistic policies;
    /// none where the remote caller has already made the probabilistic decision.
    fn ask<'p>(
        &self,
        scene: &Scene<'_>,
        stream: &Stream,
        program: &'p Program,
        randomness: Option<u64>,
    ) -> Decision<'p> {
        let chosen = scene.eval.with_scope(stream, true, |facts| {
            let keeps = |policy: &&Policy| {
                let condition = policy.condition.as_ref();
                condition.is_none_or(|condition| condition.matches(facts))
                    && match &policy.rule {
                        Rule::Probability(threshold) => {
                            randomness.is_some_and(|randomness| randomness >= *threshold)
                        }
                        rule => holds(rule, stream, facts),
                    }
            };
            program.policies.iter().find(keeps)
        });
        match chosen {
            Some(policy) => Decision::Policy(policy),
            None => Decision::Dropped,
        }
    }
}

/// Whether a rule keeps a stream.
fn holds(rule: &Rule, stream: &Stream, facts: &Scope<'_>) -> bool {
    let txn = &stream.txn;
    let [who, when, ..] = txn.termination;
    match rule {
        Rule::Always => true,
        Rule::Status(ranges) => ranges
            .iter()
            .any(|(first, last)| (*first..=*last).contains(&txn.status)),
        Rule::DurationMs(least_ms) => {
            let began = txn.timing.request_start.unwrap_or(txn.timing.start);
            facts.now.ms().saturating_sub(began.ms()) >= *least_ms
        }
        Rule::Retry => txn.retries > 0,
        Rule::Redispatch => txn.redispatched,
        Rule::Abort => matches!(who, b'C' | b'S' | b'D'),
        Rule::Timeout => matches!(who, b'c' | b's'),
        Rule::Termination(patterns) => patterns.iter().any(|pattern| {
            let fits = |wanted: u8, is: u8| {
                let is = if is == 0 { b'-' } else { is };
                wanted == b'*' || wanted == is
            };
            fits(pattern[0], who) && fits(pattern[1], when)
        }),
        Rule::FirstSeen(key, seen) => seen.is_first(hash(key, facts)),
        Rule::Rate(key, rates) => {
            let key = key.as_ref().map_or(0, |key| hash(key, facts));
            rates.take(key, facts.now.mono_ns)
        }
        Rule::Probability(_) => false,
    }
}

/// The hash of a key.
fn hash(key: &telemetry::program::Value, facts: &Scope<'_>) -> u64 {
    let mut buffer = sample::Bytes::buffer();
    key.append_text(facts, buffer.as_vec());
    sample::hashes::xxh64(&buffer, 0)
}
