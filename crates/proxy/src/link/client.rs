//! The state of a connection on the client's side.

use config::model::Proto;
use net::Now;
use sample::{HelloFacts, Session};

use super::mux::h1::Linger;
use crate::ids::{BindId, ConnId, ProxyId};

/// A client's connection.
#[derive(Debug)]
pub(crate) struct Client {
    pub session: Session,
    pub bind: BindId,
    pub stage: Stage,
    /// The part of the TLS hello that is kept until the session is established.
    pub hello: Option<Box<HelloFacts>>,
    /// The number of streams so far.
    pub streams: u32,
    /// Its streams are HTTP: by the frontend's mode, or after one of them was upgraded.
    pub is_http: bool,
    /// The protocol that its bind line, or the rule that upgraded it, prescribes; it is not
    /// detected then.
    pub proto: Option<Proto>,
    /// Idle server connections that only this client may reuse (`http-reuse never`, PROXY
    /// protocol), the most recently used last. At most `max-session-srv-conns`.
    pub kept: Vec<ConnId>,
    /// While closing, discard input until the client acknowledges our FIN.
    pub linger: Linger,
    /// When the first byte of the current request head came.
    pub request_began: Option<Now>,
    /// When the last stream ended: the start of `%Ti` and of the keep-alive timeout.
    pub idle_since: Now,
    /// The rounds, after the client has ended its side, in which a connection to a server was not
    /// established yet.
    pub rounds_after_end: u8,
    /// An earlier configuration, by its number, that its streams follow: a reload in place has
    /// removed or changed the line that accepted the connection. It ends with its next response.
    pub follows: Option<u32>,
}

impl Client {
    pub fn frontend(&self) -> ProxyId {
        self.bind.frontend
    }
}

/// The stage of a client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Waits for the PROXY protocol header.
    ProxyHeader,
    /// Waits for the TLS handshake.
    Handshake,
    /// `tcp-request session` rules are due.
    Session,
    /// Each request begins a stream.
    Ready,
    /// Sends its last bytes, or waits until the client acknowledges our FIN; then it closes.
    Closing,
}
