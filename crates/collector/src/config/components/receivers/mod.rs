//! Receivers.

pub mod jaeger;
pub mod kafka;
pub mod nop;
pub mod otlp;
pub mod proxy;
pub mod zipkin;

use super::Entry;

/// A receiver's settings.
#[derive(Clone, Debug, PartialEq)]
pub enum Receiver {
    /// `otlp`
    Otlp(Box<otlp::OtlpReceiver>),
    /// `zipkin`
    Zipkin(Box<zipkin::ZipkinReceiver>),
    /// `jaeger`
    Jaeger(Box<jaeger::JaegerReceiver>),
    /// `kafka`
    Kafka(Box<kafka::KafkaReceiver>),
    /// `nop`: nothing comes of it.
    Nop,
    /// `proxy`: what the proxy around it records.
    Proxy,
}

pub(crate) const ENTRIES: &[Entry] = &[
    otlp::ENTRY,
    zipkin::ENTRY,
    jaeger::ENTRY,
    kafka::ENTRY,
    nop::ENTRY,
    proxy::ENTRY,
];
