//! The HTTP/2 codec against the crate `h2`, in either role: heads, bodies larger than all windows,
//! trailers, many streams at a time.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use http_types::{HeaderMap, HeaderValue, Request, Response};
use spangate_http::h2::{Connection, Event, Limits, Scheme, StreamId};
use spangate_http::{Head, Method};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

const STREAMS: usize = 40;
/// Small, so that frames are cut.
const PIPE_BYTES: usize = 3000;

fn limits() -> Limits {
    Limits {
        head_bytes_max: 64 << 10,
        block_bytes_max: 64 << 10,
        connection_window_bytes: 100_000,
        ..Limits::default()
    }
}

/// The body of the nth exchange.
fn body(nth: usize) -> Vec<u8> {
    let len = [0, 1, 1000, 70_000, 300_000][nth % 5];
    (0..len).map(|at| (at + nth) as u8).collect()
}

/// A field that takes part in compression, or is too large for one frame.
fn field(nth: usize) -> String {
    let len = if nth % 10 == 9 { 40_000 } else { 20 + nth % 3 };
    format!("{:a<1$}", nth % 4, len)
}

/// Runs both until the first is done.
fn run(first: impl Future<Output = ()>, second: impl Future<Output = ()> + 'static) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let set = tokio::task::LocalSet::new();
    set.block_on(&runtime, async {
        tokio::task::spawn_local(second);
        let limit = std::time::Duration::from_secs(60);
        tokio::time::timeout(limit, first).await.expect("in time");
    });
}

/// What waits to be sent on a stream.
#[derive(Default)]
struct Waiting {
    bytes: VecDeque<u8>,
    trailers: Option<Head>,
    has_all: bool,
    /// Each byte is credited when it is sent on.
    credits: bool,
}

/// Sends what there is room for. Whether the stream has ended.
fn pump(
    connection: &mut Connection,
    stream: StreamId,
    waiting: &mut Waiting,
    out: &mut Vec<u8>,
) -> bool {
    loop {
        let len = connection.data_room(stream).min(waiting.bytes.len());
        let is_last = waiting.has_all && waiting.trailers.is_none() && len == waiting.bytes.len();
        if len > 0 || is_last {
            assert!(connection.send_data_head(stream, len, is_last, out));
            out.extend(waiting.bytes.drain(..len));
            if waiting.credits {
                connection.consumed(stream, len, out);
            }
        }
        if is_last {
            return true;
        }
        if waiting.has_all && waiting.bytes.is_empty() {
            let trailers = waiting.trailers.take().expect("trailers");
            assert!(connection.send_trailers(stream, &trailers, out));
            return true;
        }
        if len == 0 {
            return false;
        }
    }
}

/// Our server: sends back what comes.
async fn echo(mut io: DuplexStream) {
    let mut out = Vec::new();
    let mut connection = Connection::server(limits(), &mut out);
    let mut streams: BTreeMap<StreamId, Waiting> = BTreeMap::new();
    let (mut input, mut head) = (Vec::new(), Head::default());
    loop {
        io.write_all(&out).await.expect("a reader");
        out.clear();
        if io.read_buf(&mut input).await.unwrap_or(0) == 0 {
            return;
        }
        let mut at = 0;
        loop {
            let (used, event) = connection
                .read(&input[at..], 0, &mut head, &mut out)
                .expect("a legal peer");
            let from = at;
            at += used;
            match event {
                Event::More => break,
                Event::Head { stream, end, .. } => {
                    assert_eq!(head.method(), Method::Post);
                    let mut response = Head::default();
                    response.set_status(200, b"OK");
                    for (_, _, name, value) in
                        head.fields().filter(|(_, _, name, _)| *name != b"host")
                    {
                        response.append(name, value);
                    }
                    assert!(connection.send_response(stream, &response, false, &mut out));
                    let waiting = Waiting {
                        has_all: end,
                        credits: true,
                        ..Waiting::default()
                    };
                    streams.insert(stream, waiting);
                }
                Event::Data {
                    stream, range, end, ..
                } => {
                    let waiting = streams.get_mut(&stream).expect("a stream");
                    waiting.bytes.extend(&input[from..][range]);
                    waiting.has_all = end;
                }
                Event::Trailers { stream, .. } => {
                    let waiting = streams.get_mut(&stream).expect("a stream");
                    waiting.trailers = Some(head.clone());
                    waiting.has_all = true;
                }
                Event::WindowOpen { .. } | Event::WindowsOpen | Event::Settings => {}
                event => panic!("{event:?}"),
            }
        }
        input.drain(..at);
        streams.retain(|stream, waiting| !pump(&mut connection, *stream, waiting, &mut out));
    }
}

#[test]
fn our_server() {
    let (theirs, ours) = duplex(PIPE_BYTES);
    let client = async {
        let (client, connection) = h2::client::handshake(theirs).await.expect("a server");
        tokio::task::spawn_local(async { connection.await.expect("a legal server") });
        let mut tasks = Vec::new();
        for nth in 0..STREAMS {
            let mut client = client.clone().ready().await.expect("room");
            tasks.push(tokio::task::spawn_local(async move {
                let request = Request::post("https://h/echo?a=b")
                    .header("x-field", field(nth))
                    .header("x-same", "always")
                    .body(())
                    .expect("a request");
                let (response, mut send) = client.send_request(request, false).expect("a stream");
                send.send_data(body(nth).into(), nth % 3 > 0).expect("open");
                if nth % 3 == 0 {
                    send.send_trailers(trailers(nth)).expect("open");
                }
                let response = response.await.expect("a response");
                assert_eq!(response.headers()["x-field"], field(nth));
                assert_eq!(response.headers()["x-same"], "always");
                let mut stream = response.into_body();
                let bytes = read_all(&mut stream).await;
                assert!(bytes == body(nth), "{nth}");
                let came = stream.trailers().await.expect("an end");
                assert_eq!(came, (nth % 3 == 0).then(|| trailers(nth)));
            }));
        }
        for task in tasks {
            task.await.expect("no panic");
        }
    };
    run(client, echo(ours));
}

fn trailers(nth: usize) -> HeaderMap {
    let mut map = HeaderMap::new();
    map.insert("x-sum", HeaderValue::from(nth));
    map
}

async fn read_all(stream: &mut h2::RecvStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some(piece) = stream.data().await {
        let piece = piece.expect("payload");
        bytes.extend_from_slice(&piece);
        let credited = stream.flow_control().release_capacity(piece.len());
        credited.expect("a credit");
    }
    bytes
}

/// Their server: sends back what came.
async fn their_echo(io: DuplexStream) {
    let mut builder = h2::server::Builder::new();
    let builder = builder
        .max_concurrent_streams(7)
        .max_header_list_size(1 << 20);
    let mut connection = builder.handshake::<_, Bytes>(io).await.expect("a client");
    while let Some(accepted) = connection.accept().await {
        let (request, mut respond) = accepted.expect("a legal client");
        tokio::task::spawn_local(async move {
            let (parts, mut stream) = request.into_parts();
            assert_eq!(parts.uri, "https://h/echo");
            let mut response = Response::new(());
            *response.headers_mut() = parts.headers;
            let mut send = respond.send_response(response, false).expect("open");
            let bytes = read_all(&mut stream).await;
            let trailers = stream.trailers().await.expect("an end");
            send.send_data(bytes.into(), trailers.is_none())
                .expect("open");
            if let Some(trailers) = trailers {
                send.send_trailers(trailers).expect("open");
            }
        });
    }
}

/// An exchange of our client.
struct Exchange {
    nth: usize,
    waiting: Waiting,
    is_sent: bool,
    came: Vec<u8>,
}

async fn ask(mut io: DuplexStream) {
    let mut out = Vec::new();
    let mut connection = Connection::client(limits(), &mut out);
    let mut exchanges: BTreeMap<StreamId, Exchange> = BTreeMap::new();
    let (mut input, mut head, mut asked) = (Vec::new(), Head::default(), 0);
    while asked < STREAMS || !exchanges.is_empty() {
        while asked < STREAMS && connection.has_settings() && connection.can_open() {
            let (stream, exchange) = open(&mut connection, asked, &mut out);
            exchanges.insert(stream, exchange);
            asked += 1;
        }
        for (stream, exchange) in exchanges
            .iter_mut()
            .filter(|(_, exchange)| !exchange.is_sent)
        {
            exchange.is_sent = pump(&mut connection, *stream, &mut exchange.waiting, &mut out);
        }
        io.write_all(&out).await.expect("a reader");
        out.clear();
        assert!(io.read_buf(&mut input).await.expect("an answer") > 0);
        let mut at = 0;
        loop {
            let (used, event) = connection
                .read(&input[at..], 0, &mut head, &mut out)
                .expect("a legal peer");
            let from = at;
            at += used;
            let ended = match event {
                Event::More => break,
                Event::Head { stream, end, .. } => {
                    let nth = exchanges[&stream].nth;
                    let value = head.find(b"x-field").next().expect("a field").1;
                    assert_eq!((head.status(), value), (200, field(nth).as_bytes()));
                    end.then_some(stream)
                }
                Event::Data {
                    stream, range, end, ..
                } => {
                    connection.consumed(stream, range.len(), &mut out);
                    let exchange = exchanges.get_mut(&stream).expect("a stream");
                    exchange.came.extend_from_slice(&input[from..][range]);
                    assert!(!end || !exchange.nth.is_multiple_of(3));
                    end.then_some(stream)
                }
                Event::Trailers { stream, .. } => {
                    let nth = exchanges[&stream].nth.to_string();
                    assert_eq!(
                        head.find(b"x-sum").next().map(|(_, value)| value),
                        Some(nth.as_bytes())
                    );
                    Some(stream)
                }
                Event::WindowOpen { .. } | Event::WindowsOpen | Event::Settings => None,
                event => panic!("{event:?}"),
            };
            if let Some(exchange) = ended.and_then(|stream| exchanges.remove(&stream)) {
                assert!(exchange.is_sent && exchange.came == body(exchange.nth));
            }
        }
        input.drain(..at);
    }
    assert_eq!(connection.stream_count(), 0);
}

fn open(connection: &mut Connection, nth: usize, out: &mut Vec<u8>) -> (StreamId, Exchange) {
    let mut head = Head::default();
    assert!(head.set_method(b"POST"));
    head.set_target(b"/echo");
    head.append(b"host", b"h");
    head.append(b"x-field", field(nth).as_bytes());
    let stream = connection.send_request(&head, Scheme::Https, 0, false, out);
    let mut waiting = Waiting {
        bytes: body(nth).into(),
        has_all: true,
        ..Waiting::default()
    };
    if nth.is_multiple_of(3) {
        let mut trailers = Head::default();
        trailers.append(b"x-sum", nth.to_string().as_bytes());
        waiting.trailers = Some(trailers);
    }
    let exchange = Exchange {
        nth,
        waiting,
        is_sent: false,
        came: Vec::new(),
    };
    (stream.expect("room"), exchange)
}

#[test]
fn our_client() {
    let (theirs, ours) = duplex(PIPE_BYTES);
    run(ask(ours), their_echo(theirs));
}
