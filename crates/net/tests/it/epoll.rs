//! The epoll driver over real sockets, with an engine that does one thing.

use std::collections::HashMap;
use std::io::Read;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use spangate_net::epoll::{EpollDriver, Listener, Setup, SocketBuffers};
use spangate_net::{
    Accepted, Addr, Close, ConnId, Driver, Engine, Labels, ListenerId, Sent, TcpInfo,
};

/// How long anything may take.
const DEADLINE: Duration = Duration::from_secs(20);
/// One message: short enough to be put off to the end of the round.
const MESSAGE_BYTES: usize = 3000;
/// Messages before the close: more than the kernel's buffers of a connection hold.
const MESSAGES: usize = 4000;

/// Sends numbered messages as fast as its peer takes them, and closes right behind the last.
#[derive(Default)]
struct Flood {
    sent: HashMap<u32, usize>,
    over: bool,
}

impl Flood {
    fn go_on<D: Driver>(&mut self, driver: &mut D, conn: ConnId) {
        let sent = self.sent.entry(conn.slot).or_default();
        while *sent < MESSAGES {
            *sent += 1;
            match driver.send(conn, &message(*sent - 1), &[]) {
                Sent::All => {}
                Sent::Backlog if *sent < MESSAGES => return,
                Sent::Backlog | Sent::Dead => break,
            }
        }
        // An engine waits for a backlog that it was told of; here only one that it was not told of can be left.
        driver.close(conn);
    }
}

/// Asks the driver about its first connection, and closes it.
#[derive(Default)]
struct Asks {
    peer: Option<Addr>,
    answers: Option<(TcpInfo, Addr, Option<bool>, Option<bool>)>,
}

fn message(number: usize) -> Vec<u8> {
    (0..MESSAGE_BYTES)
        .map(|at| (number * 7 + at) as u8)
        .collect()
}

impl<D: Driver> Engine<D> for Flood {
    type Message = ();

    fn on_accept(&mut self, driver: &mut D, conn: ConnId, _: Accepted) {
        self.go_on(driver, conn);
    }
    fn on_connected(&mut self, _: &mut D, _: ConnId) {}
    fn on_data(&mut self, _: &mut D, _: ConnId, _: &[u8]) {}
    fn on_drained(&mut self, driver: &mut D, conn: ConnId) {
        self.go_on(driver, conn);
    }
    fn on_eof(&mut self, _: &mut D, _: ConnId) {}
    fn on_close(&mut self, _: &mut D, _: ConnId, _: Close) {}
    fn on_timer(&mut self, _: &mut D) {}
    fn next_deadline_ms(&mut self) -> Option<u64> {
        None
    }
    fn on_round_end(&mut self, _: &mut D) {}
    fn on_message(&mut self, _: &mut D, (): ()) {
        self.over = true;
    }
    fn is_finished(&self) -> bool {
        self.over
    }
}

impl<D: Driver> Engine<D> for Asks {
    type Message = ();

    fn on_accept(&mut self, driver: &mut D, conn: ConnId, accepted: Accepted) {
        let foreign = "192.0.2.1".parse().expect("an address");
        let own = accepted.peer.ip().expect("an address");
        let local = driver.local_addr(conn).expect("a local address");
        let info = driver.tcp_info(conn).expect("a TCP connection");
        let places = (driver.is_local(own), driver.is_local(foreign));
        self.peer = Some(accepted.peer);
        self.answers = Some((info, local, places.0, places.1));
        driver.close(conn);
        assert_eq!(driver.tcp_info(conn), None, "it is gone");
    }
    fn on_connected(&mut self, _: &mut D, _: ConnId) {}
    fn on_data(&mut self, _: &mut D, _: ConnId, _: &[u8]) {}
    fn on_drained(&mut self, _: &mut D, _: ConnId) {}
    fn on_eof(&mut self, _: &mut D, _: ConnId) {}
    fn on_close(&mut self, _: &mut D, _: ConnId, _: Close) {}
    fn on_timer(&mut self, _: &mut D) {}
    fn next_deadline_ms(&mut self) -> Option<u64> {
        None
    }
    fn on_round_end(&mut self, _: &mut D) {}
    fn on_message(&mut self, _: &mut D, (): ()) {}
    fn is_finished(&self) -> bool {
        self.answers.is_some()
    }
}

fn driver(listener: TcpListener) -> (EpollDriver, Arc<OwnedFd>) {
    let local = Addr::Inet(listener.local_addr().expect("an address"));
    listener.set_nonblocking(true).expect("a flag");
    let wake = Arc::new(spangate_net::sys::eventfd().expect("an eventfd"));
    let setup = Setup {
        listeners: vec![Listener {
            fd: listener.into(),
            id: ListenerId(0),
            local,
            shared: false,
        }],
        wake: Arc::clone(&wake),
        logs: Vec::new(),
        dropped: Arc::default(),
        peers: Vec::new(),
        conns_max: 10,
        accepts_a_turn_max: 1,
        buffers: SocketBuffers::default(),
        measures: false,
    };
    (EpollDriver::new(setup).expect("a driver"), wake)
}

/// A peer that reads all there is, in small bites.
fn read_late(to: SocketAddr) -> Vec<u8> {
    let mut stream = TcpStream::connect(to).expect("a connection");
    stream.set_read_timeout(Some(DEADLINE)).expect("a deadline");
    let (mut all, mut bite) = (Vec::new(), [0; 777]);
    loop {
        match stream.read(&mut bite).expect("bytes") {
            0 => return all,
            count => all.extend_from_slice(&bite[..count]),
        }
    }
}

#[test]
fn what_was_sent_before_a_close_arrives_whole_and_in_order() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let to = listener.local_addr().expect("an address");
    let (mut driver, wake) = driver(listener);
    let (sender, messages) = mpsc::channel();
    let worker = std::thread::Builder::new()
        .spawn(move || driver.run(&mut Flood::default(), &messages))
        .expect("a thread");
    let all = read_late(to);
    sender.send(()).expect("the worker listens");
    spangate_net::sys::eventfd_ring(wake.as_raw_fd());
    worker.join().expect("a worker").expect("it ran");
    assert_eq!(all.len(), MESSAGES * MESSAGE_BYTES);
    for (number, bytes) in all.chunks(MESSAGE_BYTES).enumerate() {
        assert_eq!(bytes, message(number), "message {number}");
    }
}

#[test]
fn a_driver_tells_what_the_kernel_knows() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let to = listener.local_addr().expect("an address");
    let (mut driver, _wake) = driver(listener);
    let stream = TcpStream::connect(to).expect("a connection");
    let (_sender, messages) = mpsc::channel();
    let mut engine = Asks::default();
    driver.run(&mut engine, &messages).expect("it ran");
    let (info, local, own, foreign) = engine.answers.expect("answers");
    assert_eq!(local, Addr::Inet(to));
    let peer = stream.local_addr().expect("an address");
    assert_eq!(engine.peer, Some(Addr::Inet(peer)));
    assert!(info.reordering > 0, "{info:?}");
    assert_eq!((own, foreign), (Some(true), Some(false)));
}

#[test]
fn packets_are_labelled() {
    let socket =
        spangate_net::sys::stream_socket(&Addr::Inet("127.0.0.1:1".parse().expect("an address")));
    let socket = socket.expect("a socket");
    let of_service = |name| spangate_net::sys::option(socket.as_raw_fd(), libc::IPPROTO_IP, name);
    let labels = Labels {
        mark: None,
        tos: Some(0x20),
    };
    spangate_net::sys::label(socket.as_raw_fd(), labels);
    assert_eq!(of_service(libc::IP_TOS).expect("an option"), 0x20);
    // What is none stays; a mark takes a privilege that may be missing.
    spangate_net::sys::label(
        socket.as_raw_fd(),
        Labels {
            mark: Some(7),
            tos: None,
        },
    );
    assert_eq!(of_service(libc::IP_TOS).expect("an option"), 0x20);
    // A RST that is to live long enough has its hops, and no repair mode.
    spangate_net::sys::silence(socket.as_raw_fd(), Some(9));
    assert_eq!(of_service(libc::IP_TTL).expect("an option"), 9);
}

#[test]
fn a_listener_keeps_the_packets_that_open_its_connections() {
    use spangate_net::listen::{ListenAddr, ListenOptions, open};

    let any = Addr::Inet("127.0.0.1:0".parse().expect("an address"));
    let options = ListenOptions {
        backlog: 1,
        save_syn: 1,
        ..ListenOptions::default()
    };
    let fd = open(&ListenAddr::Bind(any), &options).expect("a listener");
    let listener = TcpListener::from(fd);
    listener.set_nonblocking(false).expect("a flag");
    let to = listener.local_addr().expect("an address");
    let client = TcpStream::connect(to).expect("a connection");
    let (server, from) = listener.accept().expect("a connection");
    assert_eq!(Ok(from), client.local_addr().map_err(drop));
    let mut packet = Vec::new();
    assert!(spangate_net::sys::saved_syn(
        server.as_raw_fd(),
        &mut packet
    ));
    // IPv4 and TCP heads: both ports, and the SYN flag alone.
    assert_eq!(packet.first().map(|byte| byte >> 4), Some(4));
    let tcp = &packet[usize::from(packet[0] & 15) * 4..];
    assert_eq!(tcp[..2], from.port().to_be_bytes());
    assert_eq!(tcp[2..4], to.port().to_be_bytes());
    assert_eq!(tcp[13] & 0x3f, 2);
}
