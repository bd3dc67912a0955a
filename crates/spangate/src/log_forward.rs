//! Sections `log-forward` (manual §12.6): their sockets, and the thread that relays messages.

use std::any::Any;
use std::io;
use std::net::{IpAddr, TcpListener, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::sync::Arc;

use config::model::{Bind, BindAddress, Config, DgramBind, LogForward};
use net::Addr;
use net::listen::ListenOptions;
use net::logs::{Dropped, LogSink};
use proxy::{LogRelay, RuntimeConfig, SectionBind, Shared};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};
use syslog::receive::{Acceptor, Deliver, Listener, Runner, Section, Socket};
use tls::{Buffer, Failure, Progress, Session};

use crate::serve::{listen_options, shown};
use crate::sockets::Sockets;

/// The sockets of all sections, opened before privileges are dropped.
#[derive(Default)]
pub(crate) struct LogForwards {
    sections: Vec<Section>,
    /// By section, for each of its listeners: the index of its bind line.
    binds: Vec<Vec<usize>>,
}

/// What the thread needs to relay messages.
pub(crate) struct Parts {
    pub runtime_config: Arc<RuntimeConfig>,
    pub shared: Arc<Shared>,
    /// The sinks of the thread, by the numbers of the targets.
    pub sinks: Vec<LogSink>,
    pub dropped: Arc<Dropped>,
}

/// The running thread.
pub(crate) struct Running(Runner);

impl LogForwards {
    /// Opens the sockets.
    ///
    /// # Errors
    /// Why a socket cannot be opened.
    pub fn open(config: &Config, sockets: &mut Sockets) -> Result<LogForwards, String> {
        let mut all = LogForwards::default();
        for forward in &config.log_forwards {
            let (listeners, binds) = listeners(forward, sockets)?.into_iter().unzip();
            all.binds.push(binds);
            all.sections.push(Section {
                datagrams: datagrams(forward)?,
                listeners,
                connections_max: forward.maxconn as usize,
                timeout: forward.timeout_client,
                message_bytes_max: config.global.tune.bufsize_bytes,
                assumes_lines: forward.assume_lines,
            });
        }
        Ok(all)
    }

    /// Starts the thread, where there are sections.
    ///
    /// # Errors
    /// The thread cannot be created.
    pub fn start(mut self, parts: Parts) -> io::Result<Option<Running>> {
        if self.sections.is_empty() {
            return Ok(None);
        }
        let tls = parts.runtime_config.tls();
        for (number, (section, binds)) in self.sections.iter_mut().zip(&self.binds).enumerate() {
            for (listener, bind) in section.listeners.iter_mut().zip(binds) {
                let line = SectionBind::LogForward {
                    section: number,
                    bind: *bind,
                };
                if tls.secures(line) {
                    listener.acceptor = Some(Box::new(LogAcceptor {
                        runtime_config: Arc::clone(&parts.runtime_config),
                        shared: Arc::clone(&parts.shared),
                        line,
                    }));
                }
            }
        }
        let seed = crate::sys::random_seed();
        let relay = Relay {
            relay: LogRelay::new(parts.runtime_config, parts.shared, seed),
            sinks: parts.sinks,
            dropped: parts.dropped,
        };
        let runner = Runner::start(self.sections, Box::new(relay))?;
        Ok(Some(Running(runner)))
    }

    /// Whether there is a socket.
    pub fn listens(&self) -> bool {
        let mut sections = self.sections.iter();
        sections.any(|section| !section.datagrams.is_empty() || !section.listeners.is_empty())
    }

    /// The number of the descriptors that the sections may need.
    pub fn descriptors(&self) -> u64 {
        let of = |section: &Section| {
            section.datagrams.len() + section.listeners.len() + section.connections_max
        };
        self.sections.iter().map(of).sum::<usize>() as u64
    }
}

impl Running {
    /// Closes the sockets; open connections go on.
    pub fn stop_listening(&self) {
        self.0.stop_listening();
    }

    /// Ends the thread.
    pub fn stop(self) {
        self.0.stop();
    }
}

/// TLS of a bind line.
struct LogAcceptor {
    runtime_config: Arc<RuntimeConfig>,
    shared: Arc<Shared>,
    line: SectionBind,
}

impl Acceptor for LogAcceptor {
    fn enter(&self) -> Option<Box<dyn Any>> {
        self.shared.enter_tls().map(|place| Box::new(place) as _)
    }

    fn accept(
        &self,
        session: &mut Session,
        plain: &mut Buffer,
        out: &mut Buffer,
    ) -> Result<Progress, Failure> {
        let tls = self.runtime_config.tls();
        tls.accept_of_section(self.line, session, plain, out)
    }
}

/// Writes received messages to the targets of their sections.
struct Relay {
    relay: LogRelay,
    sinks: Vec<LogSink>,
    dropped: Arc<Dropped>,
}

impl Deliver for Relay {
    fn message(&mut self, section: usize, bytes: &[u8], from: Option<IpAddr>) {
        let (sinks, dropped) = (&mut self.sinks, &self.dropped);
        let mut send = |target: usize, line: &[u8]| {
            if let Some(sink) = sinks.get_mut(target) {
                sink.push(line, dropped);
            }
        };
        let now = net::sys::now();
        self.relay.relay(section, bytes, from, now, &mut send);
    }

    fn lost(&mut self) {
        self.dropped.add(1);
    }

    fn flush(&mut self) {
        for sink in &mut self.sinks {
            sink.flush(&self.dropped);
        }
    }
}

/// The listeners of a section, each with the index of its bind line.
fn listeners(
    forward: &LogForward,
    sockets: &mut Sockets,
) -> Result<Vec<(Listener, usize)>, String> {
    let mut listeners = Vec::new();
    for (place, bind) in forward.binds.iter().enumerate() {
        let fault = |error: io::Error| unbound(forward, &bind.origin, &bind.address, &error);
        let options = options(forward, bind);
        let opened = sockets.open(bind, &options, 1).map_err(fault)?;
        for fd in opened.own.iter().chain(&opened.shared) {
            let fd = fd.try_clone().map_err(fault)?;
            let socket = if opened.local.is_unix() {
                Socket::Unix(UnixListener::from(fd))
            } else {
                Socket::Tcp(TcpListener::from(fd))
            };
            let acceptor = None;
            listeners.push((Listener { socket, acceptor }, place));
        }
    }
    Ok(listeners)
}

fn options(forward: &LogForward, bind: &Bind) -> ListenOptions {
    let backlog = bind.backlog.or(forward.backlog).or(Some(forward.maxconn));
    listen_options(bind, backlog)
}

fn datagrams(forward: &LogForward) -> Result<Vec<UdpSocket>, String> {
    let binds = forward.dgram_binds.iter();
    let open = |bind: &DgramBind| {
        let fault = |error: io::Error| unbound(forward, &bind.origin, &bind.address, &error);
        datagram(bind).map_err(fault)
    };
    binds.map(open).collect()
}

/// A socket for datagrams. It shares its port, so that the next process can have it before this one
/// ends.
fn datagram(of: &DgramBind) -> io::Result<UdpSocket> {
    let address = match &of.address {
        BindAddress::Addr(Addr::Inet(address)) => address,
        BindAddress::Addr(Addr::Unix(_)) | BindAddress::Quic(_) => {
            return Err(io::ErrorKind::Unsupported.into());
        }
        BindAddress::Fd(number) => {
            return net::sys::inherit(*number).and_then(as_datagrams);
        }
    };
    let family = if address.is_ipv4() {
        AddressFamily::INET
    } else {
        AddressFamily::INET6
    };
    let socket = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_reuseport(&socket, true)?;
    if let Some(interface) = &of.interface {
        net::sys::bind_to_interface(socket.as_raw_fd(), interface)?;
    }
    bind(&socket, address)?;
    Ok(UdpSocket::from(socket))
}

fn as_datagrams(fd: OwnedFd) -> io::Result<UdpSocket> {
    if sockopt::socket_type(fd.as_fd())? != SocketType::DGRAM {
        let message = "the file descriptor is not a datagram socket";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    Ok(UdpSocket::from(fd))
}

fn unbound(forward: &LogForward, origin: &str, address: &BindAddress, error: &io::Error) -> String {
    let (name, address) = (&forward.name, shown(address));
    format!("Binding [{origin}] for log-forward {name}: {error} for [{address}].")
}
