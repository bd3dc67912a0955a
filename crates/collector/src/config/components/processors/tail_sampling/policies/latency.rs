//! `latency`: a trace that takes long is kept.

use super::{Block, COUNT_MAX, Kind, PolicyKind, Section, Type, opt};

#[rustfmt::skip]
pub(super) const TYPE: Type = Type {
    options: opt("latency", Kind::Section(&[&[
        opt("threshold_ms", Kind::Int(0, COUNT_MAX), "0", "a trace that takes longer is kept"),
        opt("upper_threshold_ms", Kind::Int(0, COUNT_MAX), "0", "but not one that takes longer than this; 0: no bound"),
    ]]), "", "options of type latency"),
    read,
    write,
};

fn read(options: &Section<'_>) -> Option<PolicyKind> {
    let threshold_ms: u64 = options.int("threshold_ms");
    let upper_threshold_ms: u64 = options.int("upper_threshold_ms");
    if options.written("threshold_ms").is_none() {
        options.warn(
            "threshold_ms",
            "is not written: every trace that takes a millisecond is kept",
        );
    }
    if upper_threshold_ms > 0 && upper_threshold_ms <= threshold_ms {
        options.warn(
            "upper_threshold_ms",
            "is not above 'threshold_ms': nothing matches",
        );
    }
    Some(PolicyKind::Latency {
        threshold_ms,
        upper_threshold_ms,
    })
}

fn write(kind: &PolicyKind, block: &mut Block<'_>) {
    if let PolicyKind::Latency {
        threshold_ms,
        upper_threshold_ms,
    } = kind
    {
        block.put("threshold_ms", threshold_ms);
        block.put_unless_zero("upper_threshold_ms", *upper_threshold_ms);
    }
}
