//! The engine between simulated peers: thousands of whole-proxy lives, each decided by its seed.
//!
//! `SPANGATE_SEED=n` replays one with a trace, `SPANGATE_SEEDS=n` says how many run, and
//! `SPANGATE_SETUP=name` does so in one configuration (`load`, `age`: those under load, those of
//! hours).

mod age;
mod allocations;
mod client;
mod driver;
mod filters;
mod held;
mod http1;
mod kept_seeds;
mod layers;
mod life;
mod load;
mod logs;
mod plan;
mod queue;
mod quic;
mod rules;
mod server;
mod setups;
mod stage;
mod tcp;
mod traces;
mod udp;
mod wire;
mod wire_mux;
mod worker;

use setups::Setup;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Lives of an ordinary test run: those whose peers check every byte, those under load, and those
/// that last for hours.
const SEEDS: u64 = 30_000;
/// Of so many lives of the first kind, one is under load.
const LIVES_A_LOAD: u64 = 25;
/// Of so many, one lasts for hours.
const LIVES_AN_AGE: u64 = 300;
/// Of so many, one is reloaded in place now and then.
const LIVES_A_RELOADED: u64 = 10;
/// Of so many, one is with QUIC; of those, the same share is reloaded in place.
const LIVES_A_QUIC: u64 = 30;
/// The beginning of the name of such a life; the name of its configuration follows.
const RELOADED: &str = "reloaded ";

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// What a seed is the life of.
#[derive(Clone, Copy)]
enum Kind<'a> {
    /// A few clients with all that can happen to them, in this configuration.
    Checked(&'a Setup),
    /// The same, with reloads in place.
    Reloaded(&'a Setup),
    /// Transfers without end beside hostile peers.
    Load,
    /// Hours of a little of everything.
    Age,
}

impl<'a> Kind<'a> {
    /// By the name that a replay gives.
    fn named(setups: &'a [Setup], name: &str) -> Kind<'a> {
        match name {
            load::NAME => Kind::Load,
            age::NAME => Kind::Age,
            _ => match name.strip_prefix(RELOADED) {
                Some(name) => Kind::Reloaded(named(setups, name)),
                None => Kind::Checked(named(setups, name)),
            },
        }
    }

    fn name(self) -> String {
        match self {
            Kind::Checked(setup) => setup.name.to_owned(),
            Kind::Reloaded(setup) => format!("{RELOADED}{}", setup.name),
            Kind::Load => load::NAME.to_owned(),
            Kind::Age => age::NAME.to_owned(),
        }
    }

    fn live(self, seed: u64, verbose: bool) -> Result<(), String> {
        match self {
            Kind::Checked(setup) => life::live(seed, setup, false, verbose),
            Kind::Reloaded(setup) => life::live(seed, setup, true, verbose),
            Kind::Load => load::live(seed, verbose),
            Kind::Age => age::live(seed, verbose),
        }
    }

    /// Runs a seed's life; a panic is a failure too.
    fn check(self, seed: u64, verbose: bool) -> Result<(), String> {
        let outcome = catch_unwind(AssertUnwindSafe(|| self.live(seed, verbose)));
        let outcome = outcome.unwrap_or_else(|_| Err("a panic".into()));
        let name = self.name();
        let replay = format!(
            "SPANGATE_SETUP='{name}' SPANGATE_SEED={seed} cargo test -p spangate-proxy --test it lives"
        );
        outcome.map_err(|error| format!("seed {seed}: {name}: {error}\nreplay: {replay}"))
    }
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

/// Runs the lives of the seeds below `seeds`, on all processors, up to the first that fails.
fn run<'a>(seeds: u64, of: impl Fn(u64) -> Kind<'a> + Sync) {
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let failed = AtomicBool::new(false);
    let failures: Vec<String> = std::thread::scope(|scope| {
        let work = |thread: u64| {
            let (failed, of) = (&failed, &of);
            move || {
                let seeds = (thread..seeds)
                    .step_by(threads as usize)
                    .take_while(|_| !failed.load(Relaxed));
                let mut outcomes = seeds.map(|seed| of(seed).check(seed, false));
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
}

#[test]
fn lives() {
    mute_injected_panics();
    let (setups, with_quic) = (setups::all(), setups::with_quic());
    let chosen = std::env::var("SPANGATE_SETUP").ok();
    let quic_of = |seed: u64| &with_quic[(seed % with_quic.len() as u64) as usize];
    let named = |name: &str| {
        let known = |setup: &Setup| name.trim_start_matches(RELOADED) == setup.name;
        let is_quic = with_quic.iter().any(known);
        Kind::named(if is_quic { &with_quic } else { &setups }, name)
    };
    let chosen = chosen.map(|name| named(&name));
    // The configurations take turns: a kept seed names its own, which may move.
    let of = |seed: u64| Kind::Checked(&setups[(seed % setups.len() as u64) as usize]);
    if let Some(seed) = number("SPANGATE_SEED") {
        let kind = chosen.unwrap_or_else(|| of(seed));
        return kind
            .check(seed, true)
            .unwrap_or_else(|error| panic!("{error}"));
    }
    let seeds = number("SPANGATE_SEEDS").unwrap_or(SEEDS);
    if let Some(kind) = chosen {
        return run(seeds, |_| kind);
    }
    for (name, seed, found) in kept_seeds::KEPT {
        named(name)
            .check(*seed, false)
            .unwrap_or_else(|error| panic!("kept for: {found}\n{error}"));
    }
    run(seeds, of);
    if seeds >= SEEDS {
        assert_eq!(filters::idle(), [], "filters that recorded nothing");
        let moved = driver::MOVED.load(Relaxed);
        assert!(moved > 100, "{moved} connections moved between workers");
    }
    run(seeds / LIVES_A_RELOADED, |seed| {
        Kind::Reloaded(&setups[(seed % setups.len() as u64) as usize])
    });
    run(seeds / LIVES_A_LOAD, |_| Kind::Load);
    run(seeds / LIVES_AN_AGE, |_| Kind::Age);
    let lives = seeds / LIVES_A_QUIC;
    run(lives, |seed| Kind::Checked(quic_of(seed)));
    if seeds >= SEEDS {
        let early = quic::EARLY.load(Relaxed);
        assert!(early > 20, "{early} connections with early data");
    }
    run(lives / LIVES_A_RELOADED, |seed| {
        Kind::Reloaded(quic_of(seed))
    });
}
