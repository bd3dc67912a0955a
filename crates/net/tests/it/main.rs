//! The drivers over real sockets.

mod datagrams;
mod epoll;

use spangate_net::{Addr, Connect, Labels, TcpOptions};

/// A connection to a server, with no options.
fn plain_connect<'a>(to: &'a Addr, tcp: &'a TcpOptions) -> Connect<'a> {
    Connect {
        to,
        from: None,
        is_foreign: false,
        fast_open: false,
        interface: None,
        keepalive: None,
        tcp,
        labels: Labels::default(),
    }
}
