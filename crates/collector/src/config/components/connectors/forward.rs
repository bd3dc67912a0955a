//! `forward`: what ends one pipeline begins another of the same signal.

use super::{Connector, ConnectorSettings, SAME};
use crate::config::components::{EVERY, Entry, Parse, name};

/// A connector that joins or splits pipelines of one signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forward;

impl ConnectorSettings for Forward {}

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("forward")],
    doc: "joins and splits pipelines of one signal",
    takes: EVERY,
    carries: EVERY,
    options: &[],
    parse: Parse::Connector {
        pairs: SAME,
        parse: |_| Connector::new(Forward),
    },
};
