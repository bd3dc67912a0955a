//! Listening sockets that the next configuration of a process takes over, so that no connection is
//! refused meanwhile.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// The sockets of a process, by the addresses that their configurations name. A socket is there as
/// long as somebody listens on it.
#[derive(Clone, Default)]
pub struct Listeners(Arc<Mutex<Sockets>>);

#[derive(Default)]
struct Sockets {
    /// In the order in which a configuration opens them: an address may be one of any port.
    all: HashMap<String, Vec<Weak<OwnedFd>>>,
    /// How many of an address the configuration that starts has opened.
    opened: HashMap<String, usize>,
}

/// Keeps a socket for the next configuration.
pub(super) type Keep = Arc<OwnedFd>;

impl Listeners {
    /// A configuration starts: each socket may be taken over once.
    pub(in crate::run) fn begin(&self) {
        let mut sockets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sockets.opened.clear();
        sockets.all.retain(|_, of_address| {
            of_address.retain(|one| one.strong_count() > 0);
            !of_address.is_empty()
        });
    }

    /// The socket of an address: the one that the process has, or a new one.
    ///
    /// # Errors
    /// As `open`.
    pub(super) fn open(
        &self,
        address: String,
        open: impl FnOnce() -> io::Result<OwnedFd>,
    ) -> io::Result<(OwnedFd, Keep)> {
        let mut sockets = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Sockets { all, opened } = &mut *sockets;
        let number = opened.entry(address.clone()).or_default();
        let of_address = all.entry(address).or_default();
        let keep = match of_address.get(*number).and_then(Weak::upgrade) {
            Some(keep) => keep,
            None => {
                let keep = Arc::new(open()?);
                let one = Arc::downgrade(&keep);
                match of_address.get_mut(*number) {
                    Some(gone) => *gone = one,
                    None => of_address.push(one),
                }
                keep
            }
        };
        *number += 1;
        Ok((keep.try_clone()?, keep))
    }
}

impl fmt::Debug for Listeners {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Listeners")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{SocketAddr, TcpListener};

    fn open(listeners: &Listeners) -> (SocketAddr, Keep) {
        let bind = || TcpListener::bind("127.0.0.1:0").map(OwnedFd::from);
        let (fd, keep) = listeners.open("tcp 127.0.0.1:0".to_owned(), bind).unwrap();
        (TcpListener::from(fd).local_addr().unwrap(), keep)
    }

    #[test]
    fn each_socket_is_taken_over_once_by_each_configuration() {
        let listeners = Listeners::default();
        listeners.begin();
        let (first, second) = (open(&listeners), open(&listeners));
        assert_ne!(first.0, second.0);
        listeners.begin();
        let again = [open(&listeners), open(&listeners)];
        assert_eq!([again[0].0, again[1].0], [first.0, second.0]);
        drop((first, again));
        listeners.begin();
        // The first is closed.
        assert_eq!(open(&listeners).0, second.0);
    }
}
