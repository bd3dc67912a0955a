//! The language of a filter's file: what is taken, what is warned about, what is refused, and where the caret stands.

use crate::common;

mod files;
mod instrumentations;
mod scopes;

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use common::{report, under_caret};

/// What a text comes to: a message and the word under its caret (empty: after the line's end).
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

/// A file that is gone with this.
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

/// What a configuration prints: in it `OTEL_CFG` is the filter's file, in that `OTEL_YML` is one of exporters.
fn printed(config: &str, otel: &str) -> String {
    let yml = TempFile::new(YML);
    let file = TempFile::new(&otel.replace("OTEL_YML", &yml.0));
    report(&format!(
        "{DEFAULTS}{}",
        config.replace("OTEL_CFG", &file.0)
    ))
}

const LISTEN: &str = "listen web\n    bind :80\n    server s 127.0.0.1:81\n    filter opentelemetry id f config OTEL_CFG\n";

/// What is wrong with what a text comes to.
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

/// Configurations with their filter's file.
fn check<'a>(cases: impl Iterator<Item = (&'a str, String, Expect)>) {
    let faults = cases.filter_map(|(config, otel, expected)| {
        let fault = fault(config, &otel, expected)?;
        Some(format!("---\n{config}\n{otel}\n{fault}"))
    });
    let faults: Vec<String> = faults.collect();
    assert!(faults.is_empty(), "{}", faults.concat());
}
