//! Log targets: the state that the workers' sinks share, and the reports of lost messages.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use config::model::{LogSink as LogTo, Proxy};
use net::Addr;
use net::logs::{
    DATAGRAM_QUIET, DatagramSink, Dropped, LogSink, News, Reach, RingSink, TcpServer,
    WRITER_PENDING_BYTES_MAX, WriteTo, Writer,
};
use net::ring::Ring;
use proxy::{RuntimeConfig, Shared};

use crate::rings::{RingFiles, Rings};
use crate::status_lines;

/// The severity of a message about a proxy that stops or pauses.
pub(crate) const SEVERITY_WARNING: u8 = 4;
/// The severity of a message that the user requested.
const SEVERITY_NOTICE: u8 = 5;

/// See the module.
pub(crate) struct Logs {
    runtime_config: Arc<RuntimeConfig>,
    writers: HashMap<WriteTo, Arc<Writer>>,
    /// The reachability of the targets, by their numbers.
    reaches: Vec<Arc<Reach>>,
    dropped: Arc<Dropped>,
    rings: Rings,
    wake: fn(),
}

impl Logs {
    /// Creates the rings too. `wake` is called when [`Logs::tell`] has something to report.
    ///
    /// # Errors
    /// The thread of the rings' servers cannot be created.
    pub fn new(
        runtime_config: &Arc<RuntimeConfig>,
        files: RingFiles,
        wake: fn(),
    ) -> std::io::Result<Self> {
        Ok(Logs {
            runtime_config: Arc::clone(runtime_config),
            writers: HashMap::new(),
            reaches: runtime_config
                .logs
                .iter()
                .map(|to| reach(to, wake))
                .collect(),
            dropped: Arc::default(),
            rings: Rings::start(runtime_config, files, wake)?,
            wake,
        })
    }

    /// The rings, in the order of the configuration.
    pub fn rings(&self) -> &[Arc<Ring>] {
        self.rings.buffers()
    }

    /// The messages that were lost.
    pub fn dropped(&self) -> Arc<Dropped> {
        Arc::clone(&self.dropped)
    }

    /// The sinks of one thread, by the numbers of the targets.
    ///
    /// # Errors
    /// A socket cannot be opened, or a writer thread cannot be started.
    pub fn open(&mut self) -> std::io::Result<Vec<LogSink>> {
        self.open_from(0)
    }

    /// Goes on with another configuration, which has the same targets and maybe further ones.
    /// Returns the number of those that are known.
    pub fn renew(&mut self, runtime_config: &Arc<RuntimeConfig>) -> usize {
        let known = self.reaches.len();
        let new = runtime_config.logs.get(known..).unwrap_or_default();
        let wake = self.wake;
        self.reaches.extend(new.iter().map(|to| reach(to, wake)));
        self.runtime_config = Arc::clone(runtime_config);
        known
    }

    /// The sinks of the targets from a number on.
    ///
    /// # Errors
    /// See [`Logs::open`].
    pub fn open_from(&mut self, first: usize) -> std::io::Result<Vec<LogSink>> {
        let (writers, dropped) = (&mut self.writers, &self.dropped);
        let rings = self.rings.buffers();
        let mut written = |to: WriteTo, reach: &Arc<Reach>| {
            let writer = match writers.entry(to) {
                Entry::Occupied(there) => Arc::clone(there.get()),
                Entry::Vacant(place) => {
                    let writer = Writer::start(to, Arc::clone(reach), Arc::clone(dropped))?;
                    Arc::clone(place.insert(writer))
                }
            };
            Ok(LogSink::Written(writer, Vec::new()))
        };
        let open = |(sink, reach): (&LogTo, &Arc<Reach>)| match sink {
            LogTo::Udp(addr) => {
                let sink = DatagramSink::open(addr, Arc::clone(reach))?;
                Ok(LogSink::Datagram(sink))
            }
            LogTo::Tcp { address, options } => {
                let server = TcpServer {
                    address: *address,
                    framing: options.framing,
                    pending_bytes_max: options.bytes_max.unwrap_or(WRITER_PENDING_BYTES_MAX),
                };
                written(WriteTo::Tcp(server), reach)
            }
            LogTo::Fd(fd) => written(WriteTo::Fd(*fd), reach),
            LogTo::Ring(ring) => Ok(LogSink::Ring(RingSink::new(Arc::clone(&rings[*ring])))),
            // The servers of a log backend are targets of their own.
            LogTo::Backend(_) => Err(std::io::ErrorKind::Unsupported.into()),
        };
        let targets = self.runtime_config.logs.iter().zip(&self.reaches);
        targets.skip(first).map(open).collect()
    }

    /// Reports targets that became unreachable, and those that are reachable again.
    pub fn tell(&self) {
        for reach in &self.reaches {
            let name = reach.name();
            while let Some(news) = reach.news() {
                match news {
                    News::Fails(why) => crate::warning(&format!(
                        "log target {name} cannot be reached : {why} ; messages are lost until it is reached again."
                    )),
                    News::Works { lost } => crate::notice(&format!(
                        "log target {name} is reached again ; {lost} messages were lost."
                    )),
                }
            }
        }
        self.rings.tell();
    }

    /// Reports that every proxy stops, on standard error and in the proxies' logs.
    pub fn tell_of_stop(&mut self, shared: &Shared) {
        self.tell_of_proxies(SEVERITY_WARNING, |index, proxy| {
            if shared.is_deleted(index) {
                return Vec::new();
            }
            let (front, back) = shared.cumulated(index);
            let name = &proxy.name;
            let text = format!("Proxy {name} stopped (cumulated conns: FE: {front}, BE: {back}).");
            vec![text]
        });
    }

    /// Reports the state of every proxy and its servers, on standard error and in their logs.
    pub fn tell_of_states(&mut self, shared: &Shared) {
        crate::warning("SIGHUP received, dumping servers states.");
        self.tell_of_proxies(SEVERITY_NOTICE, |index, proxy| {
            if shared.is_deleted(index) {
                Vec::new()
            } else {
                status_lines::of_proxy(shared, index, proxy)
            }
        });
    }

    /// Reports `lines` for every proxy that is not disabled.
    fn tell_of_proxies(&mut self, severity: u8, lines: impl Fn(usize, &Proxy) -> Vec<String>) {
        // Without sinks, the lines only go to standard error.
        let mut sinks = self.open().unwrap_or_default();
        let proxies = self.runtime_config.config.proxies.iter().enumerate();
        for (index, proxy) in proxies.filter(|(_, proxy)| !proxy.disabled) {
            for text in lines(index, proxy) {
                crate::warning(&text);
                let now = net::sys::now();
                for (sink, message) in
                    proxy::event(&self.runtime_config, index, severity, now, &text)
                {
                    if let Some(sink) = sinks.get_mut(sink) {
                        sink.push(&message, &self.dropped);
                    }
                }
            }
        }
        for sink in &mut sinks {
            sink.flush(&self.dropped);
        }
    }

    /// Waits until the last lines are written, and reports what was lost.
    pub fn close(self) {
        for writer in self.writers.values() {
            writer.close();
        }
        self.tell();
        for reach in &self.reaches {
            match reach.lost_in_the_end() {
                0 => {}
                lost => crate::warning(&format!(
                    "log target {} : {lost} messages were lost.",
                    reach.name()
                )),
            }
        }
        self.rings.close();
    }
}

/// The name of a target in messages, and its reachability.
fn reach(to: &LogTo, wake: fn()) -> Arc<Reach> {
    let (name, quiet) = match to {
        LogTo::Udp(addr @ Addr::Inet(_)) => (addr.to_string(), DATAGRAM_QUIET),
        LogTo::Udp(addr) => (addr.to_string(), Duration::ZERO),
        LogTo::Tcp { address, .. } => (format!("tcp@{address}"), Duration::ZERO),
        LogTo::Fd(fd) => (format!("fd@{fd}"), Duration::ZERO),
        LogTo::Ring(_) | LogTo::Backend(_) => (String::new(), Duration::ZERO),
    };
    Arc::new(Reach::new(name, quiet, wake))
}
