//! The epoll driver over real sockets, with an engine that does one thing.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::plain_connect;
use spangate_net::epoll::{EpollDriver, Listener, Setup, SocketBuffers};
use spangate_net::{
    Accepted, Addr, Close, Driver, Engine, Labels, ListenerId, Message, SockId, TcpInfo,
    TcpOptions, Took, WorkerId,
};

/// How long anything may take.
const DEADLINE: Duration = Duration::from_secs(20);
/// One message: short enough to be put off to the end of the round.
const MESSAGE_BYTES: usize = 3000;
/// Messages before the close: more than the kernel's buffers of a connection hold.
const MESSAGES: usize = 4000;
/// `tune.bufsize` of these drivers, and what follows from it.
const BUFFER_BYTES: usize = 16 << 10;
const READ_BYTES: usize = BUFFER_BYTES + BUFFER_BYTES / 4;

/// What an engine of these tests does; what it does not name does nothing.
trait Acts<D: Driver> {
    fn accepted(&mut self, _: &mut D, _: SockId, _: Accepted) {}
    fn connected(&mut self, _: &mut D, _: SockId) {}
    fn data(&mut self, _: &mut D, _: SockId, data: &[u8]) -> Took {
        took(data.len())
    }
    fn writable(&mut self, _: &mut D, _: SockId, _: bool) {}
    fn ended(&mut self, _: &mut D, _: SockId) {}
    fn broken(&mut self, _: &mut D, _: SockId) {}
    fn closed(&mut self, _: &mut D, _: SockId, _: Close) {}
    fn round_ended(&mut self) {}
    fn admits(&mut self, _: &mut D, _: ListenerId) -> bool {
        true
    }
    fn is_over(&self) -> bool {
        false
    }
}

fn spawn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let builder = std::thread::Builder::new().name("test".into());
    builder.spawn(work).expect("a thread")
}

fn took(bytes: usize) -> Took {
    Took { bytes, held: 0 }
}

/// Ends with the first order, or by itself.
struct Run<A> {
    acts: A,
    over: bool,
}

impl<D: Driver, A: Acts<D>> Engine<D> for Run<A> {
    type Order = ();

    fn on_order(&mut self, _: &mut D, (): ()) {
        self.over = true;
    }
    fn is_finished(&self, _: bool) -> bool {
        self.over || self.acts.is_over()
    }
    fn admit(&mut self, driver: &mut D, listener: ListenerId) -> bool {
        self.acts.admits(driver, listener)
    }
    fn retract(&mut self, _: &mut D, _: ListenerId) {}
    fn on_accept(&mut self, driver: &mut D, sock: SockId, accepted: Accepted) {
        self.acts.accepted(driver, sock, accepted);
    }
    fn on_connected(&mut self, driver: &mut D, sock: SockId) {
        self.acts.connected(driver, sock);
    }
    fn on_data(&mut self, driver: &mut D, sock: SockId, data: &mut [u8]) -> Took {
        self.acts.data(driver, sock, data)
    }
    fn on_writable(&mut self, driver: &mut D, sock: SockId, blocked: bool) {
        self.acts.writable(driver, sock, blocked);
    }
    fn on_eof(&mut self, driver: &mut D, sock: SockId) {
        self.acts.ended(driver, sock);
    }
    fn on_broken(&mut self, driver: &mut D, sock: SockId) {
        self.acts.broken(driver, sock);
    }
    fn on_close(&mut self, driver: &mut D, sock: SockId, why: Close) {
        self.acts.closed(driver, sock, why);
    }
    fn on_timer(&mut self, _: &mut D) {}
    fn next_deadline_ms(&mut self) -> Option<u64> {
        None
    }
    fn on_round_end(&mut self, _: &mut D) {
        self.acts.round_ended();
    }
    fn has_work(&self) -> bool {
        false
    }
}

/// Sends numbered messages as fast as its peer takes them, and closes right behind the last.
#[derive(Default)]
struct Flood {
    sent: usize,
}

impl Flood {
    fn go_on<D: Driver>(&mut self, driver: &mut D, sock: SockId) {
        while self.sent < MESSAGES {
            self.sent += 1;
            let message = message(self.sent - 1);
            let head = Message {
                head: &message,
                ..Message::default()
            };
            if driver.send(sock, head).blocked && self.sent < MESSAGES {
                return;
            }
        }
        driver.close(sock);
    }
}

impl<D: Driver> Acts<D> for Flood {
    fn accepted(&mut self, driver: &mut D, sock: SockId, _: Accepted) {
        self.go_on(driver, sock);
    }
    fn writable(&mut self, driver: &mut D, sock: SockId, blocked: bool) {
        if !blocked {
            self.go_on(driver, sock);
        }
    }
}

/// Asks the driver about its first connection, and closes it.
#[derive(Default)]
struct Asks {
    peer: Option<Addr>,
    answers: Option<(TcpInfo, Addr, Option<bool>, Option<bool>)>,
}

impl<D: Driver> Acts<D> for Asks {
    fn accepted(&mut self, driver: &mut D, sock: SockId, accepted: Accepted) {
        let foreign = "192.0.2.1".parse().expect("an address");
        let own = accepted.peer.ip().expect("an address");
        let local = driver.local_addr(sock).expect("a local address");
        let info = driver.tcp_info(sock).expect("a TCP connection");
        let places = (driver.is_local(own), driver.is_local(foreign));
        self.peer = Some(accepted.peer);
        self.answers = Some((info, local, places.0, places.1));
        driver.close(sock);
        assert_eq!(driver.tcp_info(sock), None, "it is gone");
    }
    fn is_over(&self) -> bool {
        self.answers.is_some()
    }
}

/// Passes bytes from its clients on to a server and back, as both take them; tells how much was
/// held at most.
struct Relay {
    to: SocketAddr,
    pairs: Vec<[SockId; 2]>,
    /// By direction of the only pair: bytes that wait here.
    held: [Vec<u8>; 2],
    held_most: usize,
    connected: bool,
}

impl Relay {
    fn new(to: SocketAddr) -> Relay {
        Relay {
            to,
            pairs: Vec::new(),
            held: [Vec::new(), Vec::new()],
            held_most: 0,
            connected: false,
        }
    }

    fn side(&self, sock: SockId) -> (usize, SockId) {
        let pair = self.pairs.last().expect("a pair");
        let side = usize::from(pair[1] == sock);
        (side, pair[1 - side])
    }
}

impl<D: Driver> Acts<D> for Relay {
    fn accepted(&mut self, driver: &mut D, sock: SockId, _: Accepted) {
        let (to, tcp) = (Addr::Inet(self.to), TcpOptions::default());
        let server = driver
            .connect(&plain_connect(&to, &tcp))
            .expect("a connection");
        self.pairs.push([sock, server]);
        driver.pause(sock);
    }
    fn connected(&mut self, driver: &mut D, sock: SockId) {
        self.connected = true;
        let (_, client) = self.side(sock);
        driver.resume(client);
    }
    fn data(&mut self, driver: &mut D, sock: SockId, data: &[u8]) -> Took {
        let (side, other) = self.side(sock);
        if !self.connected {
            self.held[side].extend_from_slice(data);
            return Took {
                bytes: data.len(),
                held: self.held[side].len(),
            };
        }
        assert!(self.held[side].is_empty(), "it is paused");
        let body = Message {
            body: data,
            ..Message::default()
        };
        let sent = driver.send(other, body);
        if sent.blocked {
            driver.pause(sock);
        }
        let mut taken = sent.taken;
        if taken < data.len() && data.len() <= driver.read_bytes() {
            self.held[side].extend_from_slice(&data[taken..]);
            taken = data.len();
        }
        self.held_most = self.held_most.max(self.held[side].len());
        Took {
            bytes: taken,
            held: self.held[side].len(),
        }
    }
    fn writable(&mut self, driver: &mut D, sock: SockId, blocked: bool) {
        let (_, feeder) = self.side(sock);
        if !blocked {
            driver.resume(feeder);
        }
    }
    fn ended(&mut self, driver: &mut D, sock: SockId) {
        let (_, other) = self.side(sock);
        driver.shutdown(other);
    }
    fn closed(&mut self, driver: &mut D, sock: SockId, _: Close) {
        let (_, other) = self.side(sock);
        driver.close(other);
    }
}

/// A worker on a thread of its own.
struct Serving<A> {
    thread: JoinHandle<A>,
    orders: Sender<()>,
    wake: Arc<OwnedFd>,
    to: SocketAddr,
}

impl<A: Acts<EpollDriver> + Send + 'static> Serving<A> {
    fn start(acts: A) -> Serving<A> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let to = listener.local_addr().expect("an address");
        let (mut driver, wake) = driver(listener);
        let (orders, received) = mpsc::channel();
        let body = move || {
            let mut engine = Run { acts, over: false };
            driver.run(&mut engine, &received).expect("it ran");
            engine.acts
        };
        Serving {
            thread: std::thread::Builder::new().spawn(body).expect("a thread"),
            orders,
            wake,
            to,
        }
    }

    fn end(self) -> A {
        self.orders.send(()).expect("the worker listens");
        spangate_net::sys::eventfd_ring(self.wake.as_raw_fd());
        self.thread.join().expect("a worker")
    }
}

fn message(number: usize) -> Vec<u8> {
    (0..MESSAGE_BYTES)
        .map(|at| (number * 7 + at) as u8)
        .collect()
}

fn driver(listener: TcpListener) -> (EpollDriver, Arc<OwnedFd>) {
    let local = Addr::Inet(listener.local_addr().expect("an address"));
    listener.set_nonblocking(true).expect("a flag");
    let wake = Arc::new(spangate_net::sys::eventfd().expect("an eventfd"));
    let setup = Setup {
        more: std::sync::mpsc::channel().1,
        listeners: vec![Listener {
            fd: Arc::new(listener.into()),
            id: ListenerId(0),
            local,
            shared: false,
        }],
        wakes: vec![Arc::clone(&wake)],
        worker: WorkerId(0),
        logs: Vec::new(),
        dropped: Arc::default(),
        activity: Arc::default(),
        accepts_a_turn_max: 1,
        buffer_bytes: BUFFER_BYTES,
        buffers: SocketBuffers::default(),
        measures: false,
        local_addrs: false,
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
    let serving = Serving::start(Flood::default());
    let all = read_late(serving.to);
    serving.end();
    assert_eq!(all.len(), MESSAGES * MESSAGE_BYTES);
    for (number, bytes) in all.chunks(MESSAGE_BYTES).enumerate() {
        assert_eq!(bytes, message(number), "message {number}");
    }
}

/// Closes what it accepts, and ends with the first.
#[derive(Default)]
struct Refuses {
    refused: bool,
}

impl<D: Driver> Acts<D> for Refuses {
    fn accepted(&mut self, driver: &mut D, sock: SockId, _: Accepted) {
        driver.close(sock);
        self.refused = true;
    }
    fn is_over(&self) -> bool {
        self.refused
    }
}

/// The kernel answers unread bytes with a RST, which can destroy what the peer has not read yet.
#[test]
fn a_connection_closed_as_it_comes_ends_without_a_reset() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let mut client =
        TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
    client.write_all(&[0; 1000]).expect("it is sent");
    let (mut driver, _wake) = driver(listener);
    let (_sender, orders) = mpsc::channel();
    let mut engine = Run {
        acts: Refuses::default(),
        over: false,
    };
    driver.run(&mut engine, &orders).expect("it ran");
    client.set_read_timeout(Some(DEADLINE)).expect("a deadline");
    assert_eq!(client.read(&mut [0; 1]).expect("no reset"), 0);
}

/// Takes an upload and closes when the last of it comes.
#[derive(Default)]
struct CloseWithLast {
    got: usize,
}

impl CloseWithLast {
    /// More than one read takes: its end is bulk, at which the driver only looks.
    const BYTES: usize = 300_000;
}

impl<D: Driver> Acts<D> for CloseWithLast {
    fn data(&mut self, driver: &mut D, sock: SockId, data: &[u8]) -> Took {
        self.got += data.len();
        if self.got == Self::BYTES {
            self.got = 0;
            driver.close(sock);
        }
        took(data.len())
    }
}

#[test]
fn a_connection_closed_with_its_last_bytes_ends_without_a_reset() {
    let serving = Serving::start(CloseWithLast::default());
    for _ in 0..20 {
        let mut client = TcpStream::connect(serving.to).expect("a connection");
        client.set_read_timeout(Some(DEADLINE)).expect("a deadline");
        client
            .write_all(&vec![b'x'; CloseWithLast::BYTES])
            .expect("all of it");
        let mut rest = Vec::new();
        let end = client.read_to_end(&mut rest);
        assert!(end.is_ok(), "{end:?}");
    }
    serving.end();
}

#[test]
fn a_driver_tells_what_the_kernel_knows() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let to = listener.local_addr().expect("an address");
    let (mut driver, _wake) = driver(listener);
    let stream = TcpStream::connect(to).expect("a connection");
    let (_sender, orders) = mpsc::channel();
    let mut engine = Run {
        acts: Asks::default(),
        over: false,
    };
    driver.run(&mut engine, &orders).expect("it ran");
    let (info, local, own, foreign) = engine.acts.answers.expect("answers");
    assert_eq!(local, Addr::Inet(to));
    let peer = stream.local_addr().expect("an address");
    assert_eq!(engine.acts.peer, Some(Addr::Inet(peer)));
    assert!(info.reordering > 0, "{info:?}");
    assert_eq!((own, foreign), (Some(true), Some(false)));
}

/// A server that reads nothing for a while, behind a relay: all that was sent arrives, and the
/// relay held no more of it than one read may bring.
#[test]
fn what_a_slow_peer_does_not_take_waits_in_the_kernel() {
    const BYTES: usize = 24 << 20;
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    let serving = Serving::start(Relay::new(server.local_addr().expect("an address")));
    let mut client = TcpStream::connect(serving.to).expect("a connection");
    let (mut upstream, _) = server.accept().expect("a connection");
    let expected: Vec<u8> = (0..BYTES).map(|at| (at * 31 + at / 256) as u8).collect();
    let bytes = expected.clone();
    let writer = spawn(move || {
        client.write_all(&bytes).expect("all is taken");
        client.shutdown(std::net::Shutdown::Write).expect("an end");
        client
    });
    upstream
        .set_read_timeout(Some(DEADLINE))
        .expect("a deadline");
    let (mut all, mut bite) = (Vec::with_capacity(BYTES), vec![0; 100_000]);
    loop {
        match upstream.read(&mut bite).expect("bytes") {
            0 => break,
            count => all.extend_from_slice(&bite[..count]),
        }
    }
    writer.join().expect("a client");
    let relay = serving.end();
    assert_eq!(all.len(), BYTES);
    assert!(all == expected, "in order");
    assert!(relay.held_most <= READ_BYTES, "{}", relay.held_most);
}

/// A server that answers an upload before it is whole, and closes: the answer is delivered although
/// sends have failed.
#[test]
fn what_a_peer_sent_before_it_broke_is_still_read() {
    for _ in 0..50 {
        let server = TcpListener::bind("127.0.0.1:0").expect("a port");
        let serving = Serving::start(Relay::new(server.local_addr().expect("an address")));
        let mut client = TcpStream::connect(serving.to).expect("a connection");
        client.set_read_timeout(Some(DEADLINE)).expect("a deadline");
        let mut writer = client.try_clone().expect("a handle");
        let writer = spawn(move || {
            let bite = vec![b'u'; 64 << 10];
            while writer.write_all(&bite).is_ok() {}
        });
        let (mut upstream, _) = server.accept().expect("a connection");
        let mut first = [0; 1000];
        let _ = upstream.read(&mut first).expect("bytes");
        upstream.write_all(b"too much").expect("an answer");
        drop(upstream);
        let mut answer = [0; 8];
        client.read_exact(&mut answer).expect("the answer");
        assert_eq!(&answer, b"too much");
        drop(client);
        serving.end();
        writer.join().expect("a client");
    }
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

#[test]
fn an_ipv6_wildcard_takes_ipv4_as_the_system_says() {
    use spangate_net::listen::{ListenAddr, ListenOptions, open};

    let any = Addr::Inet("[::]:0".parse().expect("an address"));
    let v6only = |fd: &OwnedFd| {
        let option = (libc::IPPROTO_IPV6, libc::IPV6_V6ONLY);
        spangate_net::sys::option(fd.as_raw_fd(), option.0, option.1).expect("an option")
    };
    let untouched = spangate_net::sys::stream_socket(&any).expect("IPv6");
    for (asked, wanted) in [
        (None, v6only(&untouched)),
        (Some(true), 1),
        (Some(false), 0),
    ] {
        let options = ListenOptions {
            backlog: 1,
            v6only: asked,
            ..ListenOptions::default()
        };
        let fd = open(&ListenAddr::Bind(any.clone()), &options).expect("a listener");
        assert_eq!(v6only(&fd), wanted, "{asked:?}");
        let port = match spangate_net::sys::local_addr(fd.as_raw_fd()) {
            Ok(addr) => addr.port(),
            Err(error) => panic!("{error}"),
        };
        let ipv4 = TcpStream::connect(("127.0.0.1", port));
        assert_eq!(ipv4.is_ok(), wanted == 0, "{asked:?}");
    }
}

#[test]
fn a_socket_path_that_does_not_fit_is_told_with_the_limit() {
    use spangate_net::listen::{ListenAddr, ListenOptions, open};

    // While it is bound it has a longer name, which has to fit as well.
    let suffix = format!(".{}.tmp", std::process::id());
    for (bytes, bytes_max) in [(107, 107 - suffix.len()), (108, 107 - suffix.len())] {
        let folder = std::env::temp_dir();
        let path = format!("{}/{}", folder.display(), "x".repeat(200));
        let addr = Addr::Unix(path.as_bytes()[..bytes].into());
        let result = open(&ListenAddr::Bind(addr), &ListenOptions::default());
        let told = result.expect_err("it does not fit").to_string();
        let path = &path[..bytes];
        let wanted =
            format!("socket path '{path}' is too long ({bytes} bytes, at most {bytes_max})");
        assert_eq!(told, wanted);
    }
}

/// Closes each connection behind one message, and its listener with the first.
#[derive(Default)]
struct Greets {
    greeted: usize,
}

impl<D: Driver> Acts<D> for Greets {
    fn accepted(&mut self, driver: &mut D, sock: SockId, accepted: Accepted) {
        driver.unlisten(accepted.listener);
        let hello = Message {
            head: b"hello",
            ..Message::default()
        };
        driver.send(sock, hello);
        driver.shutdown(sock);
    }
    fn ended(&mut self, driver: &mut D, sock: SockId) {
        driver.close(sock);
        self.greeted += 1;
    }
    fn is_over(&self) -> bool {
        self.greeted == WAITING
    }
}

/// Connections that wait on a listener: more than the driver takes at a time.
const WAITING: usize = 24;

#[test]
fn a_listener_that_closes_takes_what_waits_however_long_that_takes() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let to = listener.local_addr().expect("an address");
    let (mut driver, _wake) = driver(listener);
    let mut clients: Vec<TcpStream> = (0..WAITING)
        .map(|_| TcpStream::connect(to).expect("a connection"))
        .collect();
    let (_sender, messages) = mpsc::channel();
    let worker = std::thread::Builder::new()
        .spawn(move || {
            let mut engine = Run {
                acts: Greets::default(),
                over: false,
            };
            driver.run(&mut engine, &messages)
        })
        .expect("a thread");
    for client in &mut clients {
        client.set_read_timeout(Some(DEADLINE)).expect("a deadline");
        let mut hello = [0; 5];
        client.read_exact(&mut hello).expect("nobody is reset");
        assert_eq!(&hello, b"hello");
        client.shutdown(std::net::Shutdown::Write).expect("an end");
    }
    worker.join().expect("a worker").expect("it ran");
}

/// Closes its listener with the first connection, and accepts no second one before that has ended.
#[derive(Default)]
struct OneAtATime {
    is_full: bool,
    served: usize,
    rounds: usize,
    resting: Option<ListenerId>,
}

impl<D: Driver> Acts<D> for OneAtATime {
    fn admits(&mut self, driver: &mut D, listener: ListenerId) -> bool {
        if self.is_full {
            driver.accepting(listener, false);
            self.resting = Some(listener);
        }
        !self.is_full
    }
    fn accepted(&mut self, driver: &mut D, _: SockId, accepted: Accepted) {
        self.is_full = true;
        driver.unlisten(accepted.listener);
    }
    fn ended(&mut self, driver: &mut D, sock: SockId) {
        driver.close(sock);
        self.is_full = false;
        self.served += 1;
        if let Some(listener) = self.resting.take() {
            driver.accepting(listener, true);
        }
    }
    fn round_ended(&mut self) {
        self.rounds += 1;
    }
    fn is_over(&self) -> bool {
        self.served == 2
    }
}

/// Rounds of a driver with two connections; one that polls has some thousands.
const FEW_ROUNDS: usize = 64;

#[test]
fn a_listener_that_closes_at_a_limit_waits_without_polling() {
    let serving = Serving::start(OneAtATime::default());
    let first = TcpStream::connect(serving.to).expect("a connection");
    let mut second = TcpStream::connect(serving.to).expect("it waits");
    // Takes its time.
    let elsewhere = TcpListener::bind("127.0.0.1:0").expect("a port");
    let to = elsewhere.local_addr().expect("an address");
    for _ in 0..1000 {
        let one = TcpStream::connect(to).expect("a connection");
        drop((one, elsewhere.accept().expect("it came")));
    }
    drop(first);
    second
        .shutdown(std::net::Shutdown::Write)
        .expect("it was not reset");
    assert_eq!(second.read(&mut [0; 1]).expect("its end"), 0);
    let acts = serving.thread.join().expect("a worker");
    assert!(acts.rounds < FEW_ROUNDS, "{}", acts.rounds);
}

/// Transfers of several peers at once, and the most that one round read of them.
const TRANSFERS: usize = 12;
const TRANSFER_BYTES: usize = 4 << 20;

/// Takes all bytes of its peers, and counts those of each round.
#[derive(Default)]
struct Counts {
    in_round: usize,
    most: usize,
    all: usize,
}

impl<D: Driver> Acts<D> for Counts {
    fn data(&mut self, _: &mut D, _: SockId, data: &[u8]) -> Took {
        self.in_round += data.len();
        self.all += data.len();
        took(data.len())
    }
    fn round_ended(&mut self) {
        self.most = self.most.max(self.in_round);
        self.in_round = 0;
    }
    fn is_over(&self) -> bool {
        self.all == TRANSFERS * TRANSFER_BYTES
    }
}

/// A small message waits for one portion of bulk data, however many transfers there are.
#[test]
fn a_round_reads_a_bounded_part_of_all_transfers() {
    let serving = Serving::start(Counts::default());
    let to = serving.to;
    let peers = (0..TRANSFERS).map(|_| {
        spawn(move || {
            let mut peer = TcpStream::connect(to).expect("a connection");
            peer.write_all(&vec![0; TRANSFER_BYTES])
                .expect("it is taken");
        })
    });
    let peers: Vec<_> = peers.collect();
    for peer in peers {
        peer.join().expect("a peer");
    }
    // It ends by itself once it has read everything.
    let counts = serving.thread.join().expect("a worker");
    // A portion, the turn of the socket that exhausts it, and the first read of each socket.
    let bound = 2 * (256 << 10) + TRANSFERS * READ_BYTES;
    assert!(counts.most <= bound, "{} of {bound}", counts.most);
    assert_eq!(counts.all, TRANSFERS * TRANSFER_BYTES);
}
