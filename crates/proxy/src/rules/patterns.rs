//! Rules that edit pattern sets: `add-acl`, `del-acl`, `set-map`, `del-map` (manual §4.4).

use config::model::{PatternChange, PatternEdit};
use sample::Bytes;

use super::Cx;
use crate::stream::Stream;

impl Cx<'_> {
    /// Executes an edit. A key that is not valid for the set's methods is ignored, as in HAProxy.
    pub fn edit_patterns(&self, stream: &Stream, edit: &PatternEdit) {
        let mut key = Bytes::buffer();
        self.eval().render(stream, &edit.key, key.as_vec());
        let done = match &edit.change {
            PatternChange::Add => edit.set.add_if_new(&key, b""),
            PatternChange::Set(format) => {
                let mut value = Bytes::buffer();
                self.eval().render(stream, format, value.as_vec());
                edit.set.set_or_add(&key, &value)
            }
            PatternChange::Remove => edit.set.remove(&key),
        };
        drop(done);
    }
}
