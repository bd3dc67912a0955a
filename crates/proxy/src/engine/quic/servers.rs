//! QUIC connections to servers: their beginning, and what becomes of it.

use std::sync::Arc;

use net::{Close, Driver, SockId};
use sample::{ConnError, TlsFacts};

use super::super::Turn;
use super::super::secure::failed_facts;
use super::{Place, server_sock};
use crate::ids::{ConnId, Owner, QuicUser};
use crate::link::{Dial, QuicLink};
use crate::phases::account::TlsEnd;
use crate::shared::Pace;
use crate::stream::Early;

/// How often in a row the network may report that nobody receives what is sent on an established
/// connection. Packets that are not acknowledged are sent again soon, so a server that is away is
/// noticed within some round trips.
const REFUSALS_MAX: u32 = 3;

impl<D: Driver> Turn<'_, D> {
    /// Begins a connection whose socket is open.
    pub(super) fn dial(&mut self, dial: Dial) {
        let conn = dial.conn;
        // The stream may have ended meanwhile.
        if self.cx.core.links.get(conn).is_none() {
            return self.cx.io.close_datagrams(dial.sock);
        }
        let now = self.cx.now();
        let mut quics = self.take_quics();
        let begun = quics
            .endpoint
            .connect(now.mono_ns, &dial.client, dial.tls, dial.to);
        let is_begun = begun.is_ok();
        if let Ok(connection) = begun {
            let handle = connection.handle().0;
            let timer = self.cx.core.timers.add(Owner::Quic(handle as u32));
            let user = QuicUser::Backend(dial.backend);
            let quic = QuicLink::new(connection, dial.sock.into(), user, timer, dial.place);
            quics.add(handle, conn);
            if let Some(link) = self.cx.core.links.get_mut(conn) {
                link.quic = Some(quic);
            }
            self.cx.core.links.touch(conn);
        }
        self.state.quics = Some(quics);
        if is_begun {
            self.begin_early(conn);
        } else {
            self.cx.io.close_datagrams(dial.sock);
            self.server_refused(conn, ConnError::TlsHandshake);
        }
    }

    /// Sends the request that waits for a connection as early data, where that is possible (RFC 9001
    /// §4.6). The connection is not shared before the handshake is complete: other requests may not
    /// be repeated.
    fn begin_early(&mut self, conn: ConnId) {
        let quic = self.cx.core.links.quic(conn);
        if !quic.is_some_and(|quic| quic.connection.sends_early()) {
            return;
        }
        let Some(stream) = self.begin_multiplexing(conn) else {
            return;
        };
        // The codec learns how many streams the server permits.
        self.look_at(conn);
        self.with_stream(stream, |cx, stream| cx.send_early(stream));
    }

    /// The server has not read the early data: the stream sends its request after the handshake.
    pub(super) fn early_data_refused(&mut self, conn: ConnId) {
        let core = &mut *self.cx.core;
        let told = core.links.server_begins_again(conn, &mut core.timers);
        if let (Some(told), Some(server)) = (told, core.links.server(conn)) {
            core.tell_mux_end(server.server.backend, &told);
        }
        if let Some(stream) = core.links.stream(conn) {
            self.with_stream(stream, |_, stream| {
                stream.server.set_link(conn.only_exchange());
                stream.route.early = Early::No;
            });
        }
    }

    /// The handshake with a server is complete.
    pub(super) fn quic_to_server_stands(&mut self, conn: ConnId, facts: TlsFacts) {
        self.cx.accounts().tell_tls(conn, TlsEnd::Done);
        if facts.resumed {
            self.cx.accounts().tell_tls(conn, TlsEnd::Resumed);
        } else {
            self.cx.mark(Pace::TlsServerKeys);
        }
        if let Some(server) = self.cx.core.links.server_mut(conn) {
            server.tls = Some(Arc::new(facts));
        }
        if self.cx.core.links.multiplexes(conn) {
            self.multiplexed_server_stands(conn);
        } else {
            self.server_multiplexes(conn);
        }
    }

    /// A connection to a server is lost, or its handshake has failed.
    pub(super) fn quic_to_server_lost(&mut self, conn: ConnId) {
        let links = &self.cx.core.links;
        if links.server(conn).is_none_or(|server| !server.connecting) {
            return self.closed(conn, Close::Reset);
        }
        self.cx.accounts().tell_tls(conn, TlsEnd::Failed);
        let failure = self.cx.core.links.quic(conn);
        let failure = failure.and_then(|quic| quic.connection.agreed().failure);
        if let Some(server) = self.cx.core.links.server_mut(conn) {
            server.tls = Some(Arc::new(failed_facts(None, failure.as_ref())));
        }
        let is_name = failure.is_some_and(|failure| failure.kind == tls::FailureKind::Name);
        let why = if is_name {
            ConnError::TlsName
        } else {
            ConnError::TlsHandshake
        };
        self.server_refused(conn, why);
    }

    /// The network reports that nobody receives what is sent to a server. An established connection
    /// is left after [`REFUSALS_MAX`] reports without a datagram of the server in between: a single
    /// report may be forged.
    pub(in crate::engine) fn server_unreachable(&mut self, sock: SockId) {
        let Some(quics) = &self.state.quics else {
            return;
        };
        let links = &self.cx.core.links;
        let mut connections = quics.places.values().filter_map(|place| match place {
            Place::Link(conn) => Some(*conn),
            Place::Leaving(..) => None,
        });
        let conn = connections.find(|conn| {
            let is_there = |quic: &QuicLink| server_sock(quic) == Some(sock);
            links.quic(*conn).is_some_and(is_there)
        });
        let Some(conn) = conn else {
            return;
        };
        let server = links.server(conn);
        let connects = server.is_some_and(|server| server.connecting);
        let Some(quic) = self.cx.core.links.quic_mut(conn) else {
            return;
        };
        if connects {
            self.closed(conn, Close::Refused);
        } else if quic.refused() >= REFUSALS_MAX {
            quic.end();
            self.closed(conn, Close::Reset);
        }
    }
}
