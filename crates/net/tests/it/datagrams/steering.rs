//! Which socket of a port gets a packet.

use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use spangate_net::listen::DatagramOptions;
use spangate_net::sys::{Epoll, Events, steer_by_id};

use super::{datagram, loopbacks, open, plain};

/// Sockets of one port.
const SOCKETS: usize = 5;
/// The byte of an id that selects the socket.
const PLACE: u8 = 2;
/// The first byte of a packet with a short header, and those of some long ones.
const SHORT: u8 = 0x40;
const INITIAL: u8 = 0xc0;
const HANDSHAKE: u8 = 0xe0;

fn short(id: [u8; 8]) -> Vec<u8> {
    let mut packet = vec![SHORT];
    packet.extend(id);
    packet
}

fn long(first: u8, id: &[u8]) -> Vec<u8> {
    let mut packet = vec![first, 0, 0, 0, 1, id.len() as u8];
    packet.extend(id);
    packet
}

fn group(addr: std::net::SocketAddr) -> Vec<UdpSocket> {
    let mut at = addr;
    let mut sockets = Vec::new();
    for _ in 0..SOCKETS {
        let (fd, local) = open(at, &DatagramOptions::default());
        at = local;
        let socket = UdpSocket::from(fd);
        socket.set_nonblocking(false).expect("a flag");
        socket
            .set_read_timeout(Some(super::DEADLINE))
            .expect("a deadline");
        sockets.push(socket);
    }
    sockets
}

/// The socket that gets a datagram.
fn reached(sockets: &[UdpSocket], packet: &[u8]) -> usize {
    let epoll = Epoll::new().expect("an instance");
    for (place, socket) in sockets.iter().enumerate() {
        let fd = socket.as_raw_fd();
        let added = epoll.add(fd, libc::EPOLLIN as u32, place as u64);
        added.expect("it is registered");
    }
    let mut events = Events::with_capacity(sockets.len());
    let count = epoll.wait(&mut events, super::DEADLINE.as_millis() as i32);
    assert_eq!(count.expect("it waits"), 1, "one of them has it");
    let place = events.get(0).token as usize;
    assert_eq!(datagram(&sockets[place]).0, packet);
    place
}

#[test]
fn a_byte_of_the_id_selects_the_socket() {
    for addr in loopbacks() {
        let sockets = group(addr);
        let to = sockets[0].local_addr().expect("an address");
        steer_by_id(sockets[0].as_raw_fd(), PLACE, SOCKETS as u32).expect("a filter");
        for byte in [0, 1, 2, 3, 4, 5, 17, 127, 128, 254, 255] {
            let id = [9, 8, byte, 7, 6, 5, 4, 3];
            // Of any client.
            let client = plain(addr);
            for packet in [
                short(id),
                short(id)[..4].to_vec(),
                long(HANDSHAKE, &id),
                long(HANDSHAKE, &id[..3]),
                long(HANDSHAKE | 0xf, &id),
                long(HANDSHAKE & !0x40, &id),
            ] {
                client.send_to(&packet, to).expect("it is sent");
                let place = reached(&sockets, &packet);
                assert_eq!(place, usize::from(byte) % SOCKETS, "{packet:02x?}");
            }
        }
    }
}

/// The client has chosen the id of an Initial packet: its addresses select the socket, as they do
/// for what is too short to have the byte.
#[test]
fn all_other_packets_go_where_their_addresses_send_them() {
    for addr in loopbacks() {
        let sockets = group(addr);
        let to = sockets[0].local_addr().expect("an address");
        steer_by_id(sockets[0].as_raw_fd(), PLACE, SOCKETS as u32).expect("a filter");
        let mut places = std::collections::BTreeSet::new();
        for _ in 0..40 {
            let client = plain(addr);
            let initial = long(INITIAL, &[0; 8]);
            client.send_to(&initial, to).expect("it is sent");
            let place = reached(&sockets, &initial);
            places.insert(place);
            for packet in [
                long(INITIAL, &[1, 2, 3, 4]),
                long(0xd0, &[3; 8]),
                long(0xf0, &[4; 8]),
                long(HANDSHAKE, &[5; 2]),
                // The id is shorter than the packet.
                [long(HANDSHAKE, &[6; 2]), vec![6; 9]].concat(),
                short([7; 8])[..3].to_vec(),
                vec![SHORT],
                vec![HANDSHAKE],
            ] {
                client.send_to(&packet, to).expect("it is sent");
                assert_eq!(reached(&sockets, &packet), place, "{packet:02x?}");
            }
        }
        assert!(places.len() > 1, "{places:?}");
    }
}

#[test]
fn a_filter_that_selects_nothing_is_refused() {
    let (fd, at) = open(([127, 0, 0, 1], 0).into(), &DatagramOptions::default());
    let _second = open(at, &DatagramOptions::default());
    for (place, sockets) in [(0, 0), (20, 4)] {
        let error = steer_by_id(fd.as_raw_fd(), place, sockets).expect_err("no such filter");
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    }
    steer_by_id(fd.as_raw_fd(), 19, 1).expect("a filter");
}
