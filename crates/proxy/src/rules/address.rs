//! `set-src`, `set-src-port`, `set-dst`, `set-dst-port` (manual §4.4): of a connection, of a session, of a stream alone.

use std::net::SocketAddr;

use config::model::AddressPart;
use net::Addr;
use sample::{Expr, Value};

use super::Cx;
use crate::stream::Stream;

impl Cx<'_> {
    /// `set-src` and its kin before any stream. `connection`: it is the connection's own address from here on; else the
    /// connection keeps it, and the session has another.
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
            original.get_or_insert(old);
        }
    }

    /// `set-src` and its kin of a stream's rules: for that stream alone.
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

/// The address with this part replaced by a rule's value; none for a value that is no such part.
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
