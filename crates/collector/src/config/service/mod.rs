//! `service`: which of the components run, and how they are joined.

mod auth;
mod connect;
pub mod context;
mod order;
pub(crate) mod pipelines;
pub(crate) mod storage;
pub mod telemetry;

use super::components::id::ComponentId;
use super::components::{Parse, Role};
use super::definitions::{Definition, Definitions, Settings};
use super::diagnostic::{At, Notes};
use super::model::{Component, Config, NotStarted, Pipeline};
use super::options::{Kind, Section, Table, check, opt};
use super::source::Node;
use super::{Options, is_part};
use export::client::Proxies;

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
    storage::check(&definitions, &extensions, notes);
    auth::check(&definitions, &extensions, notes);
    unused(&definitions, notes);
    let telemetry = telemetry::telemetry(&section.section("telemetry"));
    let started = pipelines.iter().map(|found| found.pipeline.clone());
    let mut config = assemble(
        definitions,
        started.collect(),
        not_started,
        extensions,
        telemetry,
        notes,
    );
    storage::resolve(&mut config);
    storage::one_each(&config, &pipelines, notes);
    context::check(&config, &pipelines, notes);
    Some(config)
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
        proxies: Proxies::default(),
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
