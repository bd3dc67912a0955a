//! The metrics of Kafka's receivers and exporters, as the Collector has them.

use super::{Broker, Counts, Partition, State};
use crate::run::metrics::{Kind, Sheet};

/// Whose counts they are: the label, and the id.
type Owner<'a> = (&'static str, &'a str);

impl Counts {
    /// Adds the metrics of a `receiver` or an `exporter`.
    pub fn describe_as(&self, owner: Owner<'_>, sheet: &mut Sheet) {
        let state = &self.all();
        outcomes(owner, state, sheet);
        if owner.0 == "receiver" {
            unread(owner, state, sheet);
            offsets(owner, state, sheet);
            assignments(owner, state, sheet);
        }
        brokers(owner, state, sheet);
    }
}

fn each_partition(
    owner: Owner<'_>,
    state: &State,
    mut put: impl FnMut(&[(&str, &str)], &Partition),
) {
    for (topic, partitions) in &state.topics {
        for (number, partition) in partitions {
            let number = number.to_string();
            let labels = [owner, ("topic", topic.as_str()), ("partition", &*number)];
            put(&labels, partition);
        }
    }
}

/// Messages and their bytes. `messages` is the old name of `records`.
fn outcomes(owner: Owner<'_>, state: &State, page: &mut Sheet) {
    let (what, _) = owner;
    let verb = match what {
        "receiver" => "received",
        _ => "exported",
    };
    for name in ["records", "messages"] {
        let name = format!("otelcol_kafka_{what}_{name}");
        page.about(
            Kind::Counter,
            &name,
            "1",
            &format!("the number of {verb} records"),
        );
        each_partition(owner, state, |labels, partition| {
            for (outcome, count) in [
                ("success", partition.records),
                ("failure", partition.failed),
            ] {
                if count > 0 {
                    let labels = [labels, &[("outcome", outcome)]].concat();
                    page.point(&labels, count);
                }
            }
        });
    }
    let name = format!("otelcol_kafka_{what}_bytes_uncompressed");
    let help = format!("the uncompressed size in bytes of {verb} records");
    page.about(Kind::Counter, &name, "By", &help);
    each_partition(owner, state, |labels, partition| {
        let labels = [labels, &[("outcome", "success")]].concat();
        page.point(&labels, partition.bytes);
    });
}

fn unread(owner: Owner<'_>, state: &State, page: &mut Sheet) {
    let name = "otelcol_kafka_receiver_unmarshal_failed_spans";
    let help = "messages that could not be read, whose spans nobody can count";
    page.about(Kind::Counter, name, "1", help);
    each_partition(owner, state, |labels, partition| {
        if partition.unread > 0 {
            page.point(labels, partition.unread);
        }
    });
}

fn offsets(owner: Owner<'_>, state: &State, page: &mut Sheet) {
    type Value = fn(&Partition) -> Option<i64>;
    let gauges: [(&str, &str, Value); 2] = [
        ("current_offset", "current message offset", |own| own.offset),
        ("offset_lag", "current offset lag", |own| own.lag),
    ];
    for (name, help, value) in gauges {
        let name = format!("otelcol_kafka_receiver_{name}");
        page.about(Kind::Gauge, &name, "1", help);
        each_partition(owner, state, |labels, partition| {
            if let Some(value) = value(partition) {
                page.point(labels, u64::try_from(value).unwrap_or(0));
            }
        });
    }
}

fn assignments(owner: Owner<'_>, state: &State, page: &mut Sheet) {
    type Value = fn(&State) -> u64;
    let counters: [(&str, &str, Value); 2] = [
        ("start", "number of started partitions", |state| {
            state.started
        }),
        ("close", "number of finished partitions", |state| {
            state.closed
        }),
    ];
    for (name, help, value) in counters {
        let name = format!("otelcol_kafka_receiver_partition_{name}");
        page.about(Kind::Counter, &name, "1", help);
        page.point(&[owner], value(state));
    }
}

fn brokers(owner: Owner<'_>, state: &State, page: &mut Sheet) {
    type Value = fn(&Broker) -> u64;
    let counters: [(&str, &str, Value); 2] = [
        ("connects", "opened", |broker| broker.connects),
        ("closed", "closed", |broker| broker.disconnects),
    ];
    for (name, what, value) in counters {
        let name = format!("otelcol_kafka_broker_{name}");
        let help = format!("the total number of connections {what}");
        page.about(Kind::Counter, &name, "1", &help);
        for (number, broker) in &state.brokers {
            let number = number.to_string();
            page.point(&[owner, ("node_id", &number)], value(broker));
        }
    }
}
