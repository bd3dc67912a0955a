//! What the components of a configuration ask of the requests that data came with.

use std::collections::BTreeSet;

use crate::config::components::processors::Processor;
use crate::config::components::processors::action::{Action, Source};
use crate::config::components::shared::context::Context;
use crate::config::model::Config;

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
    fn add(&mut self, context: &Context) {
        match context {
            Context::Address => self.address = true,
            Context::Auth(_) => self.auth = true,
            Context::Field(name) => {
                self.fields.insert(name.clone());
            }
        }
    }
}

impl Config {
    /// What its components ask of requests.
    #[must_use]
    pub fn asked(&self) -> Asked {
        let mut asked = Asked::default();
        for component in &self.processors {
            of_processor(&component.settings, &mut asked);
        }
        let queues = self
            .exporters
            .iter()
            .filter_map(|one| one.settings.any_queue());
        for batch in queues.filter_map(|queue| queue.batch.as_ref()) {
            asked.fields.extend(batch.metadata_keys.iter().cloned());
        }
        asked
    }
}

fn of_processor(processor: &Processor, asked: &mut Asked) {
    if let Processor::Batch(batch) = processor {
        asked.fields.extend(batch.metadata_keys.iter().cloned());
    }
    let actions: &[Action] = match processor {
        Processor::Attributes(settings) => &settings.actions,
        Processor::Resource(settings) => &settings.actions,
        _ => &[],
    };
    for action in actions {
        if let Action::Set {
            source: Source::Context(context),
            ..
        } = action
        {
            asked.add(context);
        }
    }
}
