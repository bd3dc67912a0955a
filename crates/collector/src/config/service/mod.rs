//! `service`: which of the components run, and how they are joined.

mod connect;
mod order;
pub(crate) mod pipelines;
pub mod telemetry;

use super::components::exporters::Exporter;
use super::components::extensions::Extension;
use super::components::id::ComponentId;
use super::components::{Parse, Role};
use super::definitions::{Definition, Definitions, Settings};
use super::diagnostic::{At, Notes};
use super::model::{Component, Config, NotStarted, Pipeline};
use super::options::{Kind, Section, Table, check, opt};
use super::source::Node;
use super::{Options, is_part, shared::queue::Queue};

/// Options of `service`.
#[rustfmt::skip]
pub(crate) const TABLE: Table = &[&[
    opt("extensions", Kind::Texts, "", "extensions that run, in this order"),
    opt("pipelines", Kind::Any, "", "ways of the data, by signal and name (required)"),
    opt("telemetry", Kind::Section(telemetry::TABLE), "", "of the collector itself"),
]];

/// What runs. `None` where that cannot be told; `notes` says why.
pub(crate) fn service(
    root: &Node,
    definitions: Definitions,
    options: &Options,
    notes: &Notes,
) -> Option<Config> {
    let start = At {
        file: 0,
        line: 1,
        column: 1,
    };
    let Some((key, node)) = root.entry("service") else {
        notes.error(start, "service: is missing: nothing would run");
        return None;
    };
    check(node, TABLE, "service", key.at, notes);
    let section = Section::new(Some(node), TABLE, "service".to_owned(), key.at, notes);
    let extensions = extensions(&section, &definitions);
    drop_parts_are_defined(options, &definitions, notes);
    let (pipelines, not_started) = pipelines::pipelines(&section, &definitions, options);
    connect::check(&pipelines, &definitions, notes);
    storages_run(&definitions, &extensions, notes);
    unused(&definitions, notes);
    let telemetry = telemetry::telemetry(&section.section("telemetry"));
    let pipelines = pipelines.into_iter().map(|found| found.pipeline).collect();
    Some(assemble(
        definitions,
        pipelines,
        not_started,
        extensions,
        telemetry,
        notes,
    ))
}

/// The extensions that run.
fn extensions(service: &Section<'_>, definitions: &Definitions) -> Vec<ComponentId> {
    let mut running = Vec::new();
    for (text, at) in service.texts_at("extensions") {
        let refuse = |reason: String| {
            let message = format!("service::extensions: {reason}");
            service.notes.error(at, message);
        };
        let id = match ComponentId::parse(&text) {
            Ok(id) => id,
            Err(reason) => {
                refuse(reason);
                continue;
            }
        };
        let Some(definition) = definitions.find(Role::Extension, &id) else {
            refuse(pipelines::undefined(Role::Extension, &id, definitions));
            continue;
        };
        definition.used.set(true);
        match &definition.entry {
            Err(reason) => refuse(format!("'{id}' {reason}")),
            Ok(entry) => match entry.parse {
                Parse::Refused(reason) => refuse(format!("'{id}' is not supported: {reason}")),
                Parse::LeftOut(reason) => {
                    let message = format!("service::extensions: '{id}' is left out: {reason}");
                    service.notes.warn(at, message);
                }
                _ if running.contains(&id) => refuse(format!("'{id}' is there twice")),
                _ => running.push(id),
            },
        }
    }
    running
}

/// `--drop-part` names components.
fn drop_parts_are_defined(options: &Options, definitions: &Definitions, notes: &Notes) {
    for part in &options.drop_parts {
        let defined = definitions
            .iter()
            .any(|one| is_part(part, one.role, &one.id));
        if !defined {
            let message = format!("--drop-part names '{part}', which is not defined");
            notes.error(At::default(), message);
        }
    }
}

/// The storages of queues are extensions that run.
fn storages_run(definitions: &Definitions, running: &[ComponentId], notes: &Notes) {
    for definition in definitions.iter() {
        let Some(storage) = queue(definition).and_then(|queue| queue.storage.as_ref()) else {
            continue;
        };
        let path = format!("exporters::{}::sending_queue::storage", definition.id);
        let extension = definitions.find(Role::Extension, storage);
        let settings = extension.and_then(|extension| extension.settings.as_ref());
        let message = match settings {
            Some(Settings::Extension(Extension::FileStorage(_))) if running.contains(storage) => {
                continue;
            }
            Some(Settings::Extension(Extension::FileStorage(_))) => {
                format!("{path}: '{storage}' is not in service::extensions")
            }
            Some(_) => format!("{path}: '{storage}' is no storage"),
            None => format!("{path}: '{storage}' is no extension that is defined and built in"),
        };
        // An exporter that does not run needs no storage.
        match definition.used.get() {
            true => notes.error(definition.at, message),
            false => notes.warn(definition.at, message),
        }
    }
}

fn queue(definition: &Definition) -> Option<&Queue> {
    match &definition.settings {
        Some(Settings::Exporter(Exporter::OtlpGrpc(exporter))) => exporter.queue.as_ref(),
        Some(Settings::Exporter(Exporter::OtlpHttp(exporter))) => exporter.queue.as_ref(),
        _ => None,
    }
}

/// Warns of components that nothing names: they are not started.
fn unused(definitions: &Definitions, notes: &Notes) {
    for definition in definitions.iter().filter(|one| !one.used.get()) {
        let (role, id) = (definition.role, &definition.id);
        let nowhere = match role {
            Role::Extension => "is not in service::extensions",
            _ => "is in no pipeline",
        };
        let more = match &definition.entry {
            Err(reason) => format!("; it {reason}"),
            Ok(_) => String::new(),
        };
        let message = format!("{}::{id}: {nowhere} and is not started{more}", role.key());
        notes.warn(definition.at, message);
    }
}

/// Puts together what runs.
fn assemble(
    definitions: Definitions,
    pipelines: Vec<Pipeline>,
    not_started: Vec<NotStarted>,
    extensions: Vec<ComponentId>,
    telemetry: telemetry::Telemetry,
    notes: &Notes,
) -> Config {
    let mut config = Config {
        receivers: Vec::new(),
        processors: Vec::new(),
        exporters: Vec::new(),
        connectors: Vec::new(),
        extensions: Vec::new(),
        pipelines,
        not_started,
        telemetry,
        warnings: Vec::new(),
    };
    let mut named: std::collections::HashSet<(Role, ComponentId)> = extensions
        .iter()
        .map(|id| (Role::Extension, id.clone()))
        .collect();
    for pipeline in &config.pipelines {
        let parts = [
            (&pipeline.receivers, &[Role::Receiver, Role::Connector][..]),
            (&pipeline.processors, &[Role::Processor]),
            (&pipeline.exporters, &[Role::Exporter, Role::Connector]),
        ];
        for (ids, roles) in parts {
            let pairs = ids
                .iter()
                .flat_map(|id| roles.iter().map(|role| (*role, id.clone())));
            named.extend(pairs);
        }
    }
    for definition in definitions.into_iter() {
        let Definition {
            role,
            id,
            at,
            settings,
            ..
        } = definition;
        if !named.contains(&(role, id.clone())) {
            continue;
        }
        let place = notes.place(at);
        match settings {
            Some(Settings::Receiver(settings)) => {
                config.receivers.push(Component {
                    id,
                    place,
                    settings,
                });
            }
            Some(Settings::Processor(settings)) => {
                config.processors.push(Component {
                    id,
                    place,
                    settings,
                });
            }
            Some(Settings::Exporter(settings)) => {
                config.exporters.push(Component {
                    id,
                    place,
                    settings,
                });
            }
            Some(Settings::Extension(settings)) => {
                config.extensions.push(Component {
                    id,
                    place,
                    settings,
                });
            }
            Some(Settings::Connector(settings)) => {
                config.connectors.push(Component {
                    id,
                    place,
                    settings,
                });
            }
            None => {}
        }
    }
    let rank = |id: &ComponentId| extensions.iter().position(|other| other == id);
    config
        .extensions
        .sort_by_key(|extension| rank(&extension.id));
    config
}
