//! Receivers.
//!
//! A kind is a file of settings here, which implements [`ReceiverSettings`], a file in `run/receive`,
//! which implements [`StartReceiver`], and an entry of [`ENTRIES`].

pub mod host_metrics;
pub mod jaeger;
pub mod kafka;
pub mod nop;
pub mod otlp;
pub mod prometheus;
pub mod proxy;
pub mod zipkin;

use std::sync::Arc;

use super::Entry;
use super::id::ComponentId;
use super::settings::{Erased, Value};
use crate::run::receive::StartReceiver;

/// A receiver's settings: what the configuration asks of a kind. [`StartReceiver`] is what the run
/// asks.
pub trait ReceiverSettings: Value + StartReceiver {
    /// The extensions that authenticate the senders of its servers.
    fn server_auths(&self) -> Vec<&ComponentId> {
        Vec::new()
    }

    /// Whether records that were not settled when the process ended are received again.
    fn reads_again(&self) -> bool {
        false
    }

    /// Which of the receivers gets the records of the proxy that runs the configuration.
    fn proxy_role(&self) -> ProxyRole {
        ProxyRole::None
    }
}

/// How a receiver stands to the records of the proxy that runs the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyRole {
    /// It does not get them.
    None,
    /// It gets them if it is the first such receiver and none has [`ProxyRole::Always`].
    Default,
    /// It exists to get them.
    Always,
}

/// A receiver's settings, of any kind.
pub type Receiver = Erased<dyn ReceiverSettings>;

impl Receiver {
    /// Of settings of a kind.
    pub fn new(settings: impl ReceiverSettings) -> Receiver {
        Erased::share(Arc::new(settings))
    }
}

pub(crate) const ENTRIES: &[Entry] = &[
    otlp::ENTRY,
    zipkin::ENTRY,
    jaeger::ENTRY,
    kafka::ENTRY,
    host_metrics::ENTRY,
    prometheus::ENTRY,
    nop::ENTRY,
    proxy::ENTRY,
];
