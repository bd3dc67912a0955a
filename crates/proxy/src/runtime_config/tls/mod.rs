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
use tls::{Buffer, Connector, Failure, Progress, Session, SessionCache};

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

/// A bind line of a section `log-forward`.
#[derive(Clone, Copy, Debug)]
pub struct LogBind {
    /// The index of the section.
    pub forward: usize,
    /// The index of the line in its section.
    pub bind: usize,
}

/// The TLS state of a configuration.
#[derive(Debug, Default)]
pub struct Tls {
    /// By proxy and bind line; none for plain lines. After the proxies come the rings, which have
    /// none, then the sections `log-forward`.
    binds: Vec<Vec<Option<ArcSwap<BindAcceptors>>>>,
    /// By proxy: its servers. None for plain servers. After the proxies come the rings.
    servers: Vec<ArcSwap<Vec<Option<Arc<Connector>>>>>,
    /// The number of proxies, which is the place of the first ring.
    first_ring: usize,
    /// The place of the first section `log-forward`.
    first_forward: usize,
    files: Mutex<Files>,
}

impl Tls {
    /// Reads the files of a configuration, `since_epoch` after the UNIX epoch. Returns the TLS
    /// state, and errors and warnings.
    #[must_use]
    pub fn load(config: &Config, since_epoch: Duration) -> (Tls, Vec<TlsFinding>) {
        let Loader {
            files,
            mut findings,
            ..
        } = Loader::load(config, since_epoch);
        // Missing files have been reported.
        let is_whole = !findings.0.iter().any(|finding| finding.is_fatal);
        let first_ring = config.proxies.len();
        let mut tls = Tls {
            first_ring,
            first_forward: first_ring + config.rings.len(),
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

    /// The connector of a server of a ring, by their indexes; none for a plain server.
    #[must_use]
    pub fn ring_server(&self, ring: usize, server: usize) -> Option<Arc<Connector>> {
        let ring = self.servers.get(self.first_ring + ring)?;
        ring.load().get(server)?.clone()
    }

    fn log_acceptors(&self, line: LogBind) -> Option<&ArcSwap<BindAcceptors>> {
        let forward = self.binds.get(self.first_forward + line.forward)?;
        forward.get(line.bind)?.as_ref()
    }

    /// Whether a bind line of a section `log-forward` uses TLS.
    #[must_use]
    pub fn secures_logs(&self, line: LogBind) -> bool {
        self.log_acceptors(line).is_some()
    }

    /// Continues a session of such a line, whose client's hello is there, with the acceptor for its
    /// name and protocols ([`Session::accept`]).
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn accept_logs(
        &self,
        line: LogBind,
        session: &mut Session,
        plain: &mut Buffer,
        out: &mut Buffer,
    ) -> Result<Progress, Failure> {
        let Some(acceptors) = self.log_acceptors(line) else {
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
