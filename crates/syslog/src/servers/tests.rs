use super::*;
use std::io::{Read, Write as _};
use std::net::{Ipv4Addr, TcpListener};

const DEADLINE: Duration = Duration::from_secs(40);

struct Scene {
    ring: Arc<Ring>,
    listener: TcpListener,
}

impl Scene {
    fn new(bytes_max: usize) -> Scene {
        Scene {
            ring: Arc::new(Ring::new(bytes_max)),
            listener: TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port"),
        }
    }

    fn server(&self, framing: Framing) -> Server {
        Server {
            ring: Arc::clone(&self.ring),
            address: self.listener.local_addr().expect("an address"),
            framing,
            timeout_connect: Some(DEADLINE),
            timeout_server: Some(DEADLINE),
            connector: None,
            reach: Arc::new(Reach::new("t".to_owned(), Duration::ZERO, || {})),
        }
    }

    fn push(&self, message: &str) {
        self.ring.push([message.as_bytes()].into_iter());
    }

    /// The next connection; until it is there, messages come.
    fn accept_while_pushing(&self, message: &str) -> std::net::TcpStream {
        self.listener.set_nonblocking(true).expect("an option");
        loop {
            self.push(message);
            match self.listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(false).expect("an option");
                    stream.set_read_timeout(Some(DEADLINE)).expect("an option");
                    return stream;
                }
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
            std::thread::park_timeout(Duration::from_millis(1));
        }
    }

    fn accept(&self) -> std::net::TcpStream {
        let (stream, _) = self.listener.accept().expect("a connection");
        stream.set_read_timeout(Some(DEADLINE)).expect("an option");
        stream
    }
}

fn read(stream: &mut impl Read, count: usize) -> String {
    let mut bytes = vec![0; count];
    stream.read_exact(&mut bytes).expect("bytes");
    String::from_utf8(bytes).expect("text")
}

#[test]
fn servers_get_every_message_in_both_framings() {
    let scene = Scene::new(1 << 16);
    let other = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let counted = Server {
        address: other.local_addr().expect("an address"),
        ..scene.server(Framing::OctetCount)
    };
    scene.push("before the start");
    let runner = Runner::start(vec![scene.server(Framing::LineFeed), counted]);
    let runner = runner.expect("a thread");
    let mut lines = scene.accept();
    let (mut counts, _) = other.accept().expect("a connection");
    assert_eq!(read(&mut lines, 17), "before the start\n");
    assert_eq!(read(&mut counts, 19), "16 before the start");
    scene.push("one");
    assert_eq!(read(&mut lines, 4), "one\n");
    // What a server says is discarded.
    lines.write_all(&[b'x'; 2000]).expect("bytes");
    scene.push("two");
    assert_eq!(read(&mut lines, 4), "two\n");
    scene.push("last");
    runner.stop();
    let mut rest = String::new();
    lines.read_to_string(&mut rest).expect("the end");
    assert_eq!(rest, "last\n");
    rest.clear();
    counts.read_to_string(&mut rest).expect("the end");
    assert_eq!(rest, "3 one3 two4 last");
}

#[test]
fn a_lost_connection_is_made_again() {
    let scene = Scene::new(1 << 16);
    let runner = Runner::start(vec![scene.server(Framing::LineFeed)]).expect("a thread");
    scene.push("one");
    let mut stream = scene.accept();
    assert_eq!(read(&mut stream, 4), "one\n");
    drop(stream);
    // Messages that the kernel took for the lost connection are lost with it.
    let mut stream = scene.accept_while_pushing("two");
    assert_eq!(read(&mut stream, 4), "two\n");
    runner.stop();
}

#[test]
fn a_server_that_never_reads_is_bounded_and_left_after_its_timeout() {
    let scene = Scene::new(64 << 10);
    let server = Server {
        timeout_server: Some(Duration::from_millis(50)),
        ..scene.server(Framing::LineFeed)
    };
    let reach = Arc::clone(&server.reach);
    let runner = Runner::start(vec![server]).expect("a thread");
    scene.push("first");
    let stuck = scene.accept();
    let next = scene.accept_while_pushing(&"x".repeat(8 << 10));
    assert!(reach.news().is_some());
    assert!(scene.ring.dropped() > 0);
    drop((stuck, next));
    runner.stop();
}
