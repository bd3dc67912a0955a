//! `nop`: data end here.

use super::Exporter;
use crate::config::components::{EVERY, Entry, Parse, name};

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("nop")],
    doc: "drops everything",
    takes: EVERY,
    carries: EVERY,
    options: &[],
    parse: Parse::Exporter(|_| Exporter::Nop),
};
