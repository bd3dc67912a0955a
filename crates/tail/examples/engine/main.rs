//! How many spans a second one core takes, how many bytes a waiting span needs, and how late
//! decisions are.
//!
//! `cargo run --release -p spangate-tail --example engine -- [seconds of load] [spans/s] [wait s]
//! [templates 0/1] [hard 0/1] [segment MiB]`
//!
//! The load: 24 services with 2 instances each, 8 spans a trace over 4 services, 10 attributes,
//! about 434 bytes a span, batches of 512 spans of one resource; about a tenth of the traces is
//! kept. Hard spans have three attributes more, of which two never come again.
//!
//! Time is virtual: the engine is driven as fast as it goes, while its clock follows the load's
//! rate. With a rate of 0 its clock is the CPU time that it took itself: that is full load, and
//! decisions come late by all that was in their way.
#![allow(clippy::print_stdout, reason = "it is what it is for")]

mod load;
mod measure;

use load::Load;
use measure::{Late, Work, resident_bytes};
use spangate_tail::settings::{Policy, PolicyKind, SECOND_NS, StatusCodes, TailSampling};
use spangate_tail::shard::{Options, Shard};
use spangate_tail::store::Budget;
use std::sync::Arc;

/// Between two looks at what is due, and traces of one look, as the collector has it.
const TICK_NS: u64 = SECOND_NS / 100;
const TICK_TRACES_MAX: u64 = 1024;

fn settings(wait_s: u64) -> TailSampling {
    let policy = |name: &str, kind| Policy {
        name: name.to_owned(),
        kind,
    };
    let error = StatusCodes {
        error: true,
        ..StatusCodes::default()
    };
    TailSampling {
        policies: vec![
            policy(
                "share",
                PolicyKind::Probabilistic {
                    percentage: 5.0,
                    hash_salt: String::new(),
                },
            ),
            policy("errors", PolicyKind::StatusCode(error)),
            policy(
                "slow",
                PolicyKind::Latency {
                    threshold_ms: 2000,
                    upper_threshold_ms: 0,
                },
            ),
            policy(
                "gold",
                PolicyKind::StringAttribute {
                    key: "customer.tier".to_owned(),
                    values: vec!["gold".to_owned()],
                    regex: false,
                    invert: false,
                },
            ),
        ],
        decision_wait_ns: wait_s * SECOND_NS,
        // More than wait: none goes before its time.
        traces_max: 2_000_000,
        ..TailSampling::default()
    }
}

/// What was measured until segments were used again, and from then on.
#[derive(Default)]
struct Phase {
    accept: Work,
    tick: Work,
}

struct Run {
    shard: Shard,
    load: Load,
    phases: [Phase; 2],
    late: Late,
    kept: u64,
    out_bytes: u64,
    /// Bytes held, resident bytes, and waiting spans.
    held: (u64, u64, u64),
}

impl Run {
    /// CPU time of all that the engine did.
    fn spent_ns(&self) -> u64 {
        let phases = self.phases.iter();
        phases
            .map(|phase| phase.accept.all_ns + phase.tick.all_ns)
            .sum()
    }

    fn tick(&mut self, now_ns: u64, steady: bool) -> bool {
        let shard = &mut self.shard;
        let work = &mut self.phases[usize::from(steady)].tick;
        let (progress, took_ns) = work.measure(|| shard.tick(now_ns, TICK_TRACES_MAX));
        self.late.decided(progress.traces, now_ns + took_ns, steady);
        while let Some(batch) = shard.pop() {
            self.kept += batch.spans;
            self.out_bytes += batch.bytes.len() as u64;
            shard.acked(batch.spans, batch.bytes.len() as u64);
        }
        progress.more
    }

    /// Sends so much load.
    fn send(&mut self, load_s: u64, rate: u64, wait_s: u64) {
        let (mut next_tick_ns, mut now_ns) = (0, 0);
        let begin_bytes = resident_bytes();
        while now_ns < load_s * SECOND_NS {
            // From here on segments are used again.
            let steady = now_ns > (wait_s + 1) * SECOND_NS;
            let at = u128::from(self.load.sent()) * u128::from(SECOND_NS);
            now_ns = at
                .checked_div(rate.into())
                .map_or(self.spent_ns(), |at| at as u64);
            let (request, new) = self.load.next();
            let shard = &mut self.shard;
            let work = &mut self.phases[usize::from(steady)].accept;
            let (accepted, _) = work.measure(|| shard.accept(request, now_ns));
            work.spans += accepted.expect("room").spans;
            self.late.arrived(new, now_ns + wait_s * SECOND_NS);
            if now_ns >= next_tick_ns {
                let mut more = self.tick(now_ns, steady);
                while more && rate > 0 {
                    more = self.tick(now_ns, steady);
                }
                // What is left is done after the next request.
                next_tick_ns = if more { now_ns } else { now_ns + TICK_NS };
            }
            if steady && self.held.2 == 0 {
                let resident = resident_bytes().saturating_sub(begin_bytes);
                self.held = (
                    self.shard.held_bytes(),
                    resident,
                    self.shard.account().pending,
                );
            }
        }
    }

    fn report(&self) {
        let account = self.shard.account();
        assert_eq!(account.difference(), 0);
        let sent = self.load.sent();
        println!(
            "{sent} spans, {} kept ({:.1} %), {} B out",
            self.kept,
            self.kept as f64 * 100.0 / sent as f64,
            self.out_bytes
        );
        for (name, phase) in ["first", "steady"].iter().zip(&self.phases) {
            let spans = phase.accept.spans.max(1) as f64;
            let (accept, tick) = (phase.accept.all_ns as f64, phase.tick.all_ns as f64);
            println!(
                "{name}: {:.1} ns CPU a span (accept {:.1}, tick {:.1}), {:.2} M spans/s",
                (accept + tick) / spans,
                accept / spans,
                tick / spans,
                spans * 1e3 / (accept + tick)
            );
            println!("{name}: accept {}", phase.accept);
            println!("{name}: tick   {}", phase.tick);
        }
        println!("decisions late by {}", self.late);
        let (held, resident, waiting) = self.held;
        let each = |bytes: u64| bytes as f64 / waiting.max(1) as f64;
        println!(
            "{waiting} waiting spans: {:.1} B each held, {:.1} B resident",
            each(held),
            each(resident)
        );
    }
}

fn main() {
    let numbers: Vec<u64> = std::env::args()
        .skip(1)
        .filter_map(|arg| arg.parse().ok())
        .collect();
    let argument = |at: usize, default| numbers.get(at).copied().unwrap_or(default);
    let (load_s, rate, wait_s) = (argument(0, 20), argument(1, 400_000), argument(2, 5));
    let options = Options {
        segment_bytes: (argument(5, 4) as usize) << 20,
        templates: argument(3, 1) == 1,
        ..Options::default()
    };
    let budget = Arc::new(Budget::new(16 << 30));
    let mut run = Run {
        shard: Shard::tail_sampling(&settings(wait_s), options, budget).expect("policies"),
        load: Load::new(argument(4, 0) == 1),
        phases: Default::default(),
        late: Late::default(),
        kept: 0,
        out_bytes: 0,
        held: (0, 0, 0),
    };
    println!("{} B a span", run.load.span_bytes());
    run.send(load_s, rate, wait_s);
    run.report();
}
