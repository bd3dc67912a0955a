//! The sockets of receivers.

use std::sync::Arc;

use super::{Entrance, Format, Intake, Listening, Opening, Protocol, listen, udp};
use crate::config::components::receivers::jaeger::Agent;
use crate::config::components::shared::grpc::GrpcServer;
use crate::config::components::shared::http::HttpServer;
use crate::run::Log;

/// A socket that a receiver listens on.
pub struct Socket {
    /// The name of its protocol in the settings.
    pub name: &'static str,
    kind: Kind,
}

enum Kind {
    Listen(Protocol),
    /// UDP.
    Datagrams {
        agent: Agent,
        is_compact: bool,
    },
}

impl Socket {
    /// TCP or a Unix socket.
    pub(super) fn listen(name: &'static str, protocol: Protocol) -> Socket {
        let kind = Kind::Listen(protocol);
        Socket { name, kind }
    }

    /// gRPC, in a protocol.
    pub(super) fn grpc(
        server: Option<&GrpcServer>,
        protocol: fn(Box<GrpcServer>) -> Protocol,
    ) -> Option<Socket> {
        let server = Box::new(server?.clone());
        Some(Socket::listen("grpc", protocol(server)))
    }

    /// HTTP, with spans in a format.
    pub(super) fn spans(name: &'static str, server: &HttpServer, format: Format) -> Socket {
        Socket::listen(name, Protocol::Spans(Box::new(server.clone()), format))
    }

    /// Datagrams of Thrift, in the compact protocol or the binary one.
    pub(super) fn datagrams(name: &'static str, agent: &Agent, is_compact: bool) -> Socket {
        let agent = agent.clone();
        let kind = Kind::Datagrams { agent, is_compact };
        Socket { name, kind }
    }

    /// As the Collector's metrics call it.
    fn transport(&self) -> &'static str {
        match self.kind {
            Kind::Listen(Protocol::Grpc(_) | Protocol::JaegerGrpc(_)) => "grpc",
            Kind::Listen(_) => "http",
            Kind::Datagrams { .. } => "udp",
        }
    }

    /// Opens it for the receiver with this id, and serves it. Returns the counters of what comes in,
    /// too.
    ///
    /// # Errors
    /// Why it cannot be opened.
    pub(in crate::run) fn open(
        self,
        id: &str,
        intake: &Arc<Intake>,
        opening: Opening<'_>,
        log: &Log,
    ) -> Result<(Arc<Entrance>, Listening), String> {
        let entrance = Arc::new(Entrance::new(id, self.transport(), log));
        let intake = Arc::new(intake.by(&entrance));
        let listening = match self.kind {
            Kind::Listen(protocol) => listen(protocol, intake, opening),
            Kind::Datagrams { agent, is_compact } => {
                udp::listen(&agent, is_compact, intake, opening)
            }
        };
        Ok((entrance, listening?))
    }
}
