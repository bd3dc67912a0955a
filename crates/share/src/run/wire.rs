//! A connection to a store: one command at a time, and answers of bounded size.

use std::io;

use bytes::BytesMut;
use redis::{Cmd, Value, ValueCodec};
use tables::{Share, Store, StoreAddress};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};
use tokio_util::codec::Decoder as _;

use crate::answer::ANSWER_BYTES_MAX;
use crate::batch::SCRIPT;

/// Bytes that are received at once.
const RECEIVED_BYTES: usize = 16 << 10;
/// The most characters of a store's message that are shown.
const MESSAGE_CHARS_MAX: usize = 120;

trait Duplex: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Duplex for T {}

/// An open connection, over which a batch can be sent.
pub(super) struct Wire {
    stream: Box<dyn Duplex>,
    received: BytesMut,
    codec: ValueCodec,
    /// The digest of the script in the store.
    pub sha: String,
}

impl Wire {
    /// Connects, identifies itself, chooses the database and loads the script.
    ///
    /// # Errors
    /// What failed, as text.
    pub async fn open(share: &Share) -> Result<Wire, String> {
        let Store {
            address,
            database,
            user,
            password,
        } = &share.store;
        let stream = connect(address).await?;
        let mut wire = Wire {
            stream,
            received: BytesMut::new(),
            codec: ValueCodec::default(),
            sha: String::new(),
        };
        if let Some(password) = password {
            let mut command = redis::cmd("AUTH");
            if let Some(user) = user {
                command.arg(user);
            }
            command.arg(&password.0);
            wire.ask(&command).await?;
        }
        if *database > 0 {
            wire.ask(redis::cmd("SELECT").arg(*database)).await?;
        }
        let mut load = redis::cmd("SCRIPT");
        load.arg("LOAD").arg(SCRIPT);
        match wire.ask(&load).await? {
            Value::BulkString(sha) => {
                wire.sha = String::from_utf8(sha).map_err(|_| nonsense())?;
                Ok(wire)
            }
            _ => Err(nonsense()),
        }
    }

    /// Sends a command and returns the answer.
    ///
    /// # Errors
    /// The connection fails, the answer is malformed or too large, or it is an error.
    pub async fn ask(&mut self, command: &Cmd) -> Result<Value, String> {
        if !self.received.is_empty() {
            return Err(nonsense());
        }
        let sent = self.stream.write_all(&command.get_packed_command()).await;
        sent.map_err(|error| failure(&error))?;
        self.stream.flush().await.map_err(|error| failure(&error))?;
        // Of all bytes of the answer, not only of those that are not parsed yet.
        let mut bytes_left = ANSWER_BYTES_MAX;
        loop {
            self.received.reserve(RECEIVED_BYTES);
            let read = self.stream.read_buf(&mut self.received).await;
            let count = match read {
                Ok(0) => return Err("the store closed the connection".to_owned()),
                Ok(count) => count,
                Err(error) => return Err(failure(&error)),
            };
            bytes_left = bytes_left
                .checked_sub(count)
                .ok_or_else(|| "the answer is too large".to_owned())?;
            match self.codec.decode(&mut self.received) {
                Ok(Some(Value::ServerError(error))) => {
                    let details = error.details().unwrap_or_default();
                    return Err(shown(&format!("{} {details}", error.code())));
                }
                Ok(Some(value)) => return Ok(value),
                Ok(None) => {}
                Err(_) => return Err(nonsense()),
            }
        }
    }
}

/// The message about an answer that a store does not give.
pub(super) fn nonsense() -> String {
    "the answer is not that of a store".to_owned()
}

async fn connect(address: &StoreAddress) -> Result<Box<dyn Duplex>, String> {
    match address {
        StoreAddress::Unix(path) => match UnixStream::connect(path).await {
            Ok(stream) => Ok(Box::new(stream)),
            Err(error) => Err(failure(&error)),
        },
        StoreAddress::Inet { host, port } => {
            let found = resolvers::system::of_process().lookup(host, *port).await;
            let addresses = found.map_err(|_| "the name has no address".to_owned())?;
            let mut last = "the name has no address".to_owned();
            for address in addresses {
                match TcpStream::connect(address).await {
                    Ok(stream) => {
                        // Only a hint.
                        let _ = stream.set_nodelay(true);
                        return Ok(Box::new(stream));
                    }
                    Err(error) => last = failure(&error),
                }
            }
            Err(last)
        }
    }
}

/// A system error without its number.
fn failure(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

/// A message of the store, on one line.
fn shown(text: &str) -> String {
    let chars = text.chars().take(MESSAGE_CHARS_MAX);
    chars
        .map(|char| if char.is_control() { ' ' } else { char })
        .collect()
}

#[cfg(test)]
mod tests;
