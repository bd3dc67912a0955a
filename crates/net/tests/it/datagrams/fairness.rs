//! Datagrams and connections on one worker: none waits for all of the other.

use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, mpsc};

use spangate_net::epoll::{EpollDriver, Listener};
use spangate_net::listen::DatagramOptions;
use spangate_net::{
    Accepted, Addr, Close, Datagrams, Driver, Engine, ListenerId, Message, Outgoing, SockId, Took,
};

use super::{DEADLINE, UDP, driver, listener, open, plain, spawn};

/// The most messages that a round receives: four batches.
const MESSAGES_A_ROUND: usize = 128;
const TCP: ListenerId = ListenerId(1);

/// What came in a round.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    datagrams: usize,
    bytes: usize,
}

/// Counts what comes in each round of the loop, until enough has come. It answers each delivery,
/// of bytes and of datagrams.
struct Counts {
    rounds: Vec<Round>,
    now: Round,
    left: Round,
    /// When the test has taken too long.
    end_ms: Option<u64>,
}

impl Counts {
    fn until(datagrams: usize, bytes: usize) -> Counts {
        Counts {
            rounds: Vec::new(),
            now: Round::default(),
            left: Round { datagrams, bytes },
            end_ms: None,
        }
    }

    /// The number of rounds that have brought `part` of something.
    fn rounds_until(&self, part: usize, of: impl Fn(&Round) -> usize) -> usize {
        let mut all = 0;
        let reaches = |round: &Round| {
            all += of(round);
            all >= part
        };
        1 + self.rounds.iter().position(reaches).expect("it came")
    }
}

impl Engine<EpollDriver> for Counts {
    type Order = ();

    fn on_order(&mut self, _: &mut EpollDriver, (): ()) {}
    fn is_finished(&self, _: bool) -> bool {
        self.left.datagrams == 0 && self.left.bytes == 0
    }
    fn admit(&mut self, _: &mut EpollDriver, listener: ListenerId) -> bool {
        assert_eq!(listener, TCP);
        true
    }
    fn retract(&mut self, _: &mut EpollDriver, _: ListenerId) {}
    fn on_accept(&mut self, _: &mut EpollDriver, _: SockId, _: Accepted) {}
    fn on_connected(&mut self, _: &mut EpollDriver, _: SockId) {}
    fn on_data(&mut self, driver: &mut EpollDriver, sock: SockId, data: &mut [u8]) -> Took {
        self.now.bytes += data.len();
        self.left.bytes = self.left.bytes.saturating_sub(data.len());
        let answer = Message {
            head: &data[..1],
            ..Message::default()
        };
        driver.send(sock, answer);
        Took {
            bytes: data.len(),
            held: 0,
        }
    }
    fn on_writable(&mut self, _: &mut EpollDriver, _: SockId, _: bool) {}
    fn on_eof(&mut self, driver: &mut EpollDriver, sock: SockId) {
        driver.close(sock);
    }
    fn on_broken(&mut self, _: &mut EpollDriver, _: SockId) {}
    fn on_close(&mut self, _: &mut EpollDriver, _: SockId, _: Close) {}
    fn on_datagrams(&mut self, driver: &mut EpollDriver, datagrams: Datagrams<'_>) {
        self.now.datagrams += 1;
        self.left.datagrams = self.left.datagrams.saturating_sub(1);
        let answer = Outgoing {
            peer: datagrams.peer,
            source: datagrams.local,
            ecn: datagrams.ecn,
            segment: None,
            bytes: datagrams.bytes,
        };
        driver.send_datagrams(UDP.into(), answer);
    }
    fn on_timer(&mut self, _: &mut EpollDriver) {
        panic!("it takes too long: {:?} is left", self.left);
    }
    fn next_deadline_ms(&mut self) -> Option<u64> {
        self.end_ms
    }
    fn on_round_end(&mut self, driver: &mut EpollDriver) {
        let end_ms = driver.now_ms() + DEADLINE.as_millis() as u64;
        self.end_ms.get_or_insert(end_ms);
        self.rounds.push(std::mem::take(&mut self.now));
    }
    fn has_work(&self) -> bool {
        false
    }
}

/// A driver with a TCP listener and a datagram socket, and their addresses.
fn both() -> (EpollDriver, SocketAddr, SocketAddr) {
    let tcp = TcpListener::bind("127.0.0.1:0").expect("a port");
    tcp.set_nonblocking(true).expect("a flag");
    let tcp_at = tcp.local_addr().expect("an address");
    let (udp, udp_at) = open(([127, 0, 0, 1], 0).into(), &DatagramOptions::default());
    let tcp = Listener {
        fd: Arc::new(tcp.into()),
        id: TCP,
        local: Addr::Inet(tcp_at),
        shared: false,
    };
    let (driver, ..) = driver(vec![tcp, listener(udp)]);
    (driver, tcp_at, udp_at)
}

/// Many datagrams wait, and a few bytes of a connection: the bytes do not wait for all of them.
#[test]
fn a_flood_of_datagrams_does_not_hold_a_connection_up() {
    const FLOOD: usize = 150;
    let (mut driver, tcp, udp) = both();
    let client = plain(udp);
    for _ in 0..FLOOD {
        client.send_to(&[7; 200], udp).expect("it is sent");
    }
    let mut stream = TcpStream::connect(tcp).expect("a connection");
    stream.write_all(b"hello").expect("it is sent");
    let mut counts = Counts::until(FLOOD, 5);
    let (_orders, orders) = mpsc::channel();
    driver.run(&mut counts, &orders).expect("it ran");
    let bytes = counts.rounds_until(5, |round| round.bytes);
    let datagrams = counts.rounds_until(FLOOD, |round| round.datagrams);
    assert!(bytes < datagrams, "{:?}", counts.rounds);
    let mut rounds = counts.rounds.iter();
    assert!(rounds.any(|round| round.datagrams > 0 && round.bytes > 0));
    let most = counts.rounds.iter().map(|round| round.datagrams).max();
    assert!(most <= Some(MESSAGES_A_ROUND), "{most:?}");
}

/// A large upload is under way, and a few datagrams come: they do not wait for all of it.
#[test]
fn an_upload_does_not_hold_datagrams_up() {
    const UPLOAD: usize = 8 << 20;
    let (mut driver, tcp, udp) = both();
    let mut stream = TcpStream::connect(tcp).expect("a connection");
    stream.write_all(&[0; 64 << 10]).expect("it is sent");
    let writer = spawn(move || {
        stream
            .write_all(&vec![0; UPLOAD - (64 << 10)])
            .expect("it is sent");
        stream
    });
    let client = plain(udp);
    for _ in 0..10 {
        client.send_to(&[7; 200], udp).expect("it is sent");
    }
    let mut counts = Counts::until(10, UPLOAD);
    let (_orders, orders) = mpsc::channel();
    driver.run(&mut counts, &orders).expect("it ran");
    writer.join().expect("a client");
    let bytes = counts.rounds_until(UPLOAD, |round| round.bytes);
    let datagrams = counts.rounds_until(10, |round| round.datagrams);
    assert!(datagrams < bytes, "{:?}", counts.rounds);
}

/// Peers that never cease to send datagrams, and a connection that asks and is answered.
#[test]
fn both_progress_under_a_lasting_flood() {
    use std::io::Read;
    use std::sync::atomic::{AtomicBool, Ordering};

    const QUESTIONS: usize = 300;
    let (mut driver, tcp, udp) = both();
    let over = Arc::new(AtomicBool::new(false));
    let ends = Arc::clone(&over);
    let flood = spawn(move || {
        let client = plain(udp);
        while !ends.load(Ordering::Relaxed) {
            // A full buffer of this machine is no error of the test.
            let _ = client.send_to(&[7; 900], udp);
        }
    });
    let asker = spawn(move || {
        let mut stream = TcpStream::connect(tcp).expect("a connection");
        stream.set_read_timeout(Some(DEADLINE)).expect("a deadline");
        for _ in 0..QUESTIONS {
            stream.write_all(b"?").expect("it is sent");
            stream.read_exact(&mut [0]).expect("an answer");
        }
    });
    // The last answer leaves at the end of the round that has the last question.
    let mut counts = Counts::until(2 * MESSAGES_A_ROUND, QUESTIONS);
    let (_orders, orders) = mpsc::channel();
    driver.run(&mut counts, &orders).expect("it ran");
    over.store(true, Ordering::Relaxed);
    asker.join().expect("a client");
    flood.join().expect("a client");
    let most = counts.rounds.iter().map(|round| round.datagrams).max();
    assert!(most <= Some(MESSAGES_A_ROUND), "{most:?}");
}
