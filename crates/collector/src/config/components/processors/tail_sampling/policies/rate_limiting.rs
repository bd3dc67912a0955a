//! `rate_limiting`: so many spans a second are kept.

use super::{Block, COUNT_MAX, Kind, PolicyKind, Section, Type, opt, rate};

#[rustfmt::skip]
pub(super) const TYPE: Type = Type {
    options: opt("rate_limiting", Kind::Section(&[&[
        opt("spans_per_second", Kind::Int(0, COUNT_MAX), "0", "spans a second that are kept"),
        opt("burst_capacity", Kind::Int(0, COUNT_MAX), "0", "and at once; 0: twice as many"),
    ]]), "", "options of type rate_limiting"),
    read,
    write,
};

fn read(options: &Section<'_>) -> Option<PolicyKind> {
    Some(PolicyKind::RateLimiting {
        spans_per_second: rate(options, "spans_per_second"),
        burst_capacity: options.int("burst_capacity"),
    })
}

fn write(kind: &PolicyKind, block: &mut Block<'_>) {
    if let PolicyKind::RateLimiting {
        spans_per_second,
        burst_capacity,
    } = kind
    {
        block.put("spans_per_second", spans_per_second);
        block.put_unless_zero("burst_capacity", *burst_capacity);
    }
}
