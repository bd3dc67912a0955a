//! `service::pipelines`: which of them can be started.
//!
//! A traces pipeline with a part that is missing is an error: a part of the spans is worse than
//! none. A pipeline of another signal is left out and listed, or an error with `--strict`. A part
//! that is not defined is always an error.

use syntax::suggest::closest;

use super::order;
use crate::config::Options;
use crate::config::components::id::ComponentId;
use crate::config::components::{Parse, Role, Signal};
use crate::config::definitions::{Definition, Definitions, Settings};
use crate::config::diagnostic::{At, Notes};
use crate::config::model::{NotStarted, Pipeline, PipelineId};
use crate::config::options::{Kind, Section, Table, check, opt};
use crate::config::source::{Key, Node, Value};

/// Options of a pipeline.
#[rustfmt::skip]
pub(crate) const TABLE: Table = &[&[
    opt("receivers", Kind::Texts, "", "where data come from: receivers and connectors (at least one)"),
    opt("processors", Kind::Texts, "", "what they pass, in this order"),
    opt("exporters", Kind::Texts, "", "where all of them go: exporters and connectors (at least one)"),
]];

/// A pipeline that is started, and its place.
pub(super) struct Found {
    pub pipeline: Pipeline,
    pub at: At,
}

/// A part of a pipeline that is missing.
struct Missing {
    role: Role,
    part: String,
    reason: String,
    at: At,
}

/// The pipelines that can be started, and those that cannot. Errors are noted.
pub(super) fn pipelines(
    service: &Section<'_>,
    definitions: &Definitions,
    options: &Options,
) -> (Vec<Found>, Vec<NotStarted>) {
    let notes = service.notes;
    let (mut started, mut not_started) = (Vec::new(), Vec::new());
    let node = service.written("pipelines");
    if node.is_none_or(|node| node.entries().is_empty()) {
        let is_map = node.is_none_or(|node| matches!(node.value, Value::Map(_)));
        service.error(
            "pipelines",
            if is_map {
                "there are none: nothing would run"
            } else {
                "must be a map of pipelines"
            },
        );
        return (started, not_started);
    }
    for (key, node) in node.map_or(&[][..], Node::entries) {
        let reader = PipelineReader {
            definitions,
            options,
            notes,
            path: format!("service::pipelines::{}", key.text),
        };
        match reader.pipeline(key, node) {
            Some(Ok(found)) => started.push(found),
            Some(Err(left)) => not_started.push(left),
            None => {}
        }
    }
    if started.is_empty() && !notes.has_errors() {
        service.error("pipelines", "none of them can be started");
    }
    (started, not_started)
}

/// What is told of a name that nothing defines.
pub(super) fn undefined(role: Role, id: &ComponentId, definitions: &Definitions) -> String {
    let connectors = matches!(role, Role::Receiver | Role::Exporter);
    let mut ids: Vec<String> = definitions.ids(role).collect();
    if connectors {
        ids.extend(definitions.ids(Role::Connector));
    }
    match closest(&id.to_string(), ids.iter().map(String::as_str)) {
        Some(other) => format!("the {role} '{id}' is not defined (did you mean '{other}'?)"),
        None => format!("the {role} '{id}' is not defined under '{}'", role.key()),
    }
}

/// What becomes of a part.
enum Part {
    Runs,
    /// The pipeline goes on without it, which was told.
    LeftOut,
    /// Nobody can run it; the error is noted.
    Wrong,
    /// It cannot be run here, for a reason.
    Missing(String),
}

/// What keeps a pipeline from being started.
#[derive(Default)]
struct Faults {
    missing: Vec<Missing>,
    /// An error was noted.
    is_wrong: bool,
}

struct PipelineReader<'a> {
    definitions: &'a Definitions,
    options: &'a Options,
    notes: &'a Notes,
    path: String,
}

impl PipelineReader<'_> {
    fn error(&self, at: At, message: &str) {
        self.notes.error(at, format!("{}: {message}", self.path));
    }

    /// A pipeline, or that it is left out; nothing where it is wrong, which is noted.
    fn pipeline(&self, key: &Key, node: &Node) -> Option<Result<Found, NotStarted>> {
        check(node, TABLE, &self.path, key.at, self.notes);
        let section = Section::new(Some(node), TABLE, self.path.clone(), key.at, self.notes);
        let id = match ComponentId::parse(&key.text) {
            Ok(id) => id,
            Err(reason) => {
                self.error(key.at, &reason);
                return None;
            }
        };
        let signal = Signal::ALL
            .into_iter()
            .find(|signal| signal.to_string() == id.kind);
        let Some(signal) = signal else {
            return self.other_signal(key, &id).map(Err);
        };
        let mut faults = Faults::default();
        let mut parts = |role| self.parts(&section, role, signal, &mut faults);
        let receivers = parts(Role::Receiver);
        let processors = parts(Role::Processor);
        let exporters = parts(Role::Exporter);
        for (role, parts) in [(Role::Receiver, &receivers), (Role::Exporter, &exporters)] {
            if section.texts(role.key()).is_empty() {
                self.error(key.at, &format!("has no {role}"));
                faults.is_wrong = true;
            } else if parts.is_empty() && faults.missing.is_empty() {
                faults.missing.push(Missing {
                    role,
                    part: section.texts(role.key()).join(", "),
                    reason: "is left out, and there is no other".to_owned(),
                    at: section.value_at(role.key()),
                });
            }
        }
        if faults.is_wrong {
            return None;
        }
        if let Some(first) = faults.missing.first() {
            return self
                .not_started(key, signal, first, &faults.missing)
                .map(Err);
        }
        order::check(&processors, self.definitions, &self.path, self.notes);
        let ids = |parts: Vec<(ComponentId, At)>| parts.into_iter().map(|(id, _)| id).collect();
        let pipeline = Pipeline {
            id: PipelineId {
                signal,
                name: id.name,
            },
            receivers: ids(receivers),
            processors: ids(processors),
            exporters: ids(exporters),
        };
        Some(Ok(Found {
            pipeline,
            at: key.at,
        }))
    }

    /// A pipeline of a signal that is not carried.
    fn other_signal(&self, key: &Key, id: &ComponentId) -> Option<NotStarted> {
        if id.kind != "profiles" {
            let names = Signal::ALL.map(|signal| signal.to_string());
            let hint = match closest(&id.kind, names.iter().map(String::as_str)) {
                Some(name) => format!(" (did you mean '{name}'?)"),
                None => String::new(),
            };
            let message = format!(
                "'{}' is no signal: traces, metrics and logs are{hint}",
                id.kind
            );
            self.error(key.at, &message);
            return None;
        }
        let reason = "profiles are not carried";
        self.left_out(key.at, reason)?;
        Some(NotStarted {
            pipeline: key.text.clone(),
            signal: None,
            part: None,
            reason: reason.to_owned(),
            place: self.notes.place(key.at),
        })
    }

    /// A pipeline that lacks parts: an error of traces, and with `--strict`.
    fn not_started(
        &self,
        key: &Key,
        signal: Signal,
        first: &Missing,
        missing: &[Missing],
    ) -> Option<NotStarted> {
        if signal == Signal::Traces {
            for Missing {
                role,
                part,
                reason,
                at,
            } in missing
            {
                let message =
                    format!("the {role} '{part}' {reason} ('--drop-part {part}' leaves it out)");
                self.error(*at, &message);
            }
            return None;
        }
        for part in missing {
            let message = format!("its {} '{}' {}", part.role, part.part, part.reason);
            self.left_out(part.at, &message);
        }
        (!self.options.strict).then(|| NotStarted {
            pipeline: key.text.clone(),
            signal: Some(signal),
            part: Some((first.role, first.part.clone())),
            reason: first.reason.clone(),
            place: self.notes.place(first.at),
        })
    }

    /// Tells that the pipeline is left out; nothing where that is an error.
    fn left_out(&self, at: At, reason: &str) -> Option<()> {
        let message = format!("{}: is not started: {reason}", self.path);
        if self.options.strict {
            self.notes.error(at, message);
            return None;
        }
        self.notes.warn(at, message);
        Some(())
    }

    /// The parts of a role that run, each with its place; what is missing or wrong is told to
    /// `faults`.
    fn parts(
        &self,
        section: &Section<'_>,
        role: Role,
        signal: Signal,
        faults: &mut Faults,
    ) -> Vec<(ComponentId, At)> {
        let mut parts: Vec<(ComponentId, At)> = Vec::new();
        for (text, at) in section.texts_at(role.key()) {
            let id = match ComponentId::parse(&text) {
                Ok(id) => id,
                Err(reason) => {
                    self.error(at, &reason);
                    faults.is_wrong = true;
                    continue;
                }
            };
            if parts.iter().any(|(other, _)| *other == id) {
                self.error(at, &format!("the {role} '{id}' is there twice"));
                faults.is_wrong = true;
                continue;
            }
            match self.part(role, &id, signal, at) {
                Part::Runs => parts.push((id, at)),
                Part::LeftOut => {}
                Part::Wrong => faults.is_wrong = true,
                Part::Missing(reason) => faults.missing.push(Missing {
                    role,
                    part: id.to_string(),
                    reason,
                    at,
                }),
            }
        }
        parts
    }

    /// Whether a part runs.
    fn part(&self, role: Role, id: &ComponentId, signal: Signal, at: At) -> Part {
        let connector = || self.definitions.find(Role::Connector, id);
        let definition = self.definitions.find(role, id);
        let definition = match role {
            Role::Receiver | Role::Exporter => definition.or_else(connector),
            _ => definition,
        };
        let Some(definition) = definition else {
            self.error(at, &undefined(role, id, self.definitions));
            return Part::Wrong;
        };
        definition.used.set(true);
        if self.options.drops(role, id) || self.options.drops(definition.role, id) {
            let message = format!(
                "{}: the {role} '{id}' is left out, as --drop-part says",
                self.path
            );
            self.notes.warn(at, message);
            return Part::LeftOut;
        }
        let entry = match &definition.entry {
            Ok(entry) => entry,
            Err(reason) => return Part::Missing(reason.clone()),
        };
        match entry.parse {
            Parse::Refused(reason) => {
                return Part::Missing(format!("is not supported: {reason}"));
            }
            Parse::LeftOut(reason) => {
                let message = format!("{}: '{id}' is left out: {reason}", self.path);
                self.notes.warn(at, message);
                return Part::LeftOut;
            }
            _ => {}
        }
        // Signals of connectors are checked once all pipelines are known.
        if definition.role == Role::Connector {
            return Part::Runs;
        }
        if !entry.takes.contains(&signal) {
            let takes: Vec<String> = entry.takes.iter().map(Signal::to_string).collect();
            let message = format!(
                "the {role} '{id}' takes no {signal}, but {}",
                takes.join(", ")
            );
            self.error(at, &message);
            return Part::Wrong;
        }
        if !entry.carries.contains(&signal) {
            return Part::Missing(format!("is not built in for {signal}"));
        }
        if has_no_address(definition, signal) {
            let message =
                format!("the exporter '{id}' has neither 'endpoint' nor '{signal}_endpoint'");
            self.error(at, &message);
            return Part::Wrong;
        }
        Part::Runs
    }
}

/// An exporter that names addresses of other signals only.
fn has_no_address(definition: &Definition, signal: Signal) -> bool {
    match &definition.settings {
        Some(Settings::Exporter(exporter)) => !exporter.has_address(signal),
        _ => false,
    }
}
