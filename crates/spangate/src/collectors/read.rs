//! Reads the files that sections `collector` name, as configurations of a Collector.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use ::config::build::otel::files::bounded;
use ::config::diagnostic::{Diagnostics, Severity};
use ::config::environment::Environment;
use ::config::model::{CollectorSection, Config};
use ::config::tree::{Source, Span};
use collector::config::source::Outside;
use collector::config::{self, Options, gates};

/// The configuration of each section, in their order. Faults are reported with their place. After
/// an alert, some may be missing.
pub(crate) fn read(
    config: &Config,
    environment: &Environment,
    diagnostics: &mut Diagnostics,
) -> Vec<config::Config> {
    let sections = config.collectors.iter();
    let read: Vec<_> = sections
        .filter_map(|section| one(section, environment, diagnostics))
        .collect();
    if read.len() == config.collectors.len() {
        for filter in &config.otel {
            let proxy = config.proxies.get(filter.proxy);
            let name = proxy.map_or("", |proxy| proxy.name.as_str());
            let place = format!("proxy '{name}', filter '{}'", filter.id);
            let file = filter.settings_file.as_str();
            signals_are_taken(config, &filter.settings, place, file, &read, diagnostics);
        }
        if let Some(settings) = &config.global.stats_otlp {
            let place = "'stats otlp'".to_owned();
            signals_are_taken(config, settings, place, "", &read, diagnostics);
        }
    }
    read
}

fn one(
    section: &CollectorSection,
    environment: &Environment,
    diagnostics: &mut Diagnostics,
) -> Option<config::Config> {
    let mut sources = Vec::new();
    for (file, span) in &section.files {
        match bounded(file) {
            Ok(_) => sources.push(format!("file:{file}")),
            Err(error) => {
                let error = error.split(" (os error").next().unwrap_or(&error);
                let message = format!("Cannot read file '{file}' : {error}.");
                diagnostics.alert(span, message);
            }
        }
    }
    if sources.len() < section.files.len() {
        return None;
    }
    for list in &section.feature_gates {
        match gates::parse(list) {
            Ok(gates) => {
                for gate in gates.ignored {
                    diagnostics.warning(&section.span, format!("{}.", gates::ignored(gate)));
                }
            }
            Err(error) => {
                diagnostics.alert(&section.span, format!("{error}."));
            }
        }
    }
    let texts = Texts::default();
    let outside = Outside {
        variable: &|name| {
            let value = environment.get(name)?;
            Some(String::from_utf8_lossy(value).into_owned())
        },
        read_file: &|path| texts.read(path),
    };
    let options = Options {
        strict: section.strict,
        drop_parts: section.drop_parts.clone(),
    };
    let sources: Vec<&str> = sources.iter().map(String::as_str).collect();
    let (config, told) = match config::load(&sources, &options, outside) {
        Ok(mut config) => {
            let warnings = std::mem::take(&mut config.warnings);
            (Some(config), warnings)
        }
        Err(told) => (None, told),
    };
    for one in &told {
        let severity = match one.severity {
            config::Severity::Error => Severity::Alert,
            config::Severity::Warning => Severity::Warning,
        };
        let message = format!("collector '{}' : {}.", section.name, one.message);
        let place = texts.place(one).unwrap_or_else(|| section.span.clone());
        diagnostics.add(severity, Some(&place), message);
    }
    config
}

/// The texts of the files that were read.
#[derive(Default)]
struct Texts(RefCell<BTreeMap<String, Vec<u8>>>);

impl Texts {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        let text = bounded(path)?;
        self.0.borrow_mut().insert(path.to_owned(), text.clone());
        Ok(text)
    }

    /// The place of a diagnostic; None if it refers to no line of a file.
    fn place(&self, told: &config::Diagnostic) -> Option<Span> {
        let texts = self.0.borrow();
        let text = texts.get(&told.file).filter(|_| told.line > 0)?;
        let source = Arc::new(Source::new(&told.file, text.clone()));
        Some(Span::of_character(source, told.line, told.column))
    }
}

/// Reports collectors that do not accept the signals sent to them. `place`: the sender; `file`:
/// the file of its settings.
fn signals_are_taken(
    config: &Config,
    settings: &telemetry::settings::Settings,
    place: String,
    file: &str,
    read: &[config::Config],
    diagnostics: &mut Diagnostics,
) {
    for (signal, named) in settings.collectors() {
        let mut sections = config.collectors.iter().zip(read);
        let Some((_, collector)) = sections.find(|(section, _)| section.name == named.name) else {
            continue;
        };
        if !collector.pipelines_of_proxy(signal).is_empty() {
            continue;
        }
        let place = match named.at {
            Some(at) => format!("{file}:{}", at.line),
            None => place.clone(),
        };
        let message = format!(
            "{place} : collector '{}' accepts no {}: none of their pipelines has the receiver 'proxy' or, if there is none, the first receiver 'otlp'.",
            named.name,
            signal.name()
        );
        diagnostics.add(Severity::Alert, None, message);
    }
}
