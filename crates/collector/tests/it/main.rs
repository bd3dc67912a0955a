//! Configurations as they are written, and what becomes of them.

mod components;
mod dashboard;
mod docs;
mod kafka;
mod mistakes;
mod pipelines;
mod policies;
mod proofs;
mod receivers;
mod running;
mod serve;
mod sources;
mod statements;
mod storages;

use spangate_collector::config::source::Outside;
use spangate_collector::config::{Config, Options, Severity, load};

/// Loads the files `a.yaml`, `b.yaml` and so on, with variables of a table.
fn load_files(
    files: &[&str],
    variables: &[(&str, &str)],
    options: &Options,
) -> Result<Config, Vec<String>> {
    let names: Vec<String> = (b'a'..)
        .take(files.len())
        .map(|c| format!("{}.yaml", c as char))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let read_file = |name: &str| {
        let index = names.iter().position(|other| *other == name);
        let index = index.ok_or("it is not there")?;
        Ok(files[index].as_bytes().to_vec())
    };
    let variable = |name: &str| {
        let found = variables.iter().find(|(other, _)| *other == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    let outside = Outside {
        variable: &variable,
        read_file: &read_file,
    };
    // Included files are there, but only those that do not begin with a comment are sources.
    let sources: Vec<&str> = names
        .iter()
        .zip(files)
        .filter(|(_, text)| !text.starts_with("# included"))
        .map(|(name, _)| *name)
        .collect();
    load(&sources, options, outside).map_err(|diagnostics| {
        let errors = diagnostics
            .iter()
            .filter(|one| one.severity == Severity::Error);
        errors.map(ToString::to_string).collect()
    })
}

/// Loads one file that is right, and gives its warnings too.
fn good(text: &str) -> (Config, Vec<String>) {
    let config = load_files(&[text], &[], &Options::default());
    let config = config.unwrap_or_else(|errors| panic!("{errors:#?}\n{text}"));
    let warnings = config.warnings.iter().map(ToString::to_string).collect();
    (config, warnings)
}

/// Loads one file that is wrong.
fn errors(text: &str) -> Vec<String> {
    match load_files(&[text], &[], &Options::default()) {
        Ok(config) => panic!("it is right:\n{text}\n{:#?}", config.warnings),
        Err(errors) => errors,
    }
}

/// A configuration with a traces pipeline through processors, whose options are given.
fn with_processors(order: &str, options: &str) -> String {
    format!(
        "receivers: {{ otlp: {{ protocols: {{ grpc: }} }} }}
exporters: {{ nop: }}
service:
  pipelines: {{ traces: {{ receivers: [otlp], processors: [{order}], exporters: [nop] }} }}
processors:
{options}"
    )
}

/// A configuration with policies, each a flow map.
fn with_policies(policies: &str) -> String {
    let options = format!("  tail_sampling:\n    policies: [\n      {policies}\n    ]");
    with_processors("tail_sampling", &options)
}
