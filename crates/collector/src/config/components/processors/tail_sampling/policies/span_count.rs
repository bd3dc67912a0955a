//! `span_count`: a trace has so many spans.

use super::{Block, COUNT_MAX, Kind, PolicyKind, Section, Type, opt};

#[rustfmt::skip]
pub(super) const TYPE: Type = Type {
    options: opt("span_count", Kind::Section(&[&[
        opt("min_spans", Kind::Int(0, COUNT_MAX), "0", "least number of spans"),
        opt("max_spans", Kind::Int(0, COUNT_MAX), "0", "largest number of spans; 0: no bound"),
    ]]), "", "options of type span_count"),
    read,
    write,
};

fn read(options: &Section<'_>) -> Option<PolicyKind> {
    let (min, max): (u64, u64) = (options.int("min_spans"), options.int("max_spans"));
    if max > 0 && max < min {
        options.warn("max_spans", "is below 'min_spans': nothing matches");
    }
    Some(PolicyKind::SpanCount { min, max })
}

fn write(kind: &PolicyKind, block: &mut Block<'_>) {
    if let PolicyKind::SpanCount { min, max } = kind {
        block.put("min_spans", min);
        block.put_unless_zero("max_spans", *max);
    }
}
