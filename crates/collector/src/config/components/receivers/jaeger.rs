//! `jaeger`: spans as Jaeger's clients and agents send them.

use super::{Receiver, ReceiverSettings};
use crate::config::components::id::ComponentId;
use crate::config::components::shared::address;
use crate::config::components::shared::grpc::{self, GrpcServer};
use crate::config::components::shared::http::{self, HttpServer};
use crate::config::components::{Entry, Parse, TRACES, name};
use crate::config::options::{COUNT_MAX, Kind, Opt, Section, opt, required};
use crate::config::source::{Key, Node};

/// `protocols` of the receiver; at least one.
#[derive(Clone, Debug, PartialEq)]
pub struct JaegerReceiver {
    /// `grpc`
    pub grpc: Option<GrpcServer>,
    /// `thrift_http`
    pub thrift_http: Option<HttpServer>,
    /// `thrift_compact`
    pub thrift_compact: Option<Agent>,
    /// `thrift_binary`
    pub thrift_binary: Option<Agent>,
}

impl ReceiverSettings for JaegerReceiver {
    fn server_auths(&self) -> Vec<&ComponentId> {
        let grpc = self.grpc.iter().filter_map(|grpc| grpc.auth.as_ref());
        let http = self.thrift_http.iter();
        let http = http.filter_map(|http| http.auth.as_ref());
        grpc.chain(http).collect()
    }
}

/// A UDP socket, as Jaeger's agent has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// Host or address; empty: every address.
    pub host: String,
    /// 0: any free one.
    pub port: u16,
    /// The largest datagram that is taken.
    pub datagram_bytes_max: usize,
    /// The socket's buffer; 0: the system's default.
    pub socket_buffer_bytes: usize,
}

#[rustfmt::skip]
const GRPC: &[Opt] = &[opt("endpoint", Kind::Text, "localhost:14250", "address to listen on")];
#[rustfmt::skip]
const THRIFT_HTTP: &[Opt] = &[opt("endpoint", Kind::Text, "localhost:14268", "address to listen on")];
#[rustfmt::skip]
const COMPACT: &[Opt] = &[opt("endpoint", Kind::Text, "localhost:6831", "address to listen on")];
#[rustfmt::skip]
const BINARY: &[Opt] = &[opt("endpoint", Kind::Text, "localhost:6832", "address to listen on")];

const QUEUE_REASON: &str = "datagrams are taken as they come: the socket's buffer is their queue";

#[rustfmt::skip]
const AGENT: &[Opt] = &[
    opt("max_packet_size", Kind::Int(1, COUNT_MAX), "65000", "bytes of a datagram; a larger one counts as malformed"),
    opt("socket_buffer_size", Kind::Int(0, i32::MAX as i64), "0", "bytes of the socket's buffer; 0: the system's default"),
    opt("queue_size", Kind::Int(0, COUNT_MAX), "1000", "datagrams that wait").no_effect(QUEUE_REASON),
    opt("workers", Kind::Int(0, COUNT_MAX), "10", "threads that read them").no_effect(QUEUE_REASON),
];
#[rustfmt::skip]
const PROTOCOLS: &[Opt] = &[
    opt("grpc", Kind::Maybe(&[GRPC, grpc::SERVER]), "", "`api_v2.CollectorService` over gRPC; off where it is not written"),
    opt("thrift_http", Kind::Maybe(&[THRIFT_HTTP, http::SERVER]), "", "Thrift (binary) over HTTP, path `/api/traces`; off where it is not written"),
    opt("thrift_compact", Kind::Maybe(&[COMPACT, AGENT]), "", "Thrift (compact) over UDP, which knows no refusal: what finds no room is counted as refused; off where it is not written"),
    opt("thrift_binary", Kind::Maybe(&[BINARY, AGENT]), "", "Thrift (binary) over UDP, the same; off where it is not written"),
];
#[rustfmt::skip]
const OPTIONS: &[Opt] = &[
    required("protocols", Kind::Section(&[PROTOCOLS]), "one of these or more"),
    opt("remote_sampling", Kind::Any, "", "strategies of sampling").refused("the Collector took it out in 0.61, for its extension 'jaegerremotesampling', which is not built in"),
];

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("jaeger")],
    doc: "Jaeger's protobuf over gRPC, and its Thrift over HTTP and UDP",
    takes: TRACES,
    carries: TRACES,
    options: &[OPTIONS],
    parse: Parse::Receiver(parse),
};

fn parse(section: &Section<'_>) -> Receiver {
    let protocols = section.section("protocols");
    let receiver = JaegerReceiver {
        grpc: protocols.maybe("grpc").map(|grpc| grpc::server(&grpc)),
        thrift_http: protocols
            .maybe("thrift_http")
            .map(|http| http::server(&http)),
        thrift_compact: protocols.maybe("thrift_compact").map(|udp| agent(&udp)),
        thrift_binary: protocols.maybe("thrift_binary").map(|udp| agent(&udp)),
    };
    // A protocol that there is not was told as that.
    let known = |(key, _): &(Key, Node)| protocols.knows(&key.text);
    let written = section.written("protocols");
    let is_none = receiver.grpc.is_none()
        && receiver.thrift_http.is_none()
        && receiver.thrift_compact.is_none()
        && receiver.thrift_binary.is_none();
    if is_none && written.is_some_and(|node| node.entries().iter().all(known)) {
        section.error(
            "protocols",
            "must have 'grpc', 'thrift_http', 'thrift_compact' or 'thrift_binary'",
        );
    }
    Receiver::new(receiver)
}

fn agent(section: &Section<'_>) -> Agent {
    let (host, port) = address::endpoint(section);
    Agent {
        host,
        port,
        datagram_bytes_max: section.int("max_packet_size"),
        socket_buffer_bytes: section.int("socket_buffer_size"),
    }
}
