//! `zipkin`: spans in Zipkin's JSON and protobuf, over HTTP.

use super::{Receiver, ReceiverSettings};
use crate::config::components::id::ComponentId;
use crate::config::components::shared::http::{self, HttpServer};
use crate::config::components::{Entry, Parse, TRACES, name};
use crate::config::options::{Kind, Opt, Section, opt};

/// A receiver of Zipkin's spans.
#[derive(Clone, Debug, PartialEq)]
pub struct ZipkinReceiver {
    /// The server.
    pub server: HttpServer,
    /// Tags that look like numbers and truth values become such.
    pub parse_string_tags: bool,
}

impl ReceiverSettings for ZipkinReceiver {
    fn server_auths(&self) -> Vec<&ComponentId> {
        self.server.auth.iter().collect()
    }
}

#[rustfmt::skip]
const OPTIONS: &[Opt] = &[
    opt("endpoint", Kind::Text, "localhost:9411", "address to listen on"),
    opt("parse_string_tags", Kind::Flag, "false", "tags that look like numbers and truth values become such"),
];

pub(crate) const ENTRY: Entry = Entry {
    names: &[name("zipkin")],
    doc: "Zipkin's JSON (versions 1 and 2) and protobuf over HTTP; version 1 in Thrift is answered with 415",
    takes: TRACES,
    carries: TRACES,
    options: &[OPTIONS, http::SERVER],
    parse: Parse::Receiver(parse),
};

fn parse(section: &Section<'_>) -> Receiver {
    Receiver::new(ZipkinReceiver {
        server: http::server(section),
        parse_string_tags: section.flag("parse_string_tags"),
    })
}
