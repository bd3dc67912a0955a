//! The life cycle of the process: limits, listeners, privileges, workers, signals, end.

mod reload;

pub(crate) use reload::{ANSWER_TIME, FILES_TIME, Kind as ReloadKind, Reloads};

use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use config::model::Config;
use config::reader::Input;
use proxy::{Current, Generation, Order, RuntimeConfig};

use crate::args::Args;
use crate::cli::CurrentSubjects;
use crate::collectors::Collectors;
use crate::event_reporter::EventReporter;
use crate::exports::Exports;
use crate::frontends::Frontends;
use crate::handover::{Channel, Exposed, Taken};
use crate::load::Loaded;
use crate::log_forward::{self, LogForwards};
use crate::master::tell as tell_master;
use crate::names::{self, Names, Pending};
use crate::pages::{Pages, Served};
use crate::peers::Peers;
use crate::rings::Rings;
use crate::serve::{Listening, Workers};
use crate::server_state::States;
use crate::share::{self, Shares};
use crate::sockets::Sockets;
use crate::sys::{self, Background, Signals};
use crate::{alert, cli, confine, limits, quic_relay, stats_file, warning};

/// The process sends this signal to itself when a worker or a collector has ended.
const SIGNAL_ENDED: libc::c_int = libc::SIGCHLD;
/// Descriptors other than connections and listeners: standard streams, files, signals, the runtime
/// interface.
const DESCRIPTORS_RESERVED: u64 = 32;
/// Descriptors of each worker: its poll, its wake-up, its log sockets.
const DESCRIPTORS_OF_A_WORKER: u64 = 4;
/// The signals that the process waits for. They have no handlers.
pub(crate) const WATCHED: [libc::c_int; 9] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGHUP,
    libc::SIGUSR2,
    libc::SIGTTOU,
    libc::SIGTTIN,
    // Frees unused memory in HAProxy, and ends neither a process nor a master.
    libc::SIGQUIT,
    SIGNAL_ENDED,
];
/// How often a start tries to bind while old processes have the ports, as in HAProxy.
const BIND_RETRIES_MAX: u32 = 200;
/// The pause before the next try: old processes need it to stop listening.
const BIND_RETRY_PAUSE: Duration = Duration::from_millis(10);

/// A worker's connections to its master.
pub(crate) struct Master<'a> {
    /// Receives the messages of the start, and the report that the worker serves.
    pub ready: std::io::PipeWriter,
    /// Delivers requests for the listening sockets.
    pub channel: Channel,
    /// The channel to the worker that serves until this one does.
    pub before: Option<&'a Channel>,
}

/// Runs a configuration until a signal ends it. In master-worker mode, the master waits until the
/// worker is ready. The master writes the pidfile and goes to the background itself.
pub(crate) fn run(args: &Args, loaded: Loaded, master: Option<Master<'_>>) -> ExitCode {
    match start(args, loaded, master) {
        Ok(code) => code,
        Err(message) => {
            alert(&message);
            ExitCode::FAILURE
        }
    }
}

fn start(args: &Args, loaded: Loaded, master: Option<Master<'_>>) -> Result<ExitCode, String> {
    let Loaded {
        mut config,
        mut tls,
        collectors,
        sources,
        inputs,
        has_warnings: _,
    } = loaded;
    let config = &mut config;
    let tls = &mut tls;
    if let Some(megabytes) = args.memory_megabytes {
        sys::limit_memory(megabytes << 20)
            .map_err(|error| format!("Cannot limit memory : {error}."))?;
    }
    apply_arguments(args, config);
    // From here on, signals are blocked until the main loop reads them.
    let signals =
        Signals::block(&WATCHED).map_err(|error| format!("Cannot block signals : {error}."))?;
    let mut descriptors = limits::raise_descriptors(config)?;
    let nbthread = config
        .global
        .nbthread
        .map_or_else(cores, usize::from)
        .max(1);
    confine::raise_permitted(&config.global)?;
    let before = master.as_ref().and_then(|master| master.before);
    let follows_another = before.is_some() || args.old.is_some() || args.old_socket.is_some();
    let (mut listening, mut sockets) = listen(args, config, nbthread, before)?;
    let forwards = LogForwards::open(config, &mut sockets)?;
    let own = nbthread as u64 * DESCRIPTORS_OF_A_WORKER
        + listening.descriptors()
        + listening.peers().descriptors(config)
        + share::descriptors(config)
        + forwards.descriptors();
    let reserved = DESCRIPTORS_RESERVED + own;
    let server_conns_max = limits::set_maxconn(config, &mut descriptors, reserved)?;
    let control = cli::Control::open(&config.global.stats_sockets, &mut sockets)?;
    let pages = Pages::open(config, &mut sockets)?;
    let earlier = sockets.earlier();
    let exposed = Arc::new(Exposed::new(sockets.into_exposed()));

    let has_master = master.is_some();
    let listens = listening.listens()
        || forwards.listens()
        || control.listens()
        || config.dashboard.is_some()
        || !config.collectors.is_empty();
    // A master talks to its worker.
    if !listens && !has_master {
        let message = "No enabled listener found (check for 'bind' directives) ! Exiting.";
        return Err(message.to_owned());
    }
    let daemon = config.global.daemon;
    let mut detached = None;
    if daemon && !has_master {
        match sys::go_to_background(&signals).map_err(|error| format!("Cannot fork : {error}."))? {
            Background::Starter(code) => return Ok(code),
            Background::Daemon(daemon) => detached = Some(daemon),
        }
        write_pidfile(args, config)?;
    }
    // After a chroot, the files of names are out of reach.
    resolvers::system::of_process();
    // Threads inherit it.
    confine::harden(&config.global);
    let now = net::sys::now();
    let collectors = Collectors::start(config, collectors, || {
        sys::signal_self(SIGNAL_ENDED);
    })?;
    let mut exports = Exports::start(config, collectors.doors(), now.wall_ns)?;
    // After a chroot, the file may be out of reach.
    let stats_file = stats_file::read(config.global.stats_file.as_deref());
    let local_time = sample::Zone::local();
    let states = States::read(config);
    let ring_files = Rings::create_files(config)?;
    let global = &config.global;
    let null = daemon.then(sys::null).flatten();
    confine::confine(global)?;
    if !args.is_generated {
        confine::warn_of_root(global);
    }

    let process = proxy::Process {
        hostname: sys::hostname(),
        pid: std::process::id(),
        nbthread: nbthread as u32,
        memory_max_bytes: args.memory_megabytes.unwrap_or(0) << 20,
        descriptors,
        server_conns_max,
        local_time,
        started: now,
        trace_seed: [sys::random_seed(), sys::random_seed()],
        secret: sys::secret(),
        number: earlier.next_number(),
        earlier: earlier.relays(),
    };
    let number = process.number;
    listening.tell();
    let mut runtime_config = proxy::prepare(std::mem::take(config), std::mem::take(tls), process);
    if let Some(exports) = &mut exports {
        exports.connect(&mut runtime_config);
    }
    let exports = exports.map(Arc::new);
    let runtime_config = Arc::new(runtime_config);
    let frontends = Arc::new(listening.frontends());
    let shared = Arc::new(runtime_config.share(nbthread));
    states.apply(&runtime_config.config, &shared);
    if let Some(file) = &stats_file {
        file.apply(&runtime_config, &shared);
    }
    let current = Arc::new(Current::new(Generation {
        runtime_config: Arc::clone(&runtime_config),
        shared: Arc::clone(&shared),
    }));
    if let Some(exports) = &exports {
        exports.watch(&current);
    }
    // They take note of what workers change.
    let peers = Peers::start(
        &runtime_config,
        listening.take_peers(),
        follows_another,
        || sys::signal_self(SIGNAL_ENDED),
    );
    let peers = peers.map_err(|error| format!("Cannot start the peers : {error}."))?;
    let mut shares = Shares::default();
    let shared_tables = shares.follow(&runtime_config);
    shared_tables.map_err(|error| format!("Cannot start sharing tables : {error}."))?;
    let mut workers = Workers::start(&runtime_config, shared, listening, ring_files, || {
        sys::signal_self(SIGNAL_ENDED);
    })?;
    workers.shared().set_dropped_logs(workers.dropped_logs());
    let bells = Arc::new(health::Bells::default());
    let ocsp = Arc::new(health::OcspUpdates::new(&runtime_config));
    let failed = |error| format!("Cannot start the health checks : {error}.");
    let crier = Arc::new(EventReporter {
        runtime_config: Arc::clone(&runtime_config),
        sinks: Mutex::new(workers.open_logs().map_err(failed)?),
        dropped: workers.dropped_logs(),
        workers: workers.inboxes().clone(),
        bells: Arc::clone(&bells),
        names: OnceLock::new(),
    });
    workers.shared().set_event_sink(Arc::clone(&crier) as _);
    shares.report_to(&crier);
    let names = start_names(&workers, &crier, Vec::new())
        .map_err(|error| format!("Cannot start the resolvers : {error}."))?;
    let forwards = start_forwards(forwards, &mut workers, &runtime_config)?;
    let checks = start_checks(&workers, &crier, &ocsp).map_err(failed)?;
    let reloads = Arc::new(Reloads::default());
    let subjects = Arc::new(CurrentSubjects::from(Arc::new(cli::Subjects {
        runtime_config: Arc::clone(&runtime_config),
        exports: exports.clone(),
        collectors: collectors.views(),
        peers: peers.as_ref().map(Peers::view),
        share: shares.view(),
        workers: workers.inboxes().clone(),
        shared: workers.shared(),
        exposed: Arc::clone(&exposed),
        frontends: Arc::clone(&frontends),
        ocsp,
        crier: Arc::clone(&crier),
        anon_key: runtime_config.config.global.anon_key.into(),
        dynamic_cookies: Arc::default(),
        rings: workers.rings(),
        reloads: Arc::clone(&reloads),
    })));
    let pages = pages.start(&subjects, &current, sources)?;
    let doors = control
        .start(Arc::clone(&subjects))
        .map_err(|error| format!("Cannot start the runtime interface : {error}."))?;
    if exposed.has_datagrams() {
        earlier.expose(&exposed);
    }
    quic_relay::start(&exposed, number, &current, workers.inboxes())
        .map_err(|error| format!("Cannot start the relay of QUIC : {error}."))?;
    // From here on, this process serves.
    earlier.tell_reads();
    if let Some(old) = &args.old {
        let signal = if old.gracefully {
            libc::SIGUSR1
        } else {
            libc::SIGTERM
        };
        for pid in &old.pids {
            if let Err(error) = sys::kill(*pid, signal) {
                warning(&format!("Cannot signal process {pid} : {error}."));
            }
        }
    }
    let mut channel = None;
    if let Some(Master {
        ready, channel: to, ..
    }) = master
    {
        let to = channel.insert(Arc::new(to));
        let visitors = doors.visitors();
        Arc::clone(to)
            .serve(
                Arc::clone(&exposed),
                move |stream| visitors.serve(stream),
                // The kernel forgets PR_SET_PDEATHSIG when the user changes.
                || sys::signal_self(libc::SIGTERM),
            )
            .map_err(|error| format!("Cannot start the handover : {error}."))?;
        if let Some(null) = &null {
            sys::leave_standard_streams(null);
        }
        // If the master has ended, this process ends too.
        let tune = runtime_config.config.global.master;
        let _ = tell_master(ready, &crate::startup::messages(), tune);
    }
    if let Some(detached) = detached {
        detached.ready();
    }
    workers.shared().set_boot(proxy::Boot {
        ms: crate::startup::passed_ms(),
        warnings: crate::startup::warnings(),
    });
    crate::startup::is_over();
    let reporter = crier;
    let mut serving = Serving {
        workers,
        checks: Some(checks),
        collectors,
        runtime_config,
        current,
        subjects,
        reloads,
        inputs,
        names,
        exposed,
        frontends,
        reporter,
        doors: Some(doors),
        pages,
        peers,
        shares,
        forwards,
        master: channel,
    };
    serving.wait(&signals, args);
    serving.end_checks();
    let Serving {
        workers,
        collectors,
        peers,
        shares,
        forwards,
        names,
        ..
    } = serving;
    if let Some(forwards) = forwards {
        forwards.stop();
    }
    workers.finish();
    if let Some(peers) = peers {
        peers.stop();
    }
    // The workers count no more.
    shares.stop();
    if let Some(names) = names {
        names.stop();
    }
    if let Some(exports) = exports {
        exports.finish();
    }
    collectors.end(&signals, !has_master);
    Ok(ExitCode::SUCCESS)
}

/// Opens the listening sockets. Old processes (`-sf`, `-st`) that have the ports stop listening for
/// a moment (SIGTTOU); if the ports cannot be bound all the same, they listen again (SIGTTIN;
/// management guide §4).
///
/// # Errors
/// Some lines cannot be bound; each was reported.
#[expect(
    clippy::disallowed_methods,
    reason = "nothing reports that another process has left a port"
)]
fn listen(
    args: &Args,
    config: &Config,
    workers: usize,
    before: Option<&Channel>,
) -> Result<(Listening, Sockets), String> {
    // A master's worker takes the sockets over, and its master has signalled nobody.
    let old = args.old.as_ref().filter(|_| before.is_none());
    let tell_old = |signal| {
        let pids = old.iter().flat_map(|old| &old.pids);
        pids.filter(|pid| sys::kill(**pid, signal).is_ok()).count()
    };
    let mut tries = 0;
    let unbound = loop {
        let mut sockets = Sockets::new(take_over(args, before)?);
        let unbound = match Listening::open(config, workers, &mut sockets) {
            Ok(listening) => return Ok((listening, sockets)),
            Err(unbound) => unbound,
        };
        drop(sockets);
        if !unbound.is_in_use || tries == BIND_RETRIES_MAX || tell_old(libc::SIGTTOU) == 0 {
            break unbound;
        }
        tries += 1;
        std::thread::sleep(BIND_RETRY_PAUSE);
    };
    for message in &unbound.messages {
        alert(message);
    }
    if tries > 0 {
        tell_old(libc::SIGTTIN);
    }
    Err("Some listeners could not be started.".to_owned())
}

/// Whether the process detaches: `daemon` or `-D`, and neither `-d` nor `-db`.
pub(crate) fn goes_to_background(args: &Args, config: &Config) -> bool {
    (config.global.daemon || args.daemon) && !args.foreground
}

fn apply_arguments(args: &Args, config: &mut Config) {
    config.global.daemon = goes_to_background(args, config);
    config.global.allows_forks |= args.allows_forks;
    if args.maxconn.is_some() {
        config.global.maxconn = args.maxconn;
    }
    for proxy in config.proxies.iter_mut().filter(|proxy| proxy.is_frontend) {
        proxy.maxconn = proxy.maxconn.or(args.proxy_maxconn);
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Writes the process number to the file if the process is a daemon or a master and is asked to.
pub(crate) fn write_pidfile(args: &Args, config: &Config) -> Result<(), String> {
    let of_args = args.pidfile.as_ref().map(Path::new);
    let Some(path) = of_args.or(config.global.pidfile.as_deref()) else {
        return Ok(());
    };
    // An old file may belong to another user, or be a link to another place.
    drop(std::fs::remove_file(path));
    std::fs::write(path, format!("{}\n", std::process::id()))
        .map_err(|error| format!("Cannot create pidfile {} : {error}.", path.display()))
}

/// The progress of a soft stop.
#[derive(Clone, Copy)]
enum Stop {
    NotAsked,
    /// The time at which the listeners close, in nanoseconds of the monotonic clock.
    At(u64),
    Told,
}

/// A serving process.
struct Serving {
    workers: Workers,
    checks: Option<health::Checks>,
    collectors: Collectors,
    runtime_config: Arc<RuntimeConfig>,
    /// The same, for threads that outlive a reload in place.
    current: Arc<Current>,
    subjects: Arc<CurrentSubjects>,
    reloads: Arc<Reloads>,
    /// The texts of the files.
    inputs: Vec<Input>,
    /// The threads that resolve names, where there are some.
    names: Option<Names>,
    exposed: Arc<Exposed>,
    frontends: Arc<Frontends>,
    reporter: Arc<EventReporter>,
    /// The running runtime interface.
    doors: Option<cli::CliServer>,
    /// The running dashboard.
    pages: Option<Served>,
    /// The running sections `peers`.
    peers: Option<Peers>,
    /// The tables that are shared through a store.
    shares: Shares,
    /// The running receivers of logs.
    forwards: Option<log_forward::Running>,
    /// The channel to the master, where there is one.
    master: Option<Arc<Channel>>,
}

impl Serving {
    /// Handles signals until the workers have ended or must end.
    fn wait(&mut self, signals: &Signals, args: &Args) {
        let mut stop = Stop::NotAsked;
        loop {
            self.workers.tell_of_logs();
            let is_stopping = !matches!(stop, Stop::NotAsked);
            let stopping = || Err("The process is stopping.\n".to_owned());
            match self.reloads.take_read() {
                Some((request, _)) if is_stopping => request.answer(stopping()),
                Some((request, files)) => self.reload_with(args, request, files),
                None => {}
            }
            while let Some(request) = self.reloads.take() {
                if is_stopping {
                    request.answer(stopping());
                } else {
                    self.reload(args, request);
                }
            }
            let signal = match stop {
                Stop::At(ns) => {
                    let left_ns = ns.saturating_sub(net::sys::monotonic_ns());
                    signals.wait_for(Duration::from_nanos(left_ns))
                }
                Stop::NotAsked | Stop::Told => signals.wait(),
            };
            // At a soft stop, the next process first gets the entries of shared tables.
            let peers_go_on = !matches!(stop, Stop::NotAsked)
                && self.peers.as_ref().is_some_and(|one| !one.is_over());
            let ended = signal == Some(SIGNAL_ENDED) && self.workers.all_ended() && !peers_go_on;
            match signal {
                Some(libc::SIGINT | libc::SIGTERM) => return self.workers.tell(&Order::Stop),
                Some(libc::SIGUSR1) if matches!(stop, Stop::NotAsked) => {
                    let grace = self.runtime_config.config.global.grace.unwrap_or_default();
                    self.stop_listening(grace);
                    stop = Stop::At(net::sys::monotonic_ns() + grace.as_nanos() as u64);
                }
                Some(libc::SIGHUP) => self.workers.tell_of_states(),
                Some(libc::SIGTTOU) if matches!(stop, Stop::NotAsked) => self.pause(),
                Some(libc::SIGTTIN) if matches!(stop, Stop::NotAsked) => self.resume(),
                Some(libc::SIGUSR2) => warning("SIGUSR2 received : only a master reloads, see -W."),
                _ => {}
            }
            if let Stop::At(ns) = stop
                && (ended || ns <= net::sys::monotonic_ns())
            {
                self.workers.tell_of_stop();
                stop = Stop::Told;
            }
            if ended {
                return;
            }
        }
    }

    /// Stops listening until [`Serving::resume`]; open connections go on.
    fn pause(&self) {
        let tell = |frontend| self.reporter.tell_of_listening(frontend, "Paused");
        let shared = self.workers.shared();
        if self.frontends.pause_all(&shared, tell).is_err() {
            warning("Some proxies refused to pause.");
        }
    }

    /// Listens again.
    fn resume(&self) {
        let tell = |frontend| self.reporter.tell_of_listening(frontend, "Resumed");
        let shared = self.workers.shared();
        if self.frontends.resume_all(&shared, tell).is_err() {
            warning(
                "Some proxies refused to resume, probably due to a conflict on a listening port.",
            );
        }
        self.workers.inboxes().wake_all();
    }

    /// Ends the health checks of servers.
    fn end_checks(&mut self) {
        if let Some(checks) = self.checks.take() {
            checks.stop();
        }
    }

    /// Begins a soft stop, after which the next process has the ports.
    fn stop_listening(&mut self, grace: Duration) {
        let ms = |duration: Duration| duration.as_millis() as u64;
        let hard_stop = self.runtime_config.config.global.hard_stop_after;
        self.exposed.clear();
        if let Some(peers) = &self.peers {
            peers.stop_softly(hard_stop);
        }
        self.workers.shared().stop();
        self.frontends.close_all(&self.workers.shared());
        self.workers.tell(&Order::Drain {
            grace_ms: ms(grace),
            hard_stop_ms: hard_stop.map(ms),
        });
        self.end_checks();
        self.collectors.stop_listening();
        if let Some(forwards) = &self.forwards {
            forwards.stop_listening();
        }
        // The runtime interface and the dashboard continue until another process has their sockets.
        if self.exposed.is_given() {
            self.doors = None;
            self.pages = None;
        }
    }
}

/// Starts to resolve names, where the configuration has some.
fn start_names(
    workers: &Workers,
    crier: &EventReporter,
    pending: Vec<Pending>,
) -> std::io::Result<Option<Names>> {
    if !names::are_needed(&crier.runtime_config.config) {
        names::give_up(pending, &workers.shared(), workers.inboxes());
        return Ok(None);
    }
    let names = Names::start(
        names::Parts {
            runtime_config: Arc::clone(&crier.runtime_config),
            shared: workers.shared(),
            workers: workers.inboxes().clone(),
        },
        pending,
    )?;
    let _ = crier.names.set(names.messages());
    Ok(Some(names))
}

/// Starts to relay logs, where the configuration has sections for that.
fn start_forwards(
    forwards: LogForwards,
    workers: &mut Workers,
    runtime_config: &Arc<RuntimeConfig>,
) -> Result<Option<log_forward::Running>, String> {
    let failed = |error: std::io::Error| format!("Cannot start to relay logs : {error}.");
    forwards
        .start(log_forward::Parts {
            runtime_config: Arc::clone(runtime_config),
            shared: workers.shared(),
            sinks: workers.open_logs().map_err(failed)?,
            dropped: workers.dropped_logs(),
        })
        .map_err(failed)
}

/// Starts the health checks of servers and the updates of certificate status.
fn start_checks(
    workers: &Workers,
    crier: &Arc<EventReporter>,
    ocsp: &Arc<health::OcspUpdates>,
) -> std::io::Result<health::Checks> {
    let crier = Arc::clone(crier);
    let inboxes = Mutex::new(workers.inboxes().clone());
    health::Checks::start(health::Setup {
        runtime_config: Arc::clone(&crier.runtime_config),
        shared: workers.shared(),
        wake: Box::new(move |woken| {
            let inboxes = inboxes.lock();
            inboxes.unwrap_or_else(PoisonError::into_inner).wake(woken);
        }),
        seed: sys::random_seed(),
        bells: Arc::clone(&crier.bells),
        ocsp: Arc::clone(ocsp),
        tell: Box::new(move |text| crier.tell_of_process(proxy::Level::Notice as u8, text)),
    })
}

/// The listening sockets of the previous process: a master's worker, or the process that `-x`
/// names.
///
/// # Errors
/// The previous process does not hand them over. A new worker then opens its own.
fn take_over(args: &Args, before: Option<&Channel>) -> Result<Taken, String> {
    let failed = |error: std::io::Error| {
        let why = net::sys::plain_error(&error);
        format!("Cannot take over the listening sockets of the old process : {why}.")
    };
    match (before, &args.old_socket) {
        (Some(channel), _) => Ok(Taken::from_channel(channel).unwrap_or_else(|error| {
            warning(&failed(error));
            Taken::default()
        })),
        (None, Some(path)) => Taken::from_path(path).map_err(failed),
        (None, None) => Ok(Taken::default()),
    }
}
