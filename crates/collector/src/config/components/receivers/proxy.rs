//! `proxy`: what the proxy records that runs this configuration.

use super::{ProxyRole, Receiver, ReceiverSettings};
use crate::config::components::{EVERY, Entry, Parse, name};

/// A receiver of what the proxy around it records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProxyReceiver;

impl ReceiverSettings for ProxyReceiver {
    fn proxy_role(&self) -> ProxyRole {
        ProxyRole::Always
    }
}

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("proxy")],
    doc: "what the proxy records that runs this configuration in a section `collector`; nothing in `spangate collect`",
    takes: EVERY,
    carries: EVERY,
    options: &[],
    parse: Parse::Receiver(|_| Receiver::new(ProxyReceiver)),
};
