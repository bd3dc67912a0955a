//! Every target over its kept corpus, and over mutations of it that are the same in every run.
//!
//! `SPANGATE_FUZZ_RUNS` sets how many mutations each target gets, `SPANGATE_FUZZ_SEED` where they begin.

use spangate_fuzz::mutate::{Random, mutate};
use spangate_fuzz::{TARGETS, Target};
use std::path::Path;
use std::{env, fs, panic};

const RUNS: u64 = 20_000;

fn setting(name: &str, default: u64) -> u64 {
    env::var(name)
        .ok()
        .map_or(default, |value| value.parse().expect("a number"))
}

/// The kept inputs of a target, in the order of their names.
fn corpus(target: &Target) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("corpus")
        .join(target.name);
    let files =
        fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

/// Runs a target on an input, and tells the input where it fails.
fn run(target: &Target, input: &[u8], what: &str) {
    if let Err(cause) = panic::catch_unwind(|| (target.run)(input)) {
        let text = input.escape_ascii();
        panic!("{} fails on {what}: b\"{text}\": {cause:?}", target.name);
    }
}

#[test]
fn kept_inputs() {
    for target in TARGETS {
        let inputs = corpus(target);
        assert!(!inputs.is_empty(), "{} has a corpus", target.name);
        for (at, input) in inputs.iter().enumerate() {
            run(target, input, &format!("kept input {at}"));
        }
    }
}

#[test]
fn mutations_of_kept_inputs() {
    let (runs, first) = (
        setting("SPANGATE_FUZZ_RUNS", RUNS),
        setting("SPANGATE_FUZZ_SEED", 0),
    );
    for target in TARGETS {
        let inputs = corpus(target);
        for seed in first..first + runs {
            let mut random = Random::new(seed);
            let mut input = inputs[random.below(inputs.len())].clone();
            let other = &inputs[random.below(inputs.len())];
            mutate(&mut input, other, target.words, &mut random);
            run(target, &input, &format!("seed {seed}"));
        }
    }
}
