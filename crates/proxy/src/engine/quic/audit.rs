//! Invariants of the QUIC connections between entry points. Tests check them after every event.

use net::DatagramSock;

use super::super::Engine;
use super::super::audit::require;
use super::{Place, Quics};
use crate::ids::ConnId;
use crate::link::{Link, QuicLink, Role};

impl Engine {
    /// Checks the QUIC connections of the worker.
    ///
    /// # Errors
    /// The first violated invariant.
    pub(in crate::engine) fn audit_quics(&self) -> Result<(), String> {
        let mut handshakes = 0;
        let quics = self.state.quics.as_deref();
        for (id, link) in self.core.links.iter() {
            if let Some(quic) = &link.quic {
                handshakes += usize::from(is_in_handshake(quic));
                audit_link(quics, ConnId::of(id), link, quic)?;
            }
        }
        let ended = self.core.links.leaving();
        handshakes += ended.iter().filter(|quic| is_in_handshake(quic)).count();
        self.core.links.audit_touched()?;
        match quics {
            Some(quics) => self.audit_endpoint(quics, handshakes),
            None => require(handshakes == 0 && ended.is_empty(), || {
                "connections of QUIC without an endpoint".into()
            }),
        }
    }

    fn audit_endpoint(&self, quics: &Quics, handshakes: usize) -> Result<(), String> {
        require(quics.handshakes == handshakes, || {
            format!("{handshakes} handshakes, {} counted", quics.handshakes)
        })?;
        let (places, known) = (quics.places.len(), quics.endpoint.connections());
        require(places == known, || {
            format!("{places} places of QUIC, {known} connections")
        })?;
        let scratch = quics.arrivals.is_empty() && quics.records.is_empty();
        require(scratch, || "arrivals or records were left over".into())?;
        let ended = self.core.links.leaving();
        for (handle, place) in &quics.places {
            let is_right = match place {
                Place::Link(conn) => {
                    let quic = self.core.links.quic(*conn);
                    let is_own = |quic: &QuicLink| quic.connection.handle().0 == *handle;
                    quic.is_some_and(is_own) || ended.iter().any(|quic| is_own(quic))
                }
                Place::Leaving(quic, _) => quic.connection.handle().0 == *handle,
            };
            require(is_right, || format!("{place:?} is not that of {handle}"))?;
        }
        Ok(())
    }
}

/// A client's handshake is under way.
fn is_in_handshake(quic: &QuicLink) -> bool {
    matches!(quic.sock, DatagramSock::Listener(_)) && !quic.is_established
}

fn audit_link(
    quics: Option<&Quics>,
    conn: ConnId,
    link: &Link,
    quic: &QuicLink,
) -> Result<(), String> {
    let is_conn = !matches!(link.role, Role::Stream(_));
    require(is_conn, || format!("a stream has a connection: {link:?}"))?;
    let handle = quic.connection.handle().0;
    let place = quics.and_then(|quics| quics.places.get(&handle));
    let is_known = match place {
        Some(Place::Link(other)) => *other == conn || quic.connection.is_drained(),
        Some(Place::Leaving(..)) | None => quic.connection.is_drained(),
    };
    require(is_known, || format!("{conn:?} is at {place:?}: {quic:?}"))
}
