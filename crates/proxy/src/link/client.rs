//! What a connection is to a client's side.

use config::model::Proto;
use net::Now;
use sample::{HelloFacts, Session};

use crate::ids::{BindId, LinkId, ProxyId};

/// A client's connection.
#[derive(Debug)]
pub(crate) struct Client {
    pub session: Session,
    pub bind: BindId,
    pub stage: Stage,
    /// What is kept of its hello until its TLS session stands.
    pub hello: Option<Box<HelloFacts>>,
    /// Streams so far.
    pub streams: u32,
    /// Its streams are HTTP: by the frontend's mode, or since one of them was upgraded.
    pub is_http: bool,
    /// The protocol that its line or the rule that upgraded it demands: none is found out.
    pub proto: Option<Proto>,
    /// Idle server connections that only this client may use again (`http-reuse never`, PROXY protocol), the last used one last. At
    /// most `max-session-srv-conns`.
    pub kept: Vec<LinkId>,
    /// Closing, it is read until it has seen our end.
    pub lingers: bool,
    /// When the first byte of the request came whose head is awaited.
    pub request_began: Option<Now>,
    /// When the last stream ended: what `%Ti` and the keep-alive timeout count from.
    pub idle_since: Now,
}

impl Client {
    pub fn frontend(&self) -> ProxyId {
        self.bind.frontend
    }
}

/// How far a client's connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The PROXY protocol header is awaited.
    ProxyHeader,
    /// The TLS handshake is awaited.
    Handshake,
    /// `tcp-request session` rules are due.
    Session,
    /// Streams begin as bytes come.
    Ready,
    /// Its last bytes leave, or it has yet to see our end; then it closes.
    Closing,
}
