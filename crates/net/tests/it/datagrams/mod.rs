//! Datagram sockets of the epoll driver, over loopback.

mod fairness;
mod namespace;
mod open;
mod receive;
mod send;
mod servers;
mod steering;

use std::io::Write;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use spangate_net::activity::Activity;
use spangate_net::epoll::{EpollDriver, Listener, Setup, SocketBuffers};
use spangate_net::listen::{DatagramOptions, ListenAddr, open_datagram};
use spangate_net::sys::{self, Io, ReceiveBatch, SendBatch, Sending};
use spangate_net::{
    Accepted, Addr, Close, DatagramSock, Datagrams, Driver, Engine, ListenerId, Outgoing, SockId,
    Took, WorkerId,
};

/// How long anything may take.
const DEADLINE: Duration = Duration::from_secs(20);
/// The datagram listener of these tests.
const UDP: ListenerId = ListenerId(0);

/// Reports that a test is skipped; `make test` counts the lines of the file that SPANGATE_SKIPPED
/// names.
#[expect(clippy::print_stderr, reason = "a test that is skipped says why")]
fn skipped(why: &str) {
    eprintln!("skipped: {why}");
    if let Some(path) = std::env::var_os("SPANGATE_SKIPPED") {
        let mut file = std::fs::OpenOptions::new()
            .append(true)
            .open(path)
            .expect("the list of what is skipped");
        writeln!(file, "{why}").expect("a line");
    }
}

/// Any free port of these loopback addresses; IPv6 only where there is IPv6.
fn loopbacks() -> Vec<SocketAddr> {
    let all = ["127.0.0.1:0", "[::1]:0"].map(|text| text.parse::<SocketAddr>().expect("one"));
    let has = |addr: &SocketAddr| {
        let is_there = UdpSocket::bind(addr).is_ok();
        if !is_there {
            skipped(&format!("datagrams: there is no {}", addr.ip()));
        }
        is_there
    };
    all.into_iter().filter(has).collect()
}

fn spawn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let builder = std::thread::Builder::new().name("test".into());
    builder.spawn(work).expect("a thread")
}

fn open(addr: SocketAddr, options: &DatagramOptions) -> (OwnedFd, SocketAddr) {
    let fd = open_datagram(&ListenAddr::Bind(Addr::Inet(addr)), options).expect("a socket");
    let local = local(&fd);
    (fd, local)
}

fn local(fd: &OwnedFd) -> SocketAddr {
    match sys::local_addr(fd.as_raw_fd()).expect("an address") {
        Addr::Inet(inet) => inet,
        Addr::Unix(path) => panic!("{path:?}"),
    }
}

/// A run of datagrams as the engine got it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Got {
    sock: DatagramSock,
    peer: SocketAddr,
    local: Option<IpAddr>,
    ecn: u8,
    segment: usize,
    bytes: Vec<u8>,
}

/// What the test asks the worker to do, which returns how to answer; `None` ends it.
type Order = Option<Box<dyn FnOnce(&mut EpollDriver) -> Answer + Send>>;
type Answer = Box<dyn FnOnce() + Send>;

/// Tells the test what comes.
struct Teller {
    got: Sender<Got>,
    room: Sender<DatagramSock>,
    refused: Sender<SockId>,
    over: bool,
    /// Answers to orders of this round and of the one before.
    answers: [Vec<Answer>; 2],
}

impl Engine<EpollDriver> for Teller {
    type Order = Order;

    fn on_order(&mut self, driver: &mut EpollDriver, order: Order) {
        match order {
            Some(order) => {
                let answer = order(driver);
                self.answers[0].push(answer);
            }
            None => self.over = true,
        }
    }
    fn is_finished(&self, accepts: bool) -> bool {
        self.over && !accepts
    }
    fn admit(&mut self, _: &mut EpollDriver, _: ListenerId) -> bool {
        true
    }
    fn retract(&mut self, _: &mut EpollDriver, _: ListenerId) {}
    fn on_accept(&mut self, _: &mut EpollDriver, _: SockId, _: Accepted) {}
    fn on_connected(&mut self, _: &mut EpollDriver, _: SockId) {}
    fn on_data(&mut self, _: &mut EpollDriver, _: SockId, data: &mut [u8]) -> Took {
        Took {
            bytes: data.len(),
            held: 0,
        }
    }
    fn on_writable(&mut self, _: &mut EpollDriver, _: SockId, _: bool) {}
    fn on_eof(&mut self, _: &mut EpollDriver, _: SockId) {}
    fn on_broken(&mut self, _: &mut EpollDriver, _: SockId) {}
    fn on_close(&mut self, _: &mut EpollDriver, _: SockId, _: Close) {}
    fn on_datagrams(&mut self, _: &mut EpollDriver, datagrams: Datagrams<'_>) {
        let got = Got {
            sock: datagrams.sock,
            peer: datagrams.peer,
            local: datagrams.local,
            ecn: datagrams.ecn,
            segment: datagrams.segment,
            bytes: datagrams.bytes.to_vec(),
        };
        // At its end, the test listens no longer.
        let _ = self.got.send(got);
    }
    fn on_datagram_room(&mut self, _: &mut EpollDriver, sock: DatagramSock) {
        let _ = self.room.send(sock);
    }
    fn on_datagrams_refused(&mut self, _: &mut EpollDriver, sock: SockId) {
        let _ = self.refused.send(sock);
    }
    fn on_timer(&mut self, _: &mut EpollDriver) {}
    fn next_deadline_ms(&mut self) -> Option<u64> {
        None
    }
    fn on_round_end(&mut self, _: &mut EpollDriver) {
        let fresh = std::mem::take(&mut self.answers[0]);
        for answer in std::mem::replace(&mut self.answers[1], fresh) {
            answer();
        }
    }
    fn has_work(&self) -> bool {
        self.answers.iter().any(|answers| !answers.is_empty())
    }
}

fn driver(listeners: Vec<Listener>) -> (EpollDriver, Arc<OwnedFd>, Arc<Activity>) {
    let wake = Arc::new(sys::eventfd().expect("an eventfd"));
    let activity = Arc::new(Activity::default());
    let setup = Setup {
        more: mpsc::channel().1,
        listeners,
        wakes: vec![Arc::clone(&wake)],
        worker: WorkerId(0),
        logs: Vec::new(),
        dropped: Arc::default(),
        activity: Arc::clone(&activity),
        accepts_a_turn_max: 1,
        buffer_bytes: 16 << 10,
        buffers: SocketBuffers::default(),
        measures: false,
        local_addrs: false,
    };
    let driver = EpollDriver::new(setup).expect("a driver");
    (driver, wake, activity)
}

fn listener(fd: OwnedFd) -> Listener {
    Listener {
        local: Addr::Inet(local(&fd)),
        fd: Arc::new(fd),
        id: UDP,
        shared: false,
    }
}

/// A worker on a thread of its own, with one datagram socket.
struct Serving {
    thread: Option<JoinHandle<()>>,
    orders: Sender<Order>,
    wake: Arc<OwnedFd>,
    activity: Arc<Activity>,
    to: SocketAddr,
    got: Receiver<Got>,
    room: Receiver<DatagramSock>,
    refused: Receiver<SockId>,
}

impl Serving {
    fn at(addr: SocketAddr) -> Serving {
        Serving::of(open(addr, &DatagramOptions::default()).0)
    }

    fn of(fd: OwnedFd) -> Serving {
        let to = local(&fd);
        let (mut driver, wake, activity) = driver(vec![listener(fd)]);
        let (orders, received) = mpsc::channel();
        let (tell, got) = mpsc::channel();
        let (tell_room, room) = mpsc::channel();
        let (tell_refused, refused) = mpsc::channel();
        let body = move || {
            let mut engine = Teller {
                got: tell,
                room: tell_room,
                refused: tell_refused,
                over: false,
                answers: [Vec::new(), Vec::new()],
            };
            driver.run(&mut engine, &received).expect("it ran");
        };
        Serving {
            thread: Some(spawn(body)),
            orders,
            wake,
            activity,
            to,
            got,
            room,
            refused,
        }
    }

    /// The next run of datagrams.
    fn got(&self) -> Got {
        self.got.recv_timeout(DEADLINE).expect("datagrams")
    }

    /// Has the worker do something, and returns what it says once that round is over: what was sent
    /// in it has left.
    fn order<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut EpollDriver) -> T + Send + 'static,
    ) -> T {
        let (tell, told) = mpsc::channel();
        let order = move |driver: &mut EpollDriver| -> Answer {
            let result = work(driver);
            Box::new(move || drop(tell.send(result)))
        };
        self.orders.send(Some(Box::new(order))).expect("a worker");
        sys::eventfd_ring(self.wake.as_raw_fd());
        told.recv_timeout(DEADLINE).expect("an answer")
    }

    /// Has the worker send one run.
    fn send(&self, peer: SocketAddr, segment: Option<usize>, bytes: &[u8]) {
        let bytes = bytes.to_vec();
        self.order(move |driver| {
            driver.send_datagrams(UDP.into(), outgoing(peer, segment, &bytes))
        });
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.orders.send(None);
        sys::eventfd_ring(self.wake.as_raw_fd());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
            && !std::thread::panicking()
        {
            panic!("the worker has failed");
        }
    }
}

fn outgoing(peer: SocketAddr, segment: Option<usize>, bytes: &[u8]) -> Outgoing<'_> {
    Outgoing {
        peer,
        source: None,
        ecn: 0,
        segment,
        bytes,
    }
}

/// A plain socket whose reads have a deadline.
fn plain(addr: SocketAddr) -> UdpSocket {
    let socket = UdpSocket::bind(SocketAddr::new(addr.ip(), 0)).expect("a socket");
    socket.set_read_timeout(Some(DEADLINE)).expect("a deadline");
    socket
}

/// The next datagram of a plain socket.
fn datagram(socket: &UdpSocket) -> (Vec<u8>, SocketAddr) {
    let mut bytes = vec![0; 65_536];
    let (len, from) = socket.recv_from(&mut bytes).expect("a datagram");
    bytes.truncate(len);
    (bytes, from)
}

/// Sends one message with its ECN field and its segments.
fn send_message(socket: &UdpSocket, peer: SocketAddr, ecn: u8, segment: Option<u16>, bytes: &[u8]) {
    let message = Sending {
        peer,
        source: None,
        ecn,
        segment,
        bytes,
    };
    let sent = SendBatch::default().send(socket.as_raw_fd(), std::iter::once(message));
    assert_eq!(sent, Io::Done(1));
}

/// What a socket of [`open`] receives next: source, local address, ECN field and bytes.
fn receive(fd: &UdpSocket) -> (SocketAddr, Option<IpAddr>, u8, Vec<u8>) {
    fd.set_nonblocking(false).expect("a flag");
    fd.set_read_timeout(Some(DEADLINE)).expect("a deadline");
    fd.peek(&mut [0; 1]).expect("a datagram");
    let mut batch = ReceiveBatch::new();
    assert_eq!(batch.receive(fd.as_raw_fd()), Io::Done(1));
    let message = batch.message(0).expect("a message");
    (
        message.peer,
        message.local,
        message.ecn,
        message.bytes.to_vec(),
    )
}
