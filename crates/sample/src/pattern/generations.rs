//! Pattern sets of configurations that follow each other in one process.

use std::path::{Path, PathBuf};

use super::{EditError, Reference, References};
use crate::testing::{Facts, compiler};
use crate::vars::VarNames;
use crate::{Expr, Place, Resumed, SlotCounts};

/// A compiled configuration.
struct Generation {
    patterns: References,
    exprs: Vec<Expr>,
}

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let name = format!("spangate-generations-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.join(name), text).expect("a file");
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Generation {
    fn first(folder: &Path, words: &[&str]) -> Generation {
        Generation::read(None, folder, words).expect("valid")
    }

    fn then(&self, folder: &Path, words: &[&str]) -> Generation {
        Generation::read(Some(self), folder, words).expect("valid")
    }

    fn read(
        previous: Option<&Generation>,
        folder: &Path,
        words: &[&str],
    ) -> Result<Generation, String> {
        let mut compiler = compiler();
        if let Some(previous) = previous {
            compiler.resume(Resumed {
                slots: SlotCounts::default(),
                var_names: &VarNames::default(),
                contexts: &[],
                patterns: &previous.patterns,
            });
        }
        compiler.enter_line("cfg", 1, folder);
        let mut exprs = Vec::new();
        for word in words {
            let compiled = compiler.expr(&[word], Place::ALL);
            exprs.push(compiled.map_err(|error| error.message)?.0);
        }
        let (patterns, _) = compiler.take_references();
        Ok(Generation { patterns, exprs })
    }

    fn set(&self, name: &str) -> &Reference {
        self.patterns.find(name).expect("a set")
    }

    /// The value of an expression as text; empty for none.
    fn value(&self, expr: usize) -> String {
        let facts = Facts::new();
        let mut text = Vec::new();
        self.exprs[expr].append_text(&facts.scope(), &mut text);
        String::from_utf8(text).expect("text")
    }
}

#[test]
fn a_set_whose_file_is_unchanged_keeps_its_edits() {
    let folder = Folder::new("edits");
    folder.write("a.map", "x 1\n");
    folder.write("b.map", "x 1\n");
    let words = &["str(x),map(a.map)", "str(x),map(b.map)"];
    let first = Generation::first(&folder.0, words);
    for name in ["a.map", "b.map"] {
        first.set(name).set(b"x", b"2").expect("set");
    }
    folder.write("b.map", "x 3\n");
    let second = first.then(&folder.0, words);
    assert_eq!(
        (second.value(0).as_str(), second.value(1).as_str()),
        ("2", "3")
    );
    assert_eq!(
        (first.value(0).as_str(), first.value(1).as_str()),
        ("2", "2")
    );
    // The content is shared in both directions, and lives on without the first configuration.
    second.set("a.map").set(b"x", b"4").expect("set");
    assert_eq!(first.value(0), "4");
    drop(first);
    assert_eq!(second.value(0), "4");
    assert_eq!(
        second.set("a.map").usage().text.matches("used by").count(),
        1
    );
}

#[test]
fn numbers_of_sets_stay() {
    let folder = Folder::new("numbers");
    let ids = |generation: &Generation| {
        let sets = generation.patterns.iter();
        sets.map(|set| format!("{}={}", set.name().unwrap_or("-"), set.id()))
            .collect::<Vec<_>>()
            .join(" ")
    };
    let first = Generation::first(&folder.0, &["str(x),map(virt@a)", "str(x),map(virt@b)"]);
    assert_eq!(ids(&first), "virt@a=0 virt@b=1");
    let second = first.then(&folder.0, &["str(x),map(virt@c)", "str(x),map(virt@b)"]);
    assert_eq!(ids(&second), "virt@c=0 virt@b=1");
    let third = second.then(&folder.0, &["str(x),map(virt@a)", "str(x),map(virt@b)"]);
    assert_eq!(ids(&third), "virt@a=0 virt@b=1");
}

#[test]
fn sets_without_a_file_keep_their_entries() {
    let folder = Folder::new("virtual");
    let words = &["str(x),map(virt@m)", "str(x),map(opt@missing.map)"];
    let first = Generation::first(&folder.0, words);
    for name in ["virt@m", "missing.map"] {
        first.set(name).add(b"x", b"1").expect("added");
    }
    let second = first.then(&folder.0, words);
    assert_eq!(
        (second.value(0).as_str(), second.value(1).as_str()),
        ("1", "1")
    );
    folder.write("missing.map", "x 2\n");
    let third = second.then(&folder.0, words);
    assert_eq!(
        (third.value(0).as_str(), third.value(1).as_str()),
        ("1", "2")
    );
}

#[test]
fn uses_end_with_the_configurations_that_hold_them() {
    let folder = Folder::new("uses");
    folder.write("a.map", "ab 1\n");
    let both = &["str(ab),map(a.map)", "str(xabx),map_sub(a.map)"][..];
    let mut last = Generation::first(&folder.0, both);
    let uses = |generation: &Generation| generation.set("a.map").read(super::set::Set::uses);
    for round in 0..300 {
        let next = match round % 3 {
            0 => last.then(&folder.0, &["str(abx),map_beg(a.map)"]),
            1 => last.then(&folder.0, both),
            _ => last.then(&folder.0, &["str(xab),map_end(a.map)", both[1]]),
        };
        assert!(uses(&next) <= 4);
        let _ = last.set("a.map").add(b"zz", b"");
        assert!(
            next.exprs
                .iter()
                .enumerate()
                .all(|(at, _)| next.value(at) == "1")
        );
        assert!(
            last.exprs
                .iter()
                .enumerate()
                .all(|(at, _)| last.value(at) == "1")
        );
        last = next;
        assert_eq!(uses(&last), last.exprs.len());
        assert_eq!(last.set("a.map").ways(), last.exprs.len());
    }
    assert_eq!(last.set("a.map").len(), 301);
}

#[test]
fn required_types_of_values_end_with_their_configuration() {
    let folder = Folder::new("types");
    let first = Generation::first(&folder.0, &["str(x),map_str_int(virt@m)"]);
    let second = first.then(&folder.0, &["str(x),map(virt@m)"]);
    let refused = second.set("virt@m").add(b"x", b"text");
    assert!(matches!(refused, Err(EditError::Refused(_))));
    drop(first);
    assert_eq!(second.set("virt@m").add(b"x", b"text"), Ok(()));
    // The entry does not fit the first configuration any more.
    let refused = Generation::read(Some(&second), &folder.0, &["str(x),map_str_int(virt@m)"]);
    assert_eq!(
        refused.err().as_deref(),
        Some(
            "invalid args in converter 'map_str_int' : unable to parse 'text' in an entry that was added to 'virt@m' at run time"
        )
    );
    assert_eq!(second.set("virt@m").add(b"y", b"text"), Ok(()));
}

#[test]
fn a_draft_gets_the_uses_that_were_added_since() {
    let folder = Folder::new("drafts");
    let first = Generation::first(&folder.0, &["str(12),map(virt@m)"]);
    let mut draft = first.set("virt@m").draft(2);
    draft.add(b"12", b"yes").expect("added");
    draft.add(b"text", b"no number").expect("added");
    let second = first.then(
        &folder.0,
        &["int(12),map_int(virt@m)", "str(12),map(virt@m)"],
    );
    first.set("virt@m").commit(draft);
    assert_eq!(second.value(0), "yes");
    assert_eq!(second.value(1), "yes");
    assert_eq!(first.value(0), "yes");
    assert_eq!(second.set("virt@m").len(), 1, "the text is no number");
}

#[test]
fn a_refused_configuration_leaves_no_uses() {
    let folder = Folder::new("refused");
    let first = Generation::first(&folder.0, &["str(x),map(virt@m)"]);
    let words = &["str(x),map_sub(virt@m)", "no_such_fetch"];
    assert!(Generation::read(Some(&first), &folder.0, words).is_err());
    assert_eq!(first.set("virt@m").read(super::set::Set::uses), 1);
}
