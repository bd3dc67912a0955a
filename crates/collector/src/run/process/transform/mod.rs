//! `transform`: statements in OTTL, carried out on the bytes of requests.
//!
//! A group of statements is one walk over a request. A statement that changes something writes the
//! message that it changes anew, which the next one reads; what no statement changes is copied as
//! it came.

mod apply;
mod flatten;
mod list;
mod map;
mod metric;
mod number;
mod scalar;
mod span_name;
mod walk;

use std::sync::Arc;

use otlp::Signal;
use otlp::scan::Keys;
use ottl::{Condition, Context, Statement, Told};
use tail::settings::ErrorMode;

use super::client::Clients;
use super::edit::{Edited, Outcome, hand_on, room_for};
use super::failures::{Failures, Fault};
use super::{ProcessorDeps, StartProcessor};
use crate::config::components::processors::statements::Group as GroupSettings;
use crate::config::components::processors::transform::Transform as Settings;
use crate::run::consume::{Consumer, Pass, Refused, Through};
use crate::run::data::Batch;
use crate::run::origin::Origin;

pub use walk::METRICS_ADDED_MAX;

/// See the module.
pub struct Transform {
    editor: Editor,
    next: Arc<dyn Consumer>,
}

/// What it does, without a place in a pipeline.
#[derive(Debug)]
pub struct Editor {
    /// By signal.
    groups: [Vec<Group>; Signal::ALL.len()],
    /// Log records get resources and scopes of their own.
    flattens: bool,
    clients: Clients,
    failures: Failures,
}

/// Statements of one context.
#[derive(Debug)]
struct Group {
    context: Context,
    error_mode: ErrorMode,
    /// With their texts, as all that follows.
    conditions: Vec<(String, Condition)>,
    statements: Vec<(String, Statement)>,
    /// All records of a request have one cache, with the other groups of this context; else each
    /// has one of its own.
    shares_cache: bool,
    /// Whether any statement or condition reads or writes a `schema_url`.
    reads_schemas: bool,
    /// Whether a statement may change the number of data points.
    counts: bool,
}

/// What statements keep for all records of a request, by their context.
type Caches = [Vec<u8>; Context::ALL.len()];

impl StartProcessor for Settings {
    fn start(
        &self,
        deps: ProcessorDeps<'_, '_>,
        next: Arc<dyn Consumer>,
    ) -> Result<Arc<dyn Consumer>, String> {
        let failures = Failures::new(&deps.id.to_string(), &deps.setup.log);
        Ok(Transform::new(self, failures, next)?)
    }
}

impl Transform {
    /// One before `next`.
    ///
    /// # Errors
    /// Which statement cannot be read, and why.
    pub fn new(
        settings: &Settings,
        failures: Failures,
        next: Arc<dyn Consumer>,
    ) -> Result<Arc<Transform>, String> {
        let editor = Editor::new(settings, failures)?;
        Ok(Arc::new(Transform { editor, next }))
    }
}

impl Editor {
    /// Compiles the settings.
    ///
    /// # Errors
    /// Which statement cannot be read, and why.
    pub fn new(settings: &Settings, failures: Failures) -> Result<Editor, String> {
        let groups = |signal: Signal| -> Result<Vec<Group>, String> {
            settings.of(signal).iter().map(group).collect()
        };
        let mut all: [Vec<Group>; Signal::ALL.len()] = Default::default();
        for signal in Signal::ALL {
            all[signal as usize] = groups(signal)?;
        }
        let mut clients = Clients::default();
        for group in all.iter().flatten() {
            for (_, condition) in &group.conditions {
                clients.add(condition.client());
            }
            for (_, statement) in &group.statements {
                clients.add(statement.client());
            }
        }
        Ok(Editor {
            groups: all,
            flattens: settings.flatten_data,
            clients,
            failures,
        })
    }

    /// Transforms a request of a signal. `origin` is the client metadata of the batch.
    ///
    /// # Errors
    /// It is malformed, or a statement failed whose failures are to be propagated.
    pub fn edit(
        &self,
        signal: Signal,
        request: &[u8],
        origin: Option<&Origin>,
    ) -> Result<Edited, Fault> {
        let groups = &self.groups[signal as usize];
        let told = self.clients.told(origin);
        let after = if self.flattens && signal == Signal::Logs && !groups.is_empty() {
            let flat = flatten::flatten(request)?;
            let after = self.run(groups, told.as_ref(), &flat)?;
            after.map(|after| flatten::regroup(&after)).transpose()?
        } else {
            self.run(groups, told.as_ref(), request)?
        };
        let Some(after) = after else {
            return Ok(Edited::default());
        };
        let mut edited = Edited {
            bytes: Some(after),
            ..Edited::default()
        };
        if groups.iter().any(|group| group.counts) {
            edited.count(signal, request)?;
        }
        Ok(edited)
    }

    /// Runs groups one after the other: what the request becomes; none where nothing changes.
    fn run(
        &self,
        groups: &[Group],
        client: Option<&Told>,
        request: &[u8],
    ) -> Result<Option<Vec<u8>>, Fault> {
        let mut current: Option<Vec<u8>> = None;
        let mut caches = Caches::default();
        for group in groups {
            let before = current.as_deref().unwrap_or(request);
            let mut out = room_for(before);
            let cache = &mut caches[group.context as usize];
            let outcome = walk::walk(group, client, &self.failures, before, cache, &mut out)?;
            if outcome != Outcome::Same {
                current = Some(out);
            }
        }
        Ok(current)
    }
}

fn group(settings: &GroupSettings) -> Result<Group, String> {
    let context = settings.context;
    let fault = |text: &str, error| format!("'{text}': {error}");
    let conditions = settings.conditions.iter().map(|text| {
        // Attributes are looked up where they are needed: statements change them.
        let parsed = Condition::parse(text, context, &mut Keys::default());
        Ok((text.clone(), parsed.map_err(|error| fault(text, error))?))
    });
    let statements = settings.statements.iter().map(|text| {
        let parsed = Statement::parse(text, context, false);
        Ok((text.clone(), parsed.map_err(|error| fault(text, error))?))
    });
    let conditions: Vec<(String, Condition)> = conditions.collect::<Result<_, String>>()?;
    let statements: Vec<(String, Statement)> = statements.collect::<Result<_, String>>()?;
    let reads_schemas = conditions.iter().any(|(_, one)| one.reads_schemas())
        || statements.iter().any(|(_, one)| one.reads_schemas());
    Ok(Group {
        context,
        error_mode: settings.error_mode,
        counts: statements.iter().any(|(_, one)| one.is_of_metrics()),
        conditions,
        statements,
        reads_schemas,
        shares_cache: settings.shares_cache,
    })
}

impl Through for Transform {
    fn pass<P: Pass>(&self, batch: Batch) -> Result<P::Taken, Box<Refused>> {
        let edited = self
            .editor
            .edit(batch.signal, &batch.bytes, batch.origin.as_deref());
        hand_on::<P>(&self.next, batch, edited)
    }

    fn next(&self) -> &dyn Consumer {
        &*self.next
    }
}
