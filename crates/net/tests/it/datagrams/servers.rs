//! Datagram sockets to servers.

use super::*;
use crate::plain_connect;
use spangate_net::{ConnectError, TcpOptions};

/// Has the worker open a socket to a server.
fn connect(serving: &Serving, to: SocketAddr) -> Result<SockId, ConnectError> {
    let (to, tcp) = (Addr::Inet(to), TcpOptions::default());
    serving.order(move |driver| driver.connect_datagrams(&plain_connect(&to, &tcp)))
}

fn send(serving: &Serving, sock: SockId, to: SocketAddr, bytes: &'static [u8]) {
    serving.order(move |driver| driver.send_datagrams(sock.into(), outgoing(to, None, bytes)));
}

#[test]
fn a_server_is_asked_and_answers() {
    for addr in loopbacks() {
        let serving = Serving::at(addr);
        let server = plain(addr);
        let stranger = plain(addr);
        let to = server.local_addr().expect("an address");
        let sock = connect(&serving, to).expect("a socket");
        send(&serving, sock, to, b"question");
        let (bytes, from) = datagram(&server);
        assert_eq!(bytes, b"question");
        assert_ne!(from, serving.to);
        // Nobody else reaches the socket.
        stranger.send_to(b"forged", from).expect("it was sent");
        server.send_to(b"answer", from).expect("it was sent");
        let got = serving.got();
        assert_eq!(got.bytes, b"answer");
        assert_eq!(got.sock, DatagramSock::Server(sock));
        assert_eq!(got.peer, to);
    }
}

#[test]
fn a_closed_socket_sends_what_it_was_given() {
    for addr in loopbacks() {
        let serving = Serving::at(addr);
        let server = plain(addr);
        let to = server.local_addr().expect("an address");
        let sock = connect(&serving, to).expect("a socket");
        serving.order(move |driver| {
            driver.send_datagrams(sock.into(), outgoing(to, None, b"goodbye"));
            driver.close_datagrams(sock);
        });
        assert_eq!(datagram(&server).0, b"goodbye");
        send(&serving, sock, to, b"too late");
        // The place is used again, by a socket with another name.
        let next = connect(&serving, to).expect("a socket");
        assert_eq!(next.slot, sock.slot);
        assert_ne!(next, sock);
        send(&serving, sock, to, b"too late");
        send(&serving, next, to, b"next");
        assert_eq!(datagram(&server).0, b"next");
    }
}

#[test]
fn a_server_that_is_away_is_reported() {
    for addr in loopbacks() {
        let serving = Serving::at(addr);
        let to = plain(addr).local_addr().expect("an address");
        let sock = connect(&serving, to).expect("a socket");
        send(&serving, sock, to, b"question");
        let refused = serving.refused.recv_timeout(DEADLINE);
        assert_eq!(refused, Ok(sock));
        // Two at once: the kernel reports the first with the second.
        serving.order(move |driver| {
            driver.send_datagrams(sock.into(), outgoing(to, None, b"longer"));
            driver.send_datagrams(sock.into(), outgoing(to, None, b"short"));
        });
        let refused = serving.refused.recv_timeout(DEADLINE);
        assert_eq!(refused, Ok(sock));
    }
}
