//! Opening datagram sockets and taking them over.

use std::net::{TcpListener, UdpSocket};
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};

use spangate_net::listen::{
    DatagramOptions, ListenAddr, datagram_facts, from_fd, open_datagram, set_again,
};
use spangate_net::{Addr, sys};

use super::{Serving, loopbacks, open, plain, skipped};

fn option(fd: &OwnedFd, level: i32, name: i32) -> i32 {
    sys::option(fd.as_raw_fd(), level, name).expect("an option")
}

#[test]
fn a_socket_has_the_options_of_quic() {
    for addr in loopbacks() {
        let (fd, _) = open(addr, &DatagramOptions::default());
        let options = [
            (libc::SOL_SOCKET, libc::SO_REUSEPORT, 1),
            (
                libc::IPPROTO_IP,
                libc::IP_MTU_DISCOVER,
                libc::IP_PMTUDISC_PROBE,
            ),
            (libc::IPPROTO_IP, libc::IP_RECVTOS, 1),
        ];
        let of_v4 = [(libc::IPPROTO_IP, libc::IP_PKTINFO, 1)];
        let of_v6 = [
            (
                libc::IPPROTO_IPV6,
                libc::IPV6_MTU_DISCOVER,
                libc::IPV6_PMTUDISC_PROBE,
            ),
            (libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1),
            (libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1),
        ];
        let of_family = if addr.is_ipv4() {
            &of_v4[..]
        } else {
            &of_v6[..]
        };
        for (level, name, value) in options.iter().chain(of_family) {
            assert_eq!(option(&fd, *level, *name), *value, "{addr} {level} {name}");
        }
        let flags = listed_flags(&fd);
        assert!(flags.contains("flags:\t02004002"), "{flags}");
        let facts = datagram_facts(&fd).expect("facts");
        let untouched = OwnedFd::from(UdpSocket::bind(addr).expect("a socket"));
        let before = option(&untouched, libc::SOL_SOCKET, libc::SO_RCVBUF);
        assert!(facts.receive_buffer >= before, "{facts:?}");
        if facts.joins {
            assert_eq!(option(&fd, libc::SOL_UDP, libc::UDP_GRO), 1);
        }
    }
}

/// Flags of a descriptor as the system lists them: O_CLOEXEC, O_NONBLOCK and O_RDWR.
fn listed_flags(fd: &OwnedFd) -> String {
    std::fs::read_to_string(format!("/proc/self/fdinfo/{}", fd.as_raw_fd())).expect("a list")
}

#[test]
fn sockets_of_one_port_are_several() {
    for addr in loopbacks() {
        let (_first, at) = open(addr, &DatagramOptions::default());
        let (_second, same) = open(at, &DatagramOptions::default());
        assert_eq!(at, same);
    }
}

#[test]
fn what_cannot_be_bound_is_told() {
    for addr in loopbacks() {
        let other = plain(addr);
        let taken = other.local_addr().expect("an address");
        let bind = ListenAddr::Bind(Addr::Inet(taken));
        let error = open_datagram(&bind, &DatagramOptions::default()).expect_err("it is taken");
        assert_eq!(error.kind(), std::io::ErrorKind::AddrInUse);
        let text = error.to_string();
        assert_eq!(text, "cannot bind socket (Address already in use)");
    }
    let options = DatagramOptions {
        interface: Some("no-such-device".to_owned()),
        ..DatagramOptions::default()
    };
    let bind = ListenAddr::Bind(Addr::Inet(([127, 0, 0, 1], 0).into()));
    let text = open_datagram(&bind, &options).expect_err("no device");
    let text = text.to_string();
    assert!(
        text.starts_with("cannot bind listener to device ("),
        "{text}"
    );
    let unix = ListenAddr::Bind(Addr::Unix((*b"/tmp/quic").into()));
    assert!(open_datagram(&unix, &DatagramOptions::default()).is_err());
}

#[test]
fn an_ipv6_wildcard_has_ipv4_as_asked() {
    let any = "[::]:0".parse().expect("an address");
    if UdpSocket::bind("[::1]:0").is_err() {
        return skipped("datagrams: there is no IPv6");
    }
    for v6only in [true, false] {
        let options = DatagramOptions {
            v6only: Some(v6only),
            ..DatagramOptions::default()
        };
        let (fd, at) = open(any, &options);
        // The port is another socket's as well only if this one does not have its family.
        let ipv4 = UdpSocket::bind(("127.0.0.1", at.port()));
        assert_eq!(ipv4.is_ok(), v6only);
        let other = DatagramOptions {
            v6only: Some(!v6only),
            ..DatagramOptions::default()
        };
        let text = set_again(&fd, &other).expect_err("it stays").to_string();
        let is = if v6only { "v6only" } else { "v4v6" };
        assert!(text.ends_with(&format!("is {is}")), "{text}");
        set_again(&fd, &options).expect("it is the same");
    }
}

#[test]
fn a_socket_that_another_process_has_opened_gets_the_options() {
    for addr in loopbacks() {
        let foreign = UdpSocket::bind(addr).expect("a socket");
        let fd = OwnedFd::from(foreign);
        sys::set_option(fd.as_raw_fd(), libc::SOL_UDP, libc::UDP_CORK, 1).expect("an option");
        let fd = from_fd(fd, &DatagramOptions::default()).expect("it is one");
        assert_eq!(option(&fd, libc::SOL_UDP, libc::UDP_CORK), 0);
        assert_eq!(option(&fd, libc::IPPROTO_IP, libc::IP_RECVTOS), 1);
        let serving = Serving::of(fd);
        let client = plain(addr);
        client.send_to(b"hello", serving.to).expect("it is sent");
        let got = serving.got();
        assert_eq!(got.bytes, b"hello");
        assert_eq!(got.local, Some(addr.ip()));
        serving.send(got.peer, None, b"welcome");
        assert_eq!(super::datagram(&client).0, b"welcome");
    }
}

#[test]
fn an_inherited_number_is_taken_over() {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let at = socket.local_addr().expect("an address");
    let inherited = ListenAddr::Inherited(socket.into_raw_fd());
    let fd = open_datagram(&inherited, &DatagramOptions::default()).expect("it is one");
    assert_eq!(super::local(&fd), at);
}

#[test]
fn what_is_no_datagram_socket_is_refused() {
    let tcp = TcpListener::bind("127.0.0.1:0").expect("a port");
    let (unix, _other) = std::os::unix::net::UnixDatagram::pair().expect("a pair");
    let file = std::fs::File::open("/dev/null").expect("a file");
    let unbound = sys::datagram_socket(&Addr::Inet(([127, 0, 0, 1], 0).into()));
    let connected = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let to = connected.local_addr().expect("an address");
    connected.connect(to).expect("itself");
    for (fd, why) in [
        (OwnedFd::from(tcp), "is not a UDP socket"),
        (OwnedFd::from(unix), "is not a UDP socket"),
        (OwnedFd::from(file), "cannot use file descriptor ("),
        (unbound.expect("a socket"), "is not bound"),
        (OwnedFd::from(connected), "is connected"),
    ] {
        let text = from_fd(fd, &DatagramOptions::default());
        let text = text.expect_err("it is none").to_string();
        assert!(text.contains(why), "{text}");
    }
}
