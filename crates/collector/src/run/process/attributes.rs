//! `attributes`: attributes of spans, log records and data points, changed.

use std::sync::Arc;

use otlp::scan::Malformed;

use super::action::Actions;
use super::edit::{Edited, List, Outcome, edit_records, hand_on, room_for};
use super::matching::Matcher;
use super::{ProcessorDeps, StartProcessor};
use crate::config::Signal;
use crate::config::components::processors::attributes::Attributes as Settings;
use crate::run::consume::{Consumer, Pass, Refused, Through};
use crate::run::data::Batch;
use crate::run::origin::Origin;

/// See the module.
pub struct Attributes {
    editor: Editor,
    next: Arc<dyn Consumer>,
}

/// What it does, without a place in a pipeline.
#[derive(Debug)]
pub struct Editor {
    include: Option<Matcher>,
    exclude: Option<Matcher>,
    actions: Actions,
}

impl StartProcessor for Settings {
    fn start(
        &self,
        _: ProcessorDeps<'_, '_>,
        next: Arc<dyn Consumer>,
    ) -> Result<Arc<dyn Consumer>, String> {
        let attributes = start(self, next)?;
        Ok(attributes)
    }
}

/// One before `next`.
///
/// # Errors
/// Which expression cannot be compiled, and why.
pub fn start(settings: &Settings, next: Arc<dyn Consumer>) -> Result<Arc<Attributes>, String> {
    let editor = Editor::new(settings)?;
    Ok(Arc::new(Attributes { editor, next }))
}

impl Editor {
    /// Compiles the settings.
    ///
    /// # Errors
    /// Which expression cannot be compiled, and why.
    pub fn new(settings: &Settings) -> Result<Editor, String> {
        let matcher = |matching: &Option<_>| matching.as_ref().map(Matcher::new).transpose();
        Ok(Editor {
            include: matcher(&settings.include)?,
            exclude: matcher(&settings.exclude)?,
            actions: Actions::new(&settings.actions)?,
        })
    }

    /// What a request becomes that came from somewhere.
    ///
    /// # Errors
    /// It is malformed.
    pub fn edit(
        &self,
        signal: Signal,
        request: &[u8],
        origin: Option<&Origin>,
    ) -> Result<Edited, Malformed> {
        let mut out = room_for(request);
        let mut list = List::default();
        let outcome = edit_records(
            signal,
            request,
            &mut out,
            &mut |kind, around, record, out| {
                let key = kind.attributes_key();
                list.read(record, key)?;
                let is_in = |matcher: &Option<Matcher>, unless: bool| match matcher {
                    Some(matcher) => matcher.matches(kind, around, record, &list),
                    None => Ok(unless),
                };
                if !is_in(&self.include, true)? || is_in(&self.exclude, false)? {
                    return Ok(Outcome::Same);
                }
                self.actions.apply(&mut list, origin);
                Ok(list.write(record, key, out))
            },
        )?;
        Ok(Edited::new(outcome, out, 0))
    }
}

impl Through for Attributes {
    fn pass<P: Pass>(&self, batch: Batch) -> Result<P::Taken, Box<Refused>> {
        let origin = batch.origin.as_deref();
        let edited = self.editor.edit(batch.signal, &batch.bytes, origin);
        hand_on::<P>(&self.next, batch, edited)
    }

    fn next(&self) -> &dyn Consumer {
        &*self.next
    }
}
