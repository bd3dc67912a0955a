//! Scripted servers behind the program: one thread per connection.

use std::io::Read as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;

use super::http::{Message, Reader, Wire};
use super::{DEADLINE, address, listener};

/// A server on a free port.
pub struct Origin {
    pub at: SocketAddr,
}

impl Origin {
    /// Answers every request with the result of `answer`.
    pub fn start(answer: impl Fn(&Message) -> Vec<u8> + Send + Sync + 'static) -> Origin {
        Origin::raw(move |stream| serve(stream, &answer))
    }

    /// Calls `work` with each connection.
    pub fn raw(work: impl Fn(TcpStream) + Send + Sync + 'static) -> Origin {
        let listener = listener();
        let at = address(&listener);
        on_each(
            move || listener.accept().map(|(stream, _)| timed(stream)),
            work,
        );
        Origin { at }
    }

    /// Answers like [`Origin::start`], but holds requests for `/hold`: it connects to the first
    /// listener when it has one, and waits for a message from the second one.
    pub fn holding(
        answer: impl Fn(&Message) -> Vec<u8> + Send + Sync + 'static,
    ) -> (Origin, TcpListener, TcpListener) {
        let (held, release) = (listener(), listener());
        let (at_held, at_release) = (address(&held), address(&release));
        let origin = Origin::start(move |request| {
            if request.line.starts_with("GET /hold") {
                drop(TcpStream::connect(at_held));
                let _ = TcpStream::connect(at_release).unwrap().read(&mut [0]);
            }
            answer(request)
        });
        (origin, held, release)
    }

    /// Answers with the request's line, its fields and the length of its body.
    pub fn echo() -> Origin {
        Origin::start(echo)
    }
}

fn timed(stream: TcpStream) -> TcpStream {
    let _ = stream.set_read_timeout(Some(DEADLINE));
    let _ = stream.set_nodelay(true);
    stream
}

/// A server on a UNIX socket.
pub fn on_unix(
    listener: UnixListener,
    answer: impl Fn(&Message) -> Vec<u8> + Send + Sync + 'static,
) {
    on_each(
        move || listener.accept().map(|(stream, _)| stream),
        move |stream: UnixStream| serve(stream, &answer),
    );
}

fn on_each<W: Send + 'static>(
    accept: impl Fn() -> std::io::Result<W> + Send + 'static,
    work: impl Fn(W) + Send + Sync + 'static,
) {
    let work = Arc::new(work);
    let builder = || {
        std::thread::Builder::new()
            .name("origin".into())
            .stack_size(128 << 10)
    };
    let serve = move || {
        while let Ok(stream) = accept() {
            let work = Arc::clone(&work);
            builder().spawn(move || work(stream)).expect("a thread");
        }
    };
    builder().spawn(serve).expect("a thread");
}

fn serve<W: Wire>(wire: W, answer: &(impl Fn(&Message) -> Vec<u8> + ?Sized)) {
    let mut reader = Reader::over(wire);
    while let Some(mut request) = reader.head() {
        let Some(body) = reader.body(&request, false) else {
            return;
        };
        request.body = body;
        if reader.wire.write_all(&answer(&request)).is_err() {
            return;
        }
        if request.field("connection") == Some("close") {
            return;
        }
    }
}

/// A response of 200 with this body.
pub fn ok(body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let mut response =
        format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len()).into_bytes();
    response.extend_from_slice(body);
    response
}

/// See [`Origin::echo`].
pub fn echo(request: &Message) -> Vec<u8> {
    let mut text = format!("{}\n", request.line);
    for field in &request.fields {
        text.push_str(&format!("{field}\n"));
    }
    text.push_str(&format!("body {}\n", request.body.len()));
    ok(text)
}
