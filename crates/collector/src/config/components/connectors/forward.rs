//! `forward`: what ends one pipeline begins another of the same signal.

use super::Connector;
use crate::config::components::{EVERY, Entry, Parse, name};

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("forward")],
    doc: "joins and splits pipelines of one signal",
    takes: EVERY,
    carries: EVERY,
    options: &[],
    parse: Parse::Connector(|_| Connector::Forward),
};
