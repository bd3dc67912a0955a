//! QUIC connections for commands (`show quic`).

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::mpsc::SyncSender;

use net::{Addr, DatagramSock, Driver, WorkerId};
use quic::{Parameters, Report, StreamReport};

use super::super::Turn;
use super::Place;
use crate::ids::QuicUser;

/// How many names are looked at for one answer.
const NAMES_MAX: usize = 4_096;
/// After so many streams an answer ends.
const STREAMS_MAX: usize = 4_096;

/// A request for some of a worker's QUIC connections.
#[derive(Clone, Debug)]
pub struct QuicsAsked {
    /// The place to continue from; 0 at first.
    pub from: usize,
    /// The largest number of connections to return.
    pub most: usize,
    /// Whether their streams are wanted.
    pub with_streams: bool,
    /// Whether their transport parameters are wanted.
    pub with_parameters: bool,
    /// Receives the part. The channel must have room: the worker does not wait.
    pub reply: SyncSender<QuicsPart>,
}

/// Some of a worker's QUIC connections.
#[derive(Clone, Debug, Default)]
pub struct QuicsPart {
    /// The connections.
    pub connections: Vec<QuicView>,
    /// The place to continue from; none after the last connection.
    pub next: Option<usize>,
}

/// A snapshot of a QUIC connection.
#[derive(Clone, Debug)]
pub struct QuicView {
    /// Its number. When it has ended, a later connection may get the same.
    pub id: u64,
    /// The worker that has it.
    pub worker: WorkerId,
    /// The place of its frontend or backend in the configuration.
    pub proxy: usize,
    /// It is one to a server.
    pub is_to_server: bool,
    /// Whether it can have requests. One that only waits until its client has everything cannot.
    pub is_used: bool,
    /// The address of this side. Of a listener: the one that the client has connected to.
    pub local: SocketAddr,
    /// The peer's address.
    pub peer: SocketAddr,
    /// What the connection tells of itself.
    pub report: Report,
    /// Its streams, if they were asked for.
    pub streams: Vec<StreamReport>,
    /// The transport parameters of this side and of the client, if they were asked for.
    pub parameters: Option<Box<[Parameters; 2]>>,
}

impl<D: Driver> Turn<'_, D> {
    pub(in crate::engine) fn show_quics(&mut self, asked: &QuicsAsked) {
        let mut part = QuicsPart::default();
        let names_end = self.state.quics.as_ref().map_or(0, |quics| quics.names_end);
        let mut streams = 0;
        for (looked_at, handle) in (asked.from..names_end).enumerate() {
            let is_full = part.connections.len() >= asked.most || streams >= STREAMS_MAX;
            if is_full || looked_at >= NAMES_MAX {
                part.next = Some(handle);
                break;
            }
            let view = self.quic_view(handle, asked);
            streams += view.as_ref().map_or(0, |view| view.streams.len());
            part.connections.extend(view);
        }
        // The receiver may be gone.
        let _ = asked.reply.try_send(part);
    }

    fn quic_view(&mut self, handle: usize, asked: &QuicsAsked) -> Option<QuicView> {
        let (quic, is_used) = match self.state.quics.as_ref()?.places.get(&handle)? {
            Place::Link(conn) => (&*self.cx.core.links.quic_mut(*conn)?, true),
            Place::Leaving(quic, _) => (&**quic, false),
        };
        let connection = &quic.connection;
        let config = self.cx.runtime_config;
        let local = match quic.sock {
            DatagramSock::Listener(listener) => {
                let bind = *config.listeners.get(listener.0 as usize)?;
                let port = config.quic_address(bind).map(|address| address.port());
                let ip = connection.local();
                let ip = ip.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
                SocketAddr::new(ip, port.unwrap_or(0))
            }
            DatagramSock::Server(sock) => match self.cx.io.datagrams_addr(sock) {
                Some(Addr::Inet(local)) => local,
                _ => SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
            },
        };
        let (proxy, is_to_server) = match quic.user {
            QuicUser::Frontend(frontend) => (frontend, false),
            QuicUser::Backend(backend) => (backend, true),
        };
        let worker = self.cx.core.ambient.worker;
        Some(QuicView {
            // Never 0.
            id: (u64::from(worker.0) + 1) << u32::BITS | handle as u64,
            worker,
            proxy: proxy.place(),
            is_to_server,
            is_used,
            local,
            peer: connection.peer(),
            report: connection.report(),
            streams: if asked.with_streams {
                connection.stream_reports()
            } else {
                Vec::new()
            },
            parameters: asked
                .with_parameters
                .then(|| Box::new(connection.parameters())),
        })
    }
}
