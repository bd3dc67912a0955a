//! The receiver `zipkin`: its server.

use super::{Format, Socket, StartReceiver};
use crate::config::components::receivers::zipkin::ZipkinReceiver;

impl StartReceiver for ZipkinReceiver {
    fn sockets(&self) -> Vec<Socket> {
        let parse_tags = self.parse_string_tags;
        let format = Format::Zipkin { parse_tags };
        vec![Socket::spans("http", &self.server, format)]
    }
}
