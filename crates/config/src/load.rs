//! Loads texts as a configuration that can run, in one call.

use crate::build::{self, Settings};
use crate::condition::BuildInfo;
use crate::diagnostic::Diagnostics;
use crate::environment::Environment;
use crate::keywords::other;
use crate::model::Config;
use crate::reader::{self, Input};
use crate::tree::Tree;

/// The inputs of a load other than the texts.
#[derive(Clone, Debug)]
pub struct LoadOptions<'a> {
    /// Facts for conditions in the files.
    pub build: &'a BuildInfo,
    /// Facts about the machine.
    pub settings: Settings,
    /// `-dW`: warnings refuse the configuration.
    pub zero_warning: bool,
}

/// Reads and builds `inputs` as one configuration. `environment` is the process's environment;
/// afterwards, it contains the changes by `setenv` and related keywords.
///
/// # Errors
/// All diagnostics, if there is an alert, or a warning where warnings are errors (`-dW`,
/// `zero-warning`).
pub fn load(
    inputs: &[Input],
    options: LoadOptions<'_>,
    environment: &mut Environment,
) -> Result<(Config, Diagnostics), Diagnostics> {
    load_with(inputs, options, environment, &build::otel::files::bounded)
}

/// The same; `read_file` reads the files that filters name.
///
/// # Errors
/// As for [`load`].
pub fn load_with(
    inputs: &[Input],
    options: LoadOptions<'_>,
    environment: &mut Environment,
    read_file: &build::otel::files::ReadFile<'_>,
) -> Result<(Config, Diagnostics), Diagnostics> {
    let (tree, mut diagnostics) = tree(inputs, options.build, environment);
    let filter_files = build::otel::files::read(
        &tree,
        options.build,
        read_file,
        environment,
        &mut diagnostics,
    );
    let config = build::build(
        &tree,
        options.settings,
        filter_files,
        environment,
        &mut diagnostics,
    );
    if diagnostics.refuses(options.zero_warning || config.global.zero_warning) {
        Err(diagnostics)
    } else {
        Ok((config, diagnostics))
    }
}

/// Reads `inputs` as one tree, after conditions and macros, without the meaning of its lines. The
/// rest is as for [`load`]; the diagnostics are those of the reader.
pub fn tree(
    inputs: &[Input],
    build: &BuildInfo,
    environment: &mut Environment,
) -> (Tree, Diagnostics) {
    let sections: Vec<&str> = other::SECTIONS.iter().map(|section| section.name).collect();
    let reading = reader::Options {
        sections: &sections,
        build,
    };
    reader::read(inputs, &reading, environment)
}
