//! Receivers.

pub mod nop;
pub mod otlp;

use super::Entry;

/// A receiver's settings.
#[derive(Clone, Debug, PartialEq)]
pub enum Receiver {
    /// `otlp`
    Otlp(Box<otlp::OtlpReceiver>),
    /// `nop`: nothing comes of it.
    Nop,
}

pub(crate) const ENTRIES: &[Entry] = &[otlp::ENTRY, nop::ENTRY];
