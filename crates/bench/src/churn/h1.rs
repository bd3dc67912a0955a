//! HTTP/1.1 clients: one request at a time on each connection.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustls::ClientConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::load::{self, Broken, Plan, Tally};
use crate::Failure;
use crate::client;
use crate::https::{Offer, config, connect, request};

/// Sends requests until `stop` is set.
///
/// # Errors
/// The client cannot be set up.
pub fn run(plan: &Plan, stop: &Arc<AtomicBool>) -> Result<Tally, Failure> {
    let config = config(Offer::Usual, &["http/1.1"], true)?;
    load::run(plan, plan.connections, stop, |tasks, sender| {
        for _ in 0..plan.connections {
            let mut client = Client {
                plan: *plan,
                config: Arc::clone(&config),
                stream: None,
                buffer: Vec::new(),
            };
            let sender = sender.clone();
            tasks.spawn_local(async move { sender.run(async || client.exchange().await).await });
        }
    })
}

struct Client {
    plan: Plan,
    config: Arc<ClientConfig>,
    /// The kept connection.
    stream: Option<TlsStream<TcpStream>>,
    buffer: Vec<u8>,
}

impl From<io::Error> for Broken {
    fn from(error: io::Error) -> Self {
        Broken::Failed(error.to_string())
    }
}

impl Client {
    async fn exchange(&mut self) -> Result<(), Broken> {
        self.buffer.clear();
        let kept = self.stream.take();
        let is_kept = kept.is_some();
        let stream = match kept {
            Some(stream) => stream,
            None => connect(self.plan.address, &self.config).await?,
        };
        match self.exchange_on(stream).await {
            Err(_) if is_kept && self.buffer.is_empty() => Err(Broken::Unprocessed),
            outcome => Ok(outcome?),
        }
    }

    /// Keeps the connection if the answer permits it.
    async fn exchange_on(&mut self, mut stream: TlsStream<TcpStream>) -> io::Result<()> {
        stream.write_all(&request(self.plan.path, false)).await?;
        stream.flush().await?;
        while client::complete(&self.buffer)?.is_none() {
            if stream.read_buf(&mut self.buffer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let closes = memchr::memmem::find(&self.buffer, b"onnection: close").is_some();
        self.stream = Some(stream).filter(|_| !closes);
        Ok(())
    }
}
