//! The addresses of a server connection that depend on the client: the destination where the
//! server's line has no address or port of its own, and the source with `usesrc` (manual §4.2
//! source, §5 server).

use std::net::{IpAddr, SocketAddr};

use config::model::{ForeignSource, ServerAddress, Source};
use net::{Addr, Driver};

use super::Cx;
use crate::ids::ServerId;
use crate::stream::Stream;

/// The addresses of a connection that depend on its client. None means that the configuration
/// decides.
#[derive(Debug, Default)]
pub(super) struct Ends {
    /// The destination.
    pub to: Option<Addr>,
    /// The source; it need not be an address of this machine.
    pub from: Option<Addr>,
}

impl Ends {
    /// The pool name of such a connection. Requests with other addresses have other names. `rest`
    /// is the name without the addresses.
    pub fn name(&self, rest: &[u8]) -> Vec<u8> {
        let mut name = Vec::new();
        for end in [&self.to, &self.from] {
            append(end.as_ref(), &mut name);
        }
        name.extend_from_slice(rest);
        name
    }
}

/// Appends an address in a form that marks its own end.
fn append(addr: Option<&Addr>, out: &mut Vec<u8>) {
    let Some(Addr::Inet(addr)) = addr else {
        return out.push(0);
    };
    match addr.ip() {
        IpAddr::V4(ip) => {
            out.push(4);
            out.extend_from_slice(&ip.octets());
        }
        IpAddr::V6(ip) => {
            out.push(6);
            out.extend_from_slice(&ip.octets());
        }
    }
    out.extend_from_slice(&addr.port().to_be_bytes());
}

impl<'a, D: Driver> Cx<'a, D> {
    /// The source address settings for connections to a server: `source` of its line, else of its
    /// backend.
    #[inline]
    pub(super) fn source_of(&self, stream: &Stream, server: ServerId) -> Option<&'a Source> {
        let line = self.servers.at(server);
        let backend = self.runtime_config.proxy(stream.backend);
        line.source.as_ref().or(backend.source.as_ref())
    }

    /// Whether addresses of connections to a server depend on the client.
    #[inline]
    pub(super) fn has_client_ends(&self, stream: &Stream, server: ServerId) -> bool {
        let is_fixed = match &self.servers.at(server).address {
            ServerAddress::Fixed(addr) => !addr.is_unspecified(),
            ServerAddress::PortOffset { .. } => false,
        };
        let source = self.source_of(stream, server);
        !is_fixed || source.is_some_and(|source| source.foreign.is_some())
    }

    /// The addresses of a stream's connection to a server that depend on the client.
    pub(super) fn connect_addresses(&mut self, stream: &mut Stream, server: ServerId) -> Ends {
        let to = self.destination(stream, server);
        let source = self.source_of(stream, server);
        let foreign = source.and_then(|source| source.foreign.as_ref());
        let from = foreign.and_then(|foreign| self.foreign_source(stream, foreign));
        Ends { to, from }
    }

    fn destination(&self, stream: &Stream, server: ServerId) -> Option<Addr> {
        let client = stream.client;
        let session = client.and_then(|client| self.core.links.session(client));
        let asked = session.map(|session| session.dst_of(Some(&stream.txn)));
        // An unspecified address is replaced by the address that the client connected to, if that
        // is an IP address.
        let ip_or_asked = |ip: IpAddr| {
            if ip.is_unspecified() {
                asked.and_then(Addr::ip).unwrap_or(ip)
            } else {
                ip
            }
        };
        let (ip, port) = match &self.servers.at(server).address {
            ServerAddress::Fixed(Addr::Inet(addr)) if addr.ip().is_unspecified() => {
                (ip_or_asked(addr.ip()), addr.port())
            }
            ServerAddress::Fixed(_) => return None,
            ServerAddress::PortOffset { ip, offset } => {
                let port = asked.map_or(0, |addr| i32::from(addr.port()));
                let port = u16::try_from(port + offset).unwrap_or(0);
                (ip_or_asked(*ip), port)
            }
        };
        Some(Addr::Inet(SocketAddr::new(ip, port)))
    }

    fn foreign_source(&mut self, stream: &mut Stream, foreign: &ForeignSource) -> Option<Addr> {
        let client = stream.client;
        let session = client.and_then(|client| self.core.links.session(client));
        let addr = session.map(|session| session.src_of(Some(&stream.txn)));
        let any_port = |ip: IpAddr| Addr::Inet(SocketAddr::new(ip, 0));
        match foreign {
            ForeignSource::Addr(addr) => Some(addr.clone()),
            // A client of a UNIX socket has no address that a server can be shown.
            ForeignSource::Client => addr.filter(|addr| !addr.is_unix()).cloned(),
            ForeignSource::ClientIp => addr.and_then(Addr::ip).map(any_port),
            ForeignSource::Header(expr) => {
                let ip = self.with_eval(stream, |eval, stream| {
                    eval.with_scope(stream, true, |scope| expr.eval(scope)?.into_ip())
                });
                ip.flatten().map(any_port)
            }
        }
    }
}
