//! What runs: a configuration that was read and found right.

use std::fmt;

use export::client::Proxies;
use traces::Limits;

use super::components::connectors::{self, Connector};
use super::components::exporters::Exporter;
use super::components::extensions::Extension;
use super::components::id::ComponentId;
use super::components::processors::Processor;
use super::components::receivers::{ProxyRole, Receiver};
use super::components::{Role, Signal};
use super::diagnostic::Diagnostic;
use super::service::telemetry::Telemetry;

/// A whole configuration. Components are in the order of the files, and only those that a started
/// pipeline (or `service::extensions`) names.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// What takes data in.
    pub receivers: Vec<Component<Receiver>>,
    /// What data pass. Each pipeline that names one has an instance of its own.
    pub processors: Vec<Component<Processor>>,
    /// What sends data on.
    pub exporters: Vec<Component<Exporter>>,
    /// What ends one pipeline and begins another.
    pub connectors: Vec<Component<Connector>>,
    /// What serves the others, or people; in the order of `service::extensions`.
    pub extensions: Vec<Component<Extension>>,
    /// What is started, in the order of the files; at least one.
    pub pipelines: Vec<Pipeline>,
    /// What is not, and why. Receivers answer for a signal without a pipeline that they do not take
    /// it.
    pub not_started: Vec<NotStarted>,
    /// Of the collector itself.
    pub telemetry: Telemetry,
    /// Those that the environment puts before what exporters send to, and do not name one for.
    pub proxies: Proxies,
    /// What is strange, in the order of the files.
    pub warnings: Vec<Diagnostic>,
}

/// A component and its settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Component<T> {
    /// Its id as it is written.
    pub id: ComponentId,
    /// `file:line` of its key.
    pub place: String,
    /// Its settings.
    pub settings: T,
}

/// The name of a pipeline: `traces` or `traces/name`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PipelineId {
    /// What it carries.
    pub signal: Signal,
    /// What stands after the slash; empty: nothing.
    pub name: String,
}

/// A way from receivers to exporters. Ids name components of [`Config`]; receivers and exporters
/// may be connectors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pipeline {
    /// Its name.
    pub id: PipelineId,
    /// Where its data come from; at least one.
    pub receivers: Vec<ComponentId>,
    /// What they pass, in this order.
    pub processors: Vec<ComponentId>,
    /// Where all of them go; at least one.
    pub exporters: Vec<ComponentId>,
}

/// A pipeline that is left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotStarted {
    /// Its name as it is written.
    pub pipeline: String,
    /// What it would carry; none: a signal that is not carried at all.
    pub signal: Option<Signal>,
    /// The part that is missing, as it is written in the pipeline; none where it is the signal
    /// itself.
    pub part: Option<(Role, String)>,
    /// Why it is missing.
    pub reason: String,
    /// `file:line` of the part.
    pub place: String,
}

impl Config {
    /// Whether it has files that no other configuration of a process may use at the same time.
    #[must_use]
    pub fn has_files(&self) -> bool {
        let mut extensions = self.extensions.iter();
        let mut exporters = self.exporters.iter();
        extensions.any(|one| matches!(one.settings, Extension::FileStorage(_)))
            || exporters.any(|one| one.settings.writes_files())
    }

    /// The places of the pipelines that get what the proxy records that runs this configuration:
    /// those of its receivers `proxy`, or where it has none those of its first receiver `otlp`.
    #[must_use]
    pub fn pipelines_of_proxy(&self, signal: Signal) -> Vec<usize> {
        let receivers = self.receivers_of_proxy();
        let is_fed = |pipeline: &Pipeline| {
            let mut ids = receivers.iter().map(|component| &component.id);
            pipeline.id.signal == signal && ids.any(|id| pipeline.receivers.contains(id))
        };
        let pipelines = self.pipelines.iter().enumerate();
        let fed = pipelines.filter(|(_, pipeline)| is_fed(pipeline));
        fed.map(|(place, _)| place).collect()
    }

    /// What the trace store may hold that its exporters `dashboard` feed: the most that one of them
    /// says. None where there are none.
    #[must_use]
    pub fn trace_store(&self) -> Option<Limits> {
        let wanted = { self.exporters.iter() }.filter_map(|one| one.settings.trace_store());
        wanted.map(|wanted| wanted.limits).reduce(Limits::largest)
    }

    /// Whether data of a pipeline come to an exporter `dashboard` that shows what samplers drop
    /// too, through connectors as well.
    #[must_use]
    pub fn shows_unsampled(&self, pipeline: &Pipeline) -> bool {
        let mut looked_at = vec![false; self.pipelines.len()];
        let mut left = vec![pipeline];
        while let Some(pipeline) = left.pop() {
            for id in &pipeline.exporters {
                if let Some(exporter) = self.exporter(id) {
                    let wanted = exporter.trace_store();
                    if wanted.is_some_and(|wanted| wanted.unsampled) {
                        return true;
                    }
                    continue;
                }
                for (next, looked_at) in self.pipelines.iter().zip(&mut looked_at) {
                    if !*looked_at && self.feeds(pipeline, id, next) {
                        *looked_at = true;
                        left.push(next);
                    }
                }
            }
        }
        false
    }

    /// The receivers whose pipelines get what the proxy records: the receivers `proxy`, else the
    /// first `otlp`.
    #[must_use]
    pub fn receivers_of_proxy(&self) -> Vec<&Component<Receiver>> {
        let with = |role: ProxyRole| {
            let receivers = self.receivers.iter();
            receivers.filter(move |one| one.settings.proxy_role() == role)
        };
        let own: Vec<_> = with(ProxyRole::Always).collect();
        if own.is_empty() {
            with(ProxyRole::Default).take(1).collect()
        } else {
            own
        }
    }

    /// Whether all that comes to a pipeline is read again from where it came, as far as it was not
    /// settled when the process ended: it comes from receivers `kafka` only, through connectors as
    /// well.
    #[must_use]
    pub fn is_read_again(&self, pipeline: &Pipeline) -> bool {
        let mut looked_at = vec![false; self.pipelines.len()];
        let mut left = vec![pipeline];
        while let Some(pipeline) = left.pop() {
            for id in &pipeline.receivers {
                match self.receiver(id) {
                    Some(receiver) if receiver.reads_again() => continue,
                    Some(_) => return false,
                    None => {}
                }
                for (from, looked_at) in self.pipelines.iter().zip(&mut looked_at) {
                    if self.feeds(from, id, pipeline) && !std::mem::replace(looked_at, true) {
                        left.push(from);
                    }
                }
            }
        }
        true
    }

    /// Whether a connector takes data of the first pipeline and gives data to the second one.
    #[must_use]
    pub fn feeds(&self, from: &Pipeline, connector: &ComponentId, to: &Pipeline) -> bool {
        from.exporters.contains(connector)
            && to.receivers.contains(connector)
            && connectors::joins(connector, from.id.signal, to.id.signal)
    }

    /// The receiver of an id.
    #[must_use]
    pub fn receiver(&self, id: &ComponentId) -> Option<&Receiver> {
        of(&self.receivers, id)
    }

    /// The processor of an id.
    #[must_use]
    pub fn processor(&self, id: &ComponentId) -> Option<&Processor> {
        of(&self.processors, id)
    }

    /// The exporter of an id.
    #[must_use]
    pub fn exporter(&self, id: &ComponentId) -> Option<&Exporter> {
        of(&self.exporters, id)
    }

    /// The connector of an id.
    #[must_use]
    pub fn connector(&self, id: &ComponentId) -> Option<&Connector> {
        of(&self.connectors, id)
    }

    /// The extension of an id.
    #[must_use]
    pub fn extension(&self, id: &ComponentId) -> Option<&Extension> {
        of(&self.extensions, id)
    }
}

fn of<'a, T>(components: &'a [Component<T>], id: &ComponentId) -> Option<&'a T> {
    let component = components.iter().find(|component| component.id == *id)?;
    Some(&component.settings)
}

impl fmt::Display for PipelineId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name.as_str() {
            "" => write!(out, "{}", self.signal),
            name => write!(out, "{}/{name}", self.signal),
        }
    }
}

impl fmt::Display for NotStarted {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NotStarted {
            pipeline,
            part,
            reason,
            place,
            ..
        } = self;
        write!(out, "{place}: the pipeline '{pipeline}' is not started: ")?;
        match part {
            Some((role, part)) => write!(out, "its {role} '{part}' {reason}"),
            None => write!(out, "{reason}"),
        }
    }
}
