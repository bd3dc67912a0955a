//! Sending.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;

use spangate_net::datagrams::RUN_BYTES_MAX;
use spangate_net::epoll::DATAGRAM_QUEUE_BYTES_MAX;
use spangate_net::listen::DatagramOptions;
use spangate_net::{Driver, Outgoing};

use super::{Serving, UDP, datagram, loopbacks, open, outgoing, plain, receive};

#[test]
fn a_run_arrives_as_single_datagrams() {
    for addr in loopbacks() {
        let serving = Serving::at(addr);
        let client = plain(addr);
        let peer = client.local_addr().expect("an address");
        let bytes: Vec<u8> = (0..1000 * 70 - 1).map(|at| (at / 1000) as u8).collect();
        // More datagrams than the kernel cuts out of one message.
        serving.send(peer, Some(900), &bytes[..RUN_BYTES_MAX]);
        for sent in bytes[..RUN_BYTES_MAX].chunks(900) {
            let (bytes, from) = datagram(&client);
            assert!(bytes == sent);
            assert_eq!(from, serving.to);
        }
        // Single ones of one length, which leave as one message.
        serving.order(move |driver| {
            for at in 0..10_u8 {
                let bytes = vec![at; if at == 9 { 3 } else { 50 }];
                driver.send_datagrams(UDP.into(), outgoing(peer, None, &bytes));
            }
        });
        for at in 0..10_u8 {
            let len = if at == 9 { 3 } else { 50 };
            assert_eq!(datagram(&client).0, vec![at; len]);
        }
        assert_eq!(serving.activity.datagrams().send_errors(), 0);
    }
}

#[test]
fn ecn_field_and_source_are_those_asked_for() {
    for addr in loopbacks() {
        let any = match addr {
            SocketAddr::V4(_) => "0.0.0.0:0",
            SocketAddr::V6(_) => "[::]:0",
        };
        let serving = Serving::at(any.parse().expect("an address"));
        let (client, peer) = open(addr, &DatagramOptions::default());
        let client = UdpSocket::from(client);
        let mut source = addr.ip();
        if addr.is_ipv4() {
            source = [127, 7, 7, 7].into();
        }
        for ecn in 0..4 {
            serving.order(move |driver| {
                let datagrams = Outgoing {
                    source: Some(source),
                    ecn,
                    ..outgoing(peer, None, b"marked")
                };
                driver.send_datagrams(UDP.into(), datagrams);
            });
            let (from, _, got, bytes) = receive(&client);
            assert_eq!(from, SocketAddr::new(source, serving.to.port()));
            assert_eq!((got, &*bytes), (ecn, &b"marked"[..]));
        }
        // A source of the other family is none.
        let other = match addr {
            SocketAddr::V4(_) => "::1",
            SocketAddr::V6(_) => "127.0.0.1",
        };
        let other = other.parse().expect("an address");
        serving.order(move |driver| {
            let datagrams = Outgoing {
                source: Some(other),
                ..outgoing(peer, None, b"any")
            };
            driver.send_datagrams(UDP.into(), datagrams);
        });
        assert_eq!(receive(&client).3, b"any");
    }
}

/// A round takes a bounded number of bytes; once they have left, the engine learns that there is
/// room.
#[test]
fn a_full_queue_has_room_after_the_round() {
    for addr in loopbacks() {
        let serving = Serving::at(addr);
        let (silent, peer) = open(addr, &DatagramOptions::default());
        let taken = serving.order(move |driver| {
            let bytes = vec![0; RUN_BYTES_MAX];
            let mut taken = 0;
            while driver.datagram_room(UDP.into()) {
                driver.send_datagrams(UDP.into(), outgoing(peer, Some(1000), &bytes));
                taken += RUN_BYTES_MAX;
            }
            // It does not wait, and it is counted.
            driver.send_datagrams(UDP.into(), outgoing(peer, Some(1000), &bytes[..1500]));
            assert!(!driver.datagram_room(UDP.into()));
            taken
        });
        assert_eq!(taken, DATAGRAM_QUEUE_BYTES_MAX);
        assert_eq!(serving.room.recv_timeout(super::DEADLINE), Ok(UDP.into()));
        assert!(serving.order(|driver| driver.datagram_room(UDP.into())));
        let counts = serving.activity.datagrams();
        assert_eq!((counts.no_room(), counts.send_errors()), (2, 0));
        // Once for each time that it was full.
        assert!(serving.room.try_recv().is_err());
        drop(silent);
    }
}

#[test]
fn a_peer_that_is_gone_or_cannot_be_reached_harms_no_other() {
    for addr in loopbacks() {
        let serving = Serving::at(addr);
        let gone = {
            let socket = plain(addr);
            socket.local_addr().expect("an address")
        };
        let client = plain(addr);
        let peer = client.local_addr().expect("an address");
        for _ in 0..20 {
            // ICMP says at once that nobody has this port.
            serving.send(gone, Some(100), &[1; 1000]);
            serving.send(peer, None, b"to the other");
            assert_eq!(datagram(&client).0, b"to the other");
            client.send_to(b"back", serving.to).expect("it is sent");
            assert_eq!(serving.got().bytes, b"back");
        }
        assert_eq!(serving.activity.datagrams().send_errors(), 0);
        // Longer than a datagram can be, between two that are not; and to everybody, which the
        // socket may not.
        serving.order(move |driver| {
            driver.send_datagrams(UDP.into(), outgoing(peer, None, b"before"));
            driver.send_datagrams(UDP.into(), outgoing(peer, None, &[0; RUN_BYTES_MAX]));
            let broadcast = SocketAddr::from(([255, 255, 255, 255], 9));
            driver.send_datagrams(UDP.into(), outgoing(broadcast, Some(10), &[0; 25]));
            driver.send_datagrams(UDP.into(), outgoing(peer, None, b"after"));
        });
        assert_eq!(datagram(&client).0, b"before");
        assert_eq!(datagram(&client).0, b"after");
        assert_eq!(serving.activity.datagrams().send_errors(), 4);
    }
}

#[test]
fn a_listener_that_closes_sends_what_it_has() {
    for (addr, abandons) in loopbacks()
        .into_iter()
        .flat_map(|addr| [(addr, false), (addr, true)])
    {
        let serving = Serving::at(addr);
        let client = plain(addr);
        let peer = client.local_addr().expect("an address");
        let to = serving.to;
        client.send_to(b"first", to).expect("it is sent");
        assert_eq!(serving.got().bytes, b"first");
        serving.order(move |driver| {
            for at in 0..50_u8 {
                let bytes = vec![at; 100 + usize::from(at)];
                driver.send_datagrams(UDP.into(), outgoing(peer, None, &bytes));
            }
            if abandons {
                driver.abandon(UDP);
            } else {
                driver.unlisten(UDP);
                driver.unlisten(UDP);
                driver.send_datagrams(UDP.into(), outgoing(peer, None, b"goodbye"));
            }
        });
        for at in 0..50_u8 {
            assert_eq!(datagram(&client).0, vec![at; 100 + usize::from(at)]);
        }
        if !abandons {
            assert_eq!(datagram(&client).0, b"goodbye");
        }
        // In a later round, it is closed: its port is free, and what is sent is lost.
        serving.order(move |driver| {
            driver.send_datagrams(UDP.into(), outgoing(peer, Some(1), b"lost"));
            assert!(driver.datagram_room(UDP.into()), "nobody waits");
        });
        assert_eq!(serving.activity.datagrams().no_room(), 4);
        let again = UdpSocket::bind(to).expect("the port is free");
        client.send_to(b"to another", to).expect("it is sent");
        assert!(serving.got.try_recv().is_err(), "it delivers nothing");
        drop(again);
    }
}

/// The socket of another process stays open when the driver closes its own descriptor; the driver
/// hears nothing of it.
#[test]
fn a_closed_listener_does_not_read_the_socket_of_another_holder() {
    let (fd, to) = open(([127, 0, 0, 1], 0).into(), &DatagramOptions::default());
    let other: OwnedFd = fd.try_clone().expect("a descriptor");
    let serving = Serving::of(fd);
    serving.order(|driver| driver.unlisten(UDP));
    let client = plain(to);
    client.send_to(b"for the other", to).expect("it is sent");
    assert_eq!(receive(&UdpSocket::from(other)).3, b"for the other");
    assert!(serving.got.try_recv().is_err());
}
