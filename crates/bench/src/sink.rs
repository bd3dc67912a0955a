//! A UDP socket that receives access logs and counts them.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A running sink; its thread runs as long as the process.
pub struct Sink {
    /// Its listening address.
    pub address: SocketAddr,
    messages: Arc<AtomicU64>,
}

impl Sink {
    /// Starts a sink.
    ///
    /// # Errors
    /// A socket or a thread cannot be created.
    pub fn start() -> io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = socket.local_addr()?;
        let messages = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&messages);
        std::thread::Builder::new()
            .name("log-sink".into())
            .spawn(move || {
                let mut buffer = [0; 2048];
                while socket.recv(&mut buffer).is_ok() {
                    counter.fetch_add(1, Ordering::Relaxed);
                }
            })?;
        Ok(Self { address, messages })
    }

    /// The number of received messages, without those that the kernel dropped.
    pub fn messages(&self) -> u64 {
        self.messages.load(Ordering::Relaxed)
    }
}
