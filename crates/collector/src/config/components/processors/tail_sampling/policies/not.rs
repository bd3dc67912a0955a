//! `not`: the answer of a policy turned round.

use super::{Block, Kind, PolicyKind, SUB_LEAF, Section, Type, opt, policy};

#[rustfmt::skip]
pub(super) const TYPE: Type = Type {
    options: opt("not", Kind::Section(&[&[
        opt("not_sub_policy", Kind::Section(SUB_LEAF), "", "the policy whose answer is turned round"),
    ]]), "", "options of type not"),
    read,
    write,
};

fn read(options: &Section<'_>) -> Option<PolicyKind> {
    if options.written("not_sub_policy").is_none() {
        options.error("not_sub_policy", "must be a policy");
    }
    let inner = policy(&options.section("not_sub_policy"))?;
    Some(PolicyKind::Not(Box::new(inner)))
}

fn write(kind: &PolicyKind, block: &mut Block<'_>) {
    if let PolicyKind::Not(inner) = kind {
        block.sub("not_sub_policy", inner);
    }
}
