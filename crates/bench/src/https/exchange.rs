//! One request and its answer over a connection.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::client;

/// Sends `request` over `stream` and reads the complete answer, which must be a 200. `buffer` is
/// scratch space.
///
/// # Errors
/// The stream fails or ends, or the answer is not a 200.
pub async fn exchange<S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    request: &[u8],
    buffer: &mut Vec<u8>,
) -> io::Result<()> {
    stream.write_all(request).await?;
    stream.flush().await?;
    buffer.clear();
    while client::complete(buffer)?.is_none() {
        if stream.read_buf(buffer).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}

/// A request for `path`; the last one of its connection if `close` is set.
pub fn request(path: &str, close: bool) -> Vec<u8> {
    let close = if close { "Connection: close\r\n" } else { "" };
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{close}\r\n").into_bytes()
}
