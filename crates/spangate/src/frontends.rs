//! The listening sockets by frontend, for commands that pause or close one.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use proxy::{Door, Shared};
use rustix::net::{Shutdown, listen, shutdown};

use crate::handover::Exposed;

/// One listening socket.
#[derive(Clone, Debug)]
pub(crate) struct FrontendSocket {
    /// The place of its frontend in the configuration.
    pub frontend: usize,
    pub fd: Arc<OwnedFd>,
    /// Others may have it, or it has no port: it goes on to listen while its frontend is paused, and connections wait.
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

    fn sockets(&self) -> MutexGuard<'_, Vec<FrontendSocket>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A frontend accepts nothing for now, and its ports refuse connections.
    ///
    /// # Errors
    /// Of the kernel.
    pub fn pause(&self, frontend: usize, shared: &Shared) -> io::Result<()> {
        let sockets = self.sockets();
        // Workers are to see that first: a listener that does not listen looks like one with a connection.
        shared.set_door(frontend, Door::Paused);
        let own = sockets.iter().filter(|socket| socket.frontend == frontend);
        for socket in own.filter(|socket| !socket.keeps_listening) {
            shutdown(&socket.fd, Shutdown::Both)?;
        }
        Ok(())
    }

    /// It accepts again. The workers have to be given a round.
    ///
    /// # Errors
    /// Of the kernel: somebody else may have a port.
    pub fn resume(&self, frontend: usize, shared: &Shared) -> io::Result<()> {
        let sockets = self.sockets();
        let own = sockets.iter().filter(|socket| socket.frontend == frontend);
        for socket in own.filter(|socket| !socket.keeps_listening) {
            listen(&socket.fd, socket.backlog)?;
        }
        shared.set_door(frontend, Door::Open);
        Ok(())
    }

    /// It is about to be closed: a paused one accepts again, so that workers find its listeners empty.
    pub fn close(&self, frontend: usize, shared: &Shared, exposed: &Exposed) {
        if shared.door(frontend) == Door::Paused {
            // A port that is somebody else's by now has nothing to accept.
            let _ = self.resume(frontend, shared);
        }
        let mut sockets = self.sockets();
        let own = sockets.iter().filter(|socket| socket.frontend == frontend);
        own.for_each(|socket| exposed.remove(&socket.fd));
        sockets.retain(|socket| socket.frontend != frontend);
        shared.set_door(frontend, Door::Closed);
    }

    /// All are about to be closed.
    pub fn close_all(&self, shared: &Shared) {
        let frontends: Vec<usize> = self.sockets().iter().map(|one| one.frontend).collect();
        for frontend in frontends {
            if shared.door(frontend) == Door::Paused {
                let _ = self.resume(frontend, shared);
            }
        }
        self.sockets().clear();
    }
}
