//! Reserved places for backends that are added at run time (`add backend`, management guide §9.3).
//!
//! An added backend starts from a named `defaults` section. Everything that it can become is built
//! with the configuration, so that the running configuration never changes: it has its index, its
//! counters and its compiled rules, and gets a name later. Without a previous configuration, the
//! reserved places are behind all others ([`super::previous::Places`]).

use super::previous::WantedReserve;
use super::proxy::mode_named;
use crate::model::{Mode, NamedDefaults};
use crate::tree::{Section, Tree};

/// Backends of each mode that can be added from one `defaults` section.
pub const RESERVE_BACKENDS_MAX: usize = 32;
/// Backends that can be added from all sections together.
pub const RESERVE_BACKENDS_TOTAL_MAX: usize = 512;

/// The modes that an added backend may have.
const MODES: [Mode; 2] = [Mode::Http, Mode::Tcp];

/// A reserved place: its `defaults` section and its mode.
#[derive(Clone, Copy, Debug)]
pub struct Place<'t> {
    /// The section.
    pub section: &'t Section,
    /// The section's index among the named ones.
    pub defaults: usize,
    /// The mode.
    pub mode: Mode,
}

/// The named `defaults` sections.
fn named(tree: &Tree) -> impl Iterator<Item = (&Section, &str)> {
    let defaults = tree.sections.iter();
    let defaults = defaults.filter(|section| section.kind() == "defaults");
    defaults.filter_map(|section| {
        let name = section.name()?.text.as_str();
        (name != "from").then_some((section, name))
    })
}

/// The properties of the named `defaults` sections.
pub fn named_defaults(tree: &Tree) -> Vec<NamedDefaults> {
    let all = named(tree).map(|(section, name)| {
        let lines = section.statements.iter().rev();
        let mut modes = lines.filter(|line| line.keyword() == "mode");
        NamedDefaults {
            name: name.to_owned(),
            mode: modes.next().and_then(|line| mode_named(line.arg(1))),
        }
    });
    all.collect()
}

/// The reserved places of a configuration. There are none if no command can add a backend: without
/// a `stats socket`, or without a named `defaults`.
pub fn places(tree: &Tree) -> Vec<Place<'_>> {
    let globals = tree.sections.iter();
    let mut lines = globals
        .filter(|section| section.kind() == "global")
        .flat_map(|section| &section.statements);
    if !lines.any(|line| line.keyword() == "stats" && line.arg(1) == "socket") {
        return Vec::new();
    }
    let count = named(tree).count() * MODES.len();
    let each = RESERVE_BACKENDS_MAX.min(RESERVE_BACKENDS_TOTAL_MAX / count.max(1));
    let mut places = Vec::new();
    for (defaults, (section, _)) in named(tree).enumerate() {
        for mode in MODES {
            let place = Place {
                section,
                defaults,
                mode,
            };
            places.extend(std::iter::repeat_n(place, each));
        }
    }
    places
}

/// What [`places`] needs places for, in the same order.
pub fn wanted(tree: &Tree) -> Vec<WantedReserve<'_>> {
    let wanted = places(tree).into_iter().map(|place| WantedReserve {
        defaults: place.section.name().map_or("", |word| &word.text),
        mode: place.mode,
    });
    wanted.collect()
}
