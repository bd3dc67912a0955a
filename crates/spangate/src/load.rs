//! Turns the command line into a configuration that can run, and prints every fault in it.

use config::build::previous::Previous;
use config::condition::BuildInfo;
use config::diagnostic::{Diagnostics, Rendering, Severity};
use config::environment::{Environment, Predefined};
use config::load::LoadOptions;
use config::migrate::{Action, Change};
use config::model::{Bind, Config};
use config::reader::Input;
use config::tree::Tree;
use proxy::Tls;
use std::path::Path;
use std::sync::Arc;
use tls::Passphrases;

use crate::args::{Args, Command};
use crate::{
    alert, build, collectors, notice, pages, passphrases, say, say_bytes, say_error, share,
};

/// The configuration was refused; its faults were printed.
#[derive(Debug)]
pub(crate) struct Refused;

/// The content of the files.
pub(crate) struct Loaded {
    pub config: Config,
    /// The certificates and keys.
    pub tls: Tls,
    /// The configurations of the sections `collector`, in the order of [`Config::collectors`].
    pub collectors: Vec<collectors::Read>,
    /// The texts that the dashboard shows.
    pub sources: pages::Sources,
    /// The texts of the files.
    pub inputs: Vec<Input>,
    /// Warnings were printed.
    pub has_warnings: bool,
}

/// Reads the files.
///
/// # Errors
/// Every fault was printed.
pub(crate) fn load(args: &Args) -> Result<Loaded, Refused> {
    let mut diagnostics = Diagnostics::new();
    let inputs = read_inputs(args, &mut diagnostics)?;
    load_inputs(args, inputs, diagnostics)
}

/// Reads texts instead of files.
///
/// # Errors
/// Every fault was printed.
pub(crate) fn load_texts(args: &Args, texts: Vec<Input>) -> Result<Loaded, Refused> {
    load_inputs(args, texts, Diagnostics::new())
}

/// The texts of the files.
///
/// # Errors
/// Every fault was printed.
pub(crate) fn inputs(args: &Args) -> Result<Vec<Input>, Refused> {
    let mut diagnostics = Diagnostics::new();
    let inputs = read_inputs(args, &mut diagnostics)?;
    match diagnostics.alerts() {
        0 => Ok(inputs),
        _ => {
            say_error(&diagnostics.render(&rendering(args)));
            Err(Refused)
        }
    }
}

/// Reads texts that were accepted before, as another configuration of this process.
///
/// # Errors
/// The first fault: a file that the texts name may no longer exist.
#[cfg(feature = "export")]
pub(crate) fn again(inputs: &[Input]) -> Result<Config, String> {
    let info = build::info();
    let mut environment = environment_of(inputs, &info);
    let options = LoadOptions {
        build: &info,
        settings: config::build::Settings::default(),
        zero_warning: false,
    };
    let loaded = config::load::load(inputs, options, &mut environment);
    loaded.map(|(config, _)| config).map_err(|found| {
        let mut all = found.iter();
        let alert = all.find(|one| one.severity == Severity::Alert);
        alert.map_or_else(String::new, |one| one.message.clone())
    })
}

/// The lines of texts that were accepted before, after conditions and macros.
pub(crate) fn tree(inputs: &[Input]) -> Tree {
    let info = build::info();
    let mut environment = environment_of(inputs, &info);
    config::load::tree(inputs, &info, &mut environment).0
}

/// The environment in which texts are read again.
fn environment_of(inputs: &[Input], info: &BuildInfo) -> Environment {
    let mut environment = Environment::of_process();
    let files: Vec<&str> = inputs.iter().map(|input| input.name.as_str()).collect();
    environment.predefine(&Predefined {
        version: &info.version,
        local_peer: &crate::sys::hostname(),
        files: &files,
        master_worker: false,
    });
    environment
}

fn load_inputs(
    args: &Args,
    inputs: Vec<Input>,
    diagnostics: Diagnostics,
) -> Result<Loaded, Refused> {
    let rendering = rendering(args);
    let built = build_texts(args, inputs, diagnostics, None);
    say_error(&built.diagnostics.render(&rendering));
    match built.loaded {
        Ok(loaded) => {
            if let Some(classes) = &args.keywords {
                let listing = crate::cli::listing();
                say(&config::dump::keywords(classes, &listing));
            }
            Ok(loaded)
        }
        Err(old) => {
            hint_at_migration(args, &old);
            // Without an alert, the reason is warnings, which `-dW` or `zero-warning` refuses.
            say_error(&built.diagnostics.render_closing(&rendering, true));
            Err(Refused)
        }
    }
}

/// The result of reading texts as a configuration.
struct Built {
    /// The texts where they were refused because of an alert.
    loaded: Result<Loaded, Vec<Input>>,
    diagnostics: Diagnostics,
}

/// Reads texts as a configuration, and the files that it names. `previous`: the configuration that
/// it follows in a running process.
fn build_texts(
    args: &Args,
    inputs: Vec<Input>,
    mut diagnostics: Diagnostics,
    previous: Option<Arc<Previous>>,
) -> Built {
    let info = build::info();
    let mut environment = Environment::of_process();
    let files: Vec<&str> = inputs.iter().map(|input| input.name.as_str()).collect();
    let hostname = crate::sys::hostname();
    environment.predefine(&Predefined {
        version: &info.version,
        local_peer: args.local_peer.as_deref().unwrap_or(&hostname),
        files: &files,
        // `-c` starts no master.
        master_worker: args.master.is_some() && args.command != Command::Check,
    });
    let options = LoadOptions {
        build: &info,
        settings: config::build::Settings {
            ignores_resolution_failures: args.ignore_resolution_failures,
            is_added_server: false,
            lacks_master: args.master.is_none() && args.command != Command::Check,
            allows_forks: args.allows_forks,
            has_local_peer: args.local_peer.is_some(),
            previous,
            ..config::build::Settings::default()
        },
        zero_warning: args.warnings_are_errors,
    };
    let (config, found) = match config::load::load(&inputs, options, &mut environment) {
        Ok((config, found)) => (Some(config), found),
        Err(found) => (None, found),
    };
    diagnostics.append(found);
    let tls = match &config {
        Some(config) if diagnostics.alerts() == 0 => load_tls(config, &mut diagnostics),
        _ => Tls::default(),
    };
    let collectors = config.as_ref().map_or_else(Vec::new, |config| {
        collectors::read(config, &environment, &mut diagnostics)
    });
    if let Some(config) = &config {
        share::check(config, &mut diagnostics);
    }
    let zero_warning = config
        .as_ref()
        .is_some_and(|config| config.global.zero_warning);
    let refused = diagnostics.refuses(args.warnings_are_errors || zero_warning);
    let loaded = match config {
        Some(config) if !refused => Ok(Loaded {
            sources: pages::Sources::of(Some(&config), inputs.clone(), &diagnostics),
            config,
            tls,
            collectors,
            inputs,
            has_warnings: diagnostics.warnings() > 0,
        }),
        _ if diagnostics.alerts() > 0 => Err(inputs),
        _ => Err(Vec::new()),
    };
    Built {
        loaded,
        diagnostics,
    }
}

/// Reads the files again for a reload in place. `inputs`: their texts. Returns the content, and the
/// messages about it.
///
/// # Errors
/// The messages about files that were refused.
pub(crate) fn load_again(
    args: &Args,
    inputs: Vec<Input>,
    previous: Arc<Previous>,
) -> Result<(Loaded, String), String> {
    let built = build_texts(args, inputs, Diagnostics::new(), Some(previous));
    let told = built.diagnostics.render(&rendering(args));
    match built.loaded {
        Ok(loaded) => Ok((loaded, told)),
        Err(_) => Err(told),
    }
}

/// Reads the files and everything that they name, for the snapshot of another process: that one
/// reads them once more and reports their faults.
pub(crate) fn read_everything(args: &Args) {
    if let Ok(inputs) = inputs_again(args) {
        build_texts(args, inputs, Diagnostics::new(), None);
    }
}

/// The texts of the files as they are now.
///
/// # Errors
/// The messages about files that cannot be read.
pub(crate) fn inputs_again(args: &Args) -> Result<Vec<Input>, String> {
    for file in &args.files {
        let is_special = files::info(file).is_ok_and(|info| !info.is_file && !info.is_dir);
        if is_special {
            return Err(format!(
                "{file} is neither a file nor a directory: reading it may never end.\n"
            ));
        }
    }
    let mut diagnostics = Diagnostics::new();
    let inputs = config::source::load(&args.files, &mut diagnostics);
    match diagnostics.alerts() {
        0 if inputs.is_empty() => Err("There is no configuration file.".to_owned()),
        0 => Ok(inputs),
        _ => Err(diagnostics.render(&rendering(args))),
    }
}

/// The files' texts, read from the directory that `-C` names.
#[expect(
    clippy::disallowed_methods,
    reason = "`-C` asks for just that, before any thread runs"
)]
fn read_inputs(args: &Args, diagnostics: &mut Diagnostics) -> Result<Vec<Input>, Refused> {
    if let Some(directory) = &args.directory
        && let Err(error) = std::env::set_current_dir(directory)
    {
        let error = error.to_string();
        let what = error.split(" (os error").next().unwrap_or(&error);
        alert(&format!(
            "Could not change to directory {directory} : {what}."
        ));
        return Err(Refused);
    }
    let inputs = config::source::load(&args.files, diagnostics);
    if inputs.is_empty() && diagnostics.alerts() == 0 {
        say_error(&crate::args::usage());
        return Err(Refused);
    }
    Ok(inputs)
}

fn rendering(args: &Args) -> Rendering {
    Rendering {
        pid: std::process::id(),
        diag: args.remarks,
        quiet: args.quiet,
    }
}

/// Prints the files (`-dC`).
///
/// # Errors
/// A line cannot be read; this was printed.
pub(crate) fn list(args: &Args, form: config::listing::Form) -> Result<(), Refused> {
    let mut diagnostics = Diagnostics::new();
    let inputs = read_inputs(args, &mut diagnostics)?;
    let environment = Environment::of_process();
    say(&config::listing::shown(
        &inputs,
        form,
        &environment,
        &mut diagnostics,
    ));
    say_error(&diagnostics.render(&rendering(args)));
    match diagnostics.alerts() {
        0 => Ok(()),
        _ => Err(Refused),
    }
}

/// Prints a file with the directives of older versions in today's words, and what changed to
/// standard error (`--migrate`).
///
/// # Errors
/// The file cannot be read, there are several, or a line has to be changed by hand; this was
/// printed.
pub(crate) fn migrate(args: &Args) -> Result<(), Refused> {
    let inputs = inputs(args)?;
    let [input] = &*inputs else {
        alert("'--migrate' rewrites one file: name it with '-f'.");
        return Err(Refused);
    };
    let migrated = config::migrate::migrate(input, &build::info());
    say_bytes(&migrated.text);
    for change in &migrated.changes {
        say_error(&format!("{change}\n"));
    }
    let is_left = |change: &Change| matches!(change.action, Action::Left(_));
    if migrated.changes.iter().any(is_left) {
        Err(Refused)
    } else {
        Ok(())
    }
}

/// Names `--migrate` for files that were refused and that it can improve.
fn hint_at_migration(args: &Args, inputs: &[Input]) {
    if args.quiet {
        return;
    }
    for input in inputs {
        let changes = config::migrate::migrate(input, &build::info()).changes;
        let can = changes.iter();
        let count = can
            .filter(|change| !matches!(change.action, Action::Left(_)))
            .count();
        if count > 0 {
            let (name, lines) = (&input.name, if count == 1 { "line" } else { "lines" });
            notice(&format!(
                "config : 'spangate --migrate -f {name}' prints this file with {count} old {lines} in today's words."
            ));
        }
    }
}

/// Parses the lines `stats socket` of a section `global`.
///
/// # Errors
/// What is wrong with the first faulty line.
pub(crate) fn sockets(text: String) -> Result<Vec<Bind>, String> {
    let input = Input {
        name: "master-socket".to_owned(),
        text: text.into_bytes(),
    };
    let info = build::info();
    let options = LoadOptions {
        build: &info,
        settings: config::build::Settings::default(),
        zero_warning: false,
    };
    let loaded = config::load::load(&[input], options, &mut Environment::of_process());
    match loaded {
        Ok((config, _)) => Ok(config.global.stats_sockets),
        Err(found) => {
            let mut all = found.iter();
            let alert = all.find(|one| one.severity == Severity::Alert);
            Err(alert.map_or_else(String::new, |one| one.message.clone()))
        }
    }
}

/// Reads certificates and the other files that TLS needs.
fn load_tls(config: &Config, diagnostics: &mut Diagnostics) -> Tls {
    let now = std::time::Duration::from_nanos(net::sys::now().wall_ns);
    let command = config.global.tls.passphrase_cmd.as_ref();
    let mut ask = |file: &Path| passphrases::ask(command, file);
    let (tls, findings) = Tls::load(config, now, Passphrases::new(&mut ask));
    for finding in findings {
        let severity = if finding.is_fatal {
            Severity::Alert
        } else {
            Severity::Notice
        };
        diagnostics.add(severity, None, finding.text);
    }
    tls
}
