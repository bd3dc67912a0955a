//! Log messages over TCP: one connection per writer thread, reopened when it is lost.
//!
//! They are framed as in RFC 6587. After a lost connection, the messages that the server had not
//! taken whole are sent again.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::logs::TcpServer;
use crate::reach::Reach;

/// The time limit of a connection attempt.
const CONNECT_TIME: Duration = Duration::from_secs(1);
/// How long one wait for a server that takes nothing lasts.
const WRITE_TIME: Duration = Duration::from_secs(1);

/// A log server and the connection to it.
#[derive(Debug)]
pub(crate) struct LogStream {
    server: TcpServer,
    stream: Option<TcpStream>,
}

impl LogStream {
    /// A stream without a connection yet.
    pub fn new(server: TcpServer) -> LogStream {
        LogStream {
            server,
            stream: None,
        }
    }

    /// Sends whole messages. After each failure `goes_on` waits a while and says whether to try again.
    /// Returns the messages that were not sent.
    pub fn send<'a>(
        &mut self,
        mut messages: &'a [u8],
        reach: &Reach,
        goes_on: impl Fn() -> bool,
    ) -> &'a [u8] {
        loop {
            let (sent, result) = self.try_send(messages, &goes_on);
            messages = &messages[sent..];
            match result {
                Ok(()) => reach.worked(),
                Err(error) => reach.failed(&error, 0),
            }
            if messages.is_empty() || !goes_on() {
                return messages;
            }
        }
    }

    /// Sends what can be sent now. Returns the bytes of the whole messages that were sent, and why
    /// the others were not.
    fn try_send(&mut self, messages: &[u8], goes_on: impl Fn() -> bool) -> (usize, io::Result<()>) {
        let stream = self.stream.take().filter(is_open);
        let mut stream = match stream.map_or_else(|| connect(self.server.address), Ok) {
            Ok(stream) => stream,
            Err(error) => return (0, Err(error)),
        };
        let mut sent = 0;
        while sent < messages.len() {
            match stream.write(&messages[sent..]) {
                Ok(count) if count > 0 => sent += count,
                Err(error) if is_pause(&error) && goes_on() => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                result => {
                    let failed = result.err().unwrap_or(ErrorKind::WriteZero.into());
                    return (self.server.framing.whole(messages, sent), Err(failed));
                }
            }
        }
        self.stream = Some(stream);
        (sent, Ok(()))
    }
}

fn connect(to: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&to, CONNECT_TIME)?;
    stream.set_write_timeout(Some(WRITE_TIME))?;
    Ok(stream)
}

/// Whether the server still has the connection open. A log server sends nothing, so readable input
/// is its end.
fn is_open(stream: &TcpStream) -> bool {
    let mut said = [0; 512];
    let is_open = stream.set_nonblocking(true).is_ok()
        && match (&*stream).read(&mut said) {
            Ok(count) => count > 0,
            Err(error) => error.kind() == ErrorKind::WouldBlock,
        };
    is_open && stream.set_nonblocking(false).is_ok()
}

fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reach::News;
    use crate::ring::Framing;
    use std::io::{BufRead, BufReader};
    use std::net::TcpListener;

    fn accepted(listener: &TcpListener) -> BufReader<TcpStream> {
        let (stream, _) = listener.accept().expect("a connection");
        let limit = Some(Duration::from_secs(10));
        stream.set_read_timeout(limit).expect("an option");
        BufReader::new(stream)
    }

    fn server(address: SocketAddr) -> TcpServer {
        TcpServer {
            address,
            framing: Framing::LineFeed,
            pending_bytes_max: 1 << 10,
        }
    }

    fn reach() -> Reach {
        Reach::new("a server".to_owned(), Duration::ZERO, || {})
    }

    fn line(reader: &mut impl BufRead) -> String {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a line");
        line
    }

    #[test]
    fn a_lost_connection_is_made_again() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let mut stream = LogStream::new(server(listener.local_addr().expect("an address")));
        stream.send(b"one\ntwo\n", &reach(), || false);
        let mut server = accepted(&listener);
        assert_eq!(
            (line(&mut server), line(&mut server)),
            ("one\n".into(), "two\n".into())
        );
        drop(server);
        stream.send(b"three\n", &reach(), || false);
        assert_eq!(line(&mut accepted(&listener)), "three\n");
    }

    #[test]
    fn nobody_there_is_no_end() {
        let to = TcpListener::bind("127.0.0.1:0").and_then(|gone| gone.local_addr());
        let mut stream = LogStream::new(server(to.expect("an address")));
        let tries = std::cell::Cell::new(0);
        let reach = reach();
        let rest = stream.send(b"lost\n", &reach, || {
            tries.set(tries.get() + 1);
            tries.get() < 3
        });
        assert_eq!((tries.get(), rest), (3, &b"lost\n"[..]));
        let told = News::Fails("Connection refused".to_owned());
        assert_eq!(reach.news(), Some(told));
    }
}
