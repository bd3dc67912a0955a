//! `spangate collect`: the collector as a program of its own.

pub(crate) mod log;
pub(crate) mod options;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use collector::config::components::receivers::ProxyRole;
use collector::config::source::Outside;
use collector::config::{self, Config, Diagnostic};
use collector::dashboard::{self, Store};
use collector::run::account::Balance;
use collector::run::{Collector, END_MAX, Host, Listeners, Log, Setup, View};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;

pub(crate) use options::COMMAND;
use options::{Command, Options};

/// The exit code of `validate` for a pipeline that would not be started.
const EXIT_NOT_STARTED: u8 = 3;

/// Runs the command with its arguments.
pub(crate) fn run(arguments: impl Iterator<Item = std::ffi::OsString>) -> ExitCode {
    let options = match Options::parse(arguments) {
        Ok(options) => options,
        Err(message) => {
            crate::say_error(&format!("spangate collect: {message}\n{}", COMMAND.usage()));
            return ExitCode::FAILURE;
        }
    };
    match options.command {
        Command::Help => {
            crate::say(&COMMAND.usage());
            ExitCode::SUCCESS
        }
        Command::Documentation => {
            crate::say(&config::docs::collector_markdown());
            ExitCode::SUCCESS
        }
        Command::Components => {
            crate::say(&config::print::components(env!("CARGO_PKG_VERSION")));
            ExitCode::SUCCESS
        }
        Command::PrintConfig => print_config(&options),
        Command::Validate => match load(&options) {
            Some(config) if config.not_started.is_empty() => ExitCode::SUCCESS,
            Some(_) => ExitCode::from(EXIT_NOT_STARTED),
            None => ExitCode::FAILURE,
        },
        Command::Run => match load(&options) {
            Some(config) => serve(&options, config),
            None => ExitCode::FAILURE,
        },
    }
}

fn print_config(options: &Options) -> ExitCode {
    let sources: Vec<&str> = options.sources.iter().map(String::as_str).collect();
    match config::print::config(&sources, outside(), options.style) {
        Ok(text) => {
            crate::say(&text);
            ExitCode::SUCCESS
        }
        Err(diagnostics) => {
            tell(&diagnostics);
            ExitCode::FAILURE
        }
    }
}

/// The environment and the files of this process.
fn outside() -> Outside<'static> {
    Outside {
        variable: &|name| std::env::var(name).ok(),
        read_file: &::config::build::otel::files::bounded,
    }
}

/// Reads the configuration and prints its errors and warnings. None after an error.
fn load(options: &Options) -> Option<Config> {
    let sources: Vec<&str> = options.sources.iter().map(String::as_str).collect();
    let judged = config::Options {
        strict: options.strict,
        drop_parts: options.drop_parts.clone(),
    };
    match config::load(&sources, &judged, outside()) {
        Ok(config) => {
            tell(&config.warnings);
            let receivers = config.receivers.iter();
            let is_proxy = |role: ProxyRole| role == ProxyRole::Always;
            for one in receivers.filter(|one| is_proxy(one.settings.proxy_role())) {
                crate::say_error(&format!(
                    "warning: {}: the receiver '{}' receives nothing outside a proxy\n",
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

fn serve(options: &Options, config: Config) -> ExitCode {
    crate::sys::keep_memory();
    resolvers::system::of_process();
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
            crate::say_error(&format!("error: cannot start the runtime: {error}\n"));
            return ExitCode::FAILURE;
        }
    };
    let exit = runtime.block_on(live(options, config));
    // Tasks that still run wait for another process.
    runtime.shutdown_timeout(Duration::from_secs(1));
    exit
}

/// A running configuration.
struct Running {
    config: Config,
    log: Log,
    collector: Collector,
    listeners: Listeners,
    /// Collectors of earlier configurations, which end.
    earlier: Vec<Earlier>,
}

/// A collector that another one replaced. Exporters of that one may still send what it accepted.
struct Earlier {
    view: Arc<View>,
    ends: JoinHandle<[Balance; 3]>,
}

impl Earlier {
    /// Whether all records that it accepted are accounted for.
    fn is_over(&self) -> bool {
        let mut accounts = self.view.accounts.iter();
        self.ends.is_finished() && accounts.all(|account| account.balance().held() == 0)
    }
}

impl Running {
    /// Starts a configuration, which takes over traces and sockets from the one before. Prints why
    /// it cannot start.
    fn start(
        options: &Options,
        config: Config,
        (traces, listeners): (Option<Arc<Store>>, Listeners),
    ) -> Option<Running> {
        let log = match log::open(&config.telemetry.logs) {
            Ok(log) => log,
            Err(reason) => {
                crate::say_error(&format!("error: service::telemetry::logs: {reason}\n"));
                return None;
            }
        };
        let setup = Setup {
            log: log.clone(),
            seed: crate::sys::random_seed(),
            record_policy: options.record_policy,
            memory_used_bytes: crate::sys::memory_used_bytes,
            traces: dashboard::store_for([&config], traces),
        };
        let host = Host {
            listeners: listeners.clone(),
            ..Host::default()
        };
        let collector = match Collector::start_in(&config, setup, &host) {
            Ok(collector) => collector,
            Err(error) => {
                log.error(&error.0);
                return None;
            }
        };
        for (name, address) in collector.addresses() {
            if let Some(address) = address {
                log.info(&format!("{name} listens on {address}"));
            }
        }
        let pipelines = config.pipelines.iter().map(|one| one.id.to_string());
        let pipelines: Vec<String> = pipelines.collect();
        log.info(&format!("running: {}", pipelines.join(", ")));
        Some(Running {
            config,
            log,
            collector,
            listeners,
            earlier: Vec::new(),
        })
    }

    /// Ends the collector and logs its account. Returns its configuration and log, and whether
    /// every record is accounted for. None: a signal interrupted the end.
    async fn end(self, interrupt: &mut Signals) -> Option<(Config, Log, bool)> {
        let Running {
            config,
            log,
            collector,
            earlier,
            ..
        } = self;
        let view = Arc::clone(&collector.view);
        let mut waits = tokio::time::interval(TELL_EVERY);
        let ended = async {
            let balances = collector.end().await;
            let mut earlier_views = Vec::new();
            for one in earlier {
                // One whose task failed has an account all the same.
                if !one.ends.is_finished() {
                    let _ = one.ends.await;
                }
                earlier_views.push(one.view);
            }
            (balances, earlier_views)
        };
        tokio::pin!(ended);
        let (balances, earlier) = loop {
            tokio::select! {
                ended = &mut ended => break ended,
                _ = waits.tick() => tell_waiting(&log, &view.waiting()),
                _ = interrupt.recv() => {
                    log.error("SIGINT: pending records are lost");
                    return None;
                }
            }
        };
        let mut is_whole = tell_accounts(&log, &balances);
        // Exporters had records of these, which are settled now.
        for view in earlier {
            let balances = view.accounts.each_ref().map(|account| account.balance());
            log.info("accounts of an earlier configuration, complete now:");
            is_whole &= tell_accounts(&log, &balances);
        }
        Some((config, log, is_whole))
    }

    /// Reads the configuration again. A faulty one, or one that does not start, changes nothing.
    ///
    /// The new collector starts beside the old one, and takes over its sockets; what the old one
    /// has not sent, the exporters of the new one send. Where both would use the same files, the old
    /// one ends first. None: nothing runs any more.
    async fn reload(mut self, options: &Options, interrupt: &mut Signals) -> Option<Running> {
        self.log.info("SIGHUP: reading the configuration again");
        let Some(next) = load(options) else {
            self.log
                .error("the configuration is invalid: the running one stays active");
            return Some(self);
        };
        self.end_of_earlier(interrupt).await?;
        let kept = (self.collector.view.traces.clone(), self.listeners.clone());
        if !self.config.has_files() && !next.has_files() {
            let Some(mut new) = Running::start(options, next, kept) else {
                self.log
                    .error("the new configuration does not start: the running one stays active");
                return Some(self);
            };
            new.earlier = std::mem::take(&mut self.earlier);
            new.earlier
                .push(self.end_for(Arc::clone(&new.collector.view)));
            return Some(new);
        }
        let (before, log, _) = self.end(interrupt).await?;
        Running::start(options, next, kept.clone()).or_else(|| {
            log.error("the new configuration does not start: the previous one starts again");
            Running::start(options, before, kept)
        })
    }

    /// Waits for collectors that still hand over what they have to this one. None: a signal
    /// interrupted that.
    async fn end_of_earlier(&mut self, interrupt: &mut Signals) -> Option<()> {
        for one in &mut self.earlier {
            if one.ends.is_finished() {
                continue;
            }
            self.log
                .info("waiting for the previous configuration to end");
            tokio::select! {
                _ = &mut one.ends => {}
                _ = interrupt.recv() => {
                    self.log.error("SIGINT: pending records are lost");
                    return None;
                }
            }
        }
        self.earlier.retain(|one| !one.is_over());
        Some(())
    }

    /// Ends beside the collector that replaces this one.
    fn end_for(self, next: Arc<View>) -> Earlier {
        self.collector.stop_listening();
        let view = Arc::clone(&self.collector.view);
        let ends = tokio::spawn(async move {
            let balances = self.collector.end_for(&next).await;
            self.log.info("the previous configuration has ended");
            tell_accounts(&self.log, &balances);
            balances
        });
        Earlier { view, ends }
    }
}

/// The interval of the messages about what the end of the collector waits for.
const TELL_EVERY: Duration = Duration::from_secs(5);

/// Logs what the end of the collector waits for, and how to end at once.
fn tell_waiting(log: &Log, waiting: &[String]) {
    if !waiting.is_empty() {
        log.info(&format!(
            "waiting at most {} s for {}; SIGINT ends at once and loses them",
            END_MAX.as_secs(),
            waiting.join(", ")
        ));
    }
}

type Signals = tokio::signal::unix::Signal;

async fn live(options: &Options, config: Config) -> ExitCode {
    let signals = [
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::hangup(),
    ];
    let [interrupt, terminate, hangup] = signals.map(signal);
    let (Ok(mut interrupt), Ok(mut terminate), Ok(mut hangup)) = (interrupt, terminate, hangup)
    else {
        crate::say_error("error: cannot install the signal handlers\n");
        return ExitCode::FAILURE;
    };
    let Some(mut running) = Running::start(options, config, (None, Listeners::default())) else {
        return ExitCode::FAILURE;
    };
    loop {
        tokio::select! {
            _ = interrupt.recv() => break,
            _ = terminate.recv() => break,
            _ = hangup.recv() => match running.reload(options, &mut interrupt).await {
                Some(next) => running = next,
                None => return ExitCode::FAILURE,
            },
        }
    }
    let why = "no new records are accepted, pending traces are decided, and kept records are sent";
    running.log.info(&format!("ending: {why}"));
    match running.end(&mut interrupt).await {
        Some((_, _, true)) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// Logs the accounts of a collector that has ended, by signal. Returns whether its end lost
/// nothing.
pub(crate) fn tell_accounts(log: &Log, balances: &[Balance; 3]) -> bool {
    for (records, balance) in ["spans", "data points", "log records"].iter().zip(balances) {
        if *balance != Balance::default() {
            log.info(&format!("{records}: {}", account(balance)));
        }
    }
    balances.iter().all(|balance| balance.shutdown == 0)
}

/// The account as text.
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
