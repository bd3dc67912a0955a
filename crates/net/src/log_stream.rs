//! Log lines over TCP: one connection per writer thread, reopened when it is lost.
//!
//! Each line ends in a line feed (RFC 6587 §3.4.2, HAProxy's `log-proto legacy`). After a lost
//! connection, the lines that the server had not taken whole are sent again.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use crate::reach::Reach;

/// The time limit of a connection attempt.
const CONNECT_TIME: Duration = Duration::from_secs(1);
/// How long one wait for a server that takes nothing lasts.
const WRITE_TIME: Duration = Duration::from_secs(1);

/// A log server and the connection to it.
#[derive(Debug)]
pub(crate) struct LogStream {
    to: SocketAddr,
    stream: Option<TcpStream>,
}

impl LogStream {
    /// A stream without a connection yet.
    pub fn new(to: SocketAddr) -> LogStream {
        LogStream { to, stream: None }
    }

    /// Sends whole lines. After each failure `goes_on` waits a while and says whether to try again.
    /// Returns the lines that were not sent.
    pub fn send<'a>(
        &mut self,
        mut lines: &'a [u8],
        reach: &Reach,
        goes_on: impl Fn() -> bool,
    ) -> &'a [u8] {
        loop {
            let (sent, result) = self.try_send(lines, &goes_on);
            lines = &lines[sent..];
            match result {
                Ok(()) => reach.worked(),
                Err(error) => reach.failed(&error, 0),
            }
            if lines.is_empty() || !goes_on() {
                return lines;
            }
        }
    }

    /// Sends what can be sent now. Returns the bytes of the whole lines that were sent, and why the
    /// others were not.
    fn try_send(&mut self, lines: &[u8], goes_on: impl Fn() -> bool) -> (usize, io::Result<()>) {
        let stream = self.stream.take().filter(is_open);
        let mut stream = match stream.map_or_else(|| connect(self.to), Ok) {
            Ok(stream) => stream,
            Err(error) => return (0, Err(error)),
        };
        let mut sent = 0;
        while sent < lines.len() {
            match stream.write(&lines[sent..]) {
                Ok(count) if count > 0 => sent += count,
                Err(error) if is_pause(&error) && goes_on() => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                result => {
                    let whole = lines[..sent].iter().rposition(|byte| *byte == b'\n');
                    let failed = result.err().unwrap_or(ErrorKind::WriteZero.into());
                    return (whole.map_or(0, |end| end + 1), Err(failed));
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
    use std::io::{BufRead, BufReader};
    use std::net::TcpListener;

    fn accepted(listener: &TcpListener) -> BufReader<TcpStream> {
        let (stream, _) = listener.accept().expect("a connection");
        let limit = Some(Duration::from_secs(10));
        stream.set_read_timeout(limit).expect("an option");
        BufReader::new(stream)
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
        let mut stream = LogStream::new(listener.local_addr().expect("an address"));
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
        let mut stream = LogStream::new(to.expect("an address"));
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
