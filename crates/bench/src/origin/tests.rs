//! The origin over real loopback connections.

use std::io::{Read, Write};
use std::net::TcpStream;

use super::*;

fn connect() -> TcpStream {
    let address = start_here(1, Bodies::new()).unwrap().address;
    TcpStream::connect(address).unwrap()
}

/// Reads one answer. Returns its head and the length of its body.
fn answer(stream: &mut TcpStream) -> (String, usize) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let length = head
        .split("content-length: ")
        .nth(1)
        .unwrap()
        .split("\r\n")
        .next()
        .unwrap()
        .parse()
        .unwrap();
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    (head, body.len())
}

fn at_end(stream: &mut TcpStream) -> bool {
    stream.read(&mut [0]).is_ok_and(|count| count == 0)
}

#[test]
fn keeps_the_connection_for_every_size() {
    let mut stream = connect();
    for &(path, bytes) in site::SIZES {
        write!(stream, "GET {path} HTTP/1.1\r\nhost: a\r\n\r\n").unwrap();
        let (head, body) = answer(&mut stream);
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert_eq!(body, bytes);
    }
}

#[test]
fn closes_when_asked() {
    let mut stream = connect();
    write!(stream, "GET /1m HTTP/1.1\r\nConnection: Close\r\n\r\n").unwrap();
    assert_eq!(answer(&mut stream).1, 1 << 20);
    assert!(at_end(&mut stream));
}

#[test]
fn takes_a_head_in_pieces_and_throws_a_body_away() {
    let mut stream = connect();
    stream.set_nodelay(true).unwrap();
    for piece in [
        "POST /50 HTT",
        "P/1.1\r\ncontent-le",
        "ngth: 7\r\n\r",
        "\nabc",
    ] {
        stream.write_all(piece.as_bytes()).unwrap();
    }
    assert_eq!(answer(&mut stream).1, 50);
    stream.write_all(b"defgGET /none HTTP/1.1\r\n\r\n").unwrap();
    assert!(answer(&mut stream).0.starts_with("HTTP/1.1 404 "));
}

#[test]
fn refuses_what_it_does_not_know() {
    let mut stream = connect();
    write!(
        stream,
        "POST /50 HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n"
    )
    .unwrap();
    assert!(answer(&mut stream).0.starts_with("HTTP/1.1 411 "));
    assert!(at_end(&mut stream));

    let mut stream = connect();
    stream.write_all(b"GET /50 HTTP/1.1\r\nx: ").unwrap();
    stream.write_all(&vec![b'a'; HEAD_BYTES_MAX - 20]).unwrap();
    assert!(answer(&mut stream).0.starts_with("HTTP/1.1 431 "));
}
