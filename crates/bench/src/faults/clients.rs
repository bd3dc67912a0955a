//! Clients that count the results.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::sleep;

use super::cases::{Clients, Seen};

/// The count of each result.
pub type Counts = Rc<RefCell<BTreeMap<Seen, u64>>>;

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
/// The pause of slow clients between two steps.
const STEP: Duration = Duration::from_millis(100);
/// The bytes that a slow reader reads in a step, and the steps after which it disconnects.
const SIP: usize = 16 << 10;
const SIPS: usize = 20;

/// Sends requests repeatedly.
pub async fn run(address: SocketAddr, clients: Clients, counts: Counts) {
    loop {
        let seen = match exchange(address, clients).await {
            Ok(seen) => seen,
            Err(_) => Seen::Nothing,
        };
        *counts.borrow_mut().entry(seen).or_default() += 1;
    }
}

async fn exchange(address: SocketAddr, clients: Clients) -> io::Result<Seen> {
    let mut stream = TcpStream::connect(address).await?;
    let mut answer = Vec::new();
    match clients {
        Clients::Usual => {
            stream.write_all(REQUEST).await?;
            read_all(&mut stream, &mut answer).await;
        }
        Clients::SlowSenders => send_slowly(&mut stream, &mut answer).await?,
        Clients::SlowReaders => {
            stream.write_all(REQUEST).await?;
            let mut sip = [0; SIP];
            for _ in 0..SIPS {
                sleep(STEP).await;
                let read = stream.read(&mut sip).await?;
                answer.extend_from_slice(&sip[..read]);
            }
        }
    }
    Ok(judge(&answer))
}

/// Reads until the connection ends.
async fn read_all(stream: &mut TcpStream, answer: &mut Vec<u8>) {
    while stream.read_buf(answer).await.is_ok_and(|read| read > 0) {}
}

/// Sends until the proxy ends the connection.
async fn send_slowly(stream: &mut TcpStream, answer: &mut Vec<u8>) -> io::Result<()> {
    let (mut reader, mut writer) = stream.split();
    let send = async {
        for byte in REQUEST.iter().take(REQUEST.len() - 1) {
            writer.write_all(&[*byte]).await?;
            sleep(STEP).await;
        }
        Ok::<_, io::Error>(())
    };
    let read = async { while reader.read_buf(answer).await.is_ok_and(|read| read > 0) {} };
    tokio::select! {
        sent = send => sent,
        () = read => Ok(()),
    }
}

/// The result of an answer to `Connection: close`.
fn judge(answer: &[u8]) -> Seen {
    let Some(head) = memchr::memmem::find(answer, b"\r\n\r\n").map(|end| end + 4) else {
        return Seen::Nothing;
    };
    let text = String::from_utf8_lossy(&answer[..head]).to_ascii_lowercase();
    let status = text.split(' ').nth(1).and_then(|word| word.parse().ok());
    let length = text
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let length: Option<usize> = length.and_then(|length| length.trim().parse().ok());
    match (status, length) {
        (Some(_), Some(length)) if answer.len() - head < length => Seen::Cut,
        (Some(status), _) => Seen::Status(status),
        (None, _) => Seen::Nothing,
    }
}
