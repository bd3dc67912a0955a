//! The documents: their configurations are valid, and the targets of their links exist.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{Folder, Output, run};

fn root() -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    crates
        .and_then(Path::parent)
        .expect("the workspace")
        .to_owned()
}

/// The documents in the root folder and all files of `docs`, with their text.
fn documents() -> Vec<(PathBuf, String)> {
    let paths = [root(), root().join("docs")]
        .into_iter()
        .flat_map(|folder| {
            let entries = fs::read_dir(folder).expect("a folder");
            entries.map(|entry| entry.expect("a file").path())
        });
    let documents = paths.filter(|path| path.extension().is_some_and(|kind| kind == "md"));
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("a text");
        (path, text)
    };
    documents.map(read).collect()
}

/// The code blocks in a language.
fn blocks<'a>(text: &'a str, language: &str) -> Vec<&'a str> {
    let begin = format!("\n```{language}\n");
    let after = text.split(&begin).skip(1);
    after
        .map(|rest| rest.split("\n```").next().unwrap_or(rest))
        .collect()
}

/// Runs a check on each code block in a language. Returns the number of blocks.
fn check(language: &str, run: impl Fn(&str) -> Output) -> usize {
    let mut checked = 0;
    for (path, text) in documents() {
        for block in blocks(&text, language) {
            // Builds without a client of Kafka refuse it.
            if !cfg!(feature = "kafka") && block.contains("\n  kafka:\n") {
                continue;
            }
            let folder = Folder::new();
            let file = folder.write("file", format!("{block}\n"));
            let output = run(&file);
            let path = path.display();
            assert!(
                output.status.success(),
                "{path}:\n{block}\n{}",
                output.stderr
            );
            checked += 1;
        }
    }
    checked
}

#[test]
fn configurations_of_proxies_are_valid() {
    assert!(check("haproxy", |file| run(&["-c", "-f", file])) >= 3);
}

#[test]
fn configurations_of_collectors_are_valid() {
    let validate = |file: &str| run(&["collect", "validate", "--config", file]);
    assert!(check("yaml", validate) >= 1);
}

/// The anchor of a heading, as on code forges.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text
        .chars()
        .filter(|one| one.is_alphanumeric() || " -_".contains(*one));
    kept.map(|one| if one == ' ' { '-' } else { one }).collect()
}

#[test]
fn links_lead_somewhere() {
    let documents = documents();
    let mut followed = 0;
    for (path, text) in &documents {
        for link in text.split("](").skip(1) {
            let link = link.split(')').next().unwrap_or_default();
            if link.contains("://") || link.contains(' ') {
                continue;
            }
            let (file, name) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => path.clone(),
                file => path.parent().expect("a folder").join(file),
            };
            let from = path.display();
            let target = target
                .canonicalize()
                .unwrap_or_else(|error| panic!("{from}: {link}: {error}"));
            followed += 1;
            if name.is_empty() {
                continue;
            }
            let (_, text) = documents
                .iter()
                .find(|(path, _)| *path == target)
                .unwrap_or_else(|| panic!("{from}: {link}: not a document"));
            let mut headings = text.lines().filter(|line| line.starts_with('#'));
            assert!(
                headings.any(|line| anchor(line) == name),
                "{from}: {link}: no such heading"
            );
        }
    }
    assert!(followed > 20, "{followed} links");
}
