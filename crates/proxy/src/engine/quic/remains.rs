//! Resources to free after a panic in the endpoint: the timers and sockets of connections without links,
//! and the listeners that were about to close.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use net::timers::TimerId;
use net::{ListenerId, SockId};

use super::{Place, Quics, server_sock};
use crate::link::QuicLink;

/// What is left of an endpoint. The endpoint and the worker share it.
#[derive(Clone, Debug, Default)]
pub(in crate::engine) struct Remains(Arc<Mutex<Lost>>);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Lost {
    /// Connections without links.
    #[expect(clippy::vec_box, reason = "the endpoint keeps them on the heap")]
    pub leaving: Vec<Box<QuicLink>>,
    /// Of the connection that was at work.
    pub timers: Vec<TimerId>,
    pub socks: Vec<SockId>,
    /// Listeners that close.
    pub closing: Vec<ListenerId>,
}

impl Remains {
    fn lost(&self) -> MutexGuard<'_, Lost> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what is left.
    pub(super) fn take(&self) -> Lost {
        std::mem::take(&mut *self.lost())
    }
}

/// What a connection without a link has of the worker.
#[derive(Clone, Copy, Debug)]
pub(super) struct AtWork {
    timer: TimerId,
    sock: Option<SockId>,
}

impl AtWork {
    pub fn new(quic: &QuicLink) -> AtWork {
        AtWork {
            timer: quic.timer,
            sock: server_sock(quic),
        }
    }
}

impl Drop for Quics {
    fn drop(&mut self) {
        let mut lost = self.remains.lost();
        for (_, place) in self.places.drain() {
            if let Place::Leaving(quic, _) = place {
                lost.leaving.push(quic);
            }
        }
        lost.leaving
            .sort_unstable_by_key(|quic| quic.connection.handle().0);
        if let Some(at_work) = self.at_work {
            lost.timers.push(at_work.timer);
            lost.socks.extend(at_work.sock);
        }
        lost.socks.append(&mut self.unused);
        let closing = self.closing.drain(..);
        lost.closing.extend(closing.map(|(listener, _)| listener));
    }
}
