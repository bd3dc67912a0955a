//! A driver without a network: rules are executed, and nothing is sent.

use net::boundary::{Connect, ConnectError, Labels, Message, Sent};
use net::{Driver, ListenerId, Now, SockId, Sockets, WorkerId};

/// A driver without a network.
pub(super) struct Nobody {
    pub now: Now,
    pub read_bytes: usize,
}

impl Sockets for Nobody {}

impl Driver for Nobody {
    fn now(&self) -> Now {
        self.now
    }

    fn read_bytes(&self) -> usize {
        self.read_bytes
    }

    fn send(&mut self, _: SockId, message: Message<'_>) -> Sent {
        Sent {
            taken: message.body.len(),
            blocked: false,
        }
    }

    fn connect(&mut self, _: &Connect<'_>) -> Result<SockId, ConnectError> {
        Err(ConnectError::Refused)
    }

    fn shutdown(&mut self, _: SockId) {}
    fn close(&mut self, _: SockId) {}
    fn abort(&mut self, _: SockId) {}
    fn vanish(&mut self, _: SockId, _: Option<u8>) {}
    fn label(&mut self, _: SockId, _: Labels) {}
    fn pause(&mut self, _: SockId) {}
    fn resume(&mut self, _: SockId) {}
    fn accepting(&mut self, _: ListenerId, _: bool) {}
    fn unlisten(&mut self, _: ListenerId) {}
    fn wake(&mut self, _: WorkerId) {}
    fn log(&mut self, _: usize, _: &[u8]) {}
}
