//! Dimensions: attributes by which connectors tell series of metrics apart.

use crate::config::options::{Kind, Section, Table, opt};

/// An attribute of metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dimension {
    /// Its key: of the span, the event or the resource, whichever has it first.
    pub name: String,
    /// Its value where none has it; none: it is left out.
    pub default: Option<String>,
}

/// Default attributes, which no dimension may have the name of.
const RESERVED: [&str; 4] = ["service.name", "span.name", "span.kind", "status.code"];

/// Options of one dimension.
#[rustfmt::skip]
pub(crate) const DIMENSION: Table = &[&[
    opt("name", Kind::Text, "", "an attribute of the span, of the event (for `events` and `exceptions`), or of the resource, whichever has it first"),
    opt("default", Kind::Any, "", "its value where none has it, a text; without one the metric lacks it"),
    opt("glob", Kind::Text, "", "attributes by a pattern").refused("write the names"),
]];

/// The dimensions under a key. A name may be there once, and not among the default attributes or
/// those of all metrics.
pub(crate) fn dimensions(section: &Section<'_>, key: &str, others: &[Dimension]) -> Vec<Dimension> {
    let mut all: Vec<Dimension> = Vec::new();
    for one in section.sections(key) {
        let name = one.text("name");
        let is_known = |dimension: &Dimension| dimension.name == name;
        if name.is_empty() {
            one.error("name", "must name an attribute");
        } else if RESERVED.contains(&&*name) || all.iter().chain(others).any(is_known) {
            one.error("name", &format!("duplicate dimension name {name}"));
        }
        let default = one.written("default").map(|node| match node.text() {
            Some(text) => text.to_owned(),
            None => node.shown(),
        });
        all.push(Dimension { name, default });
    }
    all
}
