//! Master-worker mode (`-W`, `-Ws`; management guide §4): the master supervises a worker, and the
//! worker serves the traffic.
//!
//! The master starts a worker, notifies the service manager when the worker is ready (`-Ws`), and
//! forwards signals. SIGUSR2 and SIGHUP reload: a second worker reads the files again and takes
//! over the ports. Only when it serves does the first one get the signal to finish its connections.
//! A configuration that does not start changes nothing.
//!
//! One loop handles signals, the pipe of a starting worker, the ends of children and requests of
//! the runtime interface, so the master stays responsive during a start. A worker that neither
//! serves nor ends within [`START_TIME`] is killed. A reload that is requested during a start
//! follows it, with its own result. If a worker dies unexpectedly, the master ends with the
//! worker's exit code, so that the service manager restarts everything, unless `no-exit-on-failure`
//! keeps the other workers alive.

mod board;
mod cli;
mod commands;
mod snapshots;
mod start;

use std::io::Write as _;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use config::model::MasterTune;
use files::Snapshot;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use self::board::{Asked, Board, Outcome};
use self::start::Progress;
pub(crate) use self::start::tell;
use crate::args::{Args, Master};
use crate::cli::Limits;
use crate::handover::Channel;
use crate::load::{self, Loaded};
use crate::process::{self, WATCHED};
use crate::sys::{self, Background, Child, Detached, Signals};
use crate::{alert, notice, say_error, startup, warning};

/// Base of the exit codes of a master that a signal ended, as in a shell.
const EXIT_SIGNALLED: u8 = 128;
/// The exit code of a worker that was asked to end. This is not a failure.
const EXIT_INTERRUPTED: u8 = EXIT_SIGNALLED + libc::SIGINT as u8;
const EXIT_TERMINATED: u8 = EXIT_SIGNALLED + libc::SIGTERM as u8;

/// The time in which a worker must serve or fail. Then it is killed, and the start or reload has
/// failed.
const START_TIME: Duration = Duration::from_secs(300);
/// The environment variable with another time, in seconds.
const START_TIME_VARIABLE: &str = "SPANGATE_START_SECONDS";
const NS_PER_SECOND: u64 = 1_000_000_000;

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
    let binds = cli::binds(&args.master_sockets)?;
    let facts = Arc::new(cli::Facts {
        started_ns: net::sys::monotonic_ns(),
        limits: Limits {
            line_bytes: tune.bufsize_bytes,
            payload_bytes: tune.cli_payload_bytes.max(tune.bufsize_bytes),
        },
        sockets: crate::cli::socket_lines(&binds),
    });
    let waiting = signals
        .descriptor()
        .map_err(|error| format!("Cannot watch signals : {error}."))?;
    let mut master = Processes {
        args,
        board: Board::new(),
        start_time: start_time()?,
        starting: None,
        failed: Vec::new(),
        current: None,
        requests: None,
        reader: None,
        next_request: None,
        tune: MasterTune::default(),
        exit: None,
        stop: None,
        reloads_again: false,
        detached,
    };
    cli::start(&binds, &master.board, facts)?;
    master.board.lock().descriptors.push(waiting.as_raw_fd());
    master.start(Request::default(), || Ok(loaded))?;
    loop {
        let ended = match master.wait(&signals, &waiting)? {
            Event::Signal(signal) => master.handle(signal),
            Event::Report => master.read_report(),
            Event::Overdue => master.end_start(),
            Event::Files(to) => {
                master.send_files(to);
                None
            }
        };
        if let Some(code) = ended {
            return Ok(ExitCode::from(code));
        }
        master.serve_requests();
    }
}

/// The time in which a worker must serve or fail: [`START_TIME`], or the seconds in
/// [`START_TIME_VARIABLE`].
fn start_time() -> Result<Duration, String> {
    let Some(text) = std::env::var_os(START_TIME_VARIABLE) else {
        return Ok(START_TIME);
    };
    let seconds = text.to_str().and_then(|text| text.parse::<u32>().ok());
    let seconds = seconds.filter(|seconds| *seconds > 0);
    seconds
        .map(|seconds| Duration::from_secs(seconds.into()))
        .ok_or_else(|| format!("{START_TIME_VARIABLE} must be a number of seconds above 0."))
}

/// What the master's loop handles.
enum Event {
    Signal(libc::c_int),
    /// A starting worker wrote to its pipe, or ended.
    Report,
    /// A worker did not serve in time.
    Overdue,
    /// The serving worker requests a snapshot of the files.
    Files(UnixStream),
}

/// Those who asked for a start.
#[derive(Default)]
struct Request {
    is_reload: bool,
    /// The clients that get the result.
    asked: Vec<Asked>,
}

/// A worker that does not serve yet.
struct Starting {
    pid: i32,
    channel: Channel,
    pipe: std::io::PipeReader,
    report: start::Report,
    /// Nanoseconds of the monotonic clock.
    deadline_ns: u64,
    request: Request,
    /// The process was collected: its number may be another one's now.
    has_ended: bool,
    /// The code of the serving worker, if that worker ended meanwhile.
    lost: Option<u8>,
    /// The last SIGTTOU or SIGTTIN that the master received before the worker serves. The worker
    /// gets it when it serves: before that, the signal would stop the process, which is its
    /// default action.
    listening_signal: Option<libc::c_int>,
}

/// The workers of a master: the serving one and the leaving ones.
struct Processes<'a> {
    args: &'a Args,
    board: Arc<Board>,
    /// The time in which a worker must serve or fail.
    start_time: Duration,
    starting: Option<Starting>,
    /// The process numbers of workers whose start has failed and that are not collected yet.
    failed: Vec<i32>,
    /// The process number of the serving worker.
    current: Option<i32>,
    /// The channel from which the serving worker's requests are read.
    requests: Option<Arc<Channel>>,
    /// The process that reads files for the serving worker.
    reader: Option<i32>,
    /// The worker's next request, until that process has ended.
    next_request: Option<UnixStream>,
    /// The settings for the master in the worker's files.
    tune: MasterTune,
    /// The exit code for when no worker is left.
    exit: Option<u8>,
    /// The signal that asked for the end: the workers end, and none is started.
    stop: Option<libc::c_int>,
    /// A signal asked for a reload during a start: another reload follows.
    reloads_again: bool,
    /// The process that the user started waits until the first worker serves.
    detached: Option<Detached>,
}

impl Processes<'_> {
    /// Waits for the next event.
    fn wait(&mut self, signals: &Signals, waiting: &OwnedFd) -> Result<Event, String> {
        loop {
            if let Some(signal) = signals.wait_for(Duration::ZERO) {
                return Ok(Event::Signal(signal));
            }
            let mut fds = vec![PollFd::new(waiting, PollFlags::IN)];
            let requests = self.requests.clone();
            if let Some(channel) = &requests {
                fds.push(PollFd::new(&**channel, PollFlags::IN));
            }
            let before_pipe = fds.len();
            let mut left = None;
            if let Some(starting) = &self.starting {
                fds.push(PollFd::new(&starting.pipe, PollFlags::IN));
                let left_ns = starting
                    .deadline_ns
                    .saturating_sub(net::sys::monotonic_ns());
                if left_ns == 0 {
                    return Ok(Event::Overdue);
                }
                let seconds = (left_ns / NS_PER_SECOND).cast_signed();
                left = Some(Timespec {
                    tv_sec: seconds,
                    tv_nsec: (left_ns % NS_PER_SECOND) as _,
                });
            }
            match poll(&mut fds, left.as_ref()) {
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(format!("Cannot wait for events : {error}.")),
            }
            let is_ready = |at| {
                fds.get(at)
                    .is_some_and(|fd: &PollFd<'_>| !fd.revents().is_empty())
            };
            if is_ready(before_pipe) {
                return Ok(Event::Report);
            }
            if let Some(channel) = &requests
                && is_ready(1)
            {
                match channel.request_for_files() {
                    Ok(Some(to)) => return Ok(Event::Files(to)),
                    Ok(None) => {}
                    Err(_) => self.requests = None,
                }
            }
        }
    }

    /// Handles a signal. Returns the exit code of the master if it ends.
    fn handle(&mut self, signal: libc::c_int) -> Option<u8> {
        match signal {
            libc::SIGINT | libc::SIGTERM => {
                self.tell_manager(&[sd_notify::NotifyState::Stopping]);
                self.stop(signal)
            }
            // The loop goes on: the stop may take long, and SIGTERM may follow.
            libc::SIGUSR1 => self.stop(signal),
            libc::SIGTTOU | libc::SIGTTIN => {
                self.signal_all(signal);
                if let Some(starting) = &mut self.starting {
                    starting.listening_signal = Some(signal);
                }
                None
            }
            libc::SIGUSR2 | libc::SIGHUP => {
                self.reloads_again = true;
                None
            }
            libc::SIGCHLD => self.reap(),
            _ => None,
        }
    }

    /// Ends all workers with a signal. Returns the exit code of the master if there are none.
    fn stop(&mut self, signal: libc::c_int) -> Option<u8> {
        self.stop = Some(signal);
        self.signal_all(signal);
        if let Some(starting) = &self.starting {
            kill_starting(starting);
        }
        self.exit_code()
    }

    /// Starts a reload that was asked for, if no start is in progress.
    fn serve_requests(&mut self) {
        if self.starting.is_some() {
            return;
        }
        let by_signal = std::mem::take(&mut self.reloads_again);
        let asked = std::mem::take(&mut self.board.lock().asked);
        if !by_signal && asked.is_empty() {
            return;
        }
        if self.stop.is_some() {
            startup::begin();
            warning("Reload refused: the process is stopping.");
            self.settle(false, asked);
        } else {
            self.reload(asked);
        }
    }

    /// Forks a worker. [`Self::read_report`] learns whether it serves.
    fn start(
        &mut self,
        request: Request,
        load: impl FnOnce() -> Result<Loaded, ()>,
    ) -> Result<(), String> {
        let before = {
            let state = self.board.lock();
            state.current().map(|worker| Arc::clone(&worker.channel))
        };
        let forked = start_worker(self.args, &self.board, before.as_deref(), load)?;
        let time_ns = u64::try_from(self.start_time.as_nanos()).unwrap_or(u64::MAX);
        self.starting = Some(Starting {
            pid: forked.pid,
            channel: forked.channel,
            pipe: forked.pipe,
            report: start::Report::default(),
            deadline_ns: net::sys::monotonic_ns().saturating_add(time_ns),
            request,
            has_ended: false,
            lost: None,
            listening_signal: None,
        });
        Ok(())
    }

    /// Reads what the starting worker wrote. Returns the exit code of the master if it ends.
    fn read_report(&mut self) -> Option<u8> {
        let starting = self.starting.as_mut()?;
        let Progress::Over(start) = starting.report.read(&starting.pipe) else {
            return None;
        };
        let starting = self.starting.take()?;
        if starting.request.is_reload {
            startup::note(&start.messages);
        }
        match start.serves {
            Some(tune) if self.stop.is_none() => {
                self.started(starting, tune);
                None
            }
            Some(_) => {
                kill_starting(&starting);
                self.start_failed(starting, "the process is stopping")
            }
            None => self.start_failed(starting, "the new worker did not start"),
        }
    }

    /// Ends a worker that did not serve in time. Returns the exit code of the master if it ends.
    fn end_start(&mut self) -> Option<u8> {
        let starting = self.starting.take()?;
        kill_starting(&starting);
        if starting.request.is_reload {
            startup::note(&starting.report.messages());
        }
        let seconds = self.start_time.as_secs();
        let why = format!("the new worker was not ready after {seconds} seconds");
        self.start_failed(starting, &why)
    }

    /// The new worker serves: the previous one finishes.
    fn started(&mut self, starting: Starting, tune: MasterTune) {
        let Starting {
            pid,
            channel,
            request,
            listening_signal,
            ..
        } = starting;
        notice(&format!("New worker ({pid}) forked"));
        notice("Loading success.");
        let old = self.current.replace(pid);
        self.tune = tune;
        let channel = Arc::new(channel);
        // The previous worker gets no files any more.
        self.next_request = None;
        if let Some(reader) = self.reader {
            // It may just have ended.
            let _ = sys::kill(reader, libc::SIGKILL);
        }
        self.requests = Some(Arc::clone(&channel));
        self.board
            .lock()
            .replace(pid, channel, net::sys::monotonic_ns());
        if let Some(old) = old {
            let hard = request.asked.iter().any(|asked| asked.hard);
            let signal = if hard { libc::SIGTERM } else { libc::SIGUSR1 };
            // The old worker may just have ended.
            let _ = sys::kill(old, signal);
        }
        if let Some(signal) = listening_signal {
            let _ = sys::kill(pid, signal);
        }
        self.end_overdue();
        self.tell_manager(&[
            sd_notify::NotifyState::Ready,
            sd_notify::NotifyState::Status("Ready."),
        ]);
        self.settle(true, request.asked);
        if let Some(detached) = self.detached.take() {
            detached.ready();
        }
    }

    /// The new worker does not serve. Returns the exit code of the master if it ends.
    fn start_failed(&mut self, starting: Starting, why: &str) -> Option<u8> {
        if !starting.has_ended {
            self.failed.push(starting.pid);
        }
        if starting.request.is_reload {
            self.reload_failed(why);
            self.settle(false, starting.request.asked);
        } else {
            // The worker has printed the reason, if it ended by itself.
            say_error(&format!(
                "[ALERT]    ({}) : Failed to load worker: {why}.\n",
                std::process::id()
            ));
            self.exit.get_or_insert(1);
        }
        if let Some(code) = starting.lost.filter(|code| *code != 0) {
            self.exit.get_or_insert(code);
        }
        self.exit_code()
    }

    fn reload(&mut self, asked: Vec<Asked>) {
        startup::begin();
        notice("Reloading");
        let now = Duration::from_nanos(net::sys::now().mono_ns).as_micros();
        self.tell_manager(&[
            sd_notify::NotifyState::Reloading,
            sd_notify::NotifyState::MonotonicUsec(i128::try_from(now).unwrap_or_default()),
            sd_notify::NotifyState::Status("Reloading Configuration."),
        ]);
        self.board.lock().reloads += 1;
        let args = self.args;
        let load = || load::load(args).map_err(|load::Refused| ());
        let request = Request {
            is_reload: true,
            asked,
        };
        let clients = request.asked.clone();
        // If no worker can be forked, the clients get the answer at once.
        if let Err(message) = self.start(request, load) {
            self.reload_failed(&message);
            self.settle(false, clients);
        }
    }

    /// Sends the files to the serving worker, which reloads in place. One process at a time reads.
    fn send_files(&mut self, to: UnixStream) {
        if self.starting.is_some() {
            // The new worker may have read older files, and would undo what this one reads now.
            let why = "the master starts another worker with the files";
            // The worker reports what it does not get.
            let _ = Snapshot::refuse(&to, why);
            return;
        }
        if self.reader.is_some() {
            // A worker waits for one answer at a time: the one before has given up.
            self.next_request = Some(to);
            return;
        }
        match snapshots::send(self.args, &self.board, to) {
            Ok(pid) => self.reader = Some(pid),
            Err(error) => warning(&format!("Cannot read the files for the worker : {error}.")),
        }
    }

    /// Reports the end of a start or reload to those who asked for it.
    fn settle(&self, success: bool, asked: Vec<Asked>) {
        startup::is_over();
        let messages = startup::messages();
        let mut state = self.board.lock();
        state.messages.clone_from(&messages);
        state.failed_reloads = if success { 0 } else { state.failed_reloads + 1 };
        for asked in asked {
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

    /// Collects children that have ended. Returns the exit code of the master if no worker is left.
    fn reap(&mut self) -> Option<u8> {
        while let Some((pid, code)) = sys::reap() {
            if self.reader == Some(pid) {
                self.reader = None;
                if let Some(to) = self.next_request.take() {
                    self.send_files(to);
                }
                continue;
            }
            self.board.lock().remove(pid);
            self.failed.retain(|failed| *failed != pid);
            let is_current = self.current == Some(pid);
            if is_current {
                self.current = None;
            }
            match &mut self.starting {
                Some(starting) if starting.pid == pid => starting.has_ended = true,
                // The worker that starts now replaces it.
                Some(starting) if is_current => starting.lost = Some(code),
                _ if is_current => {
                    self.current_ended(pid, code);
                    continue;
                }
                _ => {}
            }
            notice(&format!("Former worker ({pid}) exited with code {code}"));
        }
        self.exit_code()
    }

    /// The exit code of the master if no worker is left.
    fn exit_code(&self) -> Option<u8> {
        let is_waiting = self.starting.is_some()
            || !self.failed.is_empty()
            || !self.board.lock().workers.is_empty();
        if is_waiting {
            return None;
        }
        let exit = match self.stop {
            // A stop that was asked for is no failure, whatever a worker did before.
            Some(libc::SIGUSR1 | libc::SIGTERM) => 0,
            Some(signal) => EXIT_SIGNALLED + signal as u8,
            None => self.exit.unwrap_or_default(),
        };
        warning(&format!("All workers exited. Exiting... ({exit})"));
        Some(exit)
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

    fn tell_manager(&self, states: &[sd_notify::NotifyState<'_>]) {
        if self.args.master == Some(Master::Notifying) {
            // Without a service manager, the notification goes nowhere.
            let _ = sd_notify::notify(states);
        }
    }
}

/// Ends a worker that does not serve yet.
fn kill_starting(starting: &Starting) {
    if !starting.has_ended {
        // A process that has just ended needs no signal.
        let _ = sys::kill(starting.pid, libc::SIGKILL);
    }
}

/// A forked worker.
struct Forked {
    pid: i32,
    /// The channel to it.
    channel: Channel,
    /// Carries the report of its start.
    pipe: std::io::PipeReader,
}

/// Forks a worker. `before` is the channel to the worker that holds the listening sockets now.
fn start_worker(
    args: &Args,
    board: &Board,
    before: Option<&Channel>,
    load: impl FnOnce() -> Result<Loaded, ()>,
) -> Result<Forked, String> {
    let (reader, ready) =
        std::io::pipe().map_err(|error| format!("Cannot make a pipe : {error}."))?;
    let failed = ready
        .try_clone()
        .map_err(|error| format!("Cannot make a pipe : {error}."))?;
    let (ours, channel) =
        Channel::pair().map_err(|error| format!("Cannot make a channel : {error}."))?;
    // The lock ensures that threads of the runtime interface leave no half-made change in the
    // child.
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
            Ok(Forked {
                pid,
                channel: ours,
                pipe: reader,
            })
        }
    }
}
