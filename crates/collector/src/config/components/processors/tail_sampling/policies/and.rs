//! `and`: several policies keep the trace.

use tail::settings::PolicyKind;

use super::super::yaml::Block;
use super::{SUB_OR_NOT, Type, policies};
use crate::config::options::{Kind, Section, opt};

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
