//! The receiver `jaeger`: its servers and sockets.

use super::{Format, Protocol, Socket, StartReceiver};
use crate::config::components::receivers::jaeger::JaegerReceiver;

impl StartReceiver for JaegerReceiver {
    fn sockets(&self) -> Vec<Socket> {
        let http = self.thrift_http.as_ref();
        let (compact, binary) = (self.thrift_compact.as_ref(), self.thrift_binary.as_ref());
        let sockets = [
            Socket::grpc(self.grpc.as_ref(), Protocol::JaegerGrpc),
            http.map(|server| Socket::spans("thrift_http", server, Format::Jaeger)),
            compact.map(|agent| Socket::datagrams("thrift_compact", agent, true)),
            binary.map(|agent| Socket::datagrams("thrift_binary", agent, false)),
        ];
        sockets.into_iter().flatten().collect()
    }
}
