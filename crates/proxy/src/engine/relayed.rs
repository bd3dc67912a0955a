//! Datagrams of QUIC that a later process has received, for the workers that have their connections.

use std::net::SocketAddr;

use net::relay::RelayedDatagrams;
use net::{ListenerId, WorkerId};

use super::Generation;
use crate::shared::Forwarded;

impl Generation {
    /// The listeners with the sockets of an address.
    pub fn quic_listeners(&self, address: SocketAddr) -> impl Iterator<Item = ListenerId> {
        let config = &self.runtime_config;
        let listeners = config.listeners.iter().enumerate();
        let of_address =
            listeners.filter(move |(_, bind)| config.quic_address(**bind) == Some(address));
        of_address.map(|(listener, _)| ListenerId(listener as u32))
    }

    /// Hands datagrams on. Those of nobody are lost.
    pub fn hand_on(&self, run: &RelayedDatagrams<'_>, mut wake: impl FnMut(WorkerId)) {
        let Some(listener) = self.quic_listeners(run.listener).next() else {
            return;
        };
        let workers = self.shared.workers().count();
        for packet in run.bytes.chunks(run.segment) {
            let owner = quic::owner_of(packet);
            let is_ours = |owner: &quic::Owner| {
                owner.process == self.runtime_config.process.number
                    && usize::from(owner.worker) < workers
            };
            let Some(owner) = owner.filter(is_ours) else {
                continue;
            };
            let datagram = Box::new(Forwarded {
                listener,
                peer: run.peer,
                local: run.local,
                ecn: run.ecn,
                bytes: packet.into(),
            });
            let worker = WorkerId(owner.worker.into());
            self.shared.post_datagram(worker, datagram, &mut wake);
        }
    }
}
