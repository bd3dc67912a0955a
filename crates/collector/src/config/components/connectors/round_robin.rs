//! `round_robin`: each batch goes to one of several pipelines, in turn.

use super::{Connector, ConnectorSettings, SAME};
use crate::config::components::{EVERY, Entry, Parse, name};

/// A connector that spreads batches over pipelines of the same signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundRobin;

impl ConnectorSettings for RoundRobin {}

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("round_robin"), name("roundrobin")],
    doc: "gives each batch to one of several pipelines, in turn",
    takes: EVERY,
    carries: EVERY,
    options: &[],
    parse: Parse::Connector {
        pairs: SAME,
        parse: |_| Connector::new(RoundRobin),
    },
};
