//! The listening sockets by frontend, for commands that pause or close one.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use config::model::{BindAddress, Config};
use net::Addr;
use proxy::{FrontendState, RuntimeConfig, Shared};
use rustix::net::{Shutdown, listen, shutdown};

use crate::handover::Exposed;

/// One listening socket.
#[derive(Clone, Debug)]
pub(crate) struct FrontendSocket {
    /// The index of its frontend in the configuration, and of its bind line.
    pub frontend: usize,
    pub bind: usize,
    pub fd: Arc<OwnedFd>,
    /// The socket keeps listening while its frontend is paused, and new connections wait: the
    /// socket may be shared with another process, or has no port to bind again.
    pub keeps_listening: bool,
    pub backlog: i32,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Frontends(Mutex<Vec<FrontendSocket>>);

impl Frontends {
    pub fn new(sockets: Vec<FrontendSocket>) -> Self {
        Frontends(Mutex::new(sockets))
    }

    /// Adds the sockets of further bind lines.
    pub fn add(&self, sockets: Vec<FrontendSocket>) {
        self.sockets().extend(sockets);
    }

    /// Whether a bind line has sockets.
    pub fn has(&self, frontend: usize, bind: usize) -> bool {
        let sockets = self.sockets();
        let mut all = sockets.iter();
        all.any(|socket| socket.frontend == frontend && socket.bind == bind)
    }

    /// The sockets of bind lines that are not bound in the next configuration.
    pub fn closing(&self, next: &RuntimeConfig) -> Vec<Arc<OwnedFd>> {
        let sockets = self.sockets();
        let closing = sockets
            .iter()
            .filter(|socket| !next.is_bound_at(socket.frontend, socket.bind));
        closing.map(|socket| Arc::clone(&socket.fd)).collect()
    }

    /// The sockets of lines `fd@` of this configuration that are not bound in the next one, by the
    /// numbers there.
    pub fn inherited(&self, config: &Config, next: &RuntimeConfig) -> HashMap<i32, Arc<OwnedFd>> {
        let sockets = self.sockets();
        let closing = sockets
            .iter()
            .filter(|socket| !next.is_bound_at(socket.frontend, socket.bind));
        let inherited = closing.filter_map(|socket| {
            let bind = config
                .proxies
                .get(socket.frontend)?
                .binds
                .get(socket.bind)?;
            match bind.address {
                BindAddress::Fd(number) => Some((number, Arc::clone(&socket.fd))),
                BindAddress::Addr(_) | BindAddress::Quic(_) => None,
            }
        });
        inherited.collect()
    }

    /// Forgets the sockets of bind lines that are not bound in the next configuration. Workers
    /// accept what waits on them.
    pub fn retain(&self, exposed: &Exposed, next: &RuntimeConfig) {
        self.sockets().retain(|socket| {
            let is_bound = next.is_bound_at(socket.frontend, socket.bind);
            if !is_bound {
                exposed.remove(&socket.fd);
            }
            is_bound
        });
    }

    fn sockets(&self) -> MutexGuard<'_, Vec<FrontendSocket>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The addresses of the sockets, each with the index of its frontend.
    pub fn addresses(&self) -> Vec<(usize, Addr)> {
        let sockets = self.sockets();
        let address = |socket: &FrontendSocket| {
            let addr = net::sys::local_addr(socket.fd.as_raw_fd()).ok()?;
            Some((socket.frontend, addr))
        };
        sockets.iter().filter_map(address).collect()
    }

    /// Pauses a frontend: it accepts nothing, and its ports refuse connections.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn pause(&self, frontend: usize, shared: &Shared) -> io::Result<()> {
        let sockets = self.sockets();
        // Workers must see the pause first: a poll reports a socket that no longer listens like one
        // with a new connection.
        shared.set_frontend_state(frontend, FrontendState::Paused);
        let own = sockets.iter().filter(|socket| socket.frontend == frontend);
        for socket in own.filter(|socket| !socket.keeps_listening) {
            shutdown(&socket.fd, Shutdown::Both)?;
        }
        Ok(())
    }

    /// Resumes a frontend. The caller has to wake the workers.
    ///
    /// # Errors
    /// The kernel refuses: another process may have taken a port.
    pub fn resume(&self, frontend: usize, shared: &Shared) -> io::Result<()> {
        let sockets = self.sockets();
        let own = sockets.iter().filter(|socket| socket.frontend == frontend);
        for socket in own.filter(|socket| !socket.keeps_listening) {
            listen(&socket.fd, socket.backlog)?;
        }
        shared.set_frontend_state(frontend, FrontendState::Open);
        Ok(())
    }

    /// Pauses all frontends that are open (SIGTTOU), and calls `tell` with each.
    ///
    /// # Errors
    /// The kernel refuses for one of them; the others are paused.
    pub fn pause_all(&self, shared: &Shared, tell: impl Fn(usize)) -> io::Result<()> {
        self.each_in(FrontendState::Open, shared, |frontend| {
            self.pause(frontend, shared).map(|()| tell(frontend))
        })
    }

    /// Resumes all frontends that are paused (SIGTTIN), and calls `tell` with each. The caller has
    /// to wake the workers.
    ///
    /// # Errors
    /// The kernel refuses for one of them; the others are resumed.
    pub fn resume_all(&self, shared: &Shared, tell: impl Fn(usize)) -> io::Result<()> {
        self.each_in(FrontendState::Paused, shared, |frontend| {
            self.resume(frontend, shared).map(|()| tell(frontend))
        })
    }

    fn each_in(
        &self,
        state: FrontendState,
        shared: &Shared,
        change: impl Fn(usize) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut frontends: Vec<usize> = self.sockets().iter().map(|one| one.frontend).collect();
        frontends.dedup();
        let wanted = frontends
            .into_iter()
            .filter(|frontend| shared.frontend_state(*frontend) == state);
        // A failure keeps none of the others from its change.
        let results: Vec<io::Result<()>> = wanted.map(change).collect();
        results.into_iter().collect()
    }

    /// Prepares for closing a frontend: a paused one listens again, so that workers find nothing to
    /// accept.
    pub fn close(&self, frontend: usize, shared: &Shared, exposed: &Exposed) {
        if shared.frontend_state(frontend) == FrontendState::Paused {
            // A port that another process took meanwhile has nothing to accept here.
            let _ = self.resume(frontend, shared);
        }
        let mut sockets = self.sockets();
        let own = sockets.iter().filter(|socket| socket.frontend == frontend);
        own.for_each(|socket| exposed.remove(&socket.fd));
        sockets.retain(|socket| socket.frontend != frontend);
        shared.set_frontend_state(frontend, FrontendState::Closed);
    }

    /// Prepares for closing all frontends.
    pub fn close_all(&self, shared: &Shared) {
        let frontends: Vec<usize> = self.sockets().iter().map(|one| one.frontend).collect();
        for frontend in frontends {
            if shared.frontend_state(frontend) == FrontendState::Paused {
                let _ = self.resume(frontend, shared);
            }
        }
        self.sockets().clear();
    }
}
