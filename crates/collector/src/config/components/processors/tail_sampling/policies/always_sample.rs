//! `always_sample`: every trace is kept.

use super::{Block, Kind, PolicyKind, Section, Type, opt};

#[rustfmt::skip]
pub(super) const TYPE: Type = Type {
    options: opt("always_sample", Kind::Any, "", "has no options").no_effect("always_sample has no options"),
    read,
    write,
};

fn read(_: &Section<'_>) -> Option<PolicyKind> {
    Some(PolicyKind::AlwaysSample)
}

fn write(_: &PolicyKind, _: &mut Block<'_>) {}
