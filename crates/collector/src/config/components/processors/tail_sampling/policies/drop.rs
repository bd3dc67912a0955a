//! `drop`: the trace is dropped where several policies match.

use super::{Block, Kind, PolicyKind, SUB_OR_NOT, Section, Type, opt, policies};

#[rustfmt::skip]
pub(super) const TYPE: Type = Type {
    options: opt("drop", Kind::Section(&[&[
        opt("drop_sub_policy", Kind::Sections(SUB_OR_NOT), "", "policies that must all match for a trace to be dropped"),
    ]]), "", "options of type drop"),
    read,
    write,
};

fn read(options: &Section<'_>) -> Option<PolicyKind> {
    let policies = policies(options, "drop_sub_policy", "it drops every trace");
    Some(PolicyKind::Drop(policies))
}

fn write(kind: &PolicyKind, block: &mut Block<'_>) {
    if let PolicyKind::Drop(subs) = kind {
        block.subs("drop_sub_policy", subs);
    }
}
