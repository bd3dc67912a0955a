//! The streams of an HTTP/2 connection share it: none starves, whatever the others send, and nobody
//! makes the proxy keep more than a bounded number of bytes.

use std::collections::BTreeMap;

use http::Head;
use http::h2::{Connection, Event, Limits};
use net::Engine as _;

use super::h2::Client;
use super::script::{DEFAULTS, Play};
use crate::driver::deliver;
use crate::setups::runtime_config;

/// Parallel downloads.
const DOWNLOADS: usize = 8;
/// The body of each, bytes.
const BODY_BYTES: usize = 2 << 20;
/// What a driver looks at in one read, bytes.
const LOOK_BYTES: usize = 256 << 10;
/// What a slow client reads in a round, bytes.
const CLIENT_READS_BYTES: usize = 20_000;

/// A client that reads slowly, and what it has got.
struct Slow {
    client: Client,
    got: BTreeMap<u32, usize>,
}

impl Slow {
    /// A client with these streams, whose servers have answered with large bodies. `reads`: the
    /// client's socket takes only what it reads; otherwise only the windows limit it.
    fn new(reads: bool) -> Slow {
        let mut client = Client::new("", "server one 127.0.0.1:81");
        for _ in 0..DOWNLOADS {
            client.get().expect("a stream");
        }
        if reads {
            client.play.driver.pipes[client.place].room = 0;
        }
        for nth in 1..=DOWNLOADS {
            client.play.line(&format!("s{nth} ok")).expect("a server");
            let server = client.play.place(&format!("s{nth}")).expect("a server");
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {BODY_BYTES}\r\n\r\n");
            let pipe = &mut client.play.driver.pipes[server];
            pipe.write(head.as_bytes());
            pipe.write(&vec![b'x'; BODY_BYTES]);
        }
        Slow {
            client,
            got: BTreeMap::new(),
        }
    }

    /// A round of the driver: what servers sent is delivered in this order, then the client reads.
    fn round(&mut self, servers: impl Iterator<Item = usize>) {
        let Client { play, place, .. } = &mut self.client;
        for nth in servers {
            let server = play.place(&format!("s{nth}")).expect("a server");
            if !play.driver.pipes[server].paused {
                deliver(&mut play.engine, &mut play.driver, server, LOOK_BYTES);
            }
        }
        let pipe = &mut play.driver.pipes[*place];
        if pipe.room < usize::MAX / 2 {
            pipe.room += CLIENT_READS_BYTES;
            if pipe.blocked {
                pipe.drain(usize::MAX);
                let (sock, blocked) = (pipe.sock.expect("open"), pipe.blocked);
                play.engine.on_writable(&mut play.driver, sock, blocked);
            }
        }
        play.engine.on_round_end(&mut play.driver);
        self.read();
    }

    fn read(&mut self) {
        let Client {
            play,
            place,
            codec,
            read,
            ..
        } = &mut self.client;
        let all = play.driver.pipes[*place].outbox.peek().to_vec();
        let (mut head, mut out) = (Head::default(), Vec::new());
        while *read < all.len() {
            let (used, event) = codec
                .read(&all[*read..], 0, &mut head, &mut out)
                .expect("frames");
            *read += used;
            match event {
                Event::More => break,
                Event::Data { stream, range, .. } => {
                    *self.got.entry(stream.0).or_default() += range.len();
                    codec.consumed(stream, range.len(), &mut out);
                }
                _ => {}
            }
        }
        if !out.is_empty() {
            play.driver.pipes[*place].write(&out);
            deliver(&mut play.engine, &mut play.driver, *place, usize::MAX);
        }
    }

    fn assert_fair(&self) {
        assert_share(&self.got);
    }
}

/// No stream has less than half of what each would have if all had the same.
fn assert_share(got: &BTreeMap<u32, usize>) {
    let all: usize = got.values().sum();
    let fair = all / DOWNLOADS;
    assert!(fair > 64 << 10, "{got:?}");
    for nth in 0..DOWNLOADS as u32 {
        let part = got.get(&(2 * nth + 1)).copied().unwrap_or(0);
        assert!(part > fair / 2, "stream {nth}: {part} of {fair}: {got:?}");
    }
}

/// By round: the peers in the order in which a driver delivers.
type Order = fn(usize) -> Box<dyn Iterator<Item = usize>>;

/// The order in which a driver delivers does not decide which stream is served.
fn orders() -> [Order; 3] {
    [
        |_| Box::new(1..=DOWNLOADS),
        |_| Box::new((1..=DOWNLOADS).rev()),
        |round| Box::new((0..DOWNLOADS).map(move |nth| (nth + round) % DOWNLOADS + 1)),
    ]
}

#[test]
fn downloads_to_a_slow_client_share_its_connection() {
    for order in orders() {
        let mut slow = Slow::new(true);
        for round in 0..300 {
            slow.round(order(round));
        }
        assert!(slow.got.values().sum::<usize>() > 200 * CLIENT_READS_BYTES);
        slow.assert_fair();
    }
}

#[test]
fn downloads_in_a_small_window_share_it() {
    for order in orders() {
        let mut slow = Slow::new(false);
        for round in 0..200 {
            slow.round(order(round));
        }
        assert!(slow.got.values().sum::<usize>() > 1 << 20);
        slow.assert_fair();
    }
}

/// A response that is ready before a large one is not overtaken by it.
#[test]
fn a_small_response_passes_a_large_one() {
    let mut slow = Slow::new(true);
    for _ in 0..20 {
        slow.round(2..=DOWNLOADS);
    }
    let before: usize = slow.got.values().sum();
    // The first server sends now; its stream has sent nothing yet.
    while slow.got.get(&1).copied().unwrap_or(0) < 100 << 10 {
        slow.round(1..=DOWNLOADS);
        let others: usize = slow.got.values().sum::<usize>() - before;
        assert!(others < 4 << 20, "{:?}", slow.got);
    }
}

/// Requests whose responses are heads alone, from a client that reads nothing.
#[test]
fn a_client_that_does_not_read_is_not_read() {
    let mut client = Client::new(
        "",
        "http-request return status 200 hdr x-long %[str(aaaaaaaaaaaaaaaa)]",
    );
    client.play.driver.pipes[client.place].room = 0;
    let mut requests = 0;
    for _ in 0..5_000 {
        let mut head = Head::default();
        assert!(head.set_method(b"HEAD"));
        head.set_target(b"/");
        head.append(b"host", b"a");
        let mut out = Vec::new();
        // The codec of the client would stop at the proxy's limit of streams: each stream is new.
        let Some(stream) =
            client
                .codec
                .send_request(&head, http::h2::Scheme::Http, 0, true, &mut out)
        else {
            break;
        };
        client
            .codec
            .send_reset(stream, http::h2::Code::CANCEL, &mut Vec::new());
        client.play.driver.pipes[client.place].write(&out);
        requests += 1;
    }
    assert_eq!(requests, 5_000);
    client.play.settle();
    let kept = client.play.driver.backlog_max;
    assert!(
        kept < 64 << 10,
        "{kept} bytes wait for a client that reads nothing"
    );
    assert!(client.play.driver.pipes[client.place].paused);
    // Everything is answered once it reads.
    client.play.driver.pipes[client.place].room = usize::MAX;
    client.play.settle();
    let frames = client.play.driver.pipes[client.place].outbox.len();
    assert!(frames > 5_000 * 9, "{frames}");
    assert!(client.play.driver.pipes[client.place].inbox.is_empty());
}

/// A server may send interim responses without end; they wait in its socket while the client does
/// not read.
#[test]
fn interim_responses_wait_for_the_client() {
    let mut client = Client::new("", "server one 127.0.0.1:81");
    client.get();
    client.line("s1 ok");
    client.play.driver.pipes[client.place].room = 0;
    let server = client.play.place("s1").expect("a server");
    let hint = b"HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\n\r\n";
    client.play.driver.pipes[server].write(&hint.repeat(10_000));
    client.play.settle();
    let kept = client.play.driver.backlog_max;
    assert!(
        kept < 64 << 10,
        "{kept} bytes wait for a client that reads nothing"
    );
    assert!(client.play.driver.pipes[server].paused);
    client.play.driver.pipes[server].write(b"HTTP/1.1 204 No Content\r\n\r\n");
    client.play.driver.pipes[client.place].room = usize::MAX;
    client.go_on();
    assert_eq!(client.answers.len(), 10_001);
    assert_eq!(client.answers.last(), Some(&(1, 204)));
}

/// Uploads of many clients through one connection to a server that reads slowly.
#[test]
fn uploads_share_the_connection_of_a_server() {
    for order in orders() {
        let mut uploads = Uploads::new();
        for round in 0..300 {
            uploads.round(order(round));
        }
        uploads.assert_fair();
    }
}

/// Clients of HTTP/1 that upload to an HTTP/2 server.
struct Uploads {
    play: Play,
    server: usize,
    codec: Connection,
    /// How much of the proxy's bytes the server has read.
    read: usize,
    got: BTreeMap<u32, usize>,
}

impl Uploads {
    fn new() -> Uploads {
        let lines = "http-reuse always\nserver one 127.0.0.1:81 proto h2";
        let mut play = Play::new(&runtime_config(&format!("{DEFAULTS}{lines}\n")));
        let limits = Limits {
            connection_window_bytes: 65_535,
            stream_window_bytes: 1 << 20,
            ..Limits::default()
        };
        let mut out = Vec::new();
        let codec = Connection::server(limits, &mut out);
        for nth in 1..=DOWNLOADS {
            let head = format!("c{nth} > POST / HTTP/1.1|host: a|content-length: {BODY_BYTES}||");
            play.line(&head).expect("a client");
            play.settle();
            if nth == 1 {
                play.line("s1 ok").expect("a server");
            }
            play.settle();
        }
        let server = play.place("s1").expect("a server");
        assert!(play.place("s2").is_err(), "all share a connection");
        play.driver.pipes[server].write(&out);
        for nth in 1..=DOWNLOADS {
            let client = play.place(&format!("c{nth}")).expect("a client");
            play.driver.pipes[client].write(&vec![b'x'; BODY_BYTES]);
        }
        Uploads {
            play,
            server,
            codec,
            read: 0,
            got: BTreeMap::new(),
        }
    }

    fn round(&mut self, clients: impl Iterator<Item = usize>) {
        let Uploads { play, server, .. } = self;
        for nth in clients {
            let client = play.place(&format!("c{nth}")).expect("a client");
            if !play.driver.pipes[client].paused {
                deliver(&mut play.engine, &mut play.driver, client, LOOK_BYTES);
            }
        }
        play.engine.on_round_end(&mut play.driver);
        let all = play.driver.pipes[*server].outbox.peek().to_vec();
        let (mut head, mut out) = (Head::default(), Vec::new());
        while self.read < all.len() {
            let (used, event) = self
                .codec
                .read(&all[self.read..], 0, &mut head, &mut out)
                .expect("frames");
            self.read += used;
            match event {
                Event::More => break,
                Event::Data { stream, range, .. } => {
                    *self.got.entry(stream.0).or_default() += range.len();
                    self.codec.consumed(stream, range.len(), &mut out);
                }
                _ => {}
            }
        }
        play.driver.pipes[*server].write(&out);
        if !play.driver.pipes[*server].inbox.is_empty() {
            deliver(&mut play.engine, &mut play.driver, *server, usize::MAX);
        }
    }

    fn assert_fair(&self) {
        assert_share(&self.got);
    }
}

/// The streams of an HTTP/2 server share its connection, so that one which sends interim responses
/// without end to a client that reads nothing cannot be held: it is ended.
#[test]
fn interim_responses_of_a_shared_connection_have_an_end() {
    let mut client = Client::new("", "server one 127.0.0.1:81 proto h2");
    client.get();
    client.line("s1 ok");
    client.play.driver.pipes[client.place].room = 0;
    let server = client.play.place("s1").expect("a server");
    let mut out = Vec::new();
    let mut codec = Connection::server(Limits::default(), &mut out);
    let asked = client.play.driver.pipes[server].outbox.peek().to_vec();
    let (mut at, mut head) = (0, Head::default());
    while let Ok((used, event)) = codec.read(&asked[at..], 0, &mut head, &mut out)
        && event != Event::More
    {
        at += used;
    }
    let mut hint = Head::default();
    hint.set_status(103, b"Early Hints");
    hint.append(b"link", &[b'a'; 300]);
    for _ in 0..20_000 {
        codec.send_response(http::h2::StreamId(1), &hint, false, &mut out);
    }
    client.play.driver.pipes[server].write(&out);
    client.play.settle();
    assert!(client.play.driver.backlog_max < 64 << 10);
    // RST_STREAM behind the request.
    let told = client.play.driver.pipes[server].outbox.peek();
    assert!(
        told.windows(5).any(|bytes| bytes == [0, 0, 4, 3, 0]),
        "the stream goes on"
    );
}
