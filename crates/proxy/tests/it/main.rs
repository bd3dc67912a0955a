//! The engine between simulated peers: thousands of whole-proxy lives, each decided by its seed.
//!
//! `SPANGATE_SEED=n` replays one with a trace (`SPANGATE_SETUP=name` in that configuration),
//! `SPANGATE_SEEDS=n` says how many run.

mod allocations;
mod client;
mod driver;
mod filters;
mod http1;
mod kept_seeds;
mod layers;
mod life;
mod logs;
mod plan;
mod queue;
mod random;
mod rules;
mod server;
mod setups;
mod stage;
mod tcp;
mod traces;
mod wire;
mod wire_h2;
mod worker;

use setups::Setup;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Lives of an ordinary test run.
const SEEDS: u64 = 30_000;

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Runs a seed's life; a panic is a failure too.
fn check(seed: u64, setup: &Setup, verbose: bool) -> Result<(), String> {
    let outcome = catch_unwind(AssertUnwindSafe(|| life::live(seed, setup, verbose)));
    let outcome = outcome.unwrap_or_else(|_| Err("a panic".into()));
    let replay = format!(
        "SPANGATE_SETUP='{}' SPANGATE_SEED={seed} cargo test -p spangate-proxy --test it lives",
        setup.name
    );
    outcome.map_err(|error| format!("seed {seed}: {}: {error}\nreplay: {replay}", setup.name))
}

/// The configuration of that name.
fn named<'a>(setups: &'a [Setup], name: &str) -> &'a Setup {
    let found = setups.iter().find(|setup| setup.name == name);
    found.unwrap_or_else(|| panic!("there is no configuration {name:?}"))
}

/// Panics that a life injects are no news.
fn mute_injected_panics() {
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if panic.payload().downcast_ref() != Some(&driver::INJECTED) {
            told(panic);
        }
    }));
}

#[test]
fn lives() {
    mute_injected_panics();
    let setups = setups::all();
    // The configurations take turns: a kept seed names its own, which may move.
    let of = |seed: u64| &setups[(seed % setups.len() as u64) as usize];
    if let Some(seed) = number("SPANGATE_SEED") {
        let setup = std::env::var("SPANGATE_SETUP");
        let setup = setup.map_or_else(|_| of(seed), |name| named(&setups, &name));
        return check(seed, setup, true).unwrap_or_else(|error| panic!("{error}"));
    }
    for (name, seed, found) in kept_seeds::KEPT {
        check(*seed, named(&setups, name), false)
            .unwrap_or_else(|error| panic!("kept for: {found}\n{error}"));
    }
    let seeds = number("SPANGATE_SEEDS").unwrap_or(SEEDS);
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let failed = AtomicBool::new(false);
    let failures: Vec<String> = std::thread::scope(|scope| {
        let work = |thread: u64| {
            let (failed, of) = (&failed, &of);
            move || {
                let seeds = (thread..seeds)
                    .step_by(threads as usize)
                    .take_while(|_| !failed.load(Relaxed));
                let mut outcomes = seeds.map(|seed| check(seed, of(seed), false));
                let failure = outcomes.find_map(Result::err);
                failed.fetch_or(failure.is_some(), Relaxed);
                failure
            }
        };
        let workers: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(work(thread)))
            .collect();
        let failures = workers
            .into_iter()
            .filter_map(|worker| worker.join().expect("no panic outside of a life"));
        failures.collect()
    });
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    if seeds >= SEEDS {
        assert_eq!(filters::idle(), [], "filters that recorded nothing");
        let moved = driver::MOVED.load(Relaxed);
        assert!(moved > 100, "{moved} connections moved between workers");
    }
}
