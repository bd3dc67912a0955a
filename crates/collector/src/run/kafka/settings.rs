//! Settings of tests, as they are written.

use crate::config::components::exporters::kafka::KafkaExporter;
use crate::config::components::receivers::kafka::KafkaReceiver;
use crate::config::source::Outside;
use crate::config::{Config, Options, load};

fn config(receiver: &str, exporter: &str) -> Result<Config, String> {
    let yaml = format!(
        "yaml:{{ receivers: {{ kafka: {{ {receiver} }} }}, exporters: {{ kafka: {{ {exporter} }} }}, \
         service: {{ pipelines: {{ traces: {{ receivers: [kafka], exporters: [kafka] }} }} }} }}"
    );
    let outside = Outside {
        variable: &|_| None,
        read_file: &|_| Err("there are none".to_owned()),
    };
    let config = load(&[&yaml], &Options::default(), outside);
    config.map_err(|faults| faults.iter().map(|one| format!("{one}\n")).collect())
}

/// A receiver with these options.
pub fn receiver(options: &str) -> KafkaReceiver {
    let config = config(options, "").unwrap_or_else(|faults| panic!("{options}: {faults}"));
    let receiver: Option<&KafkaReceiver> = config.receivers[0].settings.get();
    receiver.expect("a receiver").clone()
}

/// An exporter with these options.
pub fn exporter(options: &str) -> KafkaExporter {
    let config = config("", options).unwrap_or_else(|faults| panic!("{options}: {faults}"));
    let exporter: Option<&KafkaExporter> = config.exporters[0].settings.get();
    exporter.expect("an exporter").clone()
}

/// What is wrong with these options of a receiver and an exporter.
pub fn faults(receiver: &str, exporter: &str) -> String {
    match config(receiver, exporter) {
        Ok(_) => panic!("{receiver} {exporter}: it is right"),
        Err(faults) => faults,
    }
}
