//! The configuration of an OpenTelemetry Collector: files come in, typed settings and diagnostics
//! go out.
//!
//! [`source`] makes one tree of the files, `options` checks it by tables, [`components`] and
//! [`service`] make settings of it. Nothing here does I/O: files and variables come by functions.
//! What is accepted is what the Collector accepts, and what it would find out at its start is found
//! out here.

pub mod components;
mod definitions;
pub mod diagnostic;
pub mod docs;
pub mod gates;
mod model;
mod options;
pub mod pattern;
pub mod policies;
pub mod print;
pub mod service;
pub mod source;

use components::Role;
use definitions::Definitions;
use diagnostic::Notes;
use export::client::Proxies;
use options::{Kind, Opt, Table, opt};
use source::Outside;

pub use components::connectors::Connector;
pub use components::exporters::Exporter;
pub use components::extensions::Extension;
pub use components::id::ComponentId;
pub use components::processors::Processor;
pub use components::receivers::Receiver;
pub use components::{Signal, shared};
pub use diagnostic::{At, Diagnostic, Severity};
pub use model::{Component, Config, NotStarted, Pipeline, PipelineId};
pub use service::telemetry::Telemetry;

/// How a configuration is judged.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// `--strict`: a pipeline that cannot be started is an error, whatever its signal.
    pub strict: bool,
    /// `--drop-part`: ids of components that are left out of all pipelines, perhaps after their
    /// role: `exporter:jaeger`.
    pub drop_parts: Vec<String>,
}

impl Options {
    /// Whether a component is left out.
    fn drops(&self, role: Role, id: &ComponentId) -> bool {
        self.drop_parts.iter().any(|part| is_part(part, role, id))
    }
}

/// Whether what `--drop-part` says names a component.
fn is_part(part: &str, role: Role, id: &ComponentId) -> bool {
    let rest = part.strip_prefix(&role.to_string());
    let named = rest.and_then(|rest| rest.strip_prefix(':'));
    named.unwrap_or(part) == id.to_string()
}

/// The parts of a configuration; what stands in them has tables of its own.
#[rustfmt::skip]
const TOP: Table = &[&[
    part("receivers", "components that take data in"),
    part("processors", "components that change data, or choose among them"),
    part("exporters", "components that send data on"),
    part("connectors", "components that end one pipeline and begin another"),
    part("extensions", "components beside the pipelines"),
    part("service", "what runs"),
]];

const fn part(name: &'static str, doc: &'static str) -> Opt {
    opt(name, Kind::Any, "", doc)
}

/// Reads and judges a configuration.
///
/// `sources` are paths (or `file:`, `env:`, `yaml:` and what follows), merged in their order.
/// `outside` gives variables and the bytes of files.
///
/// # Errors
/// Everything that is wrong, and all warnings, in the order of the files; at least one is an error.
pub fn load(
    sources: &[&str],
    options: &Options,
    outside: Outside<'_>,
) -> Result<Config, Vec<Diagnostic>> {
    let notes = Notes::default();
    let (proxies, wrong) = Proxies::from_environment(outside.variable);
    for message in wrong {
        notes.warn(At::default(), message);
    }
    let config = config(sources, options, outside, &notes);
    let has_errors = notes.has_errors();
    let diagnostics = notes.into_diagnostics();
    match config {
        Some(mut config) if !has_errors => {
            config.warnings = diagnostics;
            config.proxies = proxies;
            Ok(config)
        }
        _ => Err(diagnostics),
    }
}

/// The settings of an exporter that is written alone.
#[cfg(test)]
pub(crate) fn exporter(text: &str) -> Exporter {
    piped("nop:", text).exporters.remove(0).settings
}

/// The settings of a receiver that is written alone.
#[cfg(test)]
pub(crate) fn receiver(text: &str) -> Receiver {
    piped(text, "nop:").receivers.remove(0).settings
}

/// The settings of a processor that is written alone.
#[cfg(test)]
pub(crate) fn processor(text: &str) -> Processor {
    let id = text.split(':').next().unwrap_or_default();
    let yaml = format!(
        "yaml:{{ receivers: {{ nop: }}, exporters: {{ nop: }}, processors: {{ {text} }}, service: {{ pipelines: {{ \
         traces: {{ receivers: [nop], processors: [{id}], exporters: [nop] }} }} }} }}"
    );
    let outside = Outside {
        variable: &|_| None,
        read_file: &|_| Err(String::new()),
    };
    let config = load(&[&yaml], &Options::default(), outside);
    let mut config = config.unwrap_or_else(|faults| panic!("{faults:?}"));
    config.processors.remove(0).settings
}

/// The settings of a connector that is written alone, behind a pipeline of a signal and before one of
/// metrics.
#[cfg(test)]
pub(crate) fn connector(text: &str, takes: Signal) -> Connector {
    let id = text.split(':').next().unwrap_or_default();
    let yaml = format!(
        "yaml:{{ receivers: {{ nop: }}, exporters: {{ nop: }}, connectors: {{ {text} }}, service: {{ pipelines: {{ \
         {takes}/in: {{ receivers: [nop], exporters: [{id}] }}, metrics/out: {{ receivers: [{id}], exporters: [nop] }} }} }} }}"
    );
    let outside = Outside {
        variable: &|_| None,
        read_file: &|_| Err(String::new()),
    };
    let config = load(&[&yaml], &Options::default(), outside);
    let mut config = config.unwrap_or_else(|faults| panic!("{faults:?}"));
    config.connectors.remove(0).settings
}

/// A configuration with a pipeline of a receiver and an exporter.
#[cfg(test)]
fn piped(receiver: &str, exporter: &str) -> Config {
    let [from, to] = [receiver, exporter].map(|text| text.split(':').next().unwrap_or_default());
    let takes = |role: Role, kind: &str| role.entry(kind).map_or(&[][..], |entry| entry.takes);
    let mut signals = takes(Role::Exporter, to).iter();
    let signal = signals.find(|signal| takes(Role::Receiver, from).contains(signal));
    let signal = signal.copied().unwrap_or(Signal::Traces);
    let yaml = format!(
        "yaml:{{ receivers: {{ {receiver} }}, exporters: {{ {exporter} }}, \
         service: {{ pipelines: {{ {signal}: {{ receivers: [{from}], exporters: [{to}] }} }} }} }}"
    );
    let outside = Outside {
        variable: &|_| None,
        read_file: &|_| Err(String::new()),
    };
    let config = load(&[&yaml], &Options::default(), outside);
    config.unwrap_or_else(|faults| panic!("{faults:?}"))
}

/// The configuration, as far as it can be made. Where there is none, `notes` says why.
fn config(
    sources: &[&str],
    options: &Options,
    outside: Outside<'_>,
    notes: &Notes,
) -> Option<Config> {
    if sources.is_empty() {
        notes.error(At::default(), "there is no configuration: name a file");
        return None;
    }
    let root = source::tree(sources, outside, notes)?;
    // A tree with holes would only bring errors that are none.
    if notes.has_errors() {
        return None;
    }
    let start = At {
        file: 0,
        line: 1,
        column: 1,
    };
    if let (Some((key, _)), Some(kind)) = (root.entry("apiVersion"), root.get("kind")) {
        let message = format!(
            "this is a resource of Kubernetes ({}): give the configuration that is in it",
            kind.shown()
        );
        notes.error(key.at, message);
        return None;
    }
    options::check(&root, TOP, "", start, notes);
    for role in Role::ALL {
        let components = root.get(role.key());
        if components.is_some_and(|node| !matches!(node.value, source::Value::Map(_))) {
            let message = format!("{}: must be a map of components", role.key());
            notes.error(components.map_or(start, |node| node.at), message);
        }
    }
    let definitions = Definitions::read(&root, notes);
    service::service(&root, definitions, options, notes)
}
