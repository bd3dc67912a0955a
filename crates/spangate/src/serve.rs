//! Workers: their listening sockets, their threads, and their order channels.

use std::collections::BTreeSet;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use config::model::{Bind, BindAddress, Config, Proxy};
use net::activity::Activity;
use net::epoll::{ACCEPTS_A_TURN_DEFAULT, EpollDriver, Listener, More, Setup, SocketBuffers};
use net::listen::ListenOptions;
use net::logs::Dropped;
use net::{ListenerId, WorkerId};
use proxy::{BoundLine, Engine, Generation, Order, Renewal, RuntimeConfig, Shared};

use crate::frontends::{FrontendSocket, Frontends};
use crate::logs::Logs;
use crate::peers::PeerSockets;
use crate::rings::RingFiles;
use crate::sockets::Sockets;

/// The accept queue of a listener without `backlog` and `maxconn`.
const BACKLOG_DEFAULT: i32 = 4096;
/// Most addresses in the message about the listeners.
const ADDRESSES_TOLD_MAX: usize = 16;
/// How long a reload in place waits for the workers to end their rounds.
const MEETING_LIMIT: Duration = Duration::from_secs(5);
/// The stack of a worker; its buffers are on the heap.
const STACK_BYTES: usize = 512 << 10;

/// The listening sockets of every worker, opened before privileges are dropped.
#[derive(Default)]
pub(crate) struct Listening {
    by_worker: Vec<Vec<Listener>>,
    /// Each address with the name of its proxy.
    addresses: Vec<String>,
    sockets: Vec<FrontendSocket>,
    peers: PeerSockets,
}

/// The lines that cannot be bound.
#[derive(Debug, Default)]
pub(crate) struct Unbound {
    /// A message for each, in HAProxy's format.
    pub messages: Vec<String>,
    /// Another process has one of the ports.
    pub is_in_use: bool,
}

impl Unbound {
    /// The sockets, if all lines could be bound.
    fn or(self, listening: Listening) -> Result<Listening, Unbound> {
        if self.messages.is_empty() {
            Ok(listening)
        } else {
            Err(self)
        }
    }

    fn add(&mut self, proxy: &Proxy, bind: &Bind, error: &std::io::Error) {
        self.is_in_use |= error.kind() == std::io::ErrorKind::AddrInUse;
        let kind = if proxy.is_backend {
            "proxy"
        } else {
            "frontend"
        };
        self.messages.push(format!(
            "Binding [{}] for {kind} {}: {error} for [{}].",
            bind.origin,
            proxy.name,
            shown(&bind.address),
        ));
    }
}

/// The bind lines of a process that starts, by the numbers of their listeners.
fn first_lines(config: &Config) -> Vec<BoundLine> {
    let mut lines = Vec::new();
    for (frontend, proxy) in config.proxies.iter().enumerate() {
        if proxy.is_frontend && !proxy.disabled {
            for bind in 0..proxy.binds.len() {
                lines.push(BoundLine {
                    listener: ListenerId(lines.len() as u32),
                    frontend,
                    bind,
                });
            }
        }
    }
    // `tune.quic.listen off`. Their numbers stay theirs.
    lines.retain(|line| {
        let bind = &config.proxies[line.frontend].binds[line.bind];
        config.global.quic.listens || !matches!(bind.address, BindAddress::Quic(_))
    });
    lines
}

impl Listening {
    /// Opens every bind line, and the sockets of sections `peers`.
    ///
    /// # Errors
    /// Some lines cannot be bound.
    pub fn open(config: &Config, workers: usize, sockets: &mut Sockets) -> Result<Self, Unbound> {
        let mut unbound = Unbound::default();
        let mut listening = Listening::none(workers);
        listening.open_lines(config, &first_lines(config), sockets, &mut unbound);
        listening.peers = PeerSockets::open(config, sockets, &mut unbound);
        unbound.or(listening)
    }

    /// Opens bind lines for workers that already serve others.
    ///
    /// # Errors
    /// Some lines cannot be bound.
    pub fn open_more(
        config: &Config,
        lines: &[BoundLine],
        workers: usize,
        sockets: &mut Sockets,
    ) -> Result<Self, Unbound> {
        let mut unbound = Unbound::default();
        let mut listening = Listening::none(workers);
        listening.open_lines(config, lines, sockets, &mut unbound);
        unbound.or(listening)
    }

    fn none(workers: usize) -> Listening {
        Listening {
            by_worker: (0..workers).map(|_| Vec::new()).collect(),
            ..Listening::default()
        }
    }

    fn open_lines(
        &mut self,
        config: &Config,
        lines: &[BoundLine],
        sockets: &mut Sockets,
        unbound: &mut Unbound,
    ) {
        let workers = self.by_worker.len();
        let tune = &config.global.tune;
        sockets.datagram_buffers = (
            size(tune.rcvbuf_frontend_bytes),
            size(tune.sndbuf_frontend_bytes),
        );
        for line in lines {
            let proxy = &config.proxies[line.frontend];
            let bind = &proxy.binds[line.bind];
            let options = options(proxy, bind);
            let opened = match sockets.open(bind, &options, workers) {
                Ok(opened) => opened,
                Err(error) => {
                    unbound.add(proxy, bind, &error);
                    continue;
                }
            };
            let fds = opened.own.iter().chain(&opened.shared);
            self.sockets.extend(fds.map(|fd| FrontendSocket {
                frontend: line.frontend,
                bind: line.bind,
                fd: Arc::clone(fd),
                keeps_listening: !matches!(bind.address, BindAddress::Addr(net::Addr::Inet(_))),
                backlog: options.backlog,
            }));
            let address = shown(&bind.address);
            self.addresses.push(format!("{address} ({})", proxy.name));
            for (worker, listeners) in self.by_worker.iter_mut().enumerate() {
                let of = |fd: &Arc<OwnedFd>, shared| Listener {
                    fd: Arc::clone(fd),
                    id: line.listener,
                    local: opened.local.clone(),
                    shared,
                };
                let own = opened.own.iter().skip(worker).step_by(workers);
                listeners.extend(own.map(|fd| of(fd, false)));
                let shared = opened.shared.iter();
                listeners.extend(shared.map(|fd| of(fd, workers > 1)));
            }
        }
    }

    /// Whether there is a listener, of a frontend or of a section `peers`.
    pub fn listens(&self) -> bool {
        self.by_worker.iter().any(|listeners| !listeners.is_empty()) || self.peers.listens()
    }

    /// The number of the listeners' descriptors.
    pub fn descriptors(&self) -> u64 {
        let all = self.by_worker.iter().flatten();
        let all: BTreeSet<_> = all.map(|listener| listener.fd.as_raw_fd()).collect();
        all.len() as u64
    }

    /// The sockets of sections `peers`.
    pub fn peers(&self) -> &PeerSockets {
        &self.peers
    }

    /// Takes the sockets of sections `peers`.
    pub fn take_peers(&mut self) -> PeerSockets {
        std::mem::take(&mut self.peers)
    }

    /// The sockets by frontend.
    pub fn frontends(&self) -> Frontends {
        Frontends::new(self.sockets())
    }

    /// The sockets of bind lines.
    pub fn sockets(&self) -> Vec<FrontendSocket> {
        self.sockets.clone()
    }

    /// Reports the listening addresses in one line.
    pub fn tell(&self) {
        let count = self.addresses.len();
        let told = count.min(ADDRESSES_TOLD_MAX);
        let text = self.addresses[..told].join(", ");
        match count - told {
            _ if count == 0 => {}
            0 => crate::notice(&format!("Listening on {text}.")),
            more => crate::notice(&format!("Listening on {text} and {more} more.")),
        }
    }
}

/// An address in the format of messages.
pub(crate) fn shown(address: &BindAddress) -> String {
    match address {
        BindAddress::Addr(addr) => addr.to_string(),
        BindAddress::Quic(addr) => format!("quic {addr}"),
        BindAddress::Fd(fd) => format!("fd@{fd}"),
    }
}

fn options(proxy: &Proxy, bind: &Bind) -> ListenOptions {
    let backlog = bind
        .backlog
        .or(proxy.backlog)
        .or(bind.maxconn)
        .or(proxy.maxconn);
    ListenOptions {
        keepalive: (proxy.options.clitcpka).then_some(proxy.options.client_keepalive),
        ..listen_options(bind, backlog)
    }
}

/// The options of a bind line's sockets, without those of its proxy.
pub(crate) fn listen_options(bind: &Bind, backlog: Option<u32>) -> ListenOptions {
    ListenOptions {
        backlog: backlog.map_or(BACKLOG_DEFAULT, |backlog| {
            i32::try_from(backlog).unwrap_or(i32::MAX)
        }),
        v6only: if bind.v6only {
            Some(true)
        } else {
            bind.v4v6.then_some(false)
        },
        interface: bind.interface.clone(),
        tfo: bind.tfo,
        defer_accept: bind.defer_accept,
        mss: bind.mss,
        save_syn: bind.tcp_ss,
        keepalive: None,
        tcp: bind.tcp.clone(),
        transparent: bind.transparent,
        unix_mode: bind.mode,
        unix_uid: bind.uid,
        unix_gid: bind.gid,
        reuse_port: true,
    }
}

/// The order channels of the workers.
#[derive(Clone, Default)]
pub(crate) struct Inboxes(Vec<(Sender<Order>, Arc<OwnedFd>)>);

impl Inboxes {
    /// Sends an order to every worker.
    pub fn tell(&self, order: &Order) {
        for (sender, wake) in &self.0 {
            // A worker that has ended ignores orders.
            let _ = sender.send(order.clone());
            net::sys::eventfd_ring(std::os::fd::AsRawFd::as_raw_fd(&**wake));
        }
    }

    /// Sends an order to one worker. A worker that has ended drops it.
    pub fn tell_one(&self, worker: WorkerId, order: Order) {
        if let Some((sender, wake)) = self.0.get(worker.0 as usize) {
            let _ = sender.send(order);
            net::sys::eventfd_ring(wake.as_raw_fd());
        }
    }

    /// The number of workers.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Wakes some workers.
    pub fn wake(&self, workers: &[WorkerId]) {
        for (_, wake) in workers.iter().filter_map(|one| self.0.get(one.0 as usize)) {
            net::sys::eventfd_ring(wake.as_raw_fd());
        }
    }

    /// Wakes every worker.
    pub fn wake_all(&self) {
        for (_, wake) in &self.0 {
            net::sys::eventfd_ring(wake.as_raw_fd());
        }
    }

    /// Has the workers hand over the records of the filters. Returns whether all did in time.
    pub fn hand_over(&self, within: Duration) -> bool {
        let (sender, done) = mpsc::channel();
        self.tell(&Order::HandOver(sender));
        // A worker that has ended dropped its inbox, and has no records any more.
        done.recv_timeout(within) == Err(RecvTimeoutError::Disconnected)
    }
}

/// The worker threads.
pub(crate) struct Workers {
    threads: Vec<JoinHandle<()>>,
    inboxes: Inboxes,
    /// By worker: takes further listeners and log targets.
    more: Vec<Sender<More>>,
    alive: Arc<AtomicUsize>,
    shared: Arc<Shared>,
    logs: Logs,
}

impl Workers {
    /// Starts the threads. Each calls `ended` at its end, and when [`Workers::tell_of_logs`] has
    /// something to report.
    ///
    /// # Errors
    /// What is missing, as text.
    pub fn start(
        runtime_config: &Arc<RuntimeConfig>,
        shared: Arc<Shared>,
        listening: Listening,
        ring_files: RingFiles,
        ended: fn(),
    ) -> Result<Self, String> {
        let count = listening.by_worker.len();
        let plain =
            |what: &'static str| move |error: std::io::Error| format!("Cannot {what} : {error}.");
        let wakes: Vec<Arc<OwnedFd>> = (0..count)
            .map(|_| net::sys::eventfd().map(Arc::new))
            .collect::<Result<_, _>>()
            .map_err(plain("make an eventfd"))?;
        let mut workers = Workers {
            threads: Vec::new(),
            inboxes: Inboxes::default(),
            more: Vec::new(),
            alive: Arc::new(AtomicUsize::new(count)),
            shared,
            logs: Logs::new(runtime_config, ring_files, ended).map_err(plain("start the rings"))?,
        };
        let activities: Vec<Arc<Activity>> = (0..count).map(|_| Arc::default()).collect();
        workers.shared.set_activities(activities.clone());
        let of_workers = listening.by_worker.into_iter().zip(activities);
        for (worker, (listeners, activity)) in of_workers.enumerate() {
            let (more_sender, more) = mpsc::channel();
            workers.more.push(more_sender);
            let setup = Setup {
                more,
                activity,
                listeners,
                logs: workers.logs.open().map_err(plain("open a log target"))?,
                dropped: workers.logs.dropped(),
                wakes: wakes.clone(),
                worker: WorkerId(worker as u32),
                accepts_a_turn_max: runtime_config
                    .config
                    .global
                    .tune
                    .maxaccept
                    .unwrap_or(ACCEPTS_A_TURN_DEFAULT),
                buffer_bytes: runtime_config.config.global.tune.bufsize_bytes,
                buffers: socket_buffers(runtime_config),
                measures: !runtime_config.config.otel.is_empty(),
                local_addrs: runtime_config.reads_client_destinations(),
            };
            let mut driver = EpollDriver::new(setup).map_err(plain("set up epoll"))?;
            let mut engine = Engine::new(
                Arc::clone(runtime_config),
                Arc::clone(&workers.shared),
                worker,
                crate::sys::random_seed(),
            );
            let (sender, orders) = mpsc::channel();
            workers.inboxes.0.push((sender, Arc::clone(&wakes[worker])));
            let alive = Arc::clone(&workers.alive);
            let body = move || {
                if let Err(error) = driver.run(&mut engine, &orders) {
                    crate::alert(&format!("Worker {worker} failed : {error}."));
                }
                engine.finish(&mut driver);
                driver.finish();
                alive.fetch_sub(1, Ordering::Release);
                ended();
            };
            let builder = std::thread::Builder::new()
                .name(format!("worker-{worker}"))
                .stack_size(STACK_BYTES);
            workers
                .threads
                .push(builder.spawn(body).map_err(plain("start a worker"))?);
        }
        Ok(workers)
    }

    /// Sends an order to every worker.
    pub fn tell(&self, order: &Order) {
        self.inboxes.tell(order);
    }

    /// Lets all workers go on with another configuration, whose log targets may be more. None if a
    /// worker does not come to the meeting in time: then all go on as before.
    ///
    /// # Errors
    /// A log target cannot be opened.
    pub fn renew(
        &mut self,
        runtime_config: &Arc<RuntimeConfig>,
        before: &RuntimeConfig,
    ) -> std::io::Result<Option<Generation>> {
        let known = self.logs.renew(runtime_config);
        for more in &self.more {
            let logs = self.logs.open_from(known)?;
            // A worker that has ended serves nothing.
            let _ = more.send(More {
                logs,
                ..More::default()
            });
        }
        let renewal = Renewal::default();
        self.tell(&Order::Renew(renewal.clone()));
        let renewed = renewal.meet(self.more.len(), MEETING_LIMIT, || Generation {
            runtime_config: Arc::clone(runtime_config),
            shared: Arc::new(runtime_config.share_after(before, &self.shared)),
        });
        if let Some(renewed) = &renewed {
            self.shared = Arc::clone(&renewed.shared);
        }
        Ok(renewed)
    }

    /// Serves further listeners.
    pub fn listen(&self, listening: Listening) {
        for (more, listeners) in self.more.iter().zip(listening.by_worker) {
            let _ = more.send(More {
                listeners,
                ..More::default()
            });
        }
        self.inboxes.wake_all();
    }

    /// The order channels, for other threads that send orders.
    pub fn inboxes(&self) -> &Inboxes {
        &self.inboxes
    }

    /// The state that the workers share.
    pub fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// The log targets, for another thread.
    ///
    /// # Errors
    /// A socket cannot be opened, or a writer thread cannot be started.
    pub fn open_logs(&mut self) -> std::io::Result<Vec<net::logs::LogSink>> {
        self.logs.open()
    }

    /// The rings, in the order of the configuration.
    pub fn rings(&self) -> Vec<Arc<net::ring::Ring>> {
        self.logs.rings().to_vec()
    }

    /// The log messages that were lost.
    pub fn dropped_logs(&self) -> Arc<Dropped> {
        self.logs.dropped()
    }

    /// Whether all workers have ended.
    pub fn all_ended(&self) -> bool {
        self.alive.load(Ordering::Acquire) == 0
    }

    /// Waits for the workers and for the last log lines.
    pub fn finish(self) {
        for thread in self.threads {
            let _ = thread.join();
        }
        self.logs.close();
    }

    /// Reports changes of the log targets.
    pub fn tell_of_logs(&self) {
        self.logs.tell();
    }

    /// Reports that every proxy stops.
    pub fn tell_of_stop(&mut self) {
        self.logs.tell_of_stop(&self.shared);
    }

    /// Reports the state of every proxy and its servers.
    pub fn tell_of_states(&mut self) {
        self.logs.tell_of_states(&self.shared);
    }
}

/// A size as the kernel takes it.
fn size(bytes: Option<usize>) -> Option<i32> {
    bytes.map(|bytes| i32::try_from(bytes).unwrap_or(i32::MAX))
}

fn socket_buffers(runtime_config: &RuntimeConfig) -> SocketBuffers {
    let tune = &runtime_config.config.global.tune;
    SocketBuffers {
        client_receive: size(tune.rcvbuf_client_bytes),
        client_send: size(tune.sndbuf_client_bytes),
        server_receive: size(tune.rcvbuf_server_bytes),
        server_send: size(tune.sndbuf_server_bytes),
        server_datagrams_receive: size(tune.rcvbuf_backend_bytes),
        server_datagrams_send: size(tune.sndbuf_backend_bytes),
    }
}
