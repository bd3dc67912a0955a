//! Receivers.

pub mod nop;
pub mod otlp;
pub mod proxy;

use super::Entry;

/// A receiver's settings.
#[derive(Clone, Debug, PartialEq)]
pub enum Receiver {
    /// `otlp`
    Otlp(Box<otlp::OtlpReceiver>),
    /// `nop`: nothing comes of it.
    Nop,
    /// `proxy`: what the proxy around it records.
    Proxy,
}

pub(crate) const ENTRIES: &[Entry] = &[otlp::ENTRY, nop::ENTRY, proxy::ENTRY];
