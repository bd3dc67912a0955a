//! Misbehaving servers.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::spawn_local;
use tokio::time::sleep;

/// The behaviour of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// It answers normally.
    Good,
    /// It answers with more than the buffers hold.
    Large,
    /// It answers after [`SLOW`].
    Slow,
    /// No process listens.
    Dead,
    /// It accepts and reads, and does not answer.
    Silent,
    /// It closes after it has read the request.
    HangsUp,
    /// It resets the connection after the head and a part of the body.
    ResetsInBody,
    /// It sends the head and a part of the body, and nothing more.
    StallsInBody,
}

/// The delay of a slow server.
const SLOW: Duration = Duration::from_millis(50);
/// How long a stalling server keeps its connection: longer than any timeout of the proxy.
const STALL: Duration = Duration::from_secs(30);
/// The announced length of an incomplete body, and the bytes that are sent.
const ANNOUNCED: usize = 100_000;
const PART: usize = 10_000;
/// The body of a large answer, bytes.
const LARGE: usize = 64 << 20;

/// Starts it on this thread's tasks. Returns its address.
pub async fn start(server: Server) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    if server == Server::Dead {
        return Ok(address);
    }
    spawn_local(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // A client that disconnects is not a fault of the server.
            spawn_local(async move { drop(serve(server, stream).await) });
        }
    });
    Ok(address)
}

async fn serve(server: Server, mut stream: TcpStream) -> io::Result<()> {
    let mut request = Vec::new();
    loop {
        while memchr::memmem::find(&request, b"\r\n\r\n").is_none() {
            if stream.read_buf(&mut request).await? == 0 {
                return Ok(());
            }
        }
        request.clear();
        match server {
            Server::Good => answer(&mut stream, 50, 50).await?,
            Server::Large => answer(&mut stream, LARGE, LARGE).await?,
            Server::Slow => {
                sleep(SLOW).await;
                answer(&mut stream, 50, 50).await?;
            }
            Server::Dead | Server::HangsUp => return Ok(()),
            Server::Silent => sleep(STALL).await,
            Server::ResetsInBody => {
                answer(&mut stream, ANNOUNCED, PART).await?;
                return stream.set_zero_linger();
            }
            Server::StallsInBody => {
                answer(&mut stream, ANNOUNCED, PART).await?;
                sleep(STALL).await;
            }
        }
    }
}

/// Sends a head that announces `announced` bytes, and `sent` of them.
async fn answer(stream: &mut TcpStream, announced: usize, sent: usize) -> io::Result<()> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {announced}\r\n\r\n");
    stream.write_all(head.as_bytes()).await?;
    let piece = [b'x'; 16 << 10];
    let mut left = sent;
    while left > 0 {
        let size = left.min(piece.len());
        stream.write_all(&piece[..size]).await?;
        left -= size;
    }
    Ok(())
}
