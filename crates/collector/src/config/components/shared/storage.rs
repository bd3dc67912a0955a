//! `storage`: the extension that keeps something over a restart.

use crate::config::components::id::ComponentId;
use crate::config::options::Section;

/// The id that the option `storage` has; none where it is not written, or is none.
pub(crate) fn storage(section: &Section<'_>) -> Option<ComponentId> {
    match ComponentId::parse(&section.text_unless_empty("storage")?) {
        Ok(id) => Some(id),
        Err(reason) => {
            section.error("storage", &reason);
            None
        }
    }
}
