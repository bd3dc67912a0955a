//! Every target over its kept corpus, and over mutations of it that are the same in every run.
//!
//! `SPANGATE_FUZZ_RUNS` sets how many mutations each target gets, `SPANGATE_FUZZ_SEED` where they
//! begin.

use spangate_fuzz::mutate::mutate;
use spangate_fuzz::{TARGETS, Target};
use std::path::Path;
use std::{env, fs, panic};
use testing::Random;

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

/// Runs a target on its kept inputs, then on mutations of them.
fn check(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name);
    let target = target.expect("a target of that name");
    let inputs = corpus(target);
    assert!(!inputs.is_empty(), "{name} has a corpus");
    for (at, input) in inputs.iter().enumerate() {
        run(target, input, &format!("kept input {at}"));
    }
    let runs = setting("SPANGATE_FUZZ_RUNS", RUNS);
    let first = setting("SPANGATE_FUZZ_SEED", 0);
    for seed in first..first + runs {
        let mut random = Random::new(seed);
        let mut input = inputs[random.below(inputs.len())].clone();
        let other = &inputs[random.below(inputs.len())];
        mutate(&mut input, other, target.words, &mut random);
        run(target, &input, &format!("seed {seed}"));
    }
}

/// One test for each target: they run side by side, and a failure names its target.
macro_rules! tests {
    ($($name:ident $words:ident,)*) => {
        $(
            #[test]
            fn $name() {
                check(stringify!($name));
            }
        )*
    };
}
spangate_fuzz::for_each_target!(tests);
