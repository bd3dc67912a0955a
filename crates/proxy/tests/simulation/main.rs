//! The engine between simulated peers: thousands of whole-proxy lives, each decided by its seed.
//!
//! `SPANGATE_SEED=n` replays one with a trace, `SPANGATE_SEEDS=n` says how many run.

mod client;
mod driver;
mod http1;
mod kept_seeds;
mod logs;
mod plan;
mod queue;
mod random;
mod rules;
mod server;
mod setups;
mod stage;
mod tcp;
mod turns;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Lives of an ordinary test run.
const SEEDS: u64 = 20_000;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Runs a seed's life; a panic is a failure too.
fn check(seed: u64, setups: &[setups::Setup], verbose: bool) -> Result<(), String> {
    let outcome = catch_unwind(AssertUnwindSafe(|| turns::live(seed, setups, verbose)));
    let outcome = outcome.unwrap_or_else(|_| Err("a panic".into()));
    let replay =
        format!("SPANGATE_SEED={seed} cargo test -p spangate-proxy --test simulation lives");
    outcome.map_err(|error| format!("seed {seed}: {error}\nreplay: {replay}"))
}

#[test]
fn lives() {
    let setups = setups::all();
    if let Some(seed) = number("SPANGATE_SEED") {
        return check(seed, &setups, true).unwrap_or_else(|error| panic!("{error}"));
    }
    for (seed, found) in kept_seeds::KEPT {
        check(*seed, &setups, false).unwrap_or_else(|error| panic!("kept for: {found}\n{error}"));
    }
    let seeds = number("SPANGATE_SEEDS").unwrap_or(SEEDS);
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let failed = AtomicBool::new(false);
    let failures: Vec<String> = std::thread::scope(|scope| {
        let work = |thread: u64| {
            let (failed, setups) = (&failed, &setups);
            move || {
                let seeds = (thread..seeds)
                    .step_by(threads as usize)
                    .take_while(|_| !failed.load(Relaxed));
                let failure = seeds
                    .map(|seed| check(seed, setups, false))
                    .find_map(Result::err);
                failed.fetch_or(failure.is_some(), Relaxed);
                failure
            }
        };
        let workers: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(work(thread)))
            .collect();
        workers
            .into_iter()
            .filter_map(|worker| worker.join().expect("no panic outside of a life"))
            .collect()
    });
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
