//! Several sources as one: maps merge, lists and scalars are replaced, the later source wins.

use super::tree::{Node, Value};
use crate::config::diagnostic::Notes;

/// Puts `over` on top of `base`. The depth is that of the trees.
pub(super) fn merge(base: &mut Node, over: Node, notes: &Notes) {
    let Value::Map(entries) = over.value else {
        return;
    };
    let Value::Map(base_entries) = &mut base.value else {
        return;
    };
    for (key, node) in entries {
        let Some(index) = base_entries.iter().position(|(k, _)| k.text == key.text) else {
            base_entries.push((key, node));
            continue;
        };
        let (base_key, base_node) = &mut base_entries[index];
        let both_maps = matches!(
            (&base_node.value, &node.value),
            (Value::Map(_), Value::Map(_))
        );
        if both_maps {
            merge(base_node, node, notes);
            continue;
        }
        if node.is_null() && matches!(&base_node.value, Value::Map(map) if !map.is_empty()) {
            let message = format!(
                "'{}' is empty here and replaces the options of {}: leave the key out to keep them",
                key.text,
                notes.place(base_key.at)
            );
            notes.warn(key.at, message);
        }
        (*base_key, *base_node) = (key, node);
    }
}
