//! `trace_flags`: a trace is kept with a span whose flags say that it is sampled.

use super::{Block, Kind, PolicyKind, Section, Type, opt};

#[rustfmt::skip]
pub(super) const TYPE: Type = Type {
    options: opt("trace_flags", Kind::Any, "", "has no options").no_effect("trace_flags has no options"),
    read,
    write,
};

fn read(_: &Section<'_>) -> Option<PolicyKind> {
    Some(PolicyKind::TraceFlags)
}

fn write(_: &PolicyKind, _: &mut Block<'_>) {}
