//! Places for backends that are added while traffic runs (`add backend`, management guide §9.3).
//!
//! A backend that is added starts from a `defaults` section that has a name. All that it may be is built with the configuration,
//! so that what is running never changes: it has its place, its counters and its compiled rules, and gets a name later.

use super::proxy::mode_named;
use crate::model::{Mode, NamedDefaults};
use crate::tree::{Section, Tree};

/// Backends of each mode that can be added from one `defaults` section.
pub const RESERVE_BACKENDS_MAX: usize = 32;
/// Backends that can be added from all of them.
pub const RESERVE_BACKENDS_TOTAL_MAX: usize = 512;

/// The modes that a backend which is added may have.
const MODES: [Mode; 2] = [Mode::Http, Mode::Tcp];

/// A place: the `defaults` section it starts from, and its mode.
#[derive(Clone, Copy, Debug)]
pub struct Place<'t> {
    /// The section.
    pub section: &'t Section,
    /// Its place among those that have a name.
    pub defaults: usize,
    /// The mode.
    pub mode: Mode,
}

/// The sections `defaults` that have a name.
fn named(tree: &Tree) -> impl Iterator<Item = (&Section, &str)> {
    let defaults = tree.sections.iter();
    let defaults = defaults.filter(|section| section.kind() == "defaults");
    defaults.filter_map(|section| {
        let name = section.name()?.text.as_str();
        (name != "from").then_some((section, name))
    })
}

/// What is known of the sections `defaults` that have a name.
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

/// The places of a configuration. There are none where no command can add a backend: without a `stats socket`, and without a named
/// `defaults`.
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
