//! `nop`: data end here.

use super::{Exporter, ExporterSettings};
use crate::config::components::{EVERY, Entry, Parse, name};

/// An exporter that takes everything and keeps nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NopExporter;

impl ExporterSettings for NopExporter {}

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("nop")],
    doc: "drops everything",
    takes: EVERY,
    carries: EVERY,
    options: &[],
    parse: Parse::Exporter(|_| Exporter::new(NopExporter)),
};
