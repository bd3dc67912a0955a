//! A head that is used again allocates nothing: not to parse, not to edit, not to write.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use spangate_http::h1::{
    BodyDecoder, Framing, Limits, Piece, Strictness, parse_request, parse_response,
    write_chunk_head, write_last_chunk, write_request, write_response,
};
use spangate_http::{Head, Method, Name};

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, counting the allocations of each thread.
struct Counting;

// SAFETY: every call is passed on to the system's allocator unchanged; the counter does not
// allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const REQUEST: &[u8] = b"POST http://example.org:80/upload?a=b HTTP/1.1\r\n\
    Host: example.org\r\nUser-Agent: test\r\nConnection: keep-alive, te\r\nTE: trailers, gzip\r\n\
    Transfer-Encoding: chunked\r\nX-Unheard-Of: value\r\n\r\n";
const BODY: &[u8] = b"4\r\nabcd\r\n0\r\nX-Sum: 1\r\n\r\n";
const RESPONSE: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\nServer: origin\r\nConnection: close\r\n\r\n";

fn exchange(request: &mut Head, response: &mut Head, trailers: &mut Head, out: &mut Vec<u8>) {
    let limits = Limits::default();
    out.clear();
    let parsed = parse_request(REQUEST, limits, Strictness::Strict, request)
        .unwrap()
        .unwrap();
    assert_eq!(parsed.framing, Framing::Chunked);
    assert!(request.remove_all(b"X-Unheard-Of") == 1 && request.has(Name::Te));
    request.append(b"X-Forwarded-For", b"127.0.0.1");
    request.set_target(b"/other");
    write_request(request, None, out);

    let mut decoder = BodyDecoder::with(parsed.framing, limits, Strictness::Strict);
    let mut rest = BODY;
    loop {
        let (consumed, piece) = decoder.next(rest, trailers).unwrap();
        rest = &rest[consumed..];
        match piece {
            Piece::Data(data) => {
                write_chunk_head(data.len(), out);
                out.extend_from_slice(data);
            }
            Piece::More => panic!("the body is whole"),
            Piece::End => break,
        }
    }
    write_last_chunk(trailers, out);

    parse_response(RESPONSE, Method::Post, limits, Strictness::Strict, response)
        .unwrap()
        .unwrap();
    write_response(response, None, out);
}

#[test]
fn a_reused_head_allocates_nothing() {
    let (mut request, mut response, mut trailers) =
        (Head::default(), Head::default(), Head::default());
    let mut out = Vec::new();
    exchange(&mut request, &mut response, &mut trailers, &mut out);
    let first = out.clone();
    let before = ALLOCATIONS.get();
    assert!(before > 0, "the counter counts");
    for _ in 0..100 {
        exchange(&mut request, &mut response, &mut trailers, &mut out);
    }
    assert_eq!(ALLOCATIONS.get() - before, 0);
    assert_eq!(out, first);
}

/// An exchange over HTTP/2, as a client sees it who sends the same again and again.
#[test]
fn an_http2_exchange_allocates_nothing() {
    use spangate_http::h2::{self, Connection, Event, Scheme};

    let (mut to_server, mut to_client) = (Vec::new(), Vec::new());
    let mut client = Connection::client(h2::Limits::default(), &mut to_server);
    let mut server = Connection::server(h2::Limits::default(), &mut to_client);
    let (mut request, mut response) = (Head::default(), Head::default());
    request.set_target(b"/path");
    request.append(b"host", b"example.org");
    request.append(b"user-agent", b"test");
    request.append(b"cookie", b"a=012345678901234567890");
    request.append(b"authorization", b"Basic secret");
    response.set_status(200, b"OK");
    response.append(b"server", b"origin");
    response.append(b"date", b"Mon, 21 Oct 2013 20:13:21 GMT");
    let mut came = Head::default();
    let mut read = |connection: &mut Connection, wire: &mut Vec<u8>, out: &mut Vec<u8>| {
        let (mut at, mut found) = (0, None);
        loop {
            let (used, event) = connection.read(&wire[at..], 0, &mut came, out).unwrap();
            at += used;
            match event {
                Event::More => break,
                Event::Head { stream, .. } => found = Some(stream),
                Event::Data { stream, range, .. } => connection.consumed(stream, range.len(), out),
                _ => {}
            }
        }
        assert_eq!(at, wire.len());
        wire.clear();
        found
    };
    let mut exchange = || {
        let sent = client.send_request(&request, Scheme::Https, 1, true, &mut to_server);
        let stream = read(&mut server, &mut to_server, &mut to_client).unwrap();
        assert_eq!(sent, Some(stream));
        assert!(server.send_response(stream, &response, false, &mut to_client));
        assert!(server.data_room(stream) > 100);
        assert!(server.send_data_head(stream, 4, true, &mut to_client));
        to_client.extend_from_slice(b"body");
        assert_eq!(read(&mut client, &mut to_client, &mut to_server), sent);
    };
    for _ in 0..10 {
        exchange();
    }
    let before = ALLOCATIONS.with(Cell::get);
    for _ in 0..1000 {
        exchange();
    }
    assert_eq!(ALLOCATIONS.with(Cell::get) - before, 0);
}
