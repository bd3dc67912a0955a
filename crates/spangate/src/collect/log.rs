//! The collector's own log: lines of text or of JSON.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::{Mutex, PoisonError};

use collector::config::service::telemetry::{LogLevel, Logs};
use collector::run::log::time;
use collector::run::{Level, Log};

enum Target {
    Stdout,
    Stderr,
    File(File),
}

/// Opens the log with these settings.
pub(crate) fn open(settings: &Logs) -> Result<Log, String> {
    let mut targets = Vec::new();
    for path in &settings.output_paths {
        targets.push(match path.as_str() {
            "stdout" => Target::Stdout,
            "stderr" => Target::Stderr,
            path => {
                let opened = OpenOptions::new().create(true).append(true).open(path);
                Target::File(opened.map_err(|error| format!("{path}: {error}"))?)
            }
        });
    }
    let (least, json) = (settings.level, settings.json);
    let fields = settings.initial_fields.clone();
    let targets = Mutex::new(targets);
    Ok(Log::new(move |level, text| {
        if is_below(level, least) {
            return;
        }
        let line = line(level, text, json, &fields);
        let mut targets = targets.lock().unwrap_or_else(PoisonError::into_inner);
        for target in targets.iter_mut() {
            // A failure to write to the log cannot be reported anywhere.
            let _ = match target {
                Target::Stdout => std::io::stdout().write_all(line.as_bytes()),
                Target::Stderr => std::io::stderr().write_all(line.as_bytes()),
                Target::File(file) => file.write_all(line.as_bytes()),
            };
        }
    }))
}

fn is_below(level: Level, least: LogLevel) -> bool {
    let own = match level {
        Level::Debug => LogLevel::Debug,
        Level::Info => LogLevel::Info,
        Level::Warn => LogLevel::Warn,
        Level::Error => LogLevel::Error,
    };
    own < least
}

fn line(level: Level, text: &str, json: bool, fields: &[(String, String)]) -> String {
    let time = time();
    let level = match level {
        Level::Debug => "debug",
        Level::Info => "info",
        Level::Warn => "warn",
        Level::Error => "error",
    };
    if !json {
        let fields: String = fields
            .iter()
            .map(|(key, value)| format!("\t{key}={value}"))
            .collect();
        return format!("{time}\t{level}\t{text}{fields}\n");
    }
    let mut line = format!(
        "{{\"level\":\"{level}\",\"ts\":\"{time}\",\"msg\":{}",
        quoted(text)
    );
    for (key, value) in fields {
        line.push_str(&format!(",{}:{}", quoted(key), quoted(value)));
    }
    line.push_str("}\n");
    line
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_json_are_json() {
        let line = line(
            Level::Warn,
            "a \"b\"\n\\",
            true,
            &[("k".into(), "v".into())],
        );
        let read: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(
            (&read["msg"], &read["k"]),
            (&"a \"b\"\n\\".into(), &"v".into())
        );
        let time = read["ts"].as_str().unwrap();
        let shape = time.replace(|c: char| c.is_ascii_digit(), "0");
        assert_eq!(shape, "0000-00-00T00:00:00.000Z");
        assert_eq!(read["level"], "warn");
        assert!(is_below(Level::Info, LogLevel::Warn) && !is_below(Level::Error, LogLevel::Error));
    }
}
