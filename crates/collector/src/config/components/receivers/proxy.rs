//! `proxy`: what the proxy records that runs this configuration.

use super::Receiver;
use crate::config::components::{EVERY, Entry, Parse, name};

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("proxy")],
    doc: "what the proxy records that runs this configuration in a section `collector`; nothing in `spangate collect`",
    takes: EVERY,
    carries: EVERY,
    options: &[],
    parse: Parse::Receiver(|_| Receiver::Proxy),
};
