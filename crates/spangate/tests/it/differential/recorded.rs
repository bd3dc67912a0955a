//! HAProxy's results, stored in files: one per set, with each case followed by its indented lines.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The cases of a set with their result lines.
pub type Answers = BTreeMap<String, Vec<String>>;

/// The line for a case that HAProxy does not accept.
pub const REFUSED: &str = "refused";
/// The line for a case whose result in HAProxy varies.
pub const VARIES: &str = "varies";

fn file(set: &str) -> PathBuf {
    // The path from this crate to the root of the workspace.
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let here = here.join(Path::new(file!()).with_file_name("recorded"));
    here.join(format!("{set}.txt"))
}

/// The results of a set.
pub fn read(set: &str) -> Answers {
    let path = file(set);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| {
        panic!("{}: {error}; HAPROXY=… records it", path.display());
    });
    let mut answers = Answers::new();
    let mut case = String::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        match line.strip_prefix('\t') {
            Some(answer) => answers.entry(case.clone()).or_default().push(answer.into()),
            None => {
                case = line.to_owned();
                answers.insert(case.clone(), Vec::new());
            }
        }
    }
    answers
}

/// Stores the results of a set, with the version of HAProxy.
pub fn write(set: &str, version: &str, answers: &Answers) {
    let mut text = format!(
        "# What HAProxy {version} answers. HAPROXY=… in the environment of this test records it anew.\n"
    );
    for (case, lines) in answers {
        assert!(!case.starts_with(['#', '\t']), "{case}");
        let _ = writeln!(text, "{case}");
        for line in lines {
            let _ = writeln!(text, "\t{line}");
        }
    }
    std::fs::write(file(set), text).expect("a file");
}

/// The HAProxy whose results are to be recorded, and its version.
pub fn haproxy() -> Option<(PathBuf, String)> {
    let program = PathBuf::from(std::env::var_os("HAPROXY")?);
    let output = Command::new(&program)
        .arg("-v")
        .output()
        .expect("HAProxy runs");
    let text = String::from_utf8(output.stdout).expect("text");
    let version = text
        .split_whitespace()
        .find(|word| word.starts_with(|c: char| c.is_ascii_digit()))
        .expect("a version");
    // A commit id has no meaning for others.
    let version = version.splitn(3, '-').take(2).collect::<Vec<_>>().join("-");
    assert!(
        version.starts_with("3.5"),
        "answers are of version 3.5, not {version}"
    );
    Some((program, version))
}

/// The differences between two sets of results, with the place of each case; empty if they are
/// equal.
pub fn differences(theirs: &Answers, ours: &Answers) -> String {
    let mut told = String::new();
    for (case, our) in ours {
        let Some(their) = theirs.get(case) else {
            let _ = write!(told, "\n{case}\n    is not recorded: HAPROXY=… does it");
            continue;
        };
        if their == our {
            continue;
        }
        let _ = write!(told, "\n{case}");
        for (who, lines, others) in [("haproxy ", their, our), ("spangate", our, their)] {
            for line in lines.iter().filter(|line| !others.contains(line)) {
                let _ = write!(told, "\n    {who}  {line}");
            }
        }
    }
    told
}
