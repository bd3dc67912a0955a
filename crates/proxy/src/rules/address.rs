//! `set-src`, `set-src-port`, `set-dst`, `set-dst-port` (manual §4.4), for a connection, a session,
//! or one stream.

use std::net::SocketAddr;

use config::model::AddressPart;
use net::Addr;
use sample::{Expr, Value};

use super::Cx;
use crate::stream::Stream;

impl Cx<'_> {
    /// Sets an address before any stream. `connection`: replaces the address of the connection
    /// itself; otherwise the connection keeps its address, and only the session has the new one.
    pub(super) fn set_address(&mut self, part: AddressPart, expr: &Expr, connection: bool) {
        let addr = self.eval().with_session(|scope| {
            let value = expr.eval(scope)?;
            changed(part, value, &scope.session.src, &scope.session.dst)
        });
        let Some(addr) = addr else { return };
        let session = &mut *self.scene.eval.session;
        let (place, original) = if is_source(part) {
            (&mut session.src, &mut session.connection_src)
        } else {
            (&mut session.dst, &mut session.connection_dst)
        };
        let old = std::mem::replace(place, addr);
        if !connection {
            original.get_or_insert_with(|| Box::new(old));
        }
    }

    /// Sets an address by a rule of a stream, for that stream only.
    pub(super) fn set_stream_address(
        &mut self,
        stream: &mut Stream,
        part: AddressPart,
        expr: &Expr,
    ) {
        let addr = self.eval().with_scope(stream, true, |scope| {
            let value = expr.eval(scope)?;
            changed(part, value, scope.src(), scope.dst())
        });
        match (addr, is_source(part)) {
            (Some(addr), true) => stream.txn.src = Some(addr),
            (Some(addr), false) => stream.txn.dst = Some(addr),
            (None, _) => {}
        }
    }
}

fn is_source(part: AddressPart) -> bool {
    matches!(part, AddressPart::SourceIp | AddressPart::SourcePort)
}

/// The address with this part replaced by a rule's value; none if the value does not fit that part.
fn changed(part: AddressPart, value: Value<'_>, src: &Addr, dst: &Addr) -> Option<Addr> {
    let addr = if is_source(part) { src } else { dst };
    let (ip, port) = match part {
        AddressPart::SourceIp | AddressPart::DestinationIp => (value.into_ip()?, addr.port()),
        AddressPart::SourcePort | AddressPart::DestinationPort => {
            (addr.ip()?, u16::try_from(value.into_int()?).ok()?)
        }
    };
    Some(Addr::Inet(SocketAddr::new(ip, port)))
}
