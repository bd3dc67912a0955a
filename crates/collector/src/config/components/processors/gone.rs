//! Processors that the Collector had.

use crate::config::components::{EVERY, Entry, Parse, name};

pub(crate) const QUEUED_RETRY: Entry = Entry {
    names: &[name("queued_retry")],
    doc: "removed from the Collector",
    takes: EVERY,
    carries: EVERY,
    options: &[],
    parse: Parse::LeftOut("exporters have 'sending_queue' and 'retry_on_failure'"),
};
