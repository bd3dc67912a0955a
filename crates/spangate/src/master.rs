//! Master-worker mode (`-W`, `-Ws`; management guide §4): the master supervises a worker, and the worker serves the traffic.
//!
//! The master starts a worker, notifies the service manager when the worker is ready (`-Ws`), and forwards signals. SIGUSR2 and
//! SIGHUP reload: a second worker reads the files again and takes over the ports. Only when it serves does the first one get the
//! signal to finish its connections. A configuration that does not start changes nothing. If a worker dies unexpectedly, the
//! master ends with the worker's exit code, so that the service manager restarts everything, unless `no-exit-on-failure` keeps
//! the other workers alive.

mod board;
mod cli;
mod start;

use std::io::Write as _;
use std::process::ExitCode;
use std::sync::Arc;

use config::model::MasterTune;

use self::board::{Board, Outcome};
pub(crate) use self::start::tell;
use crate::args::{Args, Master};
use crate::cli::Limits;
use crate::handover::Channel;
use crate::load::{self, Loaded};
use crate::process::{self, WATCHED};
use crate::sys::{self, Background, Child, Signals};
use crate::{alert, notice, say_error, startup, warning};

/// Base of the exit codes of a master that a signal ended, as in a shell.
const EXIT_SIGNALLED: u8 = 128;
/// The exit code of a worker that was asked to end. This is not a failure.
const EXIT_INTERRUPTED: u8 = EXIT_SIGNALLED + libc::SIGINT as u8;
const EXIT_TERMINATED: u8 = EXIT_SIGNALLED + libc::SIGTERM as u8;

/// Runs the master until it is told to end or its worker ends.
pub(crate) fn run(args: &Args, loaded: Loaded) -> ExitCode {
    serve(args, loaded).unwrap_or_else(|message| {
        alert(&message);
        ExitCode::FAILURE
    })
}

fn serve(args: &Args, loaded: Loaded) -> Result<ExitCode, String> {
    let signals =
        Signals::block(&WATCHED).map_err(|error| format!("Cannot block signals : {error}."))?;
    let mut detached = None;
    if process::goes_to_background(args, &loaded.config) {
        match sys::go_to_background(&signals).map_err(|error| format!("Cannot fork : {error}."))? {
            Background::Starter(code) => return Ok(code),
            Background::Daemon(daemon) => detached = Some(daemon),
        }
    }
    process::write_pidfile(args, &loaded.config)?;
    let tune = &loaded.config.global.tune;
    let facts = Arc::new(cli::Facts {
        started_ns: net::sys::monotonic_ns(),
        limits: Limits {
            line_bytes: tune.bufsize_bytes,
            payload_bytes: tune.cli_payload_bytes.max(tune.bufsize_bytes),
        },
    });
    let mut master = Processes {
        args,
        board: Board::new(),
        current: None,
        tune: MasterTune::default(),
        exit: None,
        is_stopping: false,
    };
    let binds = cli::binds(&args.master_sockets)?;
    cli::start(&binds, &master.board, facts)?;
    if !master.start(None, || Ok(loaded))? {
        // The worker has printed the reason.
        return Ok(ExitCode::FAILURE);
    }
    master.tell_manager(&[
        sd_notify::NotifyState::Ready,
        sd_notify::NotifyState::Status("Ready."),
    ]);
    master.settle(true);
    if let Some(detached) = detached {
        detached.ready();
    }
    loop {
        match signals.wait() {
            Some(signal @ (libc::SIGINT | libc::SIGTERM)) => {
                master.end_all(signal);
                return Ok(ExitCode::from(EXIT_SIGNALLED + signal as u8));
            }
            Some(libc::SIGUSR1) => {
                // The loop goes on: the stop may take long, and SIGTERM may follow.
                master.is_stopping = true;
                master.signal_all(libc::SIGUSR1);
            }
            Some(libc::SIGUSR2 | libc::SIGHUP) if master.is_stopping => {
                master.refuse_reload();
            }
            Some(signal @ (libc::SIGTTOU | libc::SIGTTIN)) => master.signal_all(signal),
            Some(libc::SIGUSR2 | libc::SIGHUP) => master.reload(),
            Some(libc::SIGCHLD) => {
                if let Some(code) = master.reap() {
                    return Ok(ExitCode::from(code));
                }
            }
            _ => {}
        }
    }
}

/// The workers of a master: the serving one and the leaving ones.
struct Processes<'a> {
    args: &'a Args,
    board: Arc<Board>,
    /// The process number of the serving worker.
    current: Option<i32>,
    /// The settings for the master in the worker's files.
    tune: MasterTune,
    /// The exit code for when no worker is left.
    exit: Option<u8>,
    /// SIGUSR1 was received: the workers finish their connections, and none is started.
    is_stopping: bool,
}

impl Processes<'_> {
    /// Starts a worker that replaces the previous one. Returns false if it ended before it served.
    fn start(
        &mut self,
        before: Option<&Channel>,
        load: impl FnOnce() -> Result<Loaded, ()>,
    ) -> Result<bool, String> {
        let started = start_worker(self.args, &self.board, before, load)?;
        let Some((worker, channel, tune)) = started else {
            return Ok(false);
        };
        notice(&format!("New worker ({worker}) forked"));
        notice("Loading success.");
        self.current = Some(worker);
        self.tune = tune;
        let now_ns = net::sys::monotonic_ns();
        self.board.lock().replace(worker, channel, now_ns);
        Ok(true)
    }

    fn reload(&mut self) {
        startup::begin();
        notice("Reloading");
        let now = std::time::Duration::from_nanos(net::sys::now().mono_ns).as_micros();
        self.tell_manager(&[
            sd_notify::NotifyState::Reloading,
            sd_notify::NotifyState::MonotonicUsec(i128::try_from(now).unwrap_or_default()),
            sd_notify::NotifyState::Status("Reloading Configuration."),
        ]);
        let args = self.args;
        let load = || load::load(args).map_err(|load::Refused| ());
        let old = self.current;
        let (channel, hard) = {
            let mut state = self.board.lock();
            state.reloads += 1;
            let channel = state.current().map(|worker| Arc::clone(&worker.channel));
            (channel, state.asked.iter().any(|asked| asked.hard))
        };
        let started = self.start(channel.as_deref(), load);
        let success = matches!(started, Ok(true));
        match started {
            Ok(true) => {
                let signal = if hard { libc::SIGTERM } else { libc::SIGUSR1 };
                if let Some(old) = old {
                    // The old worker may just have ended.
                    let _ = sys::kill(old, signal);
                }
                self.end_overdue();
                self.tell_manager(&[
                    sd_notify::NotifyState::Ready,
                    sd_notify::NotifyState::Status("Ready."),
                ]);
            }
            Ok(false) => self.reload_failed("the new worker did not start"),
            Err(message) => self.reload_failed(&message),
        }
        self.settle(success);
    }

    /// Answers those who ask for a reload during a soft stop.
    fn refuse_reload(&self) {
        startup::begin();
        warning("Reload refused: the process is stopping.");
        self.settle(false);
    }

    /// Reports the end of a start or reload to those who wait for it.
    fn settle(&self, success: bool) {
        startup::is_over();
        let messages = startup::messages();
        let mut state = self.board.lock();
        state.messages.clone_from(&messages);
        state.failed_reloads = if success { 0 } else { state.failed_reloads + 1 };
        for asked in state.asked.drain(..) {
            let messages = messages.clone();
            // The client may have disconnected.
            let _ = asked.outcome.try_send(Outcome { success, messages });
        }
    }

    fn reload_failed(&self, why: &str) {
        say_error(&format!(
            "[WARNING]  ({}) : Failed to load worker: {why} ; the old worker keeps running.\n",
            std::process::id()
        ));
        self.tell_manager(&[
            sd_notify::NotifyState::Ready,
            sd_notify::NotifyState::Status("Reload failed!"),
        ]);
    }

    /// Collects children that have ended. Returns the exit code of the master if the serving worker ended.
    fn reap(&mut self) -> Option<u8> {
        while let Some((pid, code)) = sys::reap() {
            self.board.lock().remove(pid);
            if self.current == Some(pid) {
                self.current = None;
                self.current_ended(pid, code);
            } else {
                notice(&format!("Former worker ({pid}) exited with code {code}"));
            }
        }
        // A stop that was asked for is no failure, whatever a worker did before.
        let exit = self.exit.filter(|_| !self.is_stopping).unwrap_or_default();
        let none_is_left = self.board.lock().workers.is_empty();
        none_is_left.then(|| {
            warning(&format!("All workers exited. Exiting... ({exit})"));
            exit
        })
    }

    /// The serving worker has ended: the master will end with its exit code.
    fn current_ended(&mut self, pid: i32, code: u8) {
        alert(&format!("Current worker ({pid}) exited with code {code}"));
        if code == 0 || code == EXIT_TERMINATED {
            return;
        }
        self.exit.get_or_insert(code);
        if !self.tune.stays_on_failure && code != EXIT_INTERRUPTED {
            alert("exit-on-failure: killing every processes with SIGTERM");
            self.tell_manager(&[sd_notify::NotifyState::Stopping]);
            self.signal_all(libc::SIGTERM);
        }
    }

    /// Ends old workers that have survived more reloads than allowed.
    fn end_overdue(&self) {
        let reloads_max = self.tune.reloads_max;
        let state = self.board.lock();
        for worker in state
            .workers
            .iter()
            .filter(|worker| worker.reloads > reloads_max)
        {
            // A worker that has ended ignores signals.
            let _ = sys::kill(worker.pid, libc::SIGTERM);
        }
    }

    fn signal_all(&self, signal: libc::c_int) {
        for worker in &self.board.lock().workers {
            // A worker that has ended ignores signals.
            let _ = sys::kill(worker.pid, signal);
        }
    }

    fn end_all(&mut self, signal: libc::c_int) {
        self.tell_manager(&[sd_notify::NotifyState::Stopping]);
        self.signal_all(signal);
        self.wait_for_all();
    }

    fn wait_for_all(&mut self) {
        while sys::wait_for_child().is_some() {}
    }

    fn tell_manager(&self, states: &[sd_notify::NotifyState<'_>]) {
        if self.args.master == Some(Master::Notifying) {
            // Without a service manager, the notification goes nowhere.
            let _ = sd_notify::notify(states);
        }
    }
}

/// Forks a worker and waits until it serves. `before` is the channel to the worker that holds the listening sockets now. Returns
/// the new worker's process number, the channel to it, and the settings for the master in its files; None if it ended before it
/// served.
fn start_worker(
    args: &Args,
    board: &Board,
    before: Option<&Channel>,
    load: impl FnOnce() -> Result<Loaded, ()>,
) -> Result<Option<(i32, Channel, MasterTune)>, String> {
    let (reader, ready) =
        std::io::pipe().map_err(|error| format!("Cannot make a pipe : {error}."))?;
    let failed = ready
        .try_clone()
        .map_err(|error| format!("Cannot make a pipe : {error}."))?;
    let (ours, channel) =
        Channel::pair().map_err(|error| format!("Cannot make a channel : {error}."))?;
    // The lock ensures that threads of the runtime interface leave no half-made change in the child.
    let state = board.lock();
    let is_reload = state.reloads > 0;
    match sys::fork_worker().map_err(|error| format!("Cannot fork : {error}."))? {
        Child::Me => {
            sys::close_inherited(&state.descriptors);
            drop((state, reader, ours));
            if is_reload {
                startup::begin();
            }
            let master = process::Master {
                ready,
                channel,
                before,
            };
            let code = match load() {
                Ok(loaded) => process::run(args, loaded, Some(master)),
                Err(()) => ExitCode::FAILURE,
            };
            // The master reads this only if the worker did not start to serve.
            let _ = (&failed).write_all(startup::messages().as_bytes());
            sys::end_worker(code)
        }
        Child::Other(pid) => {
            drop((ready, failed, channel, state));
            let start::Start { messages, serves } = start::read(&reader);
            if is_reload {
                startup::note(&messages);
            }
            Ok(serves.map(|tune| (pid, ours, tune)))
        }
    }
}
