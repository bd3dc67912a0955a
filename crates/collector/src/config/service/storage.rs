//! `storage`: what is kept over the end of the process, and where.

use std::collections::BTreeSet;

use super::pipelines::Found;
use crate::config::components::Role;
use crate::config::components::extensions::Extension;
use crate::config::components::id::ComponentId;
use crate::config::components::processors::{Processor, Storage};
use crate::config::definitions::{Definition, Definitions, Settings};
use crate::config::diagnostic::Notes;
use crate::config::model::{Config, Pipeline};

/// Storages that components name are extensions that run.
pub(super) fn check(definitions: &Definitions, running: &[ComponentId], notes: &Notes) {
    for definition in definitions.iter() {
        let role = definition.role.key();
        let path = |option: &str| format!("{role}::{}::{option}", definition.id);
        let wrong = match named(definition) {
            Named::Nothing => continue,
            Named::Only => only(definitions, running).map_err(|why| (path("store_on_disk"), why)),
            Named::Id(option, id) => {
                runs(definitions, running, &id).map_err(|why| (path(option), why))
            }
        };
        if let Err((path, why)) = wrong {
            let message = format!("{path}: {why}");
            // A component that does not run needs no storage.
            if definition.used.get() {
                notes.error(definition.at, message)
            } else {
                notes.warn(definition.at, message)
            }
        }
    }
}

/// How a component names its storage.
enum Named {
    Nothing,
    /// The only one that there is.
    Only,
    /// By an option, with an id.
    Id(&'static str, ComponentId),
}

fn named(definition: &Definition) -> Named {
    let queue = match &definition.settings {
        Some(Settings::Exporter(exporter)) => exporter.queue(),
        Some(Settings::Processor(processor)) => {
            return match processor.storage() {
                Storage::None => Named::Nothing,
                Storage::Only => Named::Only,
                Storage::Id(id) => Named::Id("storage", id),
            };
        }
        _ => None,
    };
    match queue.and_then(|queue| queue.storage.clone()) {
        Some(id) => Named::Id("sending_queue::storage", id),
        None => Named::Nothing,
    }
}

/// The storage that a processor names.
pub(crate) fn storage_of(processor: &Processor) -> Option<ComponentId> {
    match processor.storage() {
        Storage::Id(id) => Some(id),
        Storage::None | Storage::Only => None,
    }
}

fn runs(
    definitions: &Definitions,
    running: &[ComponentId],
    storage: &ComponentId,
) -> Result<(), String> {
    let extension = definitions.find(Role::Extension, storage);
    match extension.and_then(|extension| extension.settings.as_ref()) {
        Some(Settings::Extension(Extension::FileStorage(_))) if running.contains(storage) => Ok(()),
        Some(Settings::Extension(Extension::FileStorage(_))) => {
            Err(format!("'{storage}' is not in service::extensions"))
        }
        Some(_) => Err(format!("'{storage}' is no storage")),
        None => Err(format!(
            "'{storage}' is no extension that is defined and built in"
        )),
    }
}

fn only(definitions: &Definitions, running: &[ComponentId]) -> Result<(), String> {
    let is_storage = |id: &&ComponentId| runs(definitions, running, id).is_ok();
    match running.iter().filter(is_storage).count() {
        1 => Ok(()),
        0 => Err("there is no 'file_storage' in service::extensions".into()),
        _ => Err("there is more than one 'file_storage': name one with 'storage'".into()),
    }
}

/// `store_on_disk` names the only storage that there is.
pub(super) fn resolve(config: &mut Config) {
    let mut storages = config.extensions.iter();
    let storage = storages.find(|one| matches!(one.settings, Extension::FileStorage(_)));
    let Some(storage) = storage.map(|one| one.id.clone()) else {
        return;
    };
    for component in &mut config.processors {
        if component.settings.storage() == Storage::Only
            && let Some(named) = component.settings.with_storage(&storage)
        {
            component.settings = named;
        }
    }
}

/// What a receiver takes is kept in one place.
pub(super) fn one_each(config: &Config, pipelines: &[Found], notes: &Notes) {
    for found in pipelines {
        for receiver in &found.pipeline.receivers {
            let storages = config.storages(receiver);
            if storages.len() > 1 && config.receiver(receiver).is_some() {
                let names: Vec<String> = storages.iter().map(|id| format!("'{id}'")).collect();
                let message = format!(
                    "service::pipelines::{}: what the receiver '{receiver}' takes would be kept in {}: name one 'storage' in all its pipelines",
                    found.pipeline.id,
                    names.join(" and ")
                );
                return notes.error(found.at, message);
            }
        }
    }
}

impl Config {
    /// The storages of processors that data of a receiver come to, also through connectors.
    #[must_use]
    pub fn storages(&self, receiver: &ComponentId) -> BTreeSet<ComponentId> {
        let pipelines = self.pipelines_of(receiver).into_iter();
        pipelines
            .flat_map(|pipeline| self.storages_in(pipeline))
            .collect()
    }

    /// The pipelines that data of a receiver come to, also through connectors.
    pub(super) fn pipelines_of(&self, receiver: &ComponentId) -> Vec<&Pipeline> {
        let pipelines = self.pipelines.iter();
        let mut found: Vec<&Pipeline> = pipelines
            .filter(|pipeline| pipeline.receivers.contains(receiver))
            .collect();
        let mut looked_at = 0;
        while let Some(from) = found.get(looked_at).copied() {
            looked_at += 1;
            for id in &from.exporters {
                for to in &self.pipelines {
                    if self.feeds(from, id, to) && !found.contains(&to) {
                        found.push(to);
                    }
                }
            }
        }
        found
    }

    fn storages_in(&self, pipeline: &Pipeline) -> impl Iterator<Item = ComponentId> {
        let processors = pipeline.processors.iter();
        processors.filter_map(|id| self.processor(id).and_then(storage_of))
    }
}
