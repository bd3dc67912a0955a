//! `spangate collect`: the collector as a program.

pub(crate) mod log;
pub(crate) mod options;

use std::process::ExitCode;
use std::time::Duration;

use collector::config::source::Outside;
use collector::config::{self, Config, Diagnostic, Receiver};
use collector::run::account::Balance;
use collector::run::{Collector, Log, Setup};
use tokio::signal::unix::{SignalKind, signal};

use options::{Command, Options};

/// What `validate` gives where a pipeline would not be started.
const EXIT_NOT_STARTED: u8 = 3;

/// Runs the command with the arguments behind it.
pub(crate) fn run(arguments: impl Iterator<Item = std::ffi::OsString>) -> ExitCode {
    let options = match Options::parse(arguments) {
        Ok(options) => options,
        Err(message) => {
            crate::say_error(&format!("spangate collect: {message}\n{}", options::USAGE));
            return ExitCode::FAILURE;
        }
    };
    match options.command {
        Command::Help => {
            crate::say(options::USAGE);
            ExitCode::SUCCESS
        }
        Command::Documentation => {
            crate::say(&config::docs::collector_markdown());
            ExitCode::SUCCESS
        }
        Command::Validate => match load(&options) {
            Some(config) if config.not_started.is_empty() => ExitCode::SUCCESS,
            Some(_) => ExitCode::from(EXIT_NOT_STARTED),
            None => ExitCode::FAILURE,
        },
        Command::Run => match load(&options) {
            Some(config) => serve(&options, &config),
            None => ExitCode::FAILURE,
        },
    }
}

/// Reads the configuration; says what is wrong with it, and what is strange.
fn load(options: &Options) -> Option<Config> {
    let sources: Vec<&str> = options.sources.iter().map(String::as_str).collect();
    let judged = config::Options {
        strict: options.strict,
        drop_parts: options.drop_parts.clone(),
    };
    let outside = Outside {
        variable: &|name| std::env::var(name).ok(),
        read_file: &::config::build::otel::files::bounded,
    };
    match config::load(&sources, &judged, outside) {
        Ok(config) => {
            tell(&config.warnings);
            let receivers = config.receivers.iter();
            for one in receivers.filter(|one| one.settings == Receiver::Proxy) {
                crate::say_error(&format!(
                    "warning: {}: the receiver '{}' gets nothing outside of a proxy\n",
                    one.place, one.id
                ));
            }
            for one in &config.not_started {
                crate::say_error(&format!("warning: {one}\n"));
            }
            Some(config)
        }
        Err(diagnostics) => {
            tell(&diagnostics);
            None
        }
    }
}

fn tell(diagnostics: &[Diagnostic]) {
    for one in diagnostics {
        let severity = match one.severity {
            config::Severity::Error => "error",
            config::Severity::Warning => "warning",
        };
        crate::say_error(&format!("{severity}: {one}\n"));
    }
}

fn serve(options: &Options, config: &Config) -> ExitCode {
    let log = match log::open(&config.telemetry.logs) {
        Ok(log) => log,
        Err(reason) => {
            crate::say_error(&format!("error: service::telemetry::logs: {reason}\n"));
            return ExitCode::FAILURE;
        }
    };
    crate::sys::keep_memory();
    let mut builder = match options.threads {
        1 => tokio::runtime::Builder::new_current_thread(),
        threads => {
            let mut builder = tokio::runtime::Builder::new_multi_thread();
            builder.worker_threads(threads);
            builder
        }
    };
    let runtime = match builder.enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            log.error(&format!("no runtime: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let setup = Setup {
        log: log.clone(),
        seed: crate::sys::random_seed(),
        record_policy: options.record_policy,
        memory_used_bytes: crate::sys::memory_used_bytes,
    };
    let exit = runtime.block_on(live(config, setup, &log));
    // What has not ended by now hangs on somebody else.
    runtime.shutdown_timeout(Duration::from_secs(1));
    exit
}

async fn live(config: &Config, setup: Setup, log: &Log) -> ExitCode {
    let signals = [
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::hangup(),
    ];
    let [interrupt, terminate, hangup] = signals.map(signal);
    let (Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)) = (interrupt, terminate, hangup)
    else {
        log.error("signals cannot be taken");
        return ExitCode::FAILURE;
    };
    let collector = match Collector::start(config, setup) {
        Ok(collector) => collector,
        Err(error) => {
            log.error(&error.0);
            return ExitCode::FAILURE;
        }
    };
    for (name, address) in collector.addresses() {
        if let Some(address) = address {
            log.info(&format!("{name} listens on {address}"));
        }
    }
    let pipelines: Vec<String> = config
        .pipelines
        .iter()
        .map(|one| one.id.to_string())
        .collect();
    log.info(&format!("running: {}", pipelines.join(", ")));
    loop {
        tokio::select! {
            _ = interrupt.recv() => break,
            _ = terminate.recv() => break,
            _ = hangup.recv() => log.warn("SIGHUP: reloading does not work yet; nothing is changed"),
        }
    }
    log.info("ending");
    let balances = tokio::select! {
        balances = collector.end() => balances,
        _ = interrupt.recv() => {
            log.error("interrupted again: what was pending is lost");
            return ExitCode::FAILURE;
        }
    };
    match tell_accounts(log, &balances) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Tells the accounts of a collector that has ended, by signal; whether nothing was lost by its end.
pub(crate) fn tell_accounts(log: &Log, balances: &[Balance; 3]) -> bool {
    for (records, balance) in ["spans", "data points", "log records"].iter().zip(balances) {
        if *balance != Balance::default() {
            log.info(&format!("{records}: {}", account(balance)));
        }
    }
    balances.iter().all(|balance| balance.shutdown == 0)
}

/// The account in words.
pub(crate) fn account(balance: &Balance) -> String {
    let Balance {
        accepted,
        exported,
        dropped,
        failed,
        rejected,
        shutdown,
        refused,
        ..
    } = balance;
    format!(
        "{accepted} accepted = {exported} exported + {dropped} dropped + {failed} failed + {rejected} rejected + \
         {shutdown} lost at the end + {} held; {refused} refused",
        balance.held()
    )
}
