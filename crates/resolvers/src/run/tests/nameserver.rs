//! A nameserver that reacts as a test says, on threads of its own.

use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::scripted::Reply;

/// How often threads look whether they should end.
const PAUSE: Duration = Duration::from_millis(20);

/// What the nameserver does with a query.
pub enum Reaction {
    Silence,
    Reply(Vec<u8>),
    /// The reply arrives byte by byte.
    InPieces(Vec<u8>),
    /// The connection ends after the reply.
    Last(Vec<u8>),
    /// The connection ends without a reply.
    Close,
}

impl Reaction {
    pub fn reply(reply: &Reply, query: &[u8]) -> Reaction {
        Reaction::Reply(reply.to(query))
    }
}

/// A running nameserver; it ends with this value.
pub struct Scripted {
    pub address: SocketAddr,
    state: Arc<State>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Default)]
struct State {
    ends: AtomicBool,
    queries: AtomicUsize,
    connections: AtomicUsize,
    ports: Mutex<HashSet<u16>>,
}

impl Scripted {
    pub fn udp(react: impl Fn(&[u8]) -> Reaction + Send + 'static) -> Scripted {
        Scripted::udp_from(move |query, _| react(query))
    }

    pub fn udp_from(react: impl Fn(&[u8], SocketAddr) -> Reaction + Send + 'static) -> Scripted {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut server = Scripted::new(socket.local_addr().unwrap());
        server.serve_udp(socket, react);
        server
    }

    pub fn tcp(react: impl Fn(&[u8]) -> Reaction + Send + 'static) -> Scripted {
        Scripted::tcp_at("127.0.0.1:0".parse().unwrap(), react)
    }

    pub fn tcp_at(
        address: SocketAddr,
        react: impl Fn(&[u8]) -> Reaction + Send + 'static,
    ) -> Scripted {
        let listener = TcpListener::bind(address).unwrap();
        let mut server = Scripted::new(listener.local_addr().unwrap());
        server.serve_tcp(listener, react);
        server
    }

    /// Datagrams and connections at one port.
    pub fn both(
        udp: impl Fn(&[u8]) -> Reaction + Send + 'static,
        tcp: impl Fn(&[u8]) -> Reaction + Send + 'static,
    ) -> Scripted {
        loop {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            if let Ok(socket) = UdpSocket::bind(address) {
                let mut server = Scripted::new(address);
                server.serve_udp(socket, move |query, _| udp(query));
                server.serve_tcp(listener, tcp);
                return server;
            }
        }
    }

    fn new(address: SocketAddr) -> Scripted {
        Scripted {
            address,
            state: Arc::default(),
            threads: Vec::new(),
        }
    }

    pub fn queries(&self) -> usize {
        self.state.queries.load(Ordering::SeqCst)
    }

    pub fn connections(&self) -> usize {
        self.state.connections.load(Ordering::SeqCst)
    }

    /// The number of ports from which queries were sent.
    pub fn ports(&self) -> usize {
        self.state.ports.lock().unwrap().len()
    }

    fn serve_udp(
        &mut self,
        socket: UdpSocket,
        react: impl Fn(&[u8], SocketAddr) -> Reaction + Send + 'static,
    ) {
        socket.set_read_timeout(Some(PAUSE)).unwrap();
        let state = Arc::clone(&self.state);
        self.spawn(move || {
            let mut buffer = [0; 2048];
            while !state.ends.load(Ordering::SeqCst) {
                let Ok((length, from)) = socket.recv_from(&mut buffer) else {
                    continue;
                };
                state.queries.fetch_add(1, Ordering::SeqCst);
                state.ports.lock().unwrap().insert(from.port());
                match react(&buffer[..length], from) {
                    Reaction::Silence | Reaction::Close => {}
                    Reaction::Reply(bytes) | Reaction::InPieces(bytes) | Reaction::Last(bytes) => {
                        // The client may have gone.
                        let _ = socket.send_to(&bytes, from);
                    }
                }
            }
        });
    }

    fn serve_tcp(
        &mut self,
        listener: TcpListener,
        react: impl Fn(&[u8]) -> Reaction + Send + 'static,
    ) {
        let state = Arc::clone(&self.state);
        self.spawn(move || {
            while !state.ends.load(Ordering::SeqCst) {
                let (stream, _) = listener.accept().unwrap();
                if state.ends.load(Ordering::SeqCst) {
                    return;
                }
                state.connections.fetch_add(1, Ordering::SeqCst);
                // A client that goes is the end of the connection.
                let _ = serve(stream, &state, &react);
            }
        });
    }

    fn spawn(&mut self, run: impl FnOnce() + Send + 'static) {
        let thread = std::thread::Builder::new().name("nameserver".to_owned());
        self.threads.push(thread.spawn(run).unwrap());
    }
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.state.ends.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts, if there is one.
        let _ = TcpStream::connect(self.address);
        for thread in self.threads.drain(..) {
            // A panic there has already been reported; this may be one already.
            let _ = thread.join();
        }
    }
}

/// Serves one connection until it ends or the nameserver does.
fn serve(
    mut stream: TcpStream,
    state: &State,
    react: &impl Fn(&[u8]) -> Reaction,
) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PAUSE))?;
    let mut input = Vec::new();
    let mut chunk = [0; 512];
    while !state.ends.load(Ordering::SeqCst) {
        match stream.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(length) => input.extend_from_slice(&chunk[..length]),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
            Err(error) => return Err(error),
        }
        while input.len() >= 2 {
            let length = usize::from(u16::from_be_bytes([input[0], input[1]]));
            if input.len() < 2 + length {
                break;
            }
            let query: Vec<u8> = input.drain(..2 + length).skip(2).collect();
            state.queries.fetch_add(1, Ordering::SeqCst);
            let framed = |bytes: &[u8]| {
                let mut framed = (bytes.len() as u16).to_be_bytes().to_vec();
                framed.extend_from_slice(bytes);
                framed
            };
            match react(&query) {
                Reaction::Silence => {}
                Reaction::Reply(bytes) => stream.write_all(&framed(&bytes))?,
                Reaction::InPieces(bytes) => {
                    stream.set_nodelay(true)?;
                    for byte in framed(&bytes) {
                        stream.write_all(&[byte])?;
                    }
                }
                Reaction::Close => return Ok(()),
                Reaction::Last(bytes) => return stream.write_all(&framed(&bytes)),
            }
        }
    }
    Ok(())
}

/// A port of this machine that nobody listens at.
pub fn closed_port() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}
