//! Master-worker mode (`-W`, `-Ws`; management guide §4): a master that serves nothing, and a worker that does.
//!
//! The master starts a worker, tells the service manager when it is ready (`-Ws`), and passes signals on. SIGUSR2 and
//! SIGHUP reload: a second worker reads the files anew and takes over the ports, and only once it serves is the first told to finish what
//! it has. A configuration that does not start changes nothing. A worker that dies unasked ends the master with its exit
//! code, so that the service manager starts all anew.

use std::process::ExitCode;

use crate::args::{Args, Master};
use crate::handover::Channel;
use crate::load::{self, Loaded};
use crate::process::{self, WATCHED};
use crate::sys::{self, Background, Child, Signals};
use crate::{alert, notice, say_error};

/// Exit codes of a master that a signal ended, as a shell would give them.
const EXIT_SIGNALLED: u8 = 128;

/// Runs the master until it is told to end, or its worker ends.
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
    let Some((first, channel)) = start_worker(args, None, || Ok(loaded))? else {
        // It has said why.
        return Ok(ExitCode::FAILURE);
    };
    let mut master = Processes {
        args,
        current: first,
        channel,
        old: Vec::new(),
    };
    master.tell_manager(&[
        sd_notify::NotifyState::Ready,
        sd_notify::NotifyState::Status("Ready."),
    ]);
    notice(&format!("New worker ({first}) forked"));
    notice("Loading success.");
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
                master.signal_all(libc::SIGUSR1);
                master.wait_for_all();
                return Ok(ExitCode::SUCCESS);
            }
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

/// The workers of a master: the one that serves and those that finish.
struct Processes<'a> {
    args: &'a Args,
    current: i32,
    /// Asks the serving worker for its listening sockets.
    channel: Channel,
    old: Vec<i32>,
}

impl Processes<'_> {
    fn reload(&mut self) {
        notice("Reloading");
        let now = std::time::Duration::from_nanos(net::sys::now().mono_ns).as_micros();
        self.tell_manager(&[
            sd_notify::NotifyState::Reloading,
            sd_notify::NotifyState::MonotonicUsec(i128::try_from(now).unwrap_or_default()),
            sd_notify::NotifyState::Status("Reloading Configuration."),
        ]);
        let args = self.args;
        let load = || load::load(args).map_err(|load::Refused| ());
        match start_worker(args, Some(&self.channel), load) {
            Ok(Some((worker, channel))) => {
                notice(&format!("New worker ({worker}) forked"));
                notice("Loading success.");
                let old = std::mem::replace(&mut self.current, worker);
                self.channel = channel;
                self.old.push(old);
                // It may have ended just now.
                let _ = sys::kill(old, libc::SIGUSR1);
                self.tell_manager(&[
                    sd_notify::NotifyState::Ready,
                    sd_notify::NotifyState::Status("Ready."),
                ]);
            }
            Ok(None) => self.reload_failed("the new worker did not start"),
            Err(message) => self.reload_failed(&message),
        }
    }

    fn reload_failed(&self, why: &str) {
        say_error(&format!(
            "[WARNING]  ({}) : Failed to load worker: {why} ; the old one goes on.\n",
            std::process::id()
        ));
        self.tell_manager(&[
            sd_notify::NotifyState::Ready,
            sd_notify::NotifyState::Status("Reload failed!"),
        ]);
    }

    /// Collects children that have ended. The code to end with, when the serving one did.
    fn reap(&mut self) -> Option<u8> {
        while let Some((pid, code)) = sys::reap() {
            if pid == self.current {
                alert(&format!("Current worker ({pid}) exited with code {code}"));
                self.end_all(libc::SIGTERM);
                return Some(code);
            }
            notice(&format!("Former worker ({pid}) exited with code {code}"));
            self.old.retain(|old| *old != pid);
        }
        None
    }

    fn signal_all(&self, signal: libc::c_int) {
        for pid in self.old.iter().chain([&self.current]) {
            // One that has ended hears nothing.
            let _ = sys::kill(*pid, signal);
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
            // Without a manager there is nobody to tell.
            let _ = sd_notify::notify(states);
        }
    }
}

/// Forks a worker and waits until it serves: its number, and what asks it for its listening sockets. `before` leads to the
/// worker that has them now. None when it ended instead.
fn start_worker(
    args: &Args,
    before: Option<&Channel>,
    load: impl FnOnce() -> Result<Loaded, ()>,
) -> Result<Option<(i32, Channel)>, String> {
    let (reader, ready) =
        std::io::pipe().map_err(|error| format!("Cannot make a pipe : {error}."))?;
    let (ours, channel) =
        Channel::pair().map_err(|error| format!("Cannot make a channel : {error}."))?;
    match sys::fork_worker().map_err(|error| format!("Cannot fork : {error}."))? {
        Child::Me => {
            drop((reader, ours));
            if before.is_some() {
                crate::startup::begin();
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
            sys::end_worker(code)
        }
        Child::Other(pid) => {
            drop((ready, channel));
            Ok(sys::read_byte(&reader).then_some((pid, ours)))
        }
    }
}
