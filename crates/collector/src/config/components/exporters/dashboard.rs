//! `dashboard`: the traces of the last minutes, in memory, for the dashboard of the same process.

use traces::Limits;

use super::{Exporter, ExporterSettings};
use crate::config::components::{Entry, Parse, TRACES, name};
use crate::config::options::{Kind, Opt, Section, opt};

/// An exporter into the process's trace store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DashboardExporter {
    /// What the store may hold.
    pub limits: Limits,
    /// The store also gets what comes to a `tail_sampling` of its pipeline, and what that decides.
    pub unsampled: bool,
}

impl ExporterSettings for DashboardExporter {
    fn is_ordered(&self) -> bool {
        true
    }

    fn trace_store(&self) -> Option<DashboardExporter> {
        Some(*self)
    }
}

#[rustfmt::skip]
const OPTIONS: &[Opt] = &[
    opt("max_bytes", Kind::Int(traces::BYTES_MIN as i64, i64::MAX), "67108864", "bytes of memory that the traces may take; the oldest go first"),
    opt("max_age", Kind::Duration, "1h", "traces that are older are forgotten"),
    opt("unsampled", Kind::Flag, "true", "traces that a `tail_sampling` of its pipeline drops are shown too, and dry runs evaluate them"),
];

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("dashboard")],
    doc: "the traces of the last minutes, in memory, for the dashboard (not in the Collector)",
    takes: TRACES,
    carries: TRACES,
    options: &[OPTIONS],
    parse: Parse::Exporter(parse),
};

fn parse(section: &Section<'_>) -> Exporter {
    let age_max_ms = section.duration_ns("max_age") / 1_000_000;
    if age_max_ms < 1000 {
        section.error("max_age", "must be a second at least");
    }
    Exporter::new(DashboardExporter {
        limits: Limits {
            bytes_max: section.int("max_bytes"),
            age_max_ms,
        },
        unsampled: section.flag("unsampled"),
    })
}
