//! The types of policies: a file and an entry of a table each.

mod always_sample;
mod and;
mod boolean_attribute;
mod bytes_limiting;
mod composite;
mod condition;
mod drop;
mod latency;
mod not;
mod numeric_attribute;
mod ottl_condition;
mod probabilistic;
mod rate_limiting;
mod span_count;
mod status_code;
mod string_attribute;
mod trace_flags;
mod trace_state;

use tail::settings::{Policy, PolicyKind};

use super::yaml::{Block, text, texts};
use crate::config::options::{COUNT_MAX, Kind, Opt, Section, Table, opt, required};

/// A type of policy.
#[derive(Clone, Copy)]
pub(super) struct Type {
    /// Its block of options, whose key is the name of the type.
    pub options: Opt,
    /// The policy of a block, or of the policy's section where the type has no block. Errors are
    /// noted.
    pub read: fn(&Section<'_>) -> Option<PolicyKind>,
    /// Writes the block of a policy of this type.
    pub write: fn(&PolicyKind, &mut Block<'_>),
}

/// Types that hold no other policies.
const LEAVES: [Type; 13] = [
    always_sample::TYPE,
    latency::TYPE,
    numeric_attribute::TYPE,
    probabilistic::TYPE,
    status_code::TYPE,
    string_attribute::TYPE,
    boolean_attribute::TYPE,
    trace_state::TYPE,
    trace_flags::TYPE,
    rate_limiting::TYPE,
    bytes_limiting::TYPE,
    span_count::TYPE,
    ottl_condition::TYPE,
];
/// Types that hold others.
const HOLDERS: [Type; 4] = [and::TYPE, not::TYPE, drop::TYPE, composite::TYPE];

const fn names<const N: usize>(types: &[Type; N]) -> [&'static str; N] {
    let mut names = [""; N];
    let mut at = 0;
    while at < N {
        names[at] = types[at].options.name;
        at += 1;
    }
    names
}

const fn blocks<const N: usize>(types: &[Type; N]) -> [Opt; N] {
    let mut blocks = [types[0].options; N];
    let mut at = 0;
    while at < N {
        blocks[at] = types[at].options;
        at += 1;
    }
    blocks
}

/// The leaves and these.
const fn leaves_and<const M: usize, const N: usize>(more: [Type; M]) -> [Type; N] {
    let mut types = [more[0]; N];
    let mut at = 0;
    while at < N {
        types[at] = if at < LEAVES.len() {
            LEAVES[at]
        } else {
            more[at - LEAVES.len()]
        };
        at += 1;
    }
    types
}

const ALL: [Type; 17] = leaves_and(HOLDERS);
const LEAVES_AND_NOT: [Type; 14] = leaves_and([not::TYPE]);
const LEAVES_AND_AND: [Type; 14] = leaves_and([and::TYPE]);

#[rustfmt::skip]
const NAME: Opt = opt("name", Kind::Text, "", "tells it from the others (required)");
#[rustfmt::skip]
const SUB_NAME: Opt = opt("name", Kind::Text, "", "tells it from the others");

const fn kind(names: &'static [&'static str]) -> Opt {
    required("type", Kind::Word(names), "what it asks")
}

/// Options of a policy of the list `policies`.
pub(crate) const POLICY: Table = &[&[NAME, kind(&names(&ALL))], &blocks(&ALL), MISPLACED];
const SUB_LEAF: Table = &[
    &[SUB_NAME, kind(&names(&LEAVES))],
    &blocks(&LEAVES),
    MISPLACED,
];
const SUB_OR_NOT: Table = &[
    &[SUB_NAME, kind(&names(&LEAVES_AND_NOT))],
    &blocks(&LEAVES_AND_NOT),
    MISPLACED,
];
const SUB_OR_AND: Table = &[
    &[SUB_NAME, kind(&names(&LEAVES_AND_AND))],
    &blocks(&LEAVES_AND_AND),
    MISPLACED,
];

/// Keys that are often written into a policy, and where they belong.
#[rustfmt::skip]
const MISPLACED: &[Opt] = &[
    opt("decision", Kind::Any, "", "no option").refused("a policy that drops traces has `type: drop`"),
    opt("sampling_percentage", Kind::Any, "", "no option here").refused("write `probabilistic: { sampling_percentage: … }`"),
    opt("percentage", Kind::Any, "", "no option").refused("write `probabilistic: { sampling_percentage: … }`"),
    opt("policies", Kind::Any, "", "no option here").refused("policies within a policy are in `and: { and_sub_policy: […] }` or the like"),
];

/// The type of this name.
pub(super) fn find(name: &str) -> Option<&'static Type> {
    const TYPES: &[Type] = &ALL;
    TYPES.iter().find(|one| one.options.name == name)
}

/// A policy; nothing where its type is none, which the table has told.
pub(super) fn policy(section: &Section<'_>) -> Option<Policy> {
    let name = section.text("type");
    let has_block = |one: &Type| matches!(one.options.kind, Kind::Section(_));
    for other in ALL.iter().filter(|other| has_block(other)) {
        let block = other.options.name;
        if block != name && section.has(block) && !name.is_empty() {
            let message = format!("means nothing to a policy of type '{name}'");
            section.warn(block, &message);
        }
    }
    let found = find(&name).filter(|_| section.knows(&name))?;
    let options = if has_block(found) {
        section.section(&name)
    } else {
        section.clone()
    };
    Some(Policy {
        name: section.text("name"),
        kind: (found.read)(&options)?,
    })
}

fn policies(options: &Section<'_>, name: &str, without: &str) -> Vec<Policy> {
    let sections = options.sections(name);
    if sections.is_empty() {
        options.warn(name, &format!("there are no policies: {without}"));
    }
    sections.iter().filter_map(policy).collect()
}

fn key(options: &Section<'_>) -> String {
    let key = options.text("key");
    if key.is_empty() {
        options.warn("key", "names no attribute: nothing matches");
    }
    key
}

fn rate(options: &Section<'_>, name: &str) -> u64 {
    let rate = options.int(name);
    if rate == 0 {
        options.warn(name, "is 0: no trace is kept");
    }
    rate
}
