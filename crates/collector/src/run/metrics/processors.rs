//! The metrics of processors, but for those that sample whole traces.

use super::sheet::Kind;
use super::{Sheet, items, records};
use crate::config::Signal;
use crate::config::service::telemetry::MetricsLevel;
use crate::run::process::batch::Batcher;
use crate::run::start::View;

pub(super) fn write(view: &View, page: &mut Sheet) {
    passages(view, page);
    limiters(view, page);
    if view.level > MetricsLevel::Basic {
        batches(view, page);
    }
    filters(view, page);
    samplers(view, page);
}

/// What goes in and comes out of each.
fn passages(view: &View, page: &mut Sheet) {
    for (name, is_in) in [("incoming", true), ("outgoing", false)] {
        let help = format!("records that are {name}");
        let name = format!("otelcol_processor_{name}_items");
        page.about(Kind::Counter, &name, "{item}", &help);
        for passage in &view.processors {
            let count = if is_in {
                passage.incoming()
            } else {
                passage.outgoing()
            };
            let signal = passage.signal.to_string();
            let labels = [
                ("otel_signal", &*signal),
                ("processor", &*passage.processor),
            ];
            page.point(&labels, count);
        }
    }
}

fn limiters(view: &View, page: &mut Sheet) {
    let is_limiter = |id: &str| id.split('/').next() == Some("memory_limiter");
    for signal in Signal::ALL {
        let what = records(signal);
        for (name, is_taken) in [("accepted", true), ("refused", false)] {
            let help = format!("{what} that were {name}");
            let name = format!("otelcol_processor_memory_limiter_{name}_{what}");
            page.about(Kind::Counter, &name, items(signal), &help);
            let own = view.processors.iter();
            let own = own.filter(|one| one.signal == signal && is_limiter(&one.processor));
            for passage in own {
                let count = if is_taken {
                    passage.incoming()
                } else {
                    passage.refused()
                };
                page.point(&[("processor", &passage.processor)], count);
            }
        }
    }
}

fn batches(view: &View, page: &mut Sheet) {
    const PREFIX: &str = "otelcol_processor_batch_";
    type Count = fn(&Batcher) -> u64;
    let numbers: [(&str, Kind, &'static str, Count); 3] = [
        (
            "metadata_cardinality",
            Kind::Gauge,
            "{combination}",
            |one| one.combinations(),
        ),
        ("batch_size_trigger_send", Kind::Counter, "{time}", |one| {
            one.counts.by_size()
        }),
        ("timeout_trigger_send", Kind::Counter, "{time}", |one| {
            one.counts.by_timeout()
        }),
    ];
    for (name, kind, unit, count) in numbers {
        page.about(
            kind,
            &format!("{PREFIX}{name}"),
            unit,
            "as in the Collector",
        );
        for (pipeline, id, batcher) in &view.batches {
            let labels = [("pipeline", pipeline.as_str()), ("processor", id)];
            page.point(&labels, count(batcher));
        }
    }
    let name = format!("{PREFIX}batch_send_size");
    page.about(Kind::Histogram, &name, "{unit}", "records of each batch");
    for (pipeline, id, batcher) in &view.batches {
        let labels = [("pipeline", pipeline.as_str()), ("processor", id)];
        page.counted(&labels, batcher.counts.sizes());
    }
}

/// By the name that a Prometheus reader makes of `otelcol_processor_filter_spans.filtered`.
fn filters(view: &View, page: &mut Sheet) {
    const NAME: &str = "otelcol_processor_filter_spans_filtered";
    page.about(Kind::Counter, NAME, "1", "as in the Collector");
    for (pipeline, id, filter) in &view.filters {
        let labels = [
            ("pipeline", pipeline.as_str()),
            ("processor", id),
            ("filter", id),
        ];
        page.point(&labels, filter.filtered());
    }
}

fn samplers(view: &View, page: &mut Sheet) {
    const PREFIX: &str = "otelcol_processor_probabilistic_sampler_count_";
    const NAMES: [(&str, &str, Signal); 3] = [
        ("traces_sampled", "{traces}", Signal::Traces),
        ("spans_processed_total", "{spans}", Signal::Traces),
        ("logs_sampled", "{logs}", Signal::Logs),
    ];
    for (what, unit, signal) in NAMES {
        let name = format!("{PREFIX}{what}");
        page.about(Kind::Counter, &name, unit, "as in the Collector");
        for one in view.samplers.iter().filter(|one| one.signal == signal) {
            for (policy, is_kept, count) in one.sampler.sampler.counts() {
                let labels = [
                    ("pipeline", one.pipeline.as_str()),
                    ("processor", &one.id),
                    ("policy", &policy),
                    ("sampled", if is_kept { "true" } else { "false" }),
                ];
                page.point(&labels, count);
            }
        }
    }
}
