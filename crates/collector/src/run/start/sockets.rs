//! What receivers open.

use std::sync::Arc;

use super::StartError;
use crate::config::components::receivers::jaeger::Agent;
use crate::config::{Component, Receiver};
use crate::run::Log;
use crate::run::receive::{
    Entrance, Format, Intake, Listening, Opening, Protocol, listen, listen_udp,
};

/// Opens the sockets of a receiver, by its id and their protocols. What counts what comes in is
/// added to `entrances`.
pub(super) fn open(
    component: &Component<Receiver>,
    intake: &Arc<Intake>,
    opening: Opening<'_>,
    (entrances, log): (&mut Vec<Arc<Entrance>>, &Log),
) -> Result<Vec<(String, Listening)>, StartError> {
    let Component { id, place, .. } = component;
    let mut listening = Vec::new();
    for (name, socket) in sockets(&component.settings) {
        let entrance = Arc::new(Entrance::new(&id.to_string(), socket.transport(), log));
        let intake = Arc::new(intake.by(&entrance));
        entrances.push(entrance);
        let opened = match socket {
            Socket::Listen(protocol) => listen(protocol, intake, opening),
            Socket::Agent(agent, is_compact) => listen_udp(agent, is_compact, intake, opening),
        };
        let opened =
            opened.map_err(|why| StartError(format!("{place}: receiver '{id}', {name}: {why}")))?;
        listening.push((format!("{id} {name}"), opened));
    }
    Ok(listening)
}

/// What a receiver opens.
enum Socket<'a> {
    Listen(Protocol),
    /// UDP, in the compact protocol or the binary one.
    Agent(&'a Agent, bool),
}

impl Socket<'_> {
    /// As the Collector's metrics call it.
    fn transport(&self) -> &'static str {
        match self {
            Socket::Listen(Protocol::Grpc(_) | Protocol::JaegerGrpc(_)) => "grpc",
            Socket::Listen(_) => "http",
            Socket::Agent(..) => "udp",
        }
    }
}

/// The sockets of a receiver, by the names of their protocols.
fn sockets(receiver: &Receiver) -> Vec<(&'static str, Socket<'_>)> {
    let listen = |protocol| Some(Socket::Listen(protocol));
    let sockets = match receiver {
        // A receiver of Kafka has connections of its own.
        Receiver::Kafka(_) | Receiver::Nop | Receiver::Proxy => Vec::new(),
        Receiver::Otlp(otlp) => {
            let grpc = otlp.grpc.clone().map(Box::new).map(Protocol::Grpc);
            let http = otlp.http.clone().map(Box::new).map(Protocol::Http);
            vec![
                ("grpc", grpc.and_then(listen)),
                ("http", http.and_then(listen)),
            ]
        }
        Receiver::Zipkin(zipkin) => {
            let parse_tags = zipkin.parse_string_tags;
            let server = Box::new(zipkin.server.clone());
            vec![(
                "http",
                listen(Protocol::Spans(server, Format::Zipkin { parse_tags })),
            )]
        }
        Receiver::Jaeger(jaeger) => {
            let grpc = jaeger.grpc.clone().map(Box::new).map(Protocol::JaegerGrpc);
            let http = jaeger.thrift_http.clone().map(Box::new);
            let http = http.map(|server| Protocol::Spans(server, Format::Jaeger));
            let agent = |agent, is_compact| Socket::Agent(agent, is_compact);
            let (compact, binary) = (&jaeger.thrift_compact, &jaeger.thrift_binary);
            vec![
                ("grpc", grpc.and_then(listen)),
                ("thrift_http", http.and_then(listen)),
                (
                    "thrift_compact",
                    compact.as_ref().map(|one| agent(one, true)),
                ),
                (
                    "thrift_binary",
                    binary.as_ref().map(|one| agent(one, false)),
                ),
            ]
        }
    };
    let open = sockets.into_iter();
    open.filter_map(|(name, socket)| Some((name, socket?)))
        .collect()
}
