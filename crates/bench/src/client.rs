//! A minimal client: one request at a time over a keep-alive connection.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Most time for one answer.
const ANSWER_PATIENCE: Duration = Duration::from_secs(5);
/// The largest accepted answer.
const ANSWER_BYTES_MAX: usize = 16 * 1024;

/// Fetches `path` over `stream`, which stays open. Returns the complete body.
///
/// # Errors
/// The answer is not a 200 with a Content-Length, or it is too large, late, or truncated.
pub fn get(stream: &mut TcpStream, path: &str) -> io::Result<Vec<u8>> {
    ask(stream, path)?;
    answer(stream)
}

/// Sends a request for `path`, whose answer [`answer`] reads.
///
/// # Errors
/// The connection takes no request.
pub fn ask(stream: &mut TcpStream, path: &str) -> io::Result<()> {
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes())
}

/// Reads the answer to the request that was sent. Returns the complete body.
///
/// # Errors
/// As [`get`].
pub fn answer(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    stream.set_read_timeout(Some(ANSWER_PATIENCE))?;
    let mut answer = Vec::new();
    let mut piece = [0; 4096];
    loop {
        if let Some(body) = complete(&answer)? {
            return Ok(answer.split_off(body));
        }
        let count = stream.read(&mut piece)?;
        if count == 0 || answer.len() + count > ANSWER_BYTES_MAX {
            return Err(io::Error::other("the response is truncated or too large"));
        }
        answer.extend_from_slice(&piece[..count]);
    }
}

/// The status of the answer to a request for `host`, over a separate connection.
///
/// # Errors
/// There is no such answer.
pub fn status(address: SocketAddr, path: &str, host: &str) -> io::Result<u16> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(ANSWER_PATIENCE))?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream
        .take(ANSWER_BYTES_MAX as u64)
        .read_to_end(&mut answer)?;
    let line = String::from_utf8_lossy(&answer);
    let status = line
        .split(' ')
        .nth(1)
        .and_then(|status| status.parse().ok());
    status.ok_or_else(|| io::Error::other("the response has no status"))
}

/// The position of the body in `answer`, if that is a complete good answer.
///
/// # Errors
/// It is not a 200 with a Content-Length.
pub fn complete(answer: &[u8]) -> io::Result<Option<usize>> {
    let Some(end) = memchr::memmem::find(answer, b"\r\n\r\n") else {
        return Ok(None);
    };
    let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
    let length = head.lines().find_map(|line| {
        line.strip_prefix("content-length:")?
            .trim()
            .parse::<usize>()
            .ok()
    });
    match length {
        Some(length) if head.starts_with("http/1.1 200 ") => {
            Ok((answer.len() == end + 4 + length).then_some(end + 4))
        }
        _ => Err(io::Error::other(format!(
            "unexpected response: {}",
            head.lines().next().unwrap_or_default()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_a_whole_answer() {
        let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc";
        for cut in 0..whole.len() {
            assert_eq!(complete(&whole[..cut]).unwrap(), None);
        }
        assert_eq!(complete(whole).unwrap(), Some(whole.len() - 3));
        assert!(complete(b"HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n").is_err());
        assert!(complete(b"HTTP/1.1 200 OK\r\n\r\n").is_err());
    }
}
