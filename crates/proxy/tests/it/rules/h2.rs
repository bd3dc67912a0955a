//! Connections of HTTP/2, whose client is our own codec.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Head;
use http::h2::{Code, Connection, Event, Limits, Scheme, StreamId};
use sha1::{Digest as _, Sha1};

use super::script::{DEFAULTS, Play, play};
use crate::setups::runtime_config;

/// A client on the first connection, and what it was told.
pub(super) struct Client {
    pub play: Play,
    pub place: usize,
    pub codec: Connection,
    /// Bytes of the proxy's that it has read.
    pub read: usize,
    /// By stream: the status.
    pub answers: Vec<(u32, u16)>,
    goaways: Vec<Code>,
    /// The streams whose responses ended, and those that were reset.
    ended: Vec<u32>,
    pub resets: Vec<u32>,
    /// The payload of all responses.
    data: Vec<u8>,
}

impl Client {
    pub fn new(global: &str, lines: &str) -> Client {
        Client::of(&format!("global\n{global}\n{DEFAULTS}{lines}\n"))
    }

    /// With this configuration.
    fn of(text: &str) -> Client {
        Client::after(text, &[])
    }

    /// The same, where these lines come between the connection and its first bytes.
    fn after(text: &str, lines: &[&str]) -> Client {
        let mut play = Play::new(&runtime_config(text));
        play.line("c1 connects").expect("a connection");
        let place = play.place("c1").expect("a connection");
        for line in lines {
            play.line(line).expect("it can be done");
            play.settle();
        }
        let mut out = Vec::new();
        let codec = Connection::client(Limits::default(), &mut out);
        play.driver.pipes[place].write(&out);
        let mut client = Client {
            play,
            place,
            codec,
            read: 0,
            answers: Vec::new(),
            goaways: Vec::new(),
            ended: Vec::new(),
            resets: Vec::new(),
            data: Vec::new(),
        };
        client.go_on();
        client
    }

    /// Sends a request for `/`. None where no stream may be opened.
    pub fn get(&mut self) -> Option<StreamId> {
        self.send(b"GET")
    }

    /// The same with a method.
    pub fn send(&mut self, method: &[u8]) -> Option<StreamId> {
        let mut head = Head::default();
        assert!(head.set_method(method));
        head.set_target(b"/");
        head.append(b"host", b"a");
        let mut out = Vec::new();
        let stream = self
            .codec
            .send_request(&head, Scheme::Http, 0, true, &mut out);
        self.play.driver.pipes[self.place].write(&out);
        self.go_on();
        stream
    }

    /// Sends an extended CONNECT for WebSocket.
    fn websocket(&mut self) {
        let mut head = Head::default();
        assert!(head.set_method(b"CONNECT") && head.set_protocol(b"websocket"));
        head.set_target(b"/chat");
        head.append(b"host", b"a");
        let mut out = Vec::new();
        let stream = self
            .codec
            .send_request(&head, Scheme::Http, 0, false, &mut out);
        assert!(stream.is_some());
        self.play.driver.pipes[self.place].write(&out);
        self.go_on();
    }

    /// What the proxy has sent to its only server.
    fn at_server(&mut self) -> String {
        let place = self.play.place("s1").expect("a server");
        let bytes = self.play.driver.pipes[place].outbox.peek();
        String::from_utf8_lossy(bytes).replace("\r\n", "|")
    }

    pub fn line(&mut self, line: &str) {
        self.play.line(line).expect("it can be done");
        self.go_on();
    }

    /// Sends what the codec would not.
    fn send_raw(&mut self, bytes: &[u8]) {
        self.play.driver.pipes[self.place].write(bytes);
        self.play.settle();
    }

    /// The codes of all GOAWAY frames, whatever else came.
    fn raw_goaways(&self) -> Vec<Code> {
        const GOAWAY: u8 = 7;
        let frames = self.raw_frames(GOAWAY).into_iter();
        frames
            .map(|(_, payload)| Code(u32::from(payload[7])))
            .collect()
    }

    /// The flags and payloads of all frames of a kind.
    fn raw_frames(&self, wanted: u8) -> Vec<(u8, Vec<u8>)> {
        let mut rest = self.play.driver.pipes[self.place].outbox.peek();
        let mut frames = Vec::new();
        while let [a, b, c, kind, flags, _, _, _, _, more @ ..] = rest {
            let len = usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c);
            if *kind == wanted {
                frames.push((*flags, more[..len].to_vec()));
            }
            rest = &more[len..];
        }
        frames
    }

    /// How often it was pinged.
    fn pings(&self) -> usize {
        const PING: u8 = 6;
        self.raw_frames(PING).len()
    }

    /// Lets the proxy work and reads what it says.
    pub fn go_on(&mut self) {
        self.play.settle();
        let all = self.play.driver.pipes[self.place].outbox.peek().to_vec();
        let mut head = Head::default();
        let mut out = Vec::new();
        while self.read < all.len() {
            let (used, event) = self
                .codec
                .read(&all[self.read..], 0, &mut head, &mut out)
                .expect("frames");
            self.read += used;
            match event {
                Event::More => break,
                Event::Head { stream, end, .. } => {
                    self.answers.push((stream.0, head.status()));
                    self.ended.extend(end.then_some(stream.0));
                }
                Event::Data {
                    stream, range, end, ..
                } => {
                    let from = self.read - used;
                    self.data
                        .extend_from_slice(&all[from + range.start..from + range.end]);
                    self.ended.extend(end.then_some(stream.0));
                }
                Event::Reset { stream, .. } => self.resets.push(stream.0),
                Event::Goaway { code, .. } => self.goaways.push(code),
                _ => {}
            }
        }
        if !out.is_empty() {
            self.play.driver.pipes[self.place].write(&out);
            self.play.settle();
        }
    }

    fn has_ended(&self) -> bool {
        let pipe = &self.play.driver.pipes[self.place];
        pipe.ended || pipe.sock.is_none()
    }
}

const ANSWER: &str = "http-request return status 200";

#[test]
fn a_connection_has_so_many_streams() {
    let mut client = Client::new("tune.h2.fe.max-total-streams 3", ANSWER);
    for nth in 0..3 {
        assert!(client.goaways.is_empty());
        assert_eq!(client.get(), Some(StreamId(2 * nth + 1)));
    }
    assert_eq!(client.answers, [(1, 200), (3, 200), (5, 200)]);
    assert_eq!(client.goaways.first(), Some(&Code::NO_ERROR));
    assert!(client.has_ended());
}

/// A client's GOAWAY announces the end of the connection. A request behind it is answered as long
/// as the connection is open (RFC 9113 §6.8).
#[test]
fn a_request_behind_a_goaway_is_answered() {
    const GOAWAY: [u8; 17] = [0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let get = |stream: u8| {
        [
            0, 0, 6, 1, 5, 0, 0, 0, stream, 0x82, 0x86, 0x84, 0x41, 1, b'a',
        ]
    };
    for first in [None, Some(1)] {
        let mut client = Client::new("", ANSWER);
        if let Some(stream) = first {
            client.send_raw(&get(stream));
        }
        client.send_raw(&[&GOAWAY[..], &GOAWAY, &get(3)].concat());
        client.play.line("wait 1").expect("it can be done");
        client.play.settle();
        const HEADERS: u8 = 1;
        let answers = client.raw_frames(HEADERS).len();
        assert_eq!(answers, 1 + usize::from(first.is_some()));
        assert!(client.has_ended());
    }
    let mut client = Client::new("", ANSWER);
    client.send_raw(&GOAWAY);
    client.play.line("wait 1").expect("it can be done");
    client.play.settle();
    assert!(client.has_ended());
}

#[test]
fn without_a_bound_a_connection_goes_on() {
    let mut client = Client::new("", ANSWER);
    for _ in 0..20 {
        assert!(client.get().is_some());
    }
    assert_eq!(client.answers.len(), 20);
    assert!(client.goaways.is_empty() && !client.has_ended());
}

/// Glitches of which each is a malformed request: at three quarters the connection takes no more
/// streams, at the bound it is cut.
#[test]
fn glitches_end_a_connection() {
    // HEADERS with the field `:x`, which there is not.
    let malformed = |stream: u8| [0, 0, 6, 1, 5, 0, 0, 0, stream, 0, 2, b':', b'x', 1, b'a'];
    let mut client = Client::new("tune.h2.fe.glitches-threshold 4", ANSWER);
    for nth in 0..3 {
        client.send_raw(&malformed(2 * nth + 1));
    }
    assert!(client.raw_goaways().is_empty());
    // A PING.
    client.send_raw(&[0, 0, 8, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(client.raw_goaways(), [Code::NO_ERROR]);
    client.send_raw(&malformed(7));
    let goaways = client.raw_goaways();
    assert_eq!(goaways, [Code::NO_ERROR, Code::ENHANCE_YOUR_CALM]);
    assert!(client.has_ended());
}

/// Below the CPU usage of `tune.glitches.kill.cpu-usage`, a connection with too many glitches goes
/// on; from it on, the next glitch ends it.
#[test]
fn glitches_are_spared_while_the_thread_is_idle() {
    // HEADERS with the field `:x`, which there is not.
    let malformed = |stream: u8| [0, 0, 6, 1, 5, 0, 0, 0, stream, 0, 2, b':', b'x', 1, b'a'];
    let global = "tune.h2.fe.glitches-threshold 4\n tune.glitches.kill.cpu-usage 80";
    let mut client = Client::new(global, ANSWER);
    client.play.driver.cpu_percent = 79;
    for nth in 0..6 {
        client.send_raw(&malformed(2 * nth + 1));
    }
    assert_eq!(client.raw_goaways(), [Code::NO_ERROR]);
    assert!(!client.has_ended());
    client.play.driver.cpu_percent = 80;
    client.send_raw(&malformed(13));
    let goaways = client.raw_goaways();
    assert_eq!(goaways, [Code::NO_ERROR, Code::ENHANCE_YOUR_CALM]);
    assert!(client.has_ended());
}

#[test]
fn limits_are_told() {
    let mut client = Client::new(
        "tune.h2.fe.max-concurrent-streams 2\n tune.h2.fe.initial-window-size 20000\n tune.h2.header-table-size 8192\n h2-workaround-bogus-websocket-clients",
        ANSWER,
    );
    let all = client.play.driver.pipes[client.place]
        .outbox
        .peek()
        .to_vec();
    let len = usize::from(all[2]);
    let entries = all[9..9 + len].chunks(6);
    let settings: Vec<_> = entries
        .map(|entry| {
            let value = entry[2..]
                .iter()
                .fold(0, |sum, byte| sum << 8 | u32::from(*byte));
            (entry[1], value)
        })
        .collect();
    for wanted in [(3, 2), (4, 20_000), (1, 8192)] {
        assert!(settings.contains(&wanted), "{settings:?}");
    }
    assert!(settings.iter().all(|(id, _)| *id != 8));
    assert!(client.get().is_some());
}

/// An extended CONNECT is an upgrade to a server of HTTP/1, whose key is made and checked here.
#[test]
fn websocket_to_a_server_of_http1() {
    let server = "server one 127.0.0.1:81";
    // The key of the example of RFC 6455 is not the one that was made.
    let wrong = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
    for is_good in [true, false] {
        let mut client = Client::new("", server);
        client.websocket();
        client.line("s1 ok");
        let asked = client.at_server();
        assert!(
            asked.starts_with("GET /chat HTTP/1.1|host: a|")
                && asked.contains("upgrade: websocket|"),
            "{asked}"
        );
        let key = asked.split("sec-websocket-key: ").nth(1);
        let key = key.and_then(|rest| rest.split('|').next()).expect("a key");
        let accept = if is_good {
            accept(key)
        } else {
            wrong.to_owned()
        };
        client.line(&format!(
            "s1 > HTTP/1.1 101 Switching|connection: upgrade|upgrade: websocket|sec-websocket-accept: {accept}||PONG"
        ));
        let status = if is_good { 200 } else { 502 };
        assert_eq!(client.answers, [(1, status)]);
        if is_good {
            let mut out = Vec::new();
            assert!(client.codec.send_data_head(StreamId(1), 4, false, &mut out));
            out.extend_from_slice(b"PING");
            client.send_raw(&out);
            assert!(client.at_server().ends_with("||PING"));
            let told = client.play.driver.pipes[client.place].outbox.peek();
            assert!(told.ends_with(b"PONG"));
        }
    }
}

/// A server's settings with extended CONNECT, then the statuses 103 and 200 on its first stream.
const SWITCHES: &str = "¤00¤00¤06¤04¤00¤00¤00¤00¤00¤00¤08¤00¤00¤00¤01\
                        ¤00¤00¤05¤01¤04¤00¤00¤00¤01¤08¤03103\
                        ¤00¤00¤01¤01¤04¤00¤00¤00¤01¤88";

/// An interim response before the final one leaves the upgrade as it is.
#[test]
fn websocket_to_a_server_of_http2_that_sends_a_hint_first() {
    let get = "GET /chat HTTP/1.1|host: a|connection: upgrade|upgrade: websocket\
               |sec-websocket-version: 13|sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==||";
    let script = format!(
        "c1 > {get}\ns1 ok\ns1 > {SWITCHES}\n\
         c1 <~ HTTP/1.1 103 Early Hints||HTTP/1.1 101 Switching Protocols|\nc1 open"
    );
    play("a hint first", "server one 127.0.0.1:81 proto h2", &script);
}

/// What proves that a key was seen (RFC 6455 §4.2.2).
fn accept(key: &str) -> String {
    let text = format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
    STANDARD.encode(Sha1::digest(text))
}

/// A server's settings, and a GOAWAY frame which says that it has processed nothing.
const GOES_AWAY: &str =
    "¤00¤00¤00¤04¤00¤00¤00¤00¤00¤00¤00¤08¤07¤00¤00¤00¤00¤00¤00¤00¤00¤00¤00¤00¤00¤00";
/// A server's settings, and the status 200 on its first stream.
const ANSWERS: &str = "¤00¤00¤00¤04¤00¤00¤00¤00¤00¤00¤00¤01¤01¤05¤00¤00¤00¤01¤88";

#[test]
fn an_upload_that_a_server_did_not_process_goes_out_again() {
    let mut play = Play::new(&runtime_config(&format!(
        "{DEFAULTS}server one 127.0.0.1:81 proto h2\n"
    )));
    let mut line = |line: String| {
        play.line(&line)
            .unwrap_or_else(|error| panic!("{line}: {error}"));
        play.settle();
    };
    line("c1 > POST / HTTP/1.1|host: a|content-length: 15||first".into());
    line("s1 ok".into());
    line(format!("s1 > {GOES_AWAY}"));
    // Before the other connection stands, more of it comes.
    line("c1 > again".into());
    line("s2 ok".into());
    line("c1 > after".into());
    line(format!("s2 > {ANSWERS}"));
    line("c1 <~ HTTP/1.1 200".into());
    line("log 200 ----".into());
    let sent = play.driver.pipes[2].outbox.peek();
    let has = |what: &[u8]| sent.windows(what.len()).any(|window| window == what);
    for part in [&b"first"[..], b"again", b"after"] {
        assert!(has(part), "{part:?} in {sent:?}");
    }
}

#[test]
fn an_upload_that_is_gone_fails() {
    let text = format!("global\n tune.bufsize 2000\n{DEFAULTS}server one 127.0.0.1:81 proto h2\n");
    let mut play = Play::new(&runtime_config(&text));
    let body = "x".repeat(3000);
    for line in [
        &format!("c1 > POST / HTTP/1.1|host: a|content-length: 9000||{body}"),
        "s1 ok",
        &format!("c1 > {body}"),
        &format!("s1 > {GOES_AWAY}"),
        "s2 none",
        "c1 <~ HTTP/1.1 502",
    ] {
        play.line(line)
            .unwrap_or_else(|error| panic!("{line}: {error}"));
        play.settle();
    }
}

#[test]
fn a_connection_that_answers_pings_stays_for_its_time() {
    let bind = DEFAULTS.replace("127.0.0.1:80", "127.0.0.1:80 idle-ping 1s");
    let mut client = Client::of(&format!("{bind}{ANSWER}\n"));
    client.get();
    for count in 1..=6 {
        client.line("wait 999");
        assert_eq!(client.pings(), count - 1);
        client.line("wait 1");
        assert_eq!(client.pings(), count);
    }
    // The time for its next request runs all the same (7 s).
    client.line("wait 999");
    assert!(!client.has_ended());
    client.line("wait 1");
    assert!(client.has_ended());
    assert_eq!(client.goaways, [Code::NO_ERROR]);

    // Where only its silence has a time-out, an answer ends that.
    let silence = bind
        .replace("timeout http-request 5s", "")
        .replace("timeout http-keep-alive 7s", "");
    let mut client = Client::of(&format!("{silence}{ANSWER}\n"));
    client.get();
    for _ in 0..30 {
        client.line("wait 1000");
    }
    assert_eq!((client.pings(), client.has_ended()), (30, false));
    // A request goes before.
    client.line("wait 500");
    client.get();
    client.line("wait 999");
    assert_eq!((client.pings(), client.answers.len()), (30, 2));
}

/// Pings keep a connection open where only its silence has a timeout: before its first request
/// `timeout http-keep-alive` is none.
#[test]
fn a_client_that_pings_is_not_silent() {
    let without = |words: &[&str]| {
        let text = format!("{DEFAULTS}{ANSWER}\n");
        words.iter().fold(text, |text, word| text.replace(word, ""))
    };
    let request = "timeout http-request 5s";
    let keep_alive = "timeout http-keep-alive 7s";
    // What is not set, whether the client has had a response, and whether pings keep it.
    for (unset, has_had, stays) in [
        (&[request, keep_alive][..], false, true),
        (&[request, keep_alive][..], true, true),
        (&[request][..], false, true),
        (&[request][..], true, false),
        (&[keep_alive][..], false, false),
        (&[keep_alive][..], true, false),
    ] {
        let mut client = Client::of(&without(unset));
        if has_had {
            client.get();
        }
        for _ in 0..30 {
            let mut out = Vec::new();
            client.codec.ping(1, &mut out);
            client.play.driver.pipes[client.place].write(&out);
            client.line("wait 3000");
        }
        assert_eq!(!client.has_ended(), stays, "{unset:?} {has_had}");
    }
}

#[test]
fn a_connection_that_does_not_answer_a_ping_is_closed() {
    let bind = DEFAULTS.replace("127.0.0.1:80", "127.0.0.1:80 idle-ping 1s");
    let mut client = Client::of(&format!("{bind}{ANSWER}\n"));
    client.get();
    let mut wait = |line: &str| {
        client.play.line(line).expect("it can be done");
        client.play.settle();
        (client.pings(), client.has_ended())
    };
    assert_eq!(wait("wait 1000"), (1, false));
    assert_eq!(wait("wait 999"), (1, false));
    assert_eq!(wait("wait 1"), (1, true));
    assert_eq!(client.raw_goaways(), []);
}

/// A client of HTTP/2 that has sent HEAD to a server that was asked with GET, and got the head of
/// its response.
fn asked_with_head() -> Client {
    let mut client = Client::new(
        "",
        "http-request set-method GET\n http-reuse always\n server one 127.0.0.1:81",
    );
    client.send(b"HEAD");
    client.line("s1 ok");
    client.line("s1 > HTTP/1.1 200 OK|content-length: 6||abc");
    assert_eq!(client.answers, [(1, 200)]);
    client
}

#[test]
fn a_response_to_head_ends_when_the_body_of_its_server_is_read() {
    let mut client = asked_with_head();
    assert_eq!(client.ended, [0; 0]);
    client.line("s1 > def");
    assert_eq!(client.ended, [1]);
    // The next request finds the server's connection free.
    client.send(b"GET");
    client.line("s1 > HTTP/1.1 200 OK|content-length: 2||ok");
    assert_eq!(client.answers, [(1, 200), (3, 200)]);
    assert_eq!(client.ended, [1, 3]);
    assert_eq!(client.data, b"ok");
}

#[test]
fn a_response_to_head_is_whole_without_the_body_of_its_server() {
    let mut client = asked_with_head();
    client.line("s1 fin");
    assert_eq!(client.ended, [1]);
    assert_eq!(client.resets, [0; 0]);
}

/// A server's settings, and on its first stream the status 200, after which the stream goes on.
const BEGINS: &str = "¤00¤00¤00¤04¤00¤00¤00¤00¤00¤00¤00¤01¤01¤04¤00¤00¤00¤01¤88";
/// An empty frame of payload that ends the first stream.
const ENDS: &str = "¤00¤00¤00¤00¤01¤00¤00¤00¤01";

#[test]
fn a_server_ends_its_stream_behind_a_response_without_a_body() {
    let mut play = Play::new(&runtime_config(&format!(
        "{DEFAULTS}server one 127.0.0.1:81 proto h2\n"
    )));
    for line in [
        "c1 > HEAD / HTTP/1.1|host: a||",
        "s1 ok",
        &format!("s1 > {BEGINS}"),
        "c1 <~ HTTP/1.1 200",
        "nolog",
        &format!("s1 > {ENDS}"),
        "log 200 ----",
    ] {
        play.line(line)
            .unwrap_or_else(|error| panic!("{line}: {error}"));
        play.settle();
    }
    // No RST_STREAM has left.
    let sent = play.driver.pipes[1].outbox.peek();
    let reset = [0, 0, 4, 3, 0, 0, 0, 0, 1];
    assert!(
        !sent.windows(reset.len()).any(|window| window == reset),
        "{sent:?}"
    );
}

#[test]
fn oddities_of_a_server_are_counted() {
    // HEADERS with a field `:x`, which there is not.
    let bad = "¤00¤00¤06¤01¤05¤00¤00¤00¤01¤88¤00¤02:x¤00";
    let lines = "option httplog\nlog-format \"%[bc_glitches] %ST %tsc\"\nserver one 127.0.0.1:81 proto h2\n";
    let mut play = Play::new(&runtime_config(&format!("{DEFAULTS}{lines}")));
    for line in [
        "c1 > GET / HTTP/1.1|host: a||",
        "s1 ok",
        &format!("s1 > ¤00¤00¤00¤04¤00¤00¤00¤00¤00{bad}"),
        "log 1 502 SH--",
    ] {
        play.line(line)
            .unwrap_or_else(|error| panic!("{line}: {error}"));
        play.settle();
    }
}

#[test]
fn a_connection_that_begins_while_the_process_drains_is_told() {
    let text = format!("{DEFAULTS}{ANSWER}\n");
    let mut client = Client::after(&text, &["drainprocess 0 60000"]);
    assert_eq!(client.raw_goaways(), [Code::NO_ERROR]);
    // What the client sent before it knew is answered; then the connection ends.
    const HEADERS: u8 = 1;
    client.send_raw(&[
        0, 0, 6, HEADERS, 5, 0, 0, 0, 1, 0x82, 0x86, 0x84, 0x41, 1, b'a',
    ]);
    assert_eq!(client.raw_frames(HEADERS).len(), 1, "a response");
    client.play.line("wait 2000").expect("it can be done");
    assert!(client.has_ended());
}

/// An early hint is a message of its stream: it is framed as the connection's mux frames heads,
/// never written between its frames.
#[test]
fn early_hints_are_interim_responses_of_their_stream() {
    let lines = "http-request early-hint Link \"</a.css>; rel=preload\"\n\
                 http-request early-hint Link \"</b.css>; rel=preload\" if { path / }\n\
                 http-request return status 200";
    let mut client = Client::new("", lines);
    client.get();
    assert_eq!(client.answers, [(1, 103), (1, 103), (1, 200)]);
    assert_eq!(client.ended, [1]);
    client.get();
    assert_eq!(client.answers[3..], [(3, 103), (3, 103), (3, 200)]);
}

/// Clients that send one request each leave connections to an HTTP/2 server behind (`http-reuse
/// safe`); only as many are kept as of an HTTP/1 server.
#[test]
fn idle_connections_to_a_server_of_http2_are_bounded() {
    for (line, most) in [("", 16), ("pool-max-conn 3", 3)] {
        let server = format!("server one 127.0.0.1:81 proto h2 {line}");
        let mut play = Play::new(&runtime_config(&format!(
            "{DEFAULTS}http-reuse safe\n{server}\n"
        )));
        for nth in 1..=40 {
            for line in [
                format!("c{nth} > GET / HTTP/1.1|host: a|connection: close||"),
                format!("s{nth} ok"),
                format!("s{nth} > {ANSWERS}"),
                format!("c{nth} <~ HTTP/1.1 200"),
            ] {
                play.line(&line)
                    .unwrap_or_else(|error| panic!("{line}: {error}"));
                play.settle();
                play.engine.audit().expect("the books are right");
            }
        }
        let pipes = play.driver.pipes.iter();
        let open = pipes.filter(|pipe| pipe.to.is_some() && pipe.sock.is_some());
        assert_eq!(open.count(), most, "{line}");
        // They serve again, and end in time.
        for line in ["c99 > GET / HTTP/1.1|host: a||", "wait 1", "s41 ok"] {
            play.line(line)
                .unwrap_or_else(|error| panic!("{line}: {error}"));
            play.settle();
        }
        play.line("wait 30000").expect("time");
        play.settle();
        play.engine.audit().expect("the books are right");
    }
}

/// The next stream of a connection that was idle for a moment finds the fields that the peer knows
/// already; after a longer time their memory is freed.
#[test]
fn a_connection_forgets_its_fields_only_after_a_while() {
    let mut client = Client::new(
        "",
        "http-request return status 200 hdr x-name a-value-of-some-length",
    );
    const HEADERS: u8 = 1;
    let mut length = |wait_ms: u32| {
        client.line(&format!("wait {wait_ms}"));
        client.get();
        client
            .raw_frames(HEADERS)
            .last()
            .map_or(0, |(_, payload)| payload.len())
    };
    let (first, again, later) = (length(0), length(4_999), length(5_000));
    assert!(again < first, "{again} {first}");
    assert_eq!(later, first);
}

/// A client that has used up its window and ends its side sends no more credit: its streams end
/// with it.
#[test]
fn a_client_that_leaves_without_credit_ends_its_streams() {
    let mut client = Client::new("", "server one 127.0.0.1:81");
    client.get();
    client.line("s1 ok");
    let server = client.play.place("s1").expect("a server");
    let body = vec![b'x'; 100_000];
    let pipe = &mut client.play.driver.pipes[server];
    pipe.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n");
    pipe.write(&body);
    client.play.settle();
    client
        .play
        .line("quiet")
        .expect_err("the response waits for credit");
    client.play.line("c1 fin").expect("an end");
    client.play.settle();
    client.play.line("quiet").expect("no stream is left");
}

/// A server that resets a request has seen it: it is not sent again, and the client learns that its
/// connection was stale.
#[test]
fn a_request_that_a_server_resets_is_not_sent_again() {
    // On a second stream, so that the connection was used before.
    let reset = "¤00¤00¤04¤03¤00¤00¤00¤00¤03¤00¤00¤00¤08";
    let script = format!(
        "c1 > GET / HTTP/1.1|host: a||\ns1 ok\ns1 > {ANSWERS}\nc1 <~ HTTP/1.1 200 OK|\n\
         c1 > GET / HTTP/1.1|host: a||\ns1 > {reset}\nc1 end\ns2 none"
    );
    play("a reset", "server one 127.0.0.1:81 proto h2", &script);
}

/// A client that has begun to send a body of four bytes.
fn uploading(lines: &str) -> (Client, StreamId) {
    let mut client = Client::new("", lines);
    let mut head = Head::default();
    assert!(head.set_method(b"POST"));
    head.set_target(b"/");
    head.append(b"host", b"a");
    head.append(b"content-length", b"4");
    let mut out = Vec::new();
    let sent = client
        .codec
        .send_request(&head, Scheme::Http, 0, false, &mut out);
    client.play.driver.pipes[client.place].write(&out);
    client.go_on();
    (client, sent.expect("a stream"))
}

#[test]
fn the_body_of_a_request_goes_on_after_its_response() {
    let (mut client, stream) = uploading("server one 127.0.0.1:81");
    client.line("s1 ok");
    client.line("s1 > HTTP/1.1 200 OK|content-length: 2||ok");
    assert_eq!(client.ended, [1]);
    let mut out = Vec::new();
    assert!(client.codec.send_data_head(stream, 4, true, &mut out));
    out.extend_from_slice(b"body");
    client.play.driver.pipes[client.place].write(&out);
    client.go_on();
    let sent = client.at_server();
    assert!(sent.ends_with("|4|body|0||"), "{sent}");
    assert_eq!(client.resets, [0; 0]);
    client.line("log 200 ----");
}

#[test]
fn a_refused_upload_that_stands_still_is_reset_after_a_moment() {
    let (mut client, _) = uploading("http-request deny");
    assert_eq!(client.answers, [(1, 403)]);
    client.line("wait 900");
    assert_eq!(client.resets, [0; 0]);
    client.line("wait 200");
    assert_eq!(client.resets, [1]);
    client.get();
    assert_eq!(client.answers, [(1, 403), (3, 403)]);
}

#[test]
fn a_rejected_request_ends_its_connection() {
    let mut client = Client::new("", "http-request reject");
    client.get();
    assert_eq!(client.answers, []);
    assert_eq!(client.goaways, [Code::ENHANCE_YOUR_CALM]);
    client.line("c1 end");
}
