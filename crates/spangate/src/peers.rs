//! Sections `peers` (manual §11.2): their listening sockets, their thread, and its soft stop.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use config::model::Config;
use net::Addr;
use peers::run::{
    Accept, Address, Handle, Listener, PeerAddress, Runner, RunnerSetup, SectionSetup, TableSetup,
};
use peers::{PeerSetup, SectionView};
use proxy::{RuntimeConfig, SectionBind, SectionServer};
use tls::stream::GetConnector;

use crate::serve::{Unbound, listen_options, shown};
use crate::sockets::Sockets;

/// The listening sockets of the sections, opened before privileges are dropped.
#[derive(Default)]
pub(crate) struct PeerSockets {
    sections: Vec<SectionSockets>,
}

struct SectionSockets {
    /// The index in [`Config::peers`].
    section: usize,
    local: Addr,
    sockets: Vec<Arc<OwnedFd>>,
}

impl PeerSockets {
    /// Opens the sockets of all sections that share tables. Failures go to `unbound`.
    pub fn open(config: &Config, sockets: &mut Sockets, unbound: &mut Unbound) -> PeerSockets {
        let mut opened = PeerSockets {
            sections: Vec::new(),
        };
        let sections = config.peers.iter().enumerate();
        for (index, section) in sections.filter(|(_, section)| section.is_active()) {
            let Some(bind) = &section.bind else { continue };
            let options = listen_options(bind, bind.backlog);
            match sockets.open(bind, &options, 1) {
                Ok(found) => opened.sections.push(SectionSockets {
                    section: index,
                    local: found.local,
                    sockets: found.own.into_iter().chain(found.shared).collect(),
                }),
                Err(error) => {
                    unbound.is_in_use |= error.kind() == io::ErrorKind::AddrInUse;
                    unbound.messages.push(format!(
                        "Binding [{}] for peers {}: {error} for [{}].",
                        bind.origin,
                        section.name,
                        shown(&bind.address)
                    ));
                }
            }
        }
        opened
    }

    /// Whether there is a socket.
    pub fn listens(&self) -> bool {
        self.sections.iter().any(|one| !one.sockets.is_empty())
    }

    /// The number of descriptors that the sections use at most: their sockets, and three
    /// connections per peer.
    pub fn descriptors(&self, config: &Config) -> u64 {
        let active = config.peers.iter().filter(|section| section.is_active());
        let peers: usize = active.map(|section| section.peers.len()).sum();
        let sockets: usize = self.sections.iter().map(|one| one.sockets.len()).sum();
        (2 * sockets + 3 * peers) as u64
    }

    fn take(&mut self, section: usize) -> Option<SectionSockets> {
        let at = self
            .sections
            .iter()
            .position(|one| one.section == section)?;
        Some(self.sections.swap_remove(at))
    }
}

/// The running thread.
pub(crate) struct Peers {
    runner: Runner,
    is_over: Arc<AtomicBool>,
}

/// A look at the sections.
#[derive(Clone, Debug)]
pub(crate) struct View(Handle);

impl View {
    /// All sections that share tables, in the order of the files.
    pub fn sections(&self) -> Vec<SectionView> {
        self.0.snapshot()
    }
}

impl Peers {
    /// Starts the thread, if any section shares tables. `follows_another`: an older process may
    /// bring its entries. `ended` is called when a soft stop is over.
    ///
    /// # Errors
    /// The thread cannot be created.
    pub fn start(
        runtime_config: &Arc<RuntimeConfig>,
        mut sockets: PeerSockets,
        follows_another: bool,
        ended: fn(),
    ) -> io::Result<Option<Peers>> {
        let mut sections = Vec::new();
        for (index, section) in runtime_config.config.peers.iter().enumerate() {
            if section.is_active() {
                let opened = sockets.take(index);
                let mut setup = setup(runtime_config, index, opened)?;
                setup.follows_another = follows_another;
                sections.push(setup);
            }
        }
        if sections.is_empty() {
            return Ok(None);
        }
        let is_over = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&is_over);
        let runner = Runner::start(RunnerSetup {
            sections,
            clock: || net::sys::now().ms(),
            random: crate::sys::random_seed,
            on_over: Box::new(move || {
                over.store(true, Ordering::Release);
                ended();
            }),
        })?;
        Ok(Some(Peers { runner, is_over }))
    }

    /// A look at the sections.
    pub fn view(&self) -> View {
        View(self.runner.handle())
    }

    /// Begins a soft stop: the process that follows gets all entries, within this time.
    pub fn stop_softly(&self, within: Option<Duration>) {
        self.runner.stop_softly(within);
    }

    /// Whether a soft stop is over.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Ends the thread.
    pub fn stop(self) {
        self.runner.stop();
    }
}

/// The setup of the section with this index, of a process that follows no other.
fn setup(
    runtime_config: &Arc<RuntimeConfig>,
    index: usize,
    opened: Option<SectionSockets>,
) -> io::Result<SectionSetup> {
    let config = &runtime_config.config;
    let section = &config.peers[index];
    let local = opened.as_ref().map(|opened| opened.local.clone());
    let listeners = match opened {
        Some(opened) => opened
            .sockets
            .iter()
            .map(|socket| listener(socket, &opened.local))
            .collect::<io::Result<_>>()?,
        None => Vec::new(),
    };
    let peers = section
        .peers
        .iter()
        .enumerate()
        .filter_map(|(place, peer)| {
            let address = peer.address.clone().or_else(|| local.clone())?;
            Some(PeerAddress {
                setup: PeerSetup {
                    name: peer.name.clone(),
                    shown: address.to_string(),
                    shard: peer.shard,
                },
                address: to_connect(&address),
                connector: peer.tls.as_ref().map(|_| {
                    let server = SectionServer::Peer {
                        section: index,
                        peer: place,
                    };
                    connector(runtime_config, server)
                }),
            })
        });
    let peers: Vec<PeerAddress> = peers.collect();
    let local = section.peers.iter().find(|peer| peer.is_local);
    let find = |name: &String| {
        let mut tables = config.tables.iter();
        tables
            .find(|table| table.definition().name == *name)
            .cloned()
    };
    let shared = config
        .tables
        .iter()
        .filter(|table| table.definition().peers.as_ref() == Some(&section.name));
    Ok(SectionSetup {
        name: section.name.clone(),
        local: local.map(|peer| peer.name.clone()).unwrap_or_default(),
        peers,
        listeners,
        accept: accept(runtime_config, SectionBind::Peers { section: index }),
        tables: shared
            .map(|table| TableSetup {
                table: Arc::clone(table),
                write_to: table.definition().write_to.as_ref().and_then(find),
            })
            .collect(),
        shards: section.shards,
        follows_another: false,
    })
}

fn connector(runtime_config: &Arc<RuntimeConfig>, server: SectionServer) -> GetConnector {
    let own = Arc::clone(runtime_config);
    Box::new(move || own.tls().section_server(server))
}

/// TLS of a bind line; none for a plain line. `maxsslconn` does not count peers, as in HAProxy.
fn accept(runtime_config: &Arc<RuntimeConfig>, line: SectionBind) -> Option<Accept> {
    let own = Arc::clone(runtime_config);
    own.tls().secures(line).then(|| -> Accept {
        Box::new(move |session, plain, out| own.tls().accept_of_section(line, session, plain, out))
    })
}

/// A listener of its own descriptor: it closes while others hold the socket.
fn listener(socket: &OwnedFd, local: &Addr) -> io::Result<Listener> {
    let own = socket.try_clone()?;
    Ok(match local {
        Addr::Inet(_) => Listener::Inet(own.into()),
        Addr::Unix(_) => Listener::Unix(own.into()),
    })
}

fn to_connect(address: &Addr) -> Address {
    match address {
        Addr::Inet(address) => Address::Inet(*address),
        Addr::Unix(path) => Address::Unix(PathBuf::from(std::ffi::OsStr::from_bytes(path))),
    }
}
