//! `and`: several policies keep the trace.

use super::{Block, Kind, PolicyKind, SUB_OR_NOT, Section, Type, opt, policies};

#[rustfmt::skip]
pub(super) const TYPE: Type = Type {
    options: opt("and", Kind::Section(&[&[
        opt("and_sub_policy", Kind::Sections(SUB_OR_NOT), "", "policies that must all keep a trace"),
    ]]), "", "options of type and"),
    read,
    write,
};

fn read(options: &Section<'_>) -> Option<PolicyKind> {
    let policies = policies(options, "and_sub_policy", "it keeps every trace");
    Some(PolicyKind::And(policies))
}

fn write(kind: &PolicyKind, block: &mut Block<'_>) {
    if let PolicyKind::And(subs) = kind {
        block.subs("and_sub_policy", subs);
    }
}
