//! Receivers.

pub mod jaeger;
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
    /// `nop`: nothing comes of it.
    Nop,
    /// `proxy`: what the proxy around it records.
    Proxy,
}

pub(crate) const ENTRIES: &[Entry] = &[
    otlp::ENTRY,
    zipkin::ENTRY,
    jaeger::ENTRY,
    nop::ENTRY,
    proxy::ENTRY,
];
