//! The receiver `otlp`: its servers.

use super::{Protocol, Socket, StartReceiver};
use crate::config::components::receivers::otlp::OtlpReceiver;

impl StartReceiver for OtlpReceiver {
    fn sockets(&self) -> Vec<Socket> {
        let http = self.http.clone().map(Box::new).map(Protocol::Http);
        let http = http.map(|protocol| Socket::listen("http", protocol));
        let grpc = Socket::grpc(self.grpc.as_ref(), Protocol::Grpc);
        grpc.into_iter().chain(http).collect()
    }
}
