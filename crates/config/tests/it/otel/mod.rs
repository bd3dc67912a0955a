//! The language of a filter's file: accepted lines, warnings, refused lines, and the places of
//! carets.

use crate::common;

mod files;
mod instrumentations;
mod scopes;

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use common::{report, under_caret};

/// The expected result of a text: a message and the word above its caret (empty: after the end of
/// the line).
#[derive(Clone, Copy, Debug)]
enum Expect {
    Taken,
    Warned(&'static str, &'static str),
    Refused(&'static str, &'static str),
}
use Expect::{Refused, Taken, Warned};

type Case = (&'static str, Expect);

const YML: &str = "exporters:
  e: { type: memory }
processors:
  p: { type: single }
signals:
  traces: { default: { scope_name: s, exporters: e, processors: p } }
";
const DEFAULTS: &str = "defaults
    mode http
    timeout client 1s
    timeout server 1s
    timeout connect 1s
";

/// A file that is removed with this value.
struct TempFile(String);

impl TempFile {
    fn new(text: &str) -> TempFile {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Relaxed);
        let name = format!("spangate-config-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).expect("a file");
        TempFile(path.to_str().expect("a name").to_owned())
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The output for a configuration. `OTEL_CFG` in it is the filter's file; `OTEL_YML` in that is a
/// file with exporters.
fn printed(config: &str, otel: &str) -> String {
    let yml = TempFile::new(YML);
    let file = TempFile::new(&otel.replace("OTEL_YML", &yml.0));
    report(&format!(
        "{DEFAULTS}{}",
        config.replace("OTEL_CFG", &file.0)
    ))
}

const LISTEN: &str = "listen web\n    bind :80\n    server s 127.0.0.1:81\n    filter opentelemetry id f config OTEL_CFG\n";

/// The difference between the result of a text and the expected one.
fn fault(config: &str, otel: &str, expected: Expect) -> Option<String> {
    let shown = printed(config, otel);
    let (severity, message, word) = match expected {
        Taken => {
            let silent = !shown.contains("[ALERT]") && !shown.contains("[WARNING]");
            return (!silent).then_some(shown);
        }
        Warned(message, word) => ("[WARNING]", message, word),
        Refused(message, word) => ("[ALERT]", message, word),
    };
    let line = shown.lines().find(|line| line.contains(message));
    let holds = shown.matches(message).count() == 1
        && line.is_some_and(|line| line.starts_with(severity))
        && shown.contains("[ALERT]") == (severity == "[ALERT]")
        && under_caret(&shown, message).as_deref() == Some(word);
    (!holds).then(|| format!("{expected:?}\n{shown}"))
}

/// Checks configurations with their filter files.
fn check<'a>(cases: impl Iterator<Item = (&'a str, String, Expect)>) {
    let faults = cases.filter_map(|(config, otel, expected)| {
        let fault = fault(config, &otel, expected)?;
        Some(format!("---\n{config}\n{otel}\n{fault}"))
    });
    let faults: Vec<String> = faults.collect();
    assert!(faults.is_empty(), "{}", faults.concat());
}
