//! Datagrams of QUIC that have come: whose they are, and the connections that they belong to.

use net::relay::RelayedDatagrams;
use net::{DatagramSock, Datagrams, Driver, ListenerId, WorkerId};
use quic::{Arrival, Run};
use stats::Column;

use super::super::Turn;
use crate::shared::Forwarded;

/// A connection id has one byte for the number of its worker.
const WORKERS_MASK: u32 = 0xff;

/// Who reads a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PacketPlace {
    Here,
    Worker(WorkerId),
    /// The place of an earlier process in `earlier`.
    Process(usize),
}

impl<D: Driver> Turn<'_, D> {
    /// Reads a run of datagrams. Those of connections of other workers go there: the kernel's
    /// choice depends on the order of the sockets of a port. Those of connections of earlier
    /// processes go to them.
    pub(super) fn read_datagrams(&mut self, datagrams: &Datagrams<'_>) {
        let run = Run {
            peer: datagrams.peer,
            local: datagrams.local,
            ecn: datagrams.ecn,
            segment: datagrams.segment.max(1),
            bytes: datagrams.bytes,
        };
        let DatagramSock::Listener(listener) = datagrams.sock else {
            return self.read_run(datagrams.sock, &run);
        };
        let mut all = run.bytes.chunks(run.segment);
        if all.all(|packet| self.place_of(packet) == PacketPlace::Here) {
            return self.read_run(datagrams.sock, &run);
        }
        for packet in run.bytes.chunks(run.segment) {
            let one = Run {
                bytes: packet,
                ..run
            };
            match self.place_of(packet) {
                PacketPlace::Here => self.read_run(datagrams.sock, &one),
                PacketPlace::Worker(worker) => {
                    let forwarded = Box::new(Forwarded {
                        listener,
                        peer: run.peer,
                        local: run.local,
                        ecn: run.ecn,
                        bytes: packet.into(),
                    });
                    let shared = &self.cx.core.ambient.shared;
                    shared.post_datagram(worker, forwarded, &mut |worker| self.cx.io.wake(worker));
                }
                PacketPlace::Process(place) => self.relay(place, listener, &one),
            }
        }
    }

    /// Sends a datagram to an earlier process.
    fn relay(&self, place: usize, listener: ListenerId, run: &Run<'_>) {
        let config = self.cx.runtime_config;
        if let Some(listener) = config.quic_address(self.bind_of(listener)) {
            config.process.earlier[place].send(&RelayedDatagrams {
                listener,
                peer: run.peer,
                local: run.local,
                ecn: run.ecn,
                segment: run.bytes.len(),
                bytes: run.bytes,
            });
        }
    }

    /// Reads a datagram that another worker has received.
    pub(in crate::engine) fn read_forwarded(&mut self, datagram: &Forwarded) {
        let run = Run {
            peer: datagram.peer,
            local: datagram.local,
            ecn: datagram.ecn,
            segment: datagram.bytes.len(),
            bytes: &datagram.bytes,
        };
        self.read_run(datagram.listener.into(), &run);
    }

    /// Who has the connection of a packet.
    fn place_of(&self, packet: &[u8]) -> PacketPlace {
        let Some(owner) = quic::owner_of(packet) else {
            return PacketPlace::Here;
        };
        let process = &self.cx.runtime_config.process;
        if owner.process != process.number {
            let mut earlier = process.earlier.iter();
            let place = earlier.position(|earlier| earlier.number() == owner.process);
            let place = place.filter(|place| !process.earlier[*place].is_over());
            return place.map_or(PacketPlace::Here, PacketPlace::Process);
        }
        let ambient = &self.cx.core.ambient;
        let worker = WorkerId(owner.worker.into());
        let is_other = worker.0 != ambient.worker.0 & WORKERS_MASK;
        if is_other && (worker.0 as usize) < ambient.shared.workers().count() {
            PacketPlace::Worker(worker)
        } else {
            PacketPlace::Here
        }
    }

    fn read_run(&mut self, sock: DatagramSock, run: &Run<'_>) {
        let now = self.cx.now();
        let quics = match sock {
            DatagramSock::Listener(listener) => self.take_serving_quics(listener),
            DatagramSock::Server(_) => self.state.quics.take(),
        };
        let Some(mut quics) = quics else {
            return;
        };
        let mut arrivals = std::mem::take(&mut quics.arrivals);
        quics.endpoint.receive(now.mono_ns, run, &mut arrivals);
        for arrival in arrivals.drain(..) {
            match (arrival, sock) {
                (Arrival::Connection(handle, datagram), _) => {
                    if quics.is_at(self.cx.core, handle.0, sock) {
                        quics.at(self.cx.core, handle.0, |connection| {
                            connection.feed(now.mono_ns, datagram);
                        });
                    }
                }
                (Arrival::Incoming(incoming), DatagramSock::Listener(listener)) => {
                    self.accept_quic(&mut quics, listener, incoming);
                }
                (Arrival::Reply(reply), DatagramSock::Listener(listener)) => {
                    if reply.is_reset() {
                        self.tell_quic(self.bind_of(listener), Column::QuicStlessRstSent);
                    }
                    self.reply(listener, &reply);
                }
                // A server begins no connections, and learns nothing of ours.
                (Arrival::Incoming(incoming), DatagramSock::Server(_)) => {
                    quics.endpoint.ignore(incoming);
                }
                (Arrival::Reply(_), DatagramSock::Server(_)) => {}
            }
        }
        quics.arrivals = arrivals;
        self.state.quics = Some(quics);
    }
}
