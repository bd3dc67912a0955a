//! Receiving.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use spangate_net::listen::{DatagramOptions, datagram_facts};

use super::{Serving, loopbacks, open, plain, send_message, skipped};

#[test]
fn a_run_arrives_with_the_length_of_its_datagrams() {
    for addr in loopbacks() {
        let (fd, to) = open(addr, &DatagramOptions::default());
        let facts = datagram_facts(&fd).expect("facts");
        if !facts.joins || !facts.cuts {
            return skipped("datagrams: the kernel joins none");
        }
        let serving = Serving::of(fd);
        let client = plain(addr);
        let bytes: Vec<u8> = (0..1200 * 5 + 300).map(|at| (at / 7) as u8).collect();
        send_message(&client, to, 0, Some(1200), &bytes);
        send_message(&client, to, 0, None, b"alone");
        let run = serving.got();
        assert_eq!(run.peer, client.local_addr().expect("an address"));
        assert_eq!((run.segment, run.bytes.len()), (1200, bytes.len()));
        assert!(run.bytes == bytes);
        let alone = serving.got();
        assert_eq!((alone.segment, &*alone.bytes), (5, &b"alone"[..]));
        let counts = serving.activity.datagrams();
        assert_eq!(counts.received_runs(), 2);
        assert_eq!(counts.received_bytes(), bytes.len() as u64 + 5);
    }
}

#[test]
fn the_ecn_field_arrives() {
    for addr in loopbacks() {
        let serving = Serving::at(addr);
        let client = plain(addr);
        for ecn in 0..4 {
            send_message(&client, serving.to, ecn, None, b"marked");
            assert_eq!(serving.got().ecn, ecn, "{addr}");
        }
    }
}

#[test]
fn a_wildcard_tells_which_address_a_datagram_was_sent_to() {
    for addr in loopbacks() {
        let any: IpAddr = match addr {
            SocketAddr::V4(_) => [0, 0, 0, 0].into(),
            SocketAddr::V6(_) => [0_u16; 8].into(),
        };
        let serving = Serving::at(SocketAddr::new(any, 0));
        let to = SocketAddr::new(addr.ip(), serving.to.port());
        plain(addr).send_to(b"hello", to).expect("it is sent");
        assert_eq!(serving.got().local, Some(addr.ip()));
        if addr.is_ipv4() {
            let to = SocketAddr::from(([127, 3, 2, 1], to.port()));
            plain(addr).send_to(b"hello", to).expect("it is sent");
            assert_eq!(serving.got().local, Some(to.ip()));
        }
    }
}

/// A socket of both families: IPv4 addresses in their IPv6 form, in both directions.
#[test]
fn ipv4_over_a_socket_of_ipv6() {
    if UdpSocket::bind("[::1]:0").is_err() {
        return skipped("datagrams: there is no IPv6");
    }
    let options = DatagramOptions {
        v6only: Some(false),
        ..DatagramOptions::default()
    };
    let (fd, any) = open("[::]:0".parse().expect("an address"), &options);
    let serving = Serving::of(fd);
    let (client, at) = open(([127, 0, 0, 1], 0).into(), &DatagramOptions::default());
    let client = UdpSocket::from(client);
    let to = SocketAddr::from(([127, 0, 0, 9], any.port()));
    send_message(&client, to, 1, None, b"hello");
    let got = serving.got();
    assert_eq!(got.peer.ip().to_canonical(), at.ip());
    assert_eq!(got.local.map(|ip| ip.to_canonical()), Some(to.ip()));
    assert_eq!(got.ecn, 1);
    let (peer, local) = (got.peer, got.local);
    serving.order(move |driver| {
        let welcome = spangate_net::Outgoing {
            peer,
            source: local,
            ecn: 2,
            segment: Some(4),
            bytes: b"welcome",
        };
        spangate_net::Driver::send_datagrams(driver, super::UDP.into(), welcome);
    });
    // The receiver joins what it gets, so that both datagrams may come as one run.
    let (from, _, ecn, bytes) = super::receive(&client);
    assert_eq!((from, ecn, &*bytes), (to, 2, &b"welcome"[..]));
}

#[test]
fn a_full_receive_buffer_loses_datagrams_and_nothing_else() {
    for addr in loopbacks() {
        let options = DatagramOptions {
            receive_buffer: Some(16 << 10),
            ..DatagramOptions::default()
        };
        let (fd, to) = open(addr, &options);
        let client = plain(addr);
        for number in 0..500_u32 {
            let mut bytes = [0; 1000];
            bytes[..4].copy_from_slice(&number.to_be_bytes());
            client.send_to(&bytes, to).expect("it is sent");
        }
        let serving = Serving::of(fd);
        let mut next = 0_u32;
        // The socket may still be full when the last one comes.
        let last = loop {
            client.send_to(b"last", to).expect("it is sent");
            let got = serving.got();
            if got.bytes == b"last" {
                break next;
            }
            assert_eq!(got.bytes[..4], next.to_be_bytes(), "in order");
            next += 1;
        };
        assert!((1..500).contains(&last), "{last}");
        assert_eq!(serving.activity.datagrams().truncated(), 0);
    }
}

#[test]
fn ten_thousand_datagrams_arrive_in_order() {
    const BURST: u32 = 100;
    for addr in loopbacks() {
        let serving = Serving::at(addr);
        let client = plain(addr);
        for burst in 0..10_000 / BURST {
            let first = burst * BURST;
            for number in first..first + BURST {
                let mut bytes = vec![number as u8; 20 + (number % 977) as usize];
                bytes[..4].copy_from_slice(&number.to_be_bytes());
                client.send_to(&bytes, serving.to).expect("it is sent");
            }
            for number in first..first + BURST {
                let got = serving.got();
                assert_eq!(got.bytes[..4], number.to_be_bytes());
                assert_eq!(got.bytes.len(), 20 + (number % 977) as usize);
                assert!(got.bytes[4..].iter().all(|byte| *byte == number as u8));
            }
        }
        assert_eq!(serving.activity.datagrams().received_runs(), 10_000);
    }
}

#[test]
fn datagrams_without_bytes_are_ignored() {
    for addr in loopbacks() {
        let serving = Serving::at(addr);
        let client = plain(addr);
        client.send_to(b"", serving.to).expect("it is sent");
        client.send_to(b"x", serving.to).expect("it is sent");
        assert_eq!(serving.got().bytes, b"x");
        assert_eq!(serving.activity.datagrams().ignored(), 1);
    }
}
