//! Each experiment with the smallest options, run like a user: with the Spangate beside the
//! program, and the installed peers.
#![expect(clippy::print_stderr, reason = "a skipped test says why")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

const BENCH: &str = env!("CARGO_BIN_EXE_spangate-bench");

/// Runs an experiment with these options. Returns its JSON; None if a program is missing, which
/// `make test` counts.
fn run(name: &str, options: &str, needs: &[&str]) -> Option<Value> {
    let beside = Path::new(BENCH).with_file_name("spangate");
    let on_path = |program: &str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
    };
    if !beside.is_file() {
        return skip(name, "spangate is not built beside it: test the workspace");
    }
    if let Some(missing) = needs.iter().find(|program| !on_path(program)) {
        return skip(name, &format!("{missing} is not installed"));
    }
    let report = report(name);
    let output = Command::new(BENCH)
        .arg(name)
        .args(options.split_whitespace())
        .arg("--report")
        .arg(&report)
        .output()
        .unwrap();
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{out}\n{err}");
    let page = fs::read_to_string(report.join("index.html")).unwrap();
    assert!(page.contains(&format!("<section id=\"{name}\"")));
    for plot in 1..=2 {
        let svg = fs::read_to_string(report.join(format!("{name}-{plot}.svg"))).unwrap();
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
    }
    let text = fs::read_to_string(report.join(format!("{name}.txt"))).unwrap();
    assert!(out.starts_with(&text), "{out}");
    let json = fs::read_to_string(report.join(format!("{name}.json"))).unwrap();
    Some(serde_json::from_str(&json).unwrap())
}

fn skip(name: &str, why: &str) -> Option<Value> {
    use std::io::Write;
    eprintln!("skipped: {name}: {why}");
    if let Some(path) = std::env::var_os("SPANGATE_SKIPPED") {
        let mut file = fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .unwrap();
        writeln!(file, "spangate-bench {name}: {why}").unwrap();
    }
    None
}

/// An empty folder for the report.
fn report(name: &str) -> PathBuf {
    let report = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("report-{name}"));
    let _ = fs::remove_dir_all(&report);
    report
}

/// The cell of Spangate's first row in the column with a name.
fn cell<'a>(value: &'a Value, column: &str) -> &'a Value {
    let table = &value["tables"][0];
    let columns = table["columns"].as_array().unwrap();
    let place = columns.iter().position(|name| name == column).unwrap();
    let mut rows = table["rows"].as_array().unwrap().iter();
    let ours = rows.find(|row| {
        row.as_array()
            .unwrap()
            .iter()
            .any(|cell| cell == "spangate")
    });
    &ours.unwrap()[place]
}

#[test]
fn variables() {
    let options = "--counts 0,5 --rounds 1 --seconds 1 --connections 2";
    let Some(value) = run("variables", options, &["wrk"]) else {
        return;
    };
    assert!(cell(&value, "CPU us").as_f64().unwrap() > 0.0);
    assert!(cell(&value, "requests/s").as_f64().unwrap() > 0.0);
    assert_eq!(cell(&value, "errors").as_f64(), Some(0.0));
    assert_eq!(cell(&value, "variables").as_f64(), Some(0.0));
}

#[test]
fn tls_rate() {
    let Some(value) = run("tls-rate", "--rates 20 --seconds 1 --connections 2", &[]) else {
        return;
    };
    assert_eq!(cell(&value, "served").as_f64(), Some(20.0));
    assert!(cell(&value, "CPU us").as_f64().unwrap() > 0.0);
    assert!(
        value["versions"]["spangate"]
            .as_str()
            .unwrap()
            .contains("TLSv1_3")
    );
}

#[test]
fn routing() {
    let options = "--rounds 1 --seconds 1 --threads 1 --connections 2";
    let Some(value) = run("routing", options, &["wrk"]) else {
        return;
    };
    assert!(cell(&value, "requests/s").as_f64().unwrap() > 0.0);
    assert_eq!(cell(&value, "errors").as_f64(), Some(0.0));
    assert_eq!(value["tables"][0]["rows"][0][0], "direct");
}

/// The command fails if a span of single requests is missing.
#[test]
fn tracing() {
    let options =
        "--configs sa --levels 100,off --exporter json,text --rounds 1 --seconds 1 --connections 2";
    let Some(value) = run("tracing", options, &["wrk"]) else {
        return;
    };
    // A debug build may be too slow to export everything under load.
    assert!(cell(&value, "spans/request").as_f64().unwrap() > 0.0);
    assert_eq!(value["notes"], serde_json::json!([]));
    assert_eq!(value["tables"].as_array().unwrap().len(), 2);
}

#[test]
fn tail_sampling() {
    let options = "--rounds 1 --seconds 1 --wait 1 --rate 200";
    let Some(value) = run("tail-sampling", options, &[]) else {
        return;
    };
    let (accepted, exported) = (cell(&value, "accepted"), cell(&value, "exported"));
    assert!(accepted.as_f64().unwrap() > exported.as_f64().unwrap());
    assert!(exported.as_f64().unwrap() > 0.0);
    assert_eq!(cell(&value, "lost").as_f64(), Some(0.0));
}
