//! The life of the process: limits, listeners, privileges, workers, signals, end.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use config::model::Config;
use proxy::{Message, Running};

use crate::args::Args;
use crate::collectors::Collectors;
use crate::exports::Exports;
use crate::load::Loaded;
use crate::serve::{Listening, Workers};
use crate::sys::{self, Signals};
use crate::{alert, cli, warning};

/// A worker or a collector has ended; sent to ourselves.
const SIGNAL_ENDED: libc::c_int = libc::SIGCHLD;
/// Descriptors that are not connections: standard streams, polls, log sockets, files.
const DESCRIPTORS_RESERVED: u64 = 64;

/// Descriptors that are asked for at most without `fd-hard-limit`, as HAProxy's.
const DESCRIPTORS_MAX_DEFAULT: u64 = 1 << 20;
/// Signals that are waited for, never handled.
pub(crate) const WATCHED: [libc::c_int; 6] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGHUP,
    libc::SIGUSR2,
    SIGNAL_ENDED,
];

/// A worker's word to its master that it serves.
pub(crate) struct Ready(std::io::PipeWriter);

impl Ready {
    pub fn new(pipe: std::io::PipeWriter) -> Self {
        Ready(pipe)
    }

    fn tell(mut self) {
        use std::io::Write as _;
        // A master that has gone takes this process with it.
        let _ = self.0.write_all(b"R");
    }
}

/// Runs a configuration until a signal ends it. A worker has a master that waits for it to be ready, and that wrote the
/// pidfile and went to the background itself.
pub(crate) fn run(args: &Args, loaded: Loaded, master: Option<Ready>) -> ExitCode {
    match start(args, loaded, master) {
        Ok(Some(code)) => code,
        Ok(None) => ExitCode::SUCCESS,
        Err(message) => {
            alert(&message);
            ExitCode::FAILURE
        }
    }
}

fn start(args: &Args, loaded: Loaded, master: Option<Ready>) -> Result<Option<ExitCode>, String> {
    let Loaded {
        mut config,
        collectors,
    } = loaded;
    let config = &mut config;
    if let Some(megabytes) = args.memory_megabytes {
        sys::limit_memory(megabytes << 20)
            .map_err(|error| format!("Cannot limit memory : {error}."))?;
    }
    apply_arguments(args, config);
    // From here on a signal waits until it is understood.
    let signals =
        Signals::block(&WATCHED).map_err(|error| format!("Cannot block signals : {error}."))?;
    let global = &config.global;
    let most = global.fd_hard_limit.unwrap_or(DESCRIPTORS_MAX_DEFAULT);
    let descriptors = sys::raise_descriptors(global.ulimit_n, most);
    set_maxconn(config, descriptors);
    let nbthread = config
        .global
        .nbthread
        .map_or_else(cores, usize::from)
        .max(1);
    let conns_max = (descriptors.saturating_sub(DESCRIPTORS_RESERVED) as usize / nbthread).max(1);
    let listening = Listening::open(config, nbthread)?;
    let control = cli::Control::open(&config.global.stats_sockets)?;

    let has_master = master.is_some();
    if has_master {
        // All of this is the master's.
    } else if config.global.daemon {
        match sys::fork_to_background() {
            Ok(Some(child)) => {
                write_pidfile(args, config, child as u32)?;
                return Ok(None);
            }
            Ok(None) => {}
            Err(error) => return Err(format!("Cannot fork : {error}.")),
        }
    } else {
        write_pidfile(args, config, std::process::id())?;
    }
    let now = net::sys::now();
    let collectors = Collectors::start(config, collectors, || {
        sys::signal_self(SIGNAL_ENDED);
    })?;
    let mut exports = Exports::start(config, collectors.doors(), now.wall_ns)?;
    let global = &config.global;
    sys::confine(global.chroot.as_deref(), global.uid, global.gid)?;

    let process = proxy::Process {
        hostname: sys::hostname(),
        pid: std::process::id(),
        nbthread: nbthread as u32,
        utc_offset_seconds: sys::utc_offset_seconds(),
        started: now,
        trace_seed: [sys::random_seed(), sys::random_seed()],
    };
    let mut running = Running::new(std::mem::take(config), process);
    if let Some(exports) = &mut exports {
        exports.connect(&mut running);
    }
    let exports = exports.map(Arc::new);
    let running = Arc::new(running);
    let workers = Workers::start(&running, listening, nbthread, conns_max, || {
        sys::signal_self(SIGNAL_ENDED);
    })?;
    control
        .start(
            &running,
            exports.as_ref(),
            collectors.views(),
            workers.inboxes(),
        )
        .map_err(|error| format!("Cannot start the runtime interface : {error}."))?;
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
    if let Some(master) = master {
        master.tell();
    }
    wait(&signals, &workers, &collectors, &running);
    workers.finish();
    if let Some(exports) = exports {
        exports.finish();
    }
    collectors.end(&signals, !has_master);
    Ok(Some(ExitCode::SUCCESS))
}

/// Whether the process detaches: `daemon` or `-D`, and neither `-d` nor `-db`.
pub(crate) fn goes_to_background(args: &Args, config: &Config) -> bool {
    (config.global.daemon || args.daemon) && !args.foreground
}

fn apply_arguments(args: &Args, config: &mut Config) {
    config.global.daemon = goes_to_background(args, config);
    if args.maxconn.is_some() {
        config.global.maxconn = args.maxconn;
    }
    for proxy in config.proxies.iter_mut().filter(|proxy| proxy.is_frontend) {
        proxy.maxconn = proxy.maxconn.or(args.proxy_maxconn);
    }
}

/// Without `maxconn`: as many connections as there are descriptors for, of which each takes two where there are servers.
fn set_maxconn(config: &mut Config, descriptors: u64) {
    let sides = match config.proxies.iter().any(|proxy| !proxy.servers.is_empty()) {
        true => 2,
        false => 1,
    };
    let fits = (descriptors.saturating_sub(DESCRIPTORS_RESERVED) / sides).max(1);
    let fits = u32::try_from(fits).unwrap_or(u32::MAX);
    match config.global.maxconn {
        Some(maxconn) if maxconn > fits => warning(&format!(
            "maxconn {maxconn} may need {} descriptors, but the limit is {descriptors} ; 'ulimit-n' or the system's limit should be raised.",
            u64::from(maxconn) * sides + DESCRIPTORS_RESERVED
        )),
        Some(_) => {}
        None => config.global.maxconn = Some(fits),
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

pub(crate) fn write_pidfile(args: &Args, config: &Config, pid: u32) -> Result<(), String> {
    let of_args = args.pidfile.as_ref().map(Path::new);
    let Some(path) = of_args.or(config.global.pidfile.as_deref()) else {
        return Ok(());
    };
    std::fs::write(path, format!("{pid}\n"))
        .map_err(|error| format!("Cannot create pidfile {} : {error}.", path.display()))
}

/// Waits for signals until the workers have ended or must end.
fn wait(signals: &Signals, workers: &Workers, collectors: &Collectors, running: &Running) {
    let global = &running.config.global;
    let ms = |duration: std::time::Duration| duration.as_millis() as u64;
    loop {
        match signals.wait() {
            Some(libc::SIGINT | libc::SIGTERM) => return workers.tell(&Message::Stop),
            Some(libc::SIGUSR1) => {
                workers.tell(&Message::Drain {
                    grace_ms: global.grace.map_or(0, ms),
                    hard_stop_ms: global.hard_stop_after.map(ms),
                });
                // The process that comes after has the ports.
                collectors.stop_listening();
            }
            Some(SIGNAL_ENDED) if workers.all_ended() => return,
            Some(libc::SIGHUP) => {
                warning("SIGHUP received : server status dump is not implemented yet.")
            }
            Some(libc::SIGUSR2) => warning("SIGUSR2 received : only a master reloads, see -W."),
            _ => {}
        }
    }
}
