//! What the components of a configuration ask of the requests that data came with.

use std::collections::BTreeSet;

use otlp::scan::Keys;
use ottl::{Client, Condition, Statement};

use super::pipelines::Found;
use crate::config::components::exporters::Exporter;
use crate::config::components::extensions::Extension;
use crate::config::components::processors::action::{Action, Source};
use crate::config::components::processors::statements::Group;
use crate::config::components::shared::context::Context;
use crate::config::diagnostic::Notes;
use crate::config::model::{Config, Pipeline};

/// All that is asked: receivers keep no more than this.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Header fields, by their names in small letters.
    pub fields: BTreeSet<String>,
    /// The client's address.
    pub address: bool,
    /// What the authenticator found.
    pub auth: bool,
}

impl Asked {
    /// Adds one thing.
    pub(crate) fn add(&mut self, context: &Context) {
        match context {
            Context::Address => self.address = true,
            Context::Auth(_) => self.auth = true,
            Context::Field(name) => {
                self.fields.insert(name.clone());
            }
        }
    }

    /// Adds what changes of attributes read.
    pub(crate) fn add_actions(&mut self, actions: &[Action]) {
        for action in actions {
            if let Action::Set {
                source: Source::Context(context),
                ..
            } = action
            {
                self.add(context);
            }
        }
    }

    /// Adds the client metadata that OTTL statements and conditions read. Syntax errors are
    /// reported by the parser of the processor's settings.
    pub(crate) fn add_groups(&mut self, groups: &[Group]) {
        for group in groups {
            for text in &group.conditions {
                let condition = Condition::parse(text, group.context, &mut Keys::default());
                condition
                    .iter()
                    .for_each(|one| self.add_clients(one.client()));
            }
            for text in &group.statements {
                let statement = Statement::parse(text, group.context, false);
                statement
                    .iter()
                    .for_each(|one| self.add_clients(one.client()));
            }
        }
    }

    fn add_clients(&mut self, clients: &[Client]) {
        for client in clients {
            self.add(&match client {
                Client::Address => Context::Address,
                Client::Field(name) => Context::Field(name.clone()),
                Client::Auth(name) => Context::Auth(name.clone()),
            });
        }
    }

    fn add_exporter(&mut self, exporter: &Exporter, config: &Config) {
        let queue = exporter.any_queue();
        if let Some(batch) = queue.and_then(|queue| queue.batch.as_ref()) {
            self.fields.extend(batch.metadata_keys.iter().cloned());
        }
        exporter.ask(self);
        let extension = exporter.auth().and_then(|id| config.extension(id));
        for context in extension.into_iter().flat_map(Extension::contexts) {
            self.add(context);
        }
    }
}

impl Config {
    /// What its components ask of requests.
    #[must_use]
    pub fn asked(&self) -> Asked {
        self.asked_by(&mut self.pipelines.iter())
    }

    fn asked_by(&self, pipelines: &mut dyn Iterator<Item = &Pipeline>) -> Asked {
        let mut asked = Asked::default();
        for pipeline in pipelines {
            let processors = pipeline.processors.iter();
            for processor in processors.filter_map(|id| self.processor(id)) {
                processor.ask(&mut asked);
            }
            let exporters = pipeline.exporters.iter();
            for exporter in exporters.filter_map(|id| self.exporter(id)) {
                asked.add_exporter(exporter, self);
            }
            let connectors = pipeline.exporters.iter();
            for connector in connectors.filter_map(|id| self.connector(id)) {
                connector.ask(&mut asked);
            }
        }
        asked
    }
}

/// What a receiver takes is written without what its authenticator found: after a start nobody
/// would find that.
pub(super) fn check(config: &Config, pipelines: &[Found], notes: &Notes) {
    for found in pipelines {
        for receiver in &found.pipeline.receivers {
            if let Some(storage) = config.storages(receiver).first()
                && config
                    .asked_by(&mut config.pipelines_of(receiver).into_iter())
                    .auth
            {
                let message = format!(
                    "service::pipelines::{}: what the receiver '{receiver}' takes is kept in '{storage}', which does not keep what an authenticator found, and components ask for",
                    found.pipeline.id,
                );
                return notes.error(found.at, message);
            }
        }
    }
}
