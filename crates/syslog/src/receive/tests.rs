use super::*;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::sync::mpsc::{Receiver as Results, Sender, channel};

const DEADLINE: Duration = Duration::from_secs(40);

struct Sends(Sender<(usize, String, Option<IpAddr>)>);

impl Deliver for Sends {
    fn message(&mut self, section: usize, bytes: &[u8], from: Option<IpAddr>) {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let _ = self.0.send((section, text, from));
    }

    fn lost(&mut self) {
        self.message(0, b"(lost)", Some(Ipv4Addr::LOCALHOST.into()));
    }

    fn flush(&mut self) {}
}

struct Running {
    runner: Runner,
    results: Results<(usize, String, Option<IpAddr>)>,
    udp: SocketAddr,
    tcp: SocketAddr,
}

impl Running {
    fn start(connections_max: usize, timeout: Option<Duration>) -> Running {
        let udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let (sender, results) = channel();
        let addresses = (
            udp.local_addr().expect("one"),
            tcp.local_addr().expect("one"),
        );
        let section = Section {
            datagrams: vec![udp],
            listeners: vec![Listener {
                socket: Socket::Tcp(tcp),
                acceptor: None,
            }],
            connections_max,
            timeout,
            message_bytes_max: 1024,
            assumes_lines: false,
        };
        let runner = Runner::start(vec![section], Box::new(Sends(sender))).expect("a thread");
        Running {
            runner,
            results,
            udp: addresses.0,
            tcp: addresses.1,
        }
    }

    fn next(&self) -> String {
        let (section, text, from) = self.results.recv_timeout(DEADLINE).expect("a message");
        assert_eq!((section, from), (0, Some(Ipv4Addr::LOCALHOST.into())));
        text
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.tcp).expect("a connection");
        stream.set_read_timeout(Some(DEADLINE)).expect("an option");
        stream
    }
}

#[test]
fn datagrams_and_streams() {
    let running = Running::start(10, None);
    let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    sender.send_to(b"<1>a\nb", running.udp).expect("sent");
    assert_eq!(running.next(), "<1>a\nb");
    let mut stream = running.connect();
    stream.write_all(b"<2>line\n8 <3>coun").expect("sent");
    assert_eq!(running.next(), "<2>line");
    stream.write_all(b"ted").expect("sent");
    assert_eq!(running.next(), "<3>count");
    // The rest is no message.
    let mut end = Vec::new();
    stream.read_to_end(&mut end).expect("the end");
    assert_eq!(running.next(), "(lost)");
    // Open connections survive the end of listening.
    let mut stream = running.connect();
    stream.write_all(b"<4>x\n").expect("sent");
    assert_eq!(running.next(), "<4>x");
    running.runner.stop_listening();
    stream.write_all(b"<5>x\n").expect("sent");
    assert_eq!(running.next(), "<5>x");
    running.runner.stop();
}

#[test]
fn connections_over_the_limit_wait() {
    let running = Running::start(1, None);
    let mut first = running.connect();
    first.write_all(b"<1>first\n").expect("sent");
    assert_eq!(running.next(), "<1>first");
    let mut second = running.connect();
    second.write_all(b"<1>second\n").expect("sent");
    first.write_all(b"<1>again\n").expect("sent");
    assert_eq!(running.next(), "<1>again");
    drop(first);
    assert_eq!(running.next(), "<1>second");
    running.runner.stop();
}

#[test]
fn a_silent_connection_is_closed() {
    let running = Running::start(1, Some(Duration::from_millis(50)));
    let mut slow = running.connect();
    slow.write_all(b"<1>half").expect("sent");
    let mut end = Vec::new();
    slow.read_to_end(&mut end).expect("the end");
    running.runner.stop();
}
