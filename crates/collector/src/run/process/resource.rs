//! `resource`: attributes of resources, changed.

use std::sync::Arc;

use otlp::scan::{Malformed, RESOURCE_ATTRIBUTES};

use super::action::Actions;
use super::edit::{Edited, List, edit_resources, hand_on, room_for};
use super::{ProcessorDeps, StartProcessor};
use crate::config::components::processors::resource::Resource as Settings;
use crate::run::consume::{Consumer, Pass, Refused, Through};
use crate::run::data::Batch;
use crate::run::origin::Origin;

/// See the module.
pub struct Resource {
    editor: Editor,
    next: Arc<dyn Consumer>,
}

/// What it does, without a place in a pipeline.
#[derive(Debug)]
pub struct Editor(Actions);

impl StartProcessor for Settings {
    fn start(
        &self,
        _: ProcessorDeps<'_, '_>,
        next: Arc<dyn Consumer>,
    ) -> Result<Arc<dyn Consumer>, String> {
        let editor = Editor::new(self)?;
        Ok(Arc::new(Resource { editor, next }))
    }
}

impl Editor {
    /// Compiles the settings.
    ///
    /// # Errors
    /// Which expression cannot be compiled, and why.
    pub fn new(settings: &Settings) -> Result<Editor, String> {
        Actions::new(&settings.actions).map(Editor)
    }

    /// What a request of any signal becomes that came from somewhere.
    ///
    /// # Errors
    /// It is malformed.
    pub fn edit(&self, request: &[u8], origin: Option<&Origin>) -> Result<Edited, Malformed> {
        let mut out = room_for(request);
        let outcome = edit_resources(request, &mut out, &mut |resource, out| {
            let mut list = List::default();
            list.read(resource, RESOURCE_ATTRIBUTES)?;
            self.0.apply(&mut list, origin);
            Ok(list.write(resource, RESOURCE_ATTRIBUTES, out))
        })?;
        Ok(Edited::new(outcome, out, 0))
    }
}

impl Through for Resource {
    fn pass<P: Pass>(&self, batch: Batch) -> Result<P::Taken, Box<Refused>> {
        let edited = self.editor.edit(&batch.bytes, batch.origin.as_deref());
        hand_on::<P>(&self.next, batch, edited)
    }

    fn next(&self) -> &dyn Consumer {
        &*self.next
    }
}
