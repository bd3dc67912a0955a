//! The configuration of the collector.

use collector::config::print::{self, Style};
use collector::config::source::Outside;
use collector::config::{Config, Diagnostic, Options, Severity, Signal, load};

/// Loads a configuration of these files, each of this text.
///
/// # Errors
/// What is wrong with it.
pub fn read(data: &[u8], sources: &[&str]) -> Result<Config, Vec<Diagnostic>> {
    let half = String::from_utf8_lossy(&data[data.len() / 2..]).into_owned();
    let variable = |name: &str| match name {
        "SET" => Some("10".to_owned()),
        "HALF" | "HTTP_PROXY" | "HTTPS_PROXY" | "NO_PROXY" => Some(half.clone()),
        _ => None,
    };
    let read_file = |name: &str| match name {
        "a.yaml" | "b.yaml" => Ok(data.to_vec()),
        _ => Err("it is not there".to_owned()),
    };
    let outside = Outside {
        variable: &variable,
        read_file: &read_file,
    };
    load(sources, &Options::default(), outside)
}

/// Whatever a file is, it is a configuration whose parts are all there, or diagnostics of which one
/// is an error; and the same each time. References in it lead to a variable that holds a part of
/// it, and to itself.
pub fn collector_yaml(data: &[u8]) {
    let result = read(data, &["a.yaml"]);
    prints_hold(data);
    assert_eq!(
        format!("{result:?}"),
        format!("{:?}", read(data, &["a.yaml"]))
    );
    match &result {
        Ok(config) => {
            config_holds(config);
            // An overlay of itself changes no verdict: maps merge, and the rest is replaced by the
            // same.
            let twice = read(data, &["a.yaml", "a.yaml"]);
            assert!(twice.is_ok(), "{twice:?}");
        }
        Err(diagnostics) => {
            let is_error = |one: &Diagnostic| one.severity == Severity::Error;
            assert!(diagnostics.iter().any(is_error));
            for one in diagnostics {
                assert!(
                    !one.message.is_empty() && !one.to_string().contains('\n'),
                    "{one:?}"
                );
            }
        }
    }
}

/// Printed text reads as the configuration that it was printed of.
fn prints_hold(data: &[u8]) {
    let printed = |data: &[u8], is_json| {
        let style = Style {
            is_json,
            shows_secrets: true,
        };
        let outside = Outside {
            variable: &|_| Some("10".to_owned()),
            read_file: &|_| Ok(data.to_vec()),
        };
        print::config(&["a.yaml"], outside, style)
    };
    if let Ok(first) = printed(data, false) {
        let again = printed(first.as_bytes(), false);
        assert_eq!(again.as_ref(), Ok(&first), "{again:?}");
        let json = printed(data, true).expect("JSON of the same");
        assert_eq!(
            printed(json.as_bytes(), false).as_ref(),
            Ok(&first),
            "{json}"
        );
    }
}

fn config_holds(config: &Config) {
    assert!(!config.pipelines.is_empty());
    for pipeline in &config.pipelines {
        assert!(!pipeline.receivers.is_empty() && !pipeline.exporters.is_empty());
        for id in &pipeline.receivers {
            assert!(
                config.receiver(id).is_some() || config.connector(id).is_some(),
                "{id}"
            );
        }
        for id in &pipeline.processors {
            assert!(config.processor(id).is_some(), "{id}");
        }
        for id in &pipeline.exporters {
            assert!(
                config.exporter(id).is_some() || config.connector(id).is_some(),
                "{id}"
            );
        }
    }
    for left in &config.not_started {
        assert_ne!(left.signal, Some(Signal::Traces), "{left}");
    }
}
