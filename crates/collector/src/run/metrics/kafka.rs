//! The metrics of Kafka's receivers and exporters, as the Collector has them.

use super::Sheet;
use super::sheet::Kind;
use crate::run::kafka::{Broker, Partition, State};
use crate::run::start::View;

/// Whose counts they are: the label, and the id.
type Owner<'a> = (&'static str, &'a str, State);

pub(super) fn write(view: &View, page: &mut Sheet) {
    let receivers = view.members.iter();
    let receivers = receivers.map(|(id, counts)| ("receiver", id.as_str(), counts.all()));
    let receivers: Vec<Owner<'_>> = receivers.collect();
    let exporters = view.senders.iter().filter_map(|(id, _, sender)| {
        let counts = sender.kafka()?;
        Some(("exporter", id.as_str(), counts.all()))
    });
    let exporters: Vec<Owner<'_>> = exporters.collect();
    for (name, owners) in [("receiver", &receivers), ("exporter", &exporters)] {
        outcomes(name, owners, page);
    }
    unread(&receivers, page);
    offsets(&receivers, page);
    assignments(&receivers, page);
    let all: Vec<&Owner<'_>> = receivers.iter().chain(&exporters).collect();
    brokers(&all, page);
}

fn each_partition(owners: &[Owner<'_>], mut put: impl FnMut(&[(&str, &str)], &Partition)) {
    for (label, id, state) in owners {
        for (topic, partitions) in &state.topics {
            for (number, partition) in partitions {
                let number = number.to_string();
                let labels = [
                    (*label, *id),
                    ("topic", topic.as_str()),
                    ("partition", &*number),
                ];
                put(&labels, partition);
            }
        }
    }
}

/// Messages and their bytes. `messages` is the old name of `records`.
fn outcomes(what: &str, owners: &[Owner<'_>], page: &mut Sheet) {
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
        each_partition(owners, |labels, partition| {
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
    each_partition(owners, |labels, partition| {
        let labels = [labels, &[("outcome", "success")]].concat();
        page.point(&labels, partition.bytes);
    });
}

fn unread(owners: &[Owner<'_>], page: &mut Sheet) {
    let name = "otelcol_kafka_receiver_unmarshal_failed_spans";
    let help = "messages that could not be read, whose spans nobody can count";
    page.about(Kind::Counter, name, "1", help);
    each_partition(owners, |labels, partition| {
        if partition.unread > 0 {
            page.point(labels, partition.unread);
        }
    });
}

fn offsets(owners: &[Owner<'_>], page: &mut Sheet) {
    type Value = fn(&Partition) -> Option<i64>;
    let gauges: [(&str, &str, Value); 2] = [
        ("current_offset", "current message offset", |own| own.offset),
        ("offset_lag", "current offset lag", |own| own.lag),
    ];
    for (name, help, value) in gauges {
        let name = format!("otelcol_kafka_receiver_{name}");
        page.about(Kind::Gauge, &name, "1", help);
        each_partition(owners, |labels, partition| {
            if let Some(value) = value(partition) {
                page.point(labels, u64::try_from(value).unwrap_or(0));
            }
        });
    }
}

fn assignments(owners: &[Owner<'_>], page: &mut Sheet) {
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
        for (label, id, state) in owners {
            page.point(&[(*label, *id)], value(state));
        }
    }
}

fn brokers(owners: &[&Owner<'_>], page: &mut Sheet) {
    type Value = fn(&Broker) -> u64;
    let counters: [(&str, &str, Value); 2] = [
        ("connects", "opened", |broker| broker.connects),
        ("closed", "closed", |broker| broker.disconnects),
    ];
    for (name, what, value) in counters {
        let name = format!("otelcol_kafka_broker_{name}");
        let help = format!("the total number of connections {what}");
        page.about(Kind::Counter, &name, "1", &help);
        for (label, id, state) in owners {
            for (number, broker) in &state.brokers {
                let number = number.to_string();
                page.point(&[(*label, *id), ("node_id", &number)], value(broker));
            }
        }
    }
}
