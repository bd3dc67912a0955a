//! An option that is said to work has a test that fails when it is not read.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use spangate_collector::config::docs::{collector_markdown, proofs};

/// States of options that are to have a test.
const STATES: [&str; 4] = ["works", "works, old", "untested", "untested, old"];

/// Where the tests are.
const FOLDERS: [&str; 10] = [
    "src",
    "tests",
    "../tail/src",
    "../otlp/src",
    "../ottl/src",
    "../export/src",
    "../export/tests",
    "../spangate/tests",
    "../traces/src",
    "../journal/src",
];

/// The functions of all files of a folder that are tests.
fn tests(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            tests(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            let text = fs::read_to_string(&path).expect("a file");
            let mut is_test = false;
            for line in text.lines().map(str::trim) {
                if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
                    is_test = true;
                } else if let Some((_, name)) = line.split_once("fn ")
                    && std::mem::take(&mut is_test)
                {
                    let end = name.find('(').unwrap_or(name.len());
                    found.insert(name[..end].to_owned());
                }
            }
        }
    }
}

/// The rows of each table of the reference that are said to work, or to be untested.
fn rows() -> BTreeMap<String, BTreeSet<String>> {
    let text = collector_markdown();
    let mut rows = BTreeMap::<String, BTreeSet<String>>::new();
    let mut title = "";
    for line in text.lines() {
        if line.starts_with("##") {
            title = line.trim_start_matches(['#', ' ']);
        }
        let cells: Vec<_> = line.split(" | ").collect();
        let is_row = cells.get(3).is_some_and(|state| STATES.contains(state));
        if let (true, Some(name)) = (is_row, cells[0].strip_prefix("| `")) {
            let own = rows.entry(title.to_owned()).or_default();
            own.insert(name.trim_end_matches('`').to_owned());
        }
    }
    rows
}

#[test]
fn what_is_said_to_work_names_a_test_that_is_there() {
    let mut found = BTreeSet::new();
    for folder in FOLDERS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        tests(&folder, &mut found);
    }
    assert!(found.contains("what_is_said_to_work_names_a_test_that_is_there"));
    let rows = rows();
    let mut told = BTreeMap::<String, BTreeSet<String>>::new();
    for (title, option, test) in proofs() {
        let is_there = rows.get(title).is_some_and(|own| own.contains(option));
        assert!(is_there, "{title} has no option {option}");
        assert!(told.entry(title.into()).or_default().insert(option.into()));
        // One that reads the setting, and perhaps one of what it does.
        for test in test.into_iter().flat_map(|tests| tests.split(' ')) {
            assert!(
                found.contains(test),
                "{title}, {option}: there is no test {test}"
            );
        }
    }
    for (title, rows) in rows {
        let told = told.remove(&title).unwrap_or_default();
        let missing: Vec<_> = rows.difference(&told).collect();
        assert!(
            missing.is_empty(),
            "{title}: name tests of {missing:?} in proofs.tsv"
        );
    }
}
