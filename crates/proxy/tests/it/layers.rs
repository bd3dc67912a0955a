//! The folders of the crate are layers: none imports from one above it. The table in `lib.rs` is
//! their order.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The rank of each folder or file, by the rows of the table.
fn ranks(lib: &str) -> BTreeMap<String, usize> {
    let rows = lib.lines().filter_map(|line| line.strip_prefix("//! | `"));
    let ranked = rows.enumerate().flat_map(|(rank, row)| {
        let names = row.split('|').next().unwrap_or_default();
        let names = names.split(',').map(|name| name.trim().trim_matches('`'));
        names.map(move |name| (name.to_owned(), rank))
    });
    ranked.collect()
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The names after `crate::` in the code of a line.
fn imports(line: &str) -> impl Iterator<Item = &str> {
    let code = line.split("//").next().unwrap_or_default();
    code.split("crate::").skip(1).map(|rest| {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
        &rest[..end.unwrap_or(rest.len())]
    })
}

#[test]
fn no_folder_imports_from_one_above_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let ranks = ranks(&fs::read_to_string(root.join("lib.rs")).expect("lib.rs"));
    let mut files = Vec::new();
    sources(&root, &mut files);
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for file in &files {
        let inside = file.strip_prefix(&root).expect("a file inside");
        let first = inside.iter().next().expect("a name").to_string_lossy();
        let top = first.trim_end_matches(".rs");
        if top == "lib" {
            continue;
        }
        let own = *ranks
            .get(top)
            .unwrap_or_else(|| panic!("{top} is in no row"));
        let text = fs::read_to_string(file).expect("text");
        for (number, line) in text.lines().enumerate() {
            for name in imports(line) {
                // What `lib.rs` exports by itself has no rank.
                let Some(rank) = ranks.get(name) else {
                    continue;
                };
                seen += 1;
                if *rank > own {
                    wrong.push(format!("{}:{}: {name}", inside.display(), number + 1));
                }
            }
        }
    }
    assert!(seen > 200, "only {seen} imports were found");
    assert!(
        wrong.is_empty(),
        "imports from a layer above:\n{}",
        wrong.join("\n")
    );
}
