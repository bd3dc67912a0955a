//! `groupbytrace`: spans wait until their trace is whole.

use tail::settings::{Emit, GroupByTrace};

use super::order::{Order, Traces};
use super::{Processor, ProcessorSettings, Storage};
use crate::config::components::id::ComponentId;
use crate::config::components::shared::storage;
use crate::config::components::{Entry, Parse, TRACES, name};
use crate::config::options::{Kind, Opt, Section, opt};

impl ProcessorSettings for GroupByTrace {
    fn storage(&self) -> Storage {
        match &self.storage {
            None if self.store_on_disk => Storage::Only,
            storage => Storage::of_option(storage.as_ref()),
        }
    }

    fn with_storage(&self, storage: &ComponentId) -> Option<Processor> {
        Some(Processor::new(GroupByTrace {
            storage: Some(storage.to_string()),
            ..self.clone()
        }))
    }

    fn traces(&self) -> Traces {
        Traces::Groups
    }

    fn misplaced(&self, order: &Order<'_>) -> Option<String> {
        let (id, sampler) = (order.id, order.earlier(Traces::Samples)?);
        Some(format!(
            "'{id}' after '{sampler}' waits once more for traces that are whole already"
        ))
    }
}

#[rustfmt::skip]
const OPTIONS: &[Opt] = &[
    opt("wait_duration", Kind::Duration, "1s", "a trace goes on after this time"),
    opt("num_traces", Kind::Int(1, i64::MAX), "1000000", "traces that wait; the oldest leaves for one more"),
    opt("num_workers", Kind::Int(1, u32::MAX as i64), "1", "parts that the traces are spread over"),
    opt("discard_orphans", Kind::Flag, "false", "traces whose root has not come by then are dropped (the Collector refuses it)"),
    opt("store_on_disk", Kind::Flag, "false", "what waits is kept on the disk too, in the only `file_storage` that there is"),
    opt("storage", Kind::Text, "", "id of the extension that keeps what waits over the end of the process (not in the Collector)"),
    opt("emit_strategy", Kind::Word(&["trace", "service"]), "trace", "what goes on together: a trace, or a service's part of it"),
    opt("num_events", Kind::Any, "", "gone from the Collector").no_effect("there is no queue of events to size"),
];

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("groupbytrace")],
    doc: "keeps spans until their trace is whole",
    takes: TRACES,
    carries: TRACES,
    options: &[OPTIONS],
    parse: Parse::Processor(parse),
};

fn parse(section: &Section<'_>) -> Processor {
    let settings = GroupByTrace {
        wait_ns: section.duration_ns("wait_duration"),
        traces_max: section.int("num_traces"),
        workers: section.int("num_workers"),
        discard_orphans: section.flag("discard_orphans"),
        store_on_disk: section.flag("store_on_disk"),
        emit: section.choice(
            "emit_strategy",
            &[("trace", Emit::Trace), ("service", Emit::Service)],
        ),
        storage: storage::storage(section).map(|id| id.to_string()),
    };
    if settings.wait_ns > 0 && settings.wait_ns < 1_000_000 {
        section.warn(
            "wait_duration",
            "is less than a millisecond: is the unit missing?",
        );
    }
    Processor::new(settings)
}
