//! The listening sockets of this process: taken over from the previous process, inherited, or
//! opened. They are kept for the next process.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use config::model::{Bind, BindAddress};
use net::Addr;
use net::listen::{self, DatagramOptions, ListenAddr, ListenOptions};

use crate::handover::{ExposedSocket, Kind, Taken};
use crate::quic_relay::Earlier;

/// See the module.
#[derive(Default)]
pub(crate) struct Sockets {
    taken: Taken,
    /// The inherited descriptors that `fd@` names, by number.
    inherited: HashMap<i32, Arc<OwnedFd>>,
    exposed: Vec<ExposedSocket>,
    /// The addresses whose sockets of datagrams were taken over from the previous process.
    datagrams_taken: Vec<SocketAddr>,
    /// The kernel's buffers for received and sent datagrams of lines with QUIC, bytes.
    pub datagram_buffers: (Option<i32>, Option<i32>),
    /// The process runs: other descriptors than these may be its own.
    is_running: bool,
}

/// The sockets of one address.
pub(crate) struct Opened {
    pub local: Addr,
    /// One socket for each worker; empty if all sockets are shared. More sockets, of datagrams, belong
    /// to the workers in turns.
    pub own: Vec<Arc<OwnedFd>>,
    /// Sockets from which all workers accept.
    pub shared: Vec<Arc<OwnedFd>>,
}

impl Sockets {
    pub fn new(taken: Taken) -> Self {
        Sockets {
            taken,
            ..Sockets::default()
        }
    }

    /// Sockets for further lines of a process that runs. `inherited`: what it got at its start.
    pub fn again(taken: Taken, inherited: HashMap<i32, Arc<OwnedFd>>) -> Self {
        Sockets {
            taken,
            inherited,
            is_running: true,
            ..Sockets::default()
        }
    }

    /// Opens the sockets of a line for `workers` workers. For TCP, each worker has its own
    /// socket, so that the kernel distributes the connections. If the previous process had more
    /// sockets, all workers share the rest, because the kernel continues to give them connections.
    ///
    /// # Errors
    /// The kernel's error, with the step that failed.
    pub fn open(
        &mut self,
        bind: &Bind,
        options: &ListenOptions,
        workers: usize,
    ) -> io::Result<Opened> {
        let opened = match &bind.address {
            BindAddress::Fd(number) => return self.inherited(*number, options),
            BindAddress::Quic(addr) => {
                self.datagrams(*addr, bind.quic.descriptor, options, workers)?
            }
            BindAddress::Addr(addr @ Addr::Inet(_)) => self.inet(addr, options, workers)?,
            BindAddress::Addr(addr) => {
                let mut old = self.old(addr, options)?;
                if old.is_empty() {
                    old.push(fresh(addr, options)?);
                }
                Opened {
                    local: addr.clone(),
                    own: Vec::new(),
                    shared: old,
                }
            }
        };
        let all = opened.own.iter().chain(&opened.shared);
        self.exposed.extend(all.map(|fd| ExposedSocket {
            fd: Arc::clone(fd),
            interface: options.interface.clone(),
        }));
        Ok(opened)
    }

    /// The sockets that the next process may take. Unused sockets of the previous process are
    /// closed.
    pub fn into_exposed(self) -> Vec<ExposedSocket> {
        self.exposed
    }

    /// The processes that had the sockets, and may have connections of their datagrams.
    pub fn earlier(&mut self) -> Earlier {
        let addresses = std::mem::take(&mut self.datagrams_taken);
        Earlier::new(self.taken.take_relays(), addresses)
    }

    fn inet(&mut self, addr: &Addr, options: &ListenOptions, workers: usize) -> io::Result<Opened> {
        let mut own = self.old(addr, options)?;
        let mut shared = own.split_off(own.len().min(workers));
        while own.len() < workers {
            match fresh(addr, options) {
                Ok(fd) => own.push(fd),
                // The old sockets may not share their port (SO_REUSEPORT). Then the workers share
                // the old sockets.
                Err(error) if error.kind() == io::ErrorKind::AddrInUse && !own.is_empty() => {
                    shared.append(&mut own);
                    break;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Opened {
            local: addr.clone(),
            own,
            shared,
        })
    }

    /// The sockets of an address of QUIC, one for each worker. Packets of a connection go to the
    /// worker whose number its connection id begins with. If the previous process had more sockets,
    /// the first workers read the rest. `descriptor`: an inherited one of that address.
    fn datagrams(
        &mut self,
        addr: SocketAddr,
        descriptor: Option<i32>,
        options: &ListenOptions,
        workers: usize,
    ) -> io::Result<Opened> {
        let local = Addr::Inet(addr);
        let v6only = || options.v6only.unwrap_or_else(net::sys::v6only_by_default);
        let interface = options.interface.as_deref();
        let old = self.taken.take(Kind::Datagrams, &local, v6only, interface);
        if !old.is_empty() {
            self.datagrams_taken.push(addr);
        }
        let wanted = ListenAddr::Bind(local.clone());
        let options = DatagramOptions {
            v6only: options.v6only,
            interface: options.interface.clone(),
            namespace: options.tcp.namespace.clone(),
            transparent: options.transparent,
            receive_buffer: self.datagram_buffers.0,
            send_buffer: self.datagram_buffers.1,
        };
        let old = old.into_iter().map(|fd| listen::from_fd(fd, &options));
        let mut own: Vec<_> = old.map(|fd| fd.map(Arc::new)).collect::<io::Result<_>>()?;
        if let Some(number) = descriptor
            && own.is_empty()
        {
            if self.is_running {
                return Err(io::Error::other("a running process inherits no descriptor"));
            }
            let inherited = ListenAddr::Inherited(number);
            own.push(Arc::new(listen::open_datagram(&inherited, &options)?));
        }
        while own.len() < workers {
            own.push(Arc::new(listen::open_datagram(&wanted, &options)?));
        }
        if let Some(first) = own.first().filter(|_| workers > 1) {
            net::sys::steer_by_id(first.as_raw_fd(), 0, workers as u32)?;
        }
        Ok(Opened {
            local,
            own,
            shared: Vec::new(),
        })
    }

    fn old(&mut self, addr: &Addr, options: &ListenOptions) -> io::Result<Vec<Arc<OwnedFd>>> {
        let v6only = || options.v6only.unwrap_or_else(net::sys::v6only_by_default);
        let old = self.taken.take(
            Kind::Connections,
            addr,
            v6only,
            options.interface.as_deref(),
        );
        for fd in &old {
            listen::again(fd, addr, options)?;
        }
        Ok(old.into_iter().map(Arc::new).collect())
    }

    fn inherited(&mut self, number: i32, options: &ListenOptions) -> io::Result<Opened> {
        let fd = match self.inherited.get(&number) {
            Some(fd) => Arc::clone(fd),
            None if self.is_running => {
                return Err(io::Error::other("a running process inherits no descriptor"));
            }
            None => {
                let fd = Arc::new(listen::open(&ListenAddr::Inherited(number), options)?);
                self.inherited.insert(number, Arc::clone(&fd));
                fd
            }
        };
        Ok(Opened {
            local: net::sys::local_addr(fd.as_raw_fd())?,
            own: Vec::new(),
            shared: vec![fd],
        })
    }
}

fn fresh(addr: &Addr, options: &ListenOptions) -> io::Result<Arc<OwnedFd>> {
    listen::open(&ListenAddr::Bind(addr.clone()), options).map(Arc::new)
}
