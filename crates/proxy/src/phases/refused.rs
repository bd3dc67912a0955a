//! Keeps messages that violate the protocol, for `show errors`.

use http::h1::ParseError;
use net::Driver;

use super::Cx;
use crate::link::Rules;
use crate::shared::{How, Message};
use crate::stream::Stream;

impl<D: Driver> Cx<'_, D> {
    /// Keeps a request that violates a rule. `how`: the rules for reading it, and whether the bytes
    /// begin with its head.
    #[cold]
    pub fn note_refused_request(
        &self,
        stream: &Stream,
        what: (&[u8], ParseError),
        how: (Rules, bool),
    ) {
        let message = self.refused_message(stream, what, how);
        self.core.ambient.shared.note_refused_request(&message);
    }

    /// Keeps a response in the same way.
    #[cold]
    pub fn note_refused_response(
        &self,
        stream: &Stream,
        what: (&[u8], ParseError),
        how: (Rules, bool),
    ) {
        let message = self.refused_message(stream, what, how);
        self.core.ambient.shared.note_refused_response(&message);
    }

    fn refused_message<'a>(
        &'a self,
        stream: &'a Stream,
        (bytes, error): (&'a [u8], ParseError),
        (rules, has_head): (Rules, bool),
    ) -> Message<'a> {
        let session = stream.client.and_then(|link| self.core.links.session(link));
        Message {
            at: self.now(),
            frontend: stream.frontend,
            backend: stream.txn.backend.map(|_| stream.backend),
            server: stream.route.target,
            client: session.map(|session| session.src_of(Some(&stream.txn))),
            error,
            bytes,
            how: How {
                limits: rules.limits,
                strictness: rules.strictness,
                has_head,
            },
        }
    }
}
