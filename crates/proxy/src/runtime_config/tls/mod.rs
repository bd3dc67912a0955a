//! TLS of the running configuration: reads the files that it names, and builds the acceptors of
//! bind lines and the connectors of servers.
//!
//! Workers read [`Tls::bind`] once per client connection and [`Tls::server`] once per new
//! connection to a server. Both load a pointer that can be replaced. The runtime interface edits
//! [`files::Files`] behind a lock (`edit`), rebuilds what depends on the change, and swaps the
//! pointers. Established connections keep their state.

mod acceptors;
mod build;
mod checks;
mod edit;
mod files;
mod load;
mod ocsp;
mod views;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
use config::model::{Config, ServerTls};
use tls::{Buffer, Connector, Failure, Passphrases, Progress, Session, SessionCache};

use crate::ids::{BindId, ServerId};
pub(crate) use acceptors::BindAcceptors;
use build::tell_unspoken;
pub use edit::{Draft, certificate_name};
pub use files::EditError;
use files::{Files, ServerRecipe};
use load::Loader;
pub use ocsp::OcspSubject;
pub use views::{CertificateView, FileNames, ListView, NameView, Status, TrustView};

/// An error or warning about a file that a configuration names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFinding {
    /// The configuration cannot be used.
    pub is_fatal: bool,
    /// The message, with the file and the line that names it.
    pub text: String,
}

/// Identifies a bind line of a section `log-forward` or `peers`. The numbers are indexes in the
/// configuration.
#[derive(Clone, Copy, Debug)]
pub enum SectionBind {
    /// Of a section `log-forward`.
    LogForward {
        /// The section.
        section: usize,
        /// The line.
        bind: usize,
    },
    /// The only one of a section `peers`.
    Peers {
        /// The section.
        section: usize,
    },
}

/// Identifies a server of a section `ring` or `peers`. The numbers are indexes in the
/// configuration.
#[derive(Clone, Copy, Debug)]
pub enum SectionServer {
    /// Of a section `ring`.
    Ring {
        /// The section.
        section: usize,
        /// The server.
        server: usize,
    },
    /// A peer.
    Peer {
        /// The section.
        section: usize,
        /// The peer.
        peer: usize,
    },
}

/// Where the sections of each kind begin in [`Tls::binds`] and [`Tls::servers`]. The proxies come
/// first.
#[derive(Clone, Copy, Debug, Default)]
struct FirstPlaces {
    ring: usize,
    log_forward: usize,
    peers: usize,
}

impl FirstPlaces {
    fn of(config: &Config) -> FirstPlaces {
        let ring = config.proxies.len();
        let log_forward = ring + config.rings.len();
        let peers = log_forward + config.log_forwards.len();
        FirstPlaces {
            ring,
            log_forward,
            peers,
        }
    }
}

/// The TLS state of a configuration.
#[derive(Debug, Default)]
pub struct Tls {
    /// By proxy and bind line; none for plain lines. After the proxies come the rings, which have
    /// none, then the sections `log-forward`, then the sections `peers`.
    binds: Vec<Vec<Option<ArcSwap<BindAcceptors>>>>,
    /// By proxy: its servers. None for plain servers. The other sections follow in the same order.
    servers: Vec<ArcSwap<Vec<Option<Arc<Connector>>>>>,
    first: FirstPlaces,
    files: Mutex<Files>,
}

impl Tls {
    /// Reads the files of a configuration, `since_epoch` after the UNIX epoch, with the passphrases
    /// of encrypted keys. Returns the TLS state, and errors and warnings.
    #[must_use]
    pub fn load(
        config: &Config,
        since_epoch: Duration,
        passphrases: Passphrases<'_>,
    ) -> (Tls, Vec<TlsFinding>) {
        let Loader {
            files,
            mut findings,
            ..
        } = Loader::load(config, since_epoch, passphrases);
        // Missing files have been reported.
        let is_whole = !findings.0.iter().any(|finding| finding.is_fatal);
        let mut tls = Tls {
            first: FirstPlaces::of(config),
            ..Tls::default()
        };
        for (binds, servers) in files.binds.iter().zip(&files.servers) {
            let mut of_binds = Vec::new();
            for recipe in binds {
                of_binds.push(recipe.as_ref().filter(|_| is_whole).and_then(|recipe| {
                    tell_unspoken(&recipe.words.options, &recipe.words.title, &mut findings);
                    match files.build_bind(recipe, None) {
                        Ok(acceptors) => Some(ArcSwap::from_pointee(acceptors)),
                        Err(why) => {
                            findings.alert(why);
                            None
                        }
                    }
                }));
            }
            tls.binds.push(of_binds);
            let mut of_servers = Vec::new();
            for recipe in servers {
                of_servers.push(recipe.as_ref().filter(|_| is_whole).and_then(|recipe| {
                    tell_unspoken(&recipe.words.options, &recipe.title, &mut findings);
                    match files.build_server(recipe) {
                        Ok(connector) => Some(Arc::new(connector)),
                        Err(why) => {
                            findings.alert(why);
                            None
                        }
                    }
                }));
            }
            tls.servers.push(ArcSwap::from_pointee(of_servers));
        }
        tls.files = Mutex::new(files);
        (tls, findings.0)
    }

    /// The acceptors of a bind line; none for a plain line.
    #[inline]
    pub(crate) fn bind(&self, bind: BindId) -> Option<Guard<Arc<BindAcceptors>>> {
        let frontend = self.binds.get(bind.frontend.place())?;
        Some(frontend.get(bind.place)?.as_ref()?.load())
    }

    /// The connector of a server; none for a plain server.
    #[inline]
    pub(crate) fn server(&self, server: ServerId) -> Option<Arc<Connector>> {
        let backend = self.servers.get(server.backend.place())?;
        backend.load().get(server.place())?.clone()
    }

    /// The connector of a server of another section; none for a plain server.
    #[must_use]
    pub fn section_server(&self, server: SectionServer) -> Option<Arc<Connector>> {
        let (section, place) = match server {
            SectionServer::Ring { section, server } => (self.first.ring + section, server),
            SectionServer::Peer { section, peer } => (self.first.peers + section, peer),
        };
        self.servers.get(section)?.load().get(place)?.clone()
    }

    fn section_acceptors(&self, line: SectionBind) -> Option<&ArcSwap<BindAcceptors>> {
        let (section, place) = match line {
            SectionBind::LogForward { section, bind } => (self.first.log_forward + section, bind),
            SectionBind::Peers { section } => (self.first.peers + section, 0),
        };
        self.binds.get(section)?.get(place)?.as_ref()
    }

    /// Whether a bind line of another section uses TLS.
    #[must_use]
    pub fn secures(&self, line: SectionBind) -> bool {
        self.section_acceptors(line).is_some()
    }

    /// Continues a session of such a line, whose client's hello is there, with the acceptor for its
    /// name and protocols ([`Session::accept`]).
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn accept_of_section(
        &self,
        line: SectionBind,
        session: &mut Session,
        plain: &mut Buffer,
        out: &mut Buffer,
    ) -> Result<Progress, Failure> {
        let Some(acceptors) = self.section_acceptors(line) else {
            return Ok(Progress::default());
        };
        acceptors.load().accept(session, plain, out)
    }

    /// Checks that a connector can be built from these options.
    ///
    /// # Errors
    /// A file is not known or cannot be used; the message for the user.
    pub fn check_server(&self, title: &str, words: Option<&ServerTls>) -> Result<(), String> {
        let recipe = words.map(|words| ServerRecipe {
            words: words.clone(),
            title: title.to_owned(),
        });
        recipe.map_or(Ok(()), |recipe| {
            self.files().build_server(&recipe).map(drop)
        })
    }

    /// Sets the TLS options of a server, given by the place of its backend and its own, whose files
    /// must be loaded already; none for plain connections. `title` is its name in messages.
    ///
    /// # Errors
    /// A file is not known or cannot be used; the message for the user. Nothing changes then.
    pub fn set_server(
        &self,
        (backend, place): (usize, usize),
        title: &str,
        words: Option<&ServerTls>,
    ) -> Result<(), String> {
        let mut files = self.files();
        let recipe = words.map(|words| ServerRecipe {
            words: words.clone(),
            title: title.to_owned(),
        });
        let connector = match &recipe {
            None => None,
            Some(recipe) => Some(Arc::new(files.build_server(recipe)?)),
        };
        if let Some(recipes) = files.servers.get_mut(backend) {
            recipes.resize_with(recipes.len().max(place + 1), || None);
            recipes[place] = recipe;
        }
        self.put_server(backend, place, connector);
        Ok(())
    }

    /// Replaces a server's connector. The caller holds the lock on the files, so no other thread
    /// does it at the same time.
    fn put_server(&self, backend: usize, place: usize, connector: Option<Arc<Connector>>) {
        let Some(servers) = self.servers.get(backend) else {
            return;
        };
        let mut all = (**servers.load()).clone();
        all.resize_with(all.len().max(place + 1), || None);
        all[place] = connector;
        servers.store(Arc::new(all));
    }

    /// The sessions remembered for clients without tickets, with the counters of their lookups.
    #[must_use]
    pub fn session_cache(&self) -> SessionCache {
        self.files().sessions.clone()
    }

    fn files(&self) -> MutexGuard<'_, Files> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
