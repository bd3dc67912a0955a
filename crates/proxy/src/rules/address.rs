//! `set-src`, `set-src-port`, `set-dst`, `set-dst-port` (manual §4.4): of a connection, of a session, of a stream alone.

use std::net::SocketAddr;

use net::{Addr, ConnId, Driver};
use sample::{Expr, Value};

use crate::engine::{Core, Cx};
use crate::stream::Stream;

impl Core {
    /// `set-src` and its kin before any stream. `connection`: it is the connection's own address from here on; else the
    /// connection keeps it, and the session has another.
    pub(super) fn set_address<D: Driver>(
        &mut self,
        cx: &Cx<'_, D>,
        conn: ConnId,
        expr: &Expr,
        part: Part,
        connection: bool,
    ) {
        let value = self.with_session(cx, conn, |scope| {
            let value = expr.eval(scope)?;
            part.change(value, &scope.session.src, &scope.session.dst)
        });
        let (Some(Some(addr)), Some(client)) = (value, self.conns.client(conn)) else {
            return;
        };
        let session = &mut client.session;
        let (place, original) = if part.is_source() {
            (&mut session.src, &mut session.connection_src)
        } else {
            (&mut session.dst, &mut session.connection_dst)
        };
        let old = std::mem::replace(place, addr);
        if !connection {
            original.get_or_insert(old);
        }
    }

    /// `set-src` and its kin of a stream's rules: for that stream alone. Always true: it cannot fail.
    pub(super) fn set_stream_address<D: Driver>(
        &mut self,
        cx: &Cx<'_, D>,
        stream: &mut Stream,
        expr: &Expr,
        part: Part,
    ) -> bool {
        let value = self.with_scope(cx, stream, true, |scope| {
            let value = expr.eval(scope)?;
            part.change(value, scope.src(), scope.dst())
        });
        match (value.flatten(), part.is_source()) {
            (Some(addr), true) => stream.txn.src = Some(addr),
            (Some(addr), false) => stream.txn.dst = Some(addr),
            (None, _) => {}
        }
        true
    }
}

/// The part of a session's addresses that a rule sets.
#[derive(Clone, Copy)]
pub(super) enum Part {
    SourceIp,
    SourcePort,
    DestinationIp,
    DestinationPort,
}

impl Part {
    fn is_source(self) -> bool {
        matches!(self, Part::SourceIp | Part::SourcePort)
    }

    /// The address with this part replaced by a rule's value; none for a value that is no such part.
    fn change(self, value: Value<'_>, src: &Addr, dst: &Addr) -> Option<Addr> {
        let addr = if self.is_source() { src } else { dst };
        let (ip, port) = match self {
            Part::SourceIp | Part::DestinationIp => (value.into_ip()?, addr.port()),
            Part::SourcePort | Part::DestinationPort => {
                (addr.ip()?, u16::try_from(value.into_int()?).ok()?)
            }
        };
        Some(Addr::Inet(SocketAddr::new(ip, port)))
    }
}
