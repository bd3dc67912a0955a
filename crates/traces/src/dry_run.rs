//! A dry run: evaluates other policies on the stored traces.
//!
//! The policies are the sampler's own ([`tail::policy`]). Each trace is decided as if it were
//! complete, at its end, and traces are decided in the order of their ends. So policies that count
//! spans or bytes per second see them like the sampler does. A probabilistic policy uses the
//! trace's identifier: every run keeps the same traces.

use std::collections::HashMap;

use otlp::scan::{Around, Slots};
use otlp::scan::{Spot, span};
use otlp::write::varint_len;
use tail::policy::{Fate as Verdict, Program, Refusal, Trace as Subject, Votes};
use tail::settings::TailSampling;
use tail::store::Entry;

use crate::answer::{DryRun, PolicyOutcome};
use crate::intern::part;
use crate::store::{Fate, Held, Store, Trace};

/// Traces that arrived earlier are not evaluated.
pub const WINDOW_MS: u64 = 10 * 60 * 1000;
/// Approximate number of spans that one dry run evaluates, from the newest traces on.
pub const SPANS_MAX: u64 = 1_000_000;
/// Spans that are evaluated before the lock is released for others.
const SLICE_SPANS: u64 = 4096;
/// Most kept traces in the answer.
const SAMPLE_MAX: usize = 20;

/// The input of policies for a trace.
struct Evaluated {
    id: [u8; 16],
    bits: u64,
    /// Further words of bits, if the program has more than one.
    more: Vec<u64>,
    spans: u64,
    bytes: u64,
    end_ns: u64,
    came_ms: u64,
    fate: Fate,
}

/// See [`Store::dry_run`].
pub(crate) fn dry_run(
    store: &Store,
    settings: &TailSampling,
    now_ms: u64,
) -> Result<DryRun, Refusal> {
    // Shards divide rates; there is one shard here.
    let settings = TailSampling {
        shards: 1,
        ..settings.clone()
    };
    let mut program = Program::new(&settings)?;
    let (mut traces, is_cut) = evaluate(store, &program, now_ms.saturating_sub(WINDOW_MS));
    let since_ms = traces.iter().map(|trace| trace.came_ms).min();
    traces.sort_by_key(|trace| (trace.end_ns, trace.id));
    let mut run = DryRun {
        traces: traces.len() as u64,
        kept: 0,
        spans: traces.iter().map(|trace| trace.spans).sum(),
        kept_spans: 0,
        bytes: traces.iter().map(|trace| trace.bytes).sum(),
        kept_bytes: 0,
        running_kept: traces.iter().filter(|one| one.fate == Fate::Kept).count() as u64,
        undecided: traces
            .iter()
            .filter(|one| one.fate == Fate::Undecided)
            .count() as u64,
        policies: Vec::new(),
        since_ms: since_ms.unwrap_or(now_ms),
        is_cut,
        sample: Vec::new(),
    };
    let kept = decide(&mut program, &traces, &mut run);
    let held = store.held();
    let newest = kept.iter().rev().filter_map(|id| held.by_id(id));
    run.sample = newest
        .take(SAMPLE_MAX)
        .map(|trace| held.row(trace))
        .collect();
    Ok(run)
}

/// Decides on all traces in this order. Returns the kept ones in the same order.
fn decide(program: &mut Program, traces: &[Evaluated], run: &mut DryRun) -> Vec<[u8; 16]> {
    let mut kept = Vec::new();
    let mut kept_by: HashMap<u16, u64> = HashMap::new();
    for trace in traces {
        let subject = Subject {
            id: &trace.id,
            bits: trace.bits,
            more: &trace.more,
            spans: trace.spans,
            bytes: trace.bytes,
        };
        let decision = program.decide(&subject, trace.end_ns);
        if decision.fate == Verdict::Sampled {
            run.kept += 1;
            run.kept_spans += trace.spans;
            run.kept_bytes += trace.bytes;
            kept.push(trace.id);
            if let Some(policy) = decision.policy {
                *kept_by.entry(policy).or_default() += 1;
            }
        }
    }
    let outcome = |(number, (name, votes)): (u16, (&str, &Votes))| PolicyOutcome {
        name: name.to_owned(),
        kept: kept_by.get(&number).copied().unwrap_or(0),
        sampled: votes.sampled.traces,
        dropped: votes.dropped.traces,
        errors: votes.errors,
    };
    run.policies = (0..).zip(program.votes()).map(outcome).collect();
    kept
}

/// The traces that arrived since then, from the newest on, read in slices. Returns also whether
/// some were skipped.
fn evaluate(store: &Store, program: &Program, since_ms: u64) -> (Vec<Evaluated>, bool) {
    let mut evaluated = Vec::new();
    let mut spans = 0;
    let mut next = store.held().numbers().end;
    loop {
        store.give_way();
        let held = store.held();
        let mut evaluator = Evaluator::new(program, &held);
        let slice_end = spans + SLICE_SPANS;
        while spans < slice_end {
            let Some(number) = next.checked_sub(1) else {
                return (evaluated, false);
            };
            let Some(trace) = held.by_number(number) else {
                return (evaluated, false);
            };
            if trace.came_ms < since_ms {
                return (evaluated, false);
            }
            if spans >= SPANS_MAX {
                return (evaluated, true);
            }
            next = number;
            if !trace.spans.is_empty() {
                spans += trace.spans.len() as u64;
                evaluated.push(evaluator.evaluate(trace));
            }
        }
    }
}

/// Reads traces for a program, while the store does not change.
struct Evaluator<'p, 'h> {
    program: &'p Program,
    held: &'h Held,
    slots: Slots<'h, 'p>,
    /// Bits of resources and their further words, by the number of the header.
    resources: HashMap<u32, (u64, Vec<u64>)>,
}

impl<'p, 'h> Evaluator<'p, 'h> {
    fn new(program: &'p Program, held: &'h Held) -> Evaluator<'p, 'h> {
        Evaluator {
            program,
            held,
            slots: Slots::new(program.matcher().keys()),
            resources: HashMap::new(),
        }
    }

    fn evaluate(&mut self, trace: &'h Trace) -> Evaluated {
        let matcher = self.program.matcher();
        let mut entry = Entry::new(trace.id, 0);
        let mut more = vec![0; matcher.words()];
        let mut bytes = 0;
        let mut last_header = None;
        for place in &trace.spans {
            let (message, number) = trace.span(place);
            let header = self.held.shared.headers.text(number);
            let around = Around {
                resource: part(header, 0),
                scope: part(header, 1),
            };
            // The size is computed like in the sampler: a header counts once for consecutive spans.
            bytes += message.len() + 1 + varint_len(message.len() as u64);
            if last_header != Some(number) {
                bytes += header.len();
                last_header = Some(number);
            }
            self.slots.clear();
            let Ok(span) = span(message, &mut self.slots) else {
                continue;
            };
            let resources = &mut self.resources;
            let resource = resources.entry(number);
            let (resource, words) = resource.or_insert_with(|| {
                let mut words = Vec::new();
                matcher.resource_words(around.resource, &mut words);
                (matcher.resource_bits(around.resource), words)
            });
            let bits = matcher.span_bits(&span, &self.slots, around) | *resource;
            matcher.arrive(&mut entry, bits, span.start_ns, span.end_ns);
            matcher.arrive_more((&mut more, &entry), (&span, &self.slots), around, words);
        }
        Evaluated {
            id: trace.id,
            bits: entry.bits,
            more,
            spans: trace.spans.len() as u64,
            bytes: bytes as u64,
            end_ns: trace.end_ns,
            came_ms: trace.came_ms,
            fate: trace.fate,
        }
    }
}
