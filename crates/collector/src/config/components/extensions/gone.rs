//! Extensions that the Collector had.

use crate::config::components::{Entry, Parse, name};

pub(crate) const MEMORY_BALLAST: Entry = Entry {
    names: &[name("memory_ballast")],
    doc: "removed from the Collector",
    takes: &[],
    carries: &[],
    options: &[],
    parse: Parse::LeftOut("it served Go's garbage collector, and there is none here"),
};
