//! `resourcedetection`: what the host tells of itself, as attributes of resources. It is found out
//! once, at the start.

mod env;
mod system;

use std::sync::Arc;

use otlp::scan::{Malformed, RESOURCE_ATTRIBUTES};

use super::edit::{Edited, List, edit_resources, encode, hand_on, room_for};
use super::{ProcessorDeps, StartProcessor};
use crate::config::components::processors::action::AttributeValue;
use crate::config::components::processors::resource_detection::{
    Detector, ResourceDetection as Settings,
};
use crate::run::Log;
use crate::run::consume::{Consumer, Pass, Refused, Through};
use crate::run::data::Batch;

/// See the module.
pub struct ResourceDetection {
    editor: Editor,
    next: Arc<dyn Consumer>,
}

/// What it does, without a place in a pipeline.
#[derive(Debug)]
pub struct Editor {
    /// Names, and values as `AnyValue`.
    attributes: Vec<(String, Vec<u8>)>,
    replace: bool,
}

/// What was found out: names and values.
pub type Found = Vec<(String, AttributeValue)>;

impl StartProcessor for Settings {
    fn start(
        &self,
        deps: ProcessorDeps<'_, '_>,
        next: Arc<dyn Consumer>,
    ) -> Result<Arc<dyn Consumer>, String> {
        let found = detect(&deps.id.to_string(), self, &deps.setup.log);
        let editor = Editor::new(&found, self.replace);
        Ok(Arc::new(ResourceDetection { editor, next }))
    }
}

/// What the detectors find. What one cannot find out is told in the log, as the Collector does, and
/// left out.
fn detect(id: &str, settings: &Settings, log: &Log) -> Found {
    let mut all: Found = Vec::new();
    for detector in &settings.detectors {
        let found = match detector {
            Detector::Env => env::detect(&settings.env, &|name| std::env::var(name).ok()),
            Detector::System => system::detect(&settings.system, &system::Host::default()),
            Detector::Absent(name) => {
                log.warn(&format!(
                    "processor '{id}': the detector '{name}' is not built in: nothing is detected by it"
                ));
                continue;
            }
        };
        match found {
            Ok((found, missing)) => {
                for what in missing {
                    log.warn(&format!("processor '{id}': {what}"));
                }
                add(&mut all, found);
            }
            Err(why) => log.warn(&format!("processor '{id}': detector '{detector}': {why}")),
        }
    }
    all.retain(|(name, _)| settings.only.is_empty() || settings.only.contains(name));
    let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    log.info(&format!("processor '{id}': detected {}", names.join(", ")));
    all
}

/// The first detector that tells of an attribute counts.
fn add(all: &mut Found, found: Found) {
    for (name, value) in found {
        if all.iter().all(|(known, _)| *known != name) {
            all.push((name, value));
        }
    }
}

impl Editor {
    /// Sets these attributes; those that a resource has are replaced or stay.
    #[must_use]
    pub fn new(attributes: &[(String, AttributeValue)], replace: bool) -> Editor {
        let encoded = |(name, value): &(String, AttributeValue)| {
            let mut any = Vec::new();
            encode(value, &mut any);
            (name.clone(), any)
        };
        Editor {
            attributes: attributes.iter().map(encoded).collect(),
            replace,
        }
    }

    /// What a request of any signal becomes.
    ///
    /// # Errors
    /// It is malformed.
    pub fn edit(&self, request: &[u8]) -> Result<Edited, Malformed> {
        if self.attributes.is_empty() {
            return Ok(Edited::default());
        }
        let mut out = room_for(request);
        let outcome = edit_resources(request, &mut out, &mut |resource, out| {
            let mut list = List::default();
            list.read(resource, RESOURCE_ATTRIBUTES)?;
            for (name, any) in &self.attributes {
                if self.replace || list.find(name.as_bytes()).is_none() {
                    let value = list.make(|out| out.extend_from_slice(any));
                    list.put(name.as_bytes(), value);
                }
            }
            Ok(list.write(resource, RESOURCE_ATTRIBUTES, out))
        })?;
        Ok(Edited::new(outcome, out, 0))
    }
}

impl Through for ResourceDetection {
    fn pass<P: Pass>(&self, batch: Batch) -> Result<P::Taken, Box<Refused>> {
        let edited = self.editor.edit(&batch.bytes);
        hand_on::<P>(&self.next, batch, edited)
    }

    fn next(&self) -> &dyn Consumer {
        &*self.next
    }
}
