//! Signals: the definitions that each of them uses.

use std::cell::RefCell;
use std::collections::HashSet;

use super::environment::{histogram, temporality};
use super::exporter::{Exporter, exporter};
use super::pipeline::{BatchProcessor, MetricPipeline, Pipeline, Processor, Reader};
use super::pipeline::{processor, reader};
use super::read::{Notes, Options};
use super::resource;
use super::sampler::{Sampler, sampler};
use super::{Histogram, Logs, Metrics, Provider, Settings, Signal, Temporality, Traces};
use syntax::yaml::{At, Node, Value};

/// The default of `flush_timeout`.
pub(super) const FLUSH_DEFAULT_MS: u32 = 5_000;
/// Names of severities; each also exists with a suffix from 2 to 4.
const SEVERITIES: [&str; 6] = ["trace", "debug", "info", "warn", "error", "fatal"];
/// Sections of definitions.
const SECTIONS: [&str; 5] = [
    "exporters",
    "samplers",
    "processors",
    "readers",
    "providers",
];

/// Reads a whole file.
pub(super) fn settings(
    root: &Node,
    context: Option<&str>,
    environment: &dyn Fn(&str) -> Option<String>,
    notes: &RefCell<Notes>,
) -> Settings {
    let top = Options::new("the file".to_owned(), root, notes);
    top.ignore(&SECTIONS);
    if let Some(shards) = top.int("handle_map_shards", 1..=65_536)
        && shards.count_ones() != 1
        && let Some((_, at)) = top.text_at("handle_map_shards")
    {
        top.error(at, "'handle_map_shards' must be a power of two");
    }
    let Some(node) = top.node("signals") else {
        top.error(root.at, "no 'signals': nothing would be recorded");
        return Settings::default();
    };
    let signals = Options::new("signals".to_owned(), node, notes);
    let file = File {
        root,
        context,
        environment,
        notes,
        used: RefCell::default(),
    };
    let settings = Settings {
        traces: file
            .entry(&signals, Signal::Traces)
            .and_then(|o| file.traces(&o)),
        metrics: file
            .entry(&signals, Signal::Metrics)
            .and_then(|o| file.metrics(&o)),
        logs: file
            .entry(&signals, Signal::Logs)
            .and_then(|o| file.logs(&o)),
    };
    if settings == Settings::default() && notes.borrow().errors.is_empty() {
        signals.error(node.at, "no signal is described: traces, metrics or logs");
    }
    signals.end();
    top.end();
    file.unused();
    settings
}

struct File<'a> {
    root: &'a Node,
    context: Option<&'a str>,
    environment: &'a dyn Fn(&str) -> Option<String>,
    notes: &'a RefCell<Notes>,
    /// Definitions that a signal has used: section and name.
    used: RefCell<HashSet<(&'static str, &'a str)>>,
}

impl<'a> File<'a> {
    /// The entry of a signal that applies.
    fn entry(&self, signals: &Options<'a>, signal: Signal) -> Option<Options<'a>> {
        let node = signals.node(signal.name())?;
        let name = self.context.unwrap_or("default");
        let what = |entry: &str| format!("signals.{}{entry}", signal.name());
        let entry = |name: &str| node.get(name).filter(|node| node.is_map());
        if let Some(node) = entry(name) {
            return Some(Options::new(what(&format!(".{name}")), node, self.notes));
        }
        if let Some(node) = entry("default") {
            let message = format!("{} has no context '{name}': 'default' counts", what(""));
            signals.warn(node.at, message);
            return Some(Options::new(what(".default"), node, self.notes));
        }
        if node.get("scope_name").is_some() || node.get("exporters").is_some() {
            let message = format!(
                "{} has no contexts: its options stand for all, as in the filter's first versions",
                what("")
            );
            signals.warn(node.at, message);
            return Some(Options::new(what(""), node, self.notes));
        }
        let other = if name == "default" {
            ""
        } else {
            ", nor 'default'"
        };
        let message = format!("{} has no context '{name}'{other}", what(""));
        signals.error(node.at, message);
        None
    }

    fn traces(&self, options: &Options<'a>) -> Option<Traces> {
        let provider = self.provider(options);
        let named = options.text_at("samplers");
        let sampler = match named {
            Some((name, at)) => self
                .definition("samplers", name, at)
                .and_then(|definition| sampler(&definition)),
            None => Some(Sampler::AlwaysOn),
        };
        let pipelines = self.pipelines(options, Signal::Traces);
        options.end();
        Some(Traces {
            provider: provider?,
            sampler: sampler?,
            pipelines: pipelines?,
        })
    }

    fn logs(&self, options: &Options<'a>) -> Option<Logs> {
        let provider = self.provider(options);
        let pipelines = self.pipelines(options, Signal::Logs);
        let mut min_severity = 1;
        if let Some((name, at)) = options.text_at("min_severity") {
            match severity(name) {
                Some(number) => min_severity = number,
                None => {
                    let message = format!(
                        "'min_severity' is '{name}', must be one of: {}, each also with 2 to 4 behind it",
                        SEVERITIES.join(", ")
                    );
                    options.error(at, message);
                }
            }
        }
        options.end();
        Some(Logs {
            provider: provider?,
            min_severity,
            pipelines: pipelines?,
        })
    }

    fn metrics(&self, options: &Options<'a>) -> Option<Metrics> {
        let provider = self.provider(options);
        let mut warn = |text| options.warn(options.node.at, text);
        let temporalities = [
            ("cumulative", Temporality::Cumulative),
            ("delta", Temporality::Delta),
        ];
        let histograms = [
            ("explicit_bucket_histogram", Histogram::Explicit),
            ("base2_exponential_bucket_histogram", Histogram::Exponential),
        ];
        let temporality = options
            .choice("temporality", &temporalities)
            .unwrap_or_else(|| temporality(self.environment, &mut warn));
        let histogram = options
            .choice("histogram_aggregation", &histograms)
            .unwrap_or_else(|| histogram(self.environment, &mut warn));
        let exporters = self.exporters(options, Signal::Metrics);
        let readers = options.names("readers");
        let (readers, is_list) = readers.unwrap_or_default();
        // A list of readers applies only to a list of exporters.
        let is_lone = !matches!(options.names("exporters"), Some((_, true)));
        let readers: Vec<_> = readers
            .into_iter()
            .map(|(name, at)| {
                let definition = self.definition("readers", name, at);
                definition.map(|definition| reader(&definition))
            })
            .collect();
        options.end();
        let readers = readers.into_iter().collect::<Option<Vec<_>>>()?;
        let paired = |at: usize| {
            if is_list && is_lone {
                Reader::default()
            } else {
                nth(&readers, at).unwrap_or_default()
            }
        };
        let pipelines = exporters?.into_iter().enumerate();
        let pipelines = pipelines.map(|(at, exporter)| MetricPipeline {
            exporter,
            reader: paired(at),
        });
        Some(Metrics {
            provider: provider?,
            temporality,
            histogram,
            pipelines: pipelines.collect(),
        })
    }

    fn provider(&self, options: &Options<'a>) -> Option<Provider> {
        let scope_name = options.text("scope_name");
        if scope_name.is_none() {
            let message = format!("{}: no 'scope_name'", options.what);
            options.error(options.node.at, message);
        }
        let mut written = Vec::new();
        if let Some((name, at)) = options.text_at("providers")
            && let Some(definition) = self.definition("providers", name, at)
        {
            written = definition.pairs("resources");
            definition.end();
        }
        let warn = |text| options.warn(options.node.at, text);
        let flush_timeout_ms = options.number("flush_timeout", 0..=600_000, FLUSH_DEFAULT_MS);
        Some(Provider {
            scope_name: scope_name?,
            resource: resource::attributes(&written, self.environment, warn),
            flush_timeout_ms,
        })
    }

    /// One pipeline per processor, with the exporter at the same index, or the last one.
    fn pipelines(&self, options: &Options<'a>, signal: Signal) -> Option<Vec<Pipeline>> {
        let exporters = self.exporters(options, signal);
        let processors = match options.names("processors") {
            Some((names, _)) => names
                .into_iter()
                .map(|(name, at)| {
                    let definition = self.definition("processors", name, at);
                    definition.and_then(|definition| processor(&definition, signal))
                })
                .collect::<Vec<_>>()
                .into_iter()
                .collect::<Option<Vec<_>>>(),
            None => exporters.as_ref().map(|exporters| {
                vec![Processor::Batch(BatchProcessor::new(signal)); exporters.len()]
            }),
        };
        let (exporters, processors) = (exporters?, processors?);
        if processors.is_empty() {
            let message = format!("{}: the list of processors is empty", options.what);
            options.error(options.node.at, message);
        }
        let pipelines = processors.into_iter().enumerate();
        let pipelines = pipelines.filter_map(|(at, processor)| {
            Some(Pipeline {
                exporter: nth(&exporters, at)?,
                processor,
            })
        });
        Some(pipelines.collect())
    }

    fn exporters(&self, options: &Options<'a>, signal: Signal) -> Option<Vec<Exporter>> {
        let (names, _) = options.names("exporters").unwrap_or_default();
        if names.is_empty() {
            let message = format!("{}: no 'exporters'", options.what);
            options.error(options.node.at, message);
            return None;
        }
        let exporters: Vec<_> = names
            .into_iter()
            .map(|(name, at)| {
                let definition = self.definition("exporters", name, at);
                definition.and_then(|definition| exporter(&definition, signal))
            })
            .collect();
        exporters.into_iter().collect()
    }

    /// The definition with a name in a section.
    fn definition(&self, section: &'static str, name: &'a str, at: At) -> Option<Options<'a>> {
        self.used.borrow_mut().insert((section, name));
        let node = self.root.get(section).and_then(|section| section.get(name));
        let Some(node) = node else {
            let message = format!("'{name}' is not defined under '{section}'");
            self.notes.borrow_mut().error(at, message);
            return None;
        };
        Some(Options::new(format!("{section}.{name}"), node, self.notes))
    }

    /// Also reads definitions that no signal uses; their errors do not prevent the start.
    fn unused(&self) {
        let notes = RefCell::default();
        for section in SECTIONS {
            let Some(node) = self.root.get(section) else {
                continue;
            };
            for (key, node) in node.entries() {
                if self.used.borrow().contains(&(section, key.text.as_str())) {
                    continue;
                }
                // HAProxy's sample files define one without using it.
                if let Some(kind) = node.get("type")
                    && matches!(&kind.value, Value::Text(text) if text == "elasticsearch")
                {
                    continue;
                }
                let options = Options::new(format!("{section}.{}", key.text), node, &notes);
                match section {
                    "exporters" => drop(exporter(&options, Signal::Traces)),
                    "samplers" => drop(sampler(&options)),
                    "processors" => drop(processor(&options, Signal::Traces)),
                    "readers" => drop(reader(&options)),
                    _ => drop(options.pairs("resources")),
                }
            }
        }
        let found: Notes = notes.into_inner();
        for error in found.errors {
            let at = At {
                line: error.line,
                column: error.column,
            };
            let message = format!("{} (nothing uses it)", error.message);
            self.notes.borrow_mut().warn(at, message);
        }
    }
}

/// The item at an index of a list, or the last item if the list is shorter.
fn nth<T: Clone>(items: &[T], at: usize) -> Option<T> {
    items.get(at).or(items.last()).cloned()
}

/// OTLP's number of a severity by its name, in any case.
fn severity(name: &str) -> Option<u8> {
    let name = name.to_ascii_lowercase();
    let (word, step) = match name.as_bytes().last() {
        Some(digit @ b'2'..=b'4') => (&name[..name.len() - 1], digit - b'1'),
        _ => (name.as_str(), 0),
    };
    let at = SEVERITIES.iter().position(|severity| *severity == word)?;
    Some(at as u8 * 4 + step + 1)
}
