//! Processors whose order defeats them.

use crate::config::components::Role;
use crate::config::components::id::ComponentId;
use crate::config::components::processors::order::{Order, Placed};
use crate::config::definitions::{Definitions, Settings};
use crate::config::diagnostic::{At, Notes};

/// Warns of an order that works, but not as one would think.
pub(super) fn check(
    parts: &[(ComponentId, At)],
    definitions: &Definitions,
    path: &str,
    notes: &Notes,
) {
    let settings = |id: &ComponentId| definitions.find(Role::Processor, id)?.settings.as_ref();
    let known = parts.iter().filter_map(|(id, at)| match settings(id) {
        Some(Settings::Processor(processor)) => Some((*at, (id, processor))),
        _ => None,
    });
    let (places, processors): (Vec<At>, Vec<Placed<'_>>) = known.unzip();
    for (index, (at, (id, processor))) in places.iter().zip(&processors).enumerate() {
        let order = Order {
            id,
            before: &processors[..index],
            after: &processors[index + 1..],
        };
        if let Some(message) = processor.misplaced(&order) {
            notes.warn(*at, format!("{path}: {message}"));
        }
    }
}
