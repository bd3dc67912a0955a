//! A reload in place: the process reads its files again and goes on with what they say now. Its
//! connections, health, counters and tables stay.
//!
//! The runtime interface asks (`reload`), the main loop does it. Everything that can fail comes
//! first: files that are refused, a change that needs a new process, an address that cannot be
//! bound. Only then do the workers meet and go on with the new configuration together.

use std::collections::VecDeque;
use std::io::{self, BufReader};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use config::model::{Bind, BindAddress};
use files::Snapshot;
use net::Addr;
use proxy::{BoundLine, Generation, RuntimeConfig, Shared};

use super::{SIGNAL_ENDED, Serving, apply_arguments, start_checks, start_names};
use crate::args::Args;
use crate::cli::Subjects;
use crate::confine;
use crate::diff;
use crate::event_reporter::EventReporter;
use crate::handover::{Channel, Taken};
use crate::load;
use crate::names::Pending;
use crate::quic_relay;
use crate::serve::Listening;
use crate::sockets::Sockets;
use crate::sys;

/// The severity of a message about a reload that is refused.
const SEVERITY_WARNING: u8 = 4;
/// How long a command waits for its reload.
pub(crate) const ANSWER_TIME: Duration = Duration::from_secs(60);
/// In which time the master reads and sends the files.
pub(crate) const FILES_TIME: Duration = Duration::from_secs(50);

/// The result of a reload: a message for the user.
pub(crate) type Done = Result<String, String>;

/// Requests for a reload in place.
#[derive(Debug, Default)]
pub(crate) struct Reloads {
    asked: Mutex<VecDeque<Request>>,
    /// What the master has sent for a request.
    read: Mutex<Option<(Request, io::Result<Snapshot>)>>,
    /// The master reads for a request.
    is_reading: AtomicBool,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct Request {
    pub kind: Kind,
    done: Sender<Done>,
    /// When the one who asked gives up, nanoseconds of the monotonic clock.
    ends_ns: u64,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A reload.
    Apply,
    /// Only what it would do.
    Check,
}

impl Reloads {
    /// Asks the main loop for a reload and waits until it is done, this long at most. A reload that
    /// has not begun by then does not begin.
    ///
    /// # Errors
    /// Why nothing has changed.
    pub fn ask(&self, kind: Kind, patience: Duration) -> Done {
        let (sender, done): (_, Receiver<Done>) = channel();
        let time_ns = u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX);
        let request = Request {
            kind,
            done: sender,
            ends_ns: net::sys::monotonic_ns().saturating_add(time_ns),
        };
        lock(&self.asked).push_back(request);
        sys::signal_self(SIGNAL_ENDED);
        let done = done.recv_timeout(patience);
        done.unwrap_or_else(|_| Err("The process does not answer.\n".to_owned()))
    }

    /// Takes the next request, unless one is under way.
    pub fn take(&self) -> Option<Request> {
        if self.is_reading.load(Ordering::Relaxed) {
            return None;
        }
        let mut asked = lock(&self.asked);
        loop {
            let request = asked.pop_front()?;
            if !request.is_given_up() {
                return Some(request);
            }
        }
    }

    /// Takes the request whose files the master has sent.
    pub fn take_read(&self) -> Option<(Request, io::Result<Snapshot>)> {
        let read = lock(&self.read).take()?;
        self.is_reading.store(false, Ordering::Relaxed);
        Some(read).filter(|(request, _)| !request.is_given_up())
    }

    /// Lets the master read the files for a request. A thread waits for them, so that this process
    /// handles signals meanwhile; it wakes the main loop at the end.
    ///
    /// # Errors
    /// The thread cannot be started.
    fn read(self: &Arc<Self>, request: Request, master: &Arc<Channel>) -> io::Result<()> {
        let (reloads, master) = (Arc::clone(self), Arc::clone(master));
        self.is_reading.store(true, Ordering::Relaxed);
        let thread = std::thread::Builder::new().name("files".to_owned());
        let started = thread.spawn(move || {
            let snapshot = snapshot_of(&master);
            *lock(&reloads.read) = Some((request, snapshot));
            sys::signal_self(SIGNAL_ENDED);
        });
        if started.is_err() {
            self.is_reading.store(false, Ordering::Relaxed);
        }
        started.map(|_| ())
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Request {
    fn is_given_up(&self) -> bool {
        net::sys::monotonic_ns() >= self.ends_ns
    }

    /// Answers. Who asked may be gone.
    pub fn answer(self, done: Done) {
        let _ = self.done.send(done);
    }
}

impl Serving {
    /// Begins a reload. With a master, it goes on when the master has read the files
    /// ([`Serving::reload_with`]); otherwise at once.
    pub(super) fn reload(&mut self, args: &Args, request: Request) {
        if let Some(master) = &self.master {
            // If the thread cannot be started, the one who asked waits in vain.
            if let Err(error) = self.reloads.read(request, master) {
                crate::alert(&format!("Cannot read the files again : {error}."));
            }
            return;
        }
        if let Some(root) = confine::root_of(&self.runtime_config.config.global) {
            let why = format!(
                "The process cannot read its files again: it is in the chroot {} and has no master (-W).\n",
                root.display()
            );
            let done = self.tell_if_refused(request.kind, Err(why));
            return request.answer(done);
        }
        let done = files::without_pipes(|| self.follow_files(args, request.kind));
        let done = self.tell_if_refused(request.kind, done);
        request.answer(done);
    }

    /// Goes on with the files that the master has read.
    pub(super) fn reload_with(
        &mut self,
        args: &Args,
        request: Request,
        files: io::Result<Snapshot>,
    ) {
        let done = match files {
            Ok(snapshot) => snapshot.replay(|| self.follow_files(args, request.kind)),
            Err(error) => Err(format!(
                "The master does not send the files : {}.\n",
                why_unread(&error)
            )),
        };
        let done = self.tell_if_refused(request.kind, done);
        request.answer(done);
    }

    /// Adds to a refusal that nothing has changed; the log tells of it.
    fn tell_if_refused(&self, kind: Kind, done: Done) -> Done {
        done.map_err(|why| {
            if kind == Kind::Apply {
                let told = "The reload in place was refused ; nothing has changed.";
                crate::warning(told);
                let crier = &self.subjects.get().crier;
                crier.tell_of_process(SEVERITY_WARNING, told);
            }
            format!("{why}\nNothing has changed.\n")
        })
    }

    fn follow_files(&mut self, args: &Args, kind: Kind) -> Done {
        let before = Arc::clone(&self.runtime_config);
        let inputs = load::inputs_again(args)?;
        let comparison = diff::of_texts(&self.inputs, &inputs);
        let effects = diff::effects_text(&comparison, &self.inputs, &inputs);
        let restarts = comparison.restarts().count();
        let previous = Arc::new(before.previous(&self.workers.shared()));
        let (mut loaded, told) = load::load_again(args, inputs, previous)?;
        if restarts > 0 {
            return Err(format!("{told}{effects}"));
        }
        apply_arguments(args, &mut loaded.config);
        let global = &mut loaded.config.global;
        global.maxconn = global.maxconn.or(before.config.global.maxconn);
        let now = net::sys::now();
        let runtime_config = proxy::prepare_after(&before, loaded.config, loaded.tls, now);
        if !runtime_config.numbers_alike(&before) {
            return Err(format!(
                "{told}The order of filters or rings differs, or what a filter exports to, or a table that peers share: this needs a new process.\n"
            ));
        }
        if runtime_config.bound_lines().next().is_none() {
            return Err(format!("{told}The files have no listener.\n"));
        }
        let lines = self.lines_to_open(&runtime_config)?;
        let lost = lost_of_commands(&runtime_config, &self.workers.shared());
        if kind == Kind::Check {
            return Ok(format!("{told}{effects}{lost}"));
        }
        let runtime_config = Arc::new(runtime_config);
        let mut sockets = self.sockets_to_take(&runtime_config);
        let listening = self.open_lines(&runtime_config, &lines, &mut sockets)?;

        // From here on, nothing is refused.
        self.end_checks();
        let names = self.names.take();
        let pending = names.map(|names| names.hand_over(&before.config));
        let pending = pending.unwrap_or_default();
        let renewed = self.workers.renew(&runtime_config, &before);
        match renewed {
            Ok(Some(next)) => {
                self.runtime_config = runtime_config;
                self.follow(&next, sockets, listening);
                self.inputs = loaded.inputs;
                if let Some(pages) = &self.pages {
                    pages.show(loaded.sources);
                }
                self.restart_helpers(&next, pending);
                let number = self.runtime_config.generation;
                let count = match comparison.effects.len() {
                    1 => "1 effect".to_owned(),
                    count => format!("{count} effects"),
                };
                let summary = format!("Configuration {number} is in use : {count}.");
                crate::notice(&summary);
                let severity = proxy::Level::Notice as u8;
                let crier = &self.subjects.get().crier;
                crier.tell_of_process(severity, &summary);
                Ok(format!("{told}{effects}{lost}\n{summary}\n"))
            }
            failed => {
                let current = self.current.get();
                self.restart_helpers(&current, pending);
                Err(match failed {
                    Err(error) => format!("Cannot open a log target : {error}.\n"),
                    Ok(_) => "A worker did not answer in time.\n".to_owned(),
                })
            }
        }
    }

    /// The bind lines that have to be opened.
    ///
    /// # Errors
    /// One of them is out of reach.
    fn lines_to_open(&self, runtime_config: &RuntimeConfig) -> Result<Vec<BoundLine>, String> {
        let lines = runtime_config.bound_lines();
        let lines = lines.filter(|line| !self.frontends.has(line.frontend, line.bind));
        let lines: Vec<BoundLine> = lines.collect();
        let config = &runtime_config.config;
        if let Some(root) = confine::root_of(&config.global) {
            let binds = lines
                .iter()
                .map(|line| &config.proxies[line.frontend].binds[line.bind]);
            // A name that begins with NUL is no path.
            let path = |bind: &Bind| match &bind.address {
                BindAddress::Addr(Addr::Unix(path)) if path.first() != Some(&0) => {
                    Some(String::from_utf8_lossy(path).into_owned())
                }
                _ => None,
            };
            if let Some(path) = binds.filter_map(path).next() {
                return Err(format!(
                    "The socket '{path}' is outside of the chroot {}: this needs a new process.\n",
                    root.display()
                ));
            }
        }
        Ok(lines)
    }

    fn open_lines(
        &self,
        runtime_config: &RuntimeConfig,
        lines: &[BoundLine],
        sockets: &mut Sockets,
    ) -> Result<Listening, String> {
        let workers = self.workers.inboxes().count();
        let listening = Listening::open_more(&runtime_config.config, lines, workers, sockets);
        listening.map_err(|unbound| {
            let mut text = unbound.messages.join("\n");
            text.push('\n');
            text
        })
    }

    /// The sockets of lines that close. A line of another frontend with the same address takes them
    /// over, so that no connection that waits on them is lost.
    fn sockets_to_take(&self, runtime_config: &RuntimeConfig) -> Sockets {
        let closing = self.frontends.closing(runtime_config);
        let inherited = self
            .frontends
            .inherited(&self.runtime_config.config, runtime_config);
        Sockets::again(Taken::from_own(&closing), inherited)
    }

    /// The other parts of the process follow the workers.
    fn follow(&mut self, next: &Generation, sockets: Sockets, listening: Listening) {
        self.frontends.retain(&self.exposed, &next.runtime_config);
        self.exposed.add(sockets.into_exposed());
        let number = next.runtime_config.process.number;
        let inboxes = self.workers.inboxes();
        if let Err(error) = quic_relay::start(&self.exposed, number, &self.current, inboxes) {
            crate::warning(&format!(
                "Cannot start the relay of QUIC, so that the next reload ends its connections : {error}."
            ));
        }
        self.frontends.add(listening.sockets());
        listening.tell();
        self.workers.listen(listening);
        self.current.set(next.clone());
    }

    /// Starts the checks and the resolution of names for a configuration, and tells commands.
    fn restart_helpers(&mut self, current: &Generation, pending: Vec<Pending>) {
        let subjects = self.subjects.get();
        let bells = Arc::new(health::Bells::default());
        let ocsp = Arc::new(health::OcspUpdates::new(&current.runtime_config));
        let crier = Arc::new(EventReporter {
            runtime_config: Arc::clone(&current.runtime_config),
            sinks: Mutex::new(self.workers.open_logs().unwrap_or_default()),
            dropped: self.workers.dropped_logs(),
            workers: self.workers.inboxes().clone(),
            bells,
            names: OnceLock::new(),
        });
        current.shared.set_event_sink(Arc::clone(&crier) as _);
        match start_names(&self.workers, &crier, pending) {
            Ok(names) => self.names = names,
            Err(error) => crate::alert(&format!("Cannot start the resolvers : {error}.")),
        }
        match start_checks(&self.workers, &crier, &ocsp) {
            Ok(checks) => self.checks = Some(checks),
            Err(error) => crate::alert(&format!("Cannot start the health checks : {error}.")),
        }
        self.shares.report_to(&crier);
        if let Err(error) = self.shares.follow(&current.runtime_config) {
            crate::alert(&format!("Cannot start sharing tables : {error}."));
        }
        self.subjects.set(Arc::new(Subjects {
            runtime_config: Arc::clone(&current.runtime_config),
            shared: Arc::clone(&current.shared),
            ocsp,
            crier,
            anon_key: subjects.anon_key.load(Ordering::Relaxed).into(),
            exports: subjects.exports.clone(),
            collectors: subjects.collectors.clone(),
            peers: subjects.peers.clone(),
            share: self.shares.view(),
            workers: subjects.workers.clone(),
            exposed: Arc::clone(&subjects.exposed),
            frontends: Arc::clone(&subjects.frontends),
            dynamic_cookies: subjects.dynamic_cookies.clone(),
            rings: subjects.rings.clone(),
            reloads: Arc::clone(&subjects.reloads),
        }));
    }
}

/// Why the files did not come.
fn why_unread(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::WouldBlock => format!("no answer in {} seconds", FILES_TIME.as_secs()),
        io::ErrorKind::UnexpectedEof => format!(
            "the process that reads them has ended, as it does after {} seconds",
            FILES_TIME.as_secs()
        ),
        _ => net::sys::plain_error(error).to_string(),
    }
}

/// The files as the master reads them.
fn snapshot_of(master: &Channel) -> std::io::Result<Snapshot> {
    let from = master.ask_for_files()?;
    from.set_read_timeout(Some(FILES_TIME))?;
    Snapshot::read_from(BufReader::new(from))
}

/// The servers and backends that commands have added and that a configuration lacks, as lines.
fn lost_of_commands(runtime_config: &RuntimeConfig, shared: &Shared) -> String {
    let tables = shared.server_tables();
    let mut lines = String::new();
    for (place, proxy) in runtime_config.config.proxies.iter().enumerate() {
        for (at, record) in tables.servers(place) {
            let line = proxy.servers.get(at);
            if record.is_added() && line.is_none_or(|line| line.is_removed) {
                let (backend, server) = (&proxy.name, &record.name);
                lines.push_str(&format!(
                    "The server {backend}/{server}, which a command has added, is removed.\n"
                ));
            }
        }
    }
    lines
}
