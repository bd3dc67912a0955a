//! One connection to one nameserver, with several queries under way (RFC 7766).

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};

use super::turns::{Inbound, Origin, Reports};
use crate::section::Transport;

/// The most queries that wait for their turn on the connection.
const QUEUE_MAX: usize = 1024;

/// The most queries under way at once. HAProxy has 4 per connection, on several connections.
const PIPELINED_MAX: usize = 64;

/// How long a connection may take to be established, as in HAProxy.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// After a connection that failed, queries fail at once for so long.
const RECONNECT_PAUSE: Duration = Duration::from_secs(1);

/// For how long a connection without queries stays.
const IDLE_MAX: Duration = Duration::from_secs(5);

/// The size of reads, in bytes.
const READ_BYTES: usize = 4096;

/// The length before each message (RFC 1035 §4.2.2), in bytes.
const LENGTH_BYTES: usize = 2;

/// A task that ends with this value.
pub(super) struct AbortOnDrop(JoinHandle<()>);

impl AbortOnDrop {
    pub fn spawn(task: impl Future<Output = ()> + 'static) -> AbortOnDrop {
        AbortOnDrop(tokio::task::spawn_local(task))
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The connection to a nameserver. It is established when there is a query.
pub(super) struct TcpLink {
    queue: Sender<Query>,
    _task: AbortOnDrop,
}

struct Query {
    id: u16,
    bytes: Vec<u8>,
    /// It was under way when an earlier connection ended.
    is_repeated: bool,
}

impl TcpLink {
    pub fn open(
        origin: Origin,
        address: SocketAddr,
        answer_timeout: Duration,
        reports: &Reports,
    ) -> TcpLink {
        let (queue, queries) = channel(QUEUE_MAX);
        let link = Link {
            origin,
            address,
            answer_timeout: answer_timeout.max(CONNECT_TIMEOUT),
            reports: reports.clone(),
            queries,
            repeated: VecDeque::new(),
        };
        TcpLink {
            queue,
            _task: AbortOnDrop::spawn(link.run()),
        }
    }

    /// Whether the query is queued.
    pub fn send(&self, id: u16, bytes: Vec<u8>) -> bool {
        let query = Query {
            id,
            bytes,
            is_repeated: false,
        };
        self.queue.try_send(query).is_ok()
    }
}

struct Link {
    origin: Origin,
    address: SocketAddr,
    answer_timeout: Duration,
    reports: Reports,
    queries: Receiver<Query>,
    /// Queries to send again, on the next connection.
    repeated: VecDeque<Query>,
}

/// A query without an answer yet.
struct Flight {
    query: Query,
    sent: Instant,
}

impl Link {
    async fn run(mut self) {
        let mut retry_at: Option<Instant> = None;
        loop {
            let query = match self.repeated.pop_front() {
                Some(query) => query,
                None => match self.queries.recv().await {
                    Some(query) => query,
                    None => return,
                },
            };
            if retry_at.is_some_and(|at| Instant::now() < at) {
                self.fail(&query).await;
                continue;
            }
            let has_answered =
                match timeout(CONNECT_TIMEOUT, TcpStream::connect(self.address)).await {
                    Ok(Ok(stream)) => self.serve(stream, query).await,
                    Ok(Err(_)) | Err(_) => {
                        self.fail(&query).await;
                        false
                    }
                };
            retry_at = (!has_answered).then(|| Instant::now() + RECONNECT_PAUSE);
        }
    }

    /// Sends queries and receives answers until the connection ends. Returns whether it was of
    /// any use: there was an answer, or it ended because there were no queries.
    async fn serve(&mut self, stream: TcpStream, first: Query) -> bool {
        // Without it, a query might wait for the acknowledgement of the last one.
        let _ = stream.set_nodelay(true);
        let mut connection = Connection {
            stream,
            input: Vec::new(),
            output: Vec::new(),
            written: 0,
            flights: VecDeque::new(),
            last_read: None,
            last_used: Instant::now(),
        };
        connection.push(first);
        while let Some(query) = self.repeated.pop_front() {
            connection.push(query);
        }
        let end = loop {
            match self.step(&mut connection).await {
                Ok(Step::Goes) => {}
                Ok(Step::Idle) => break End::Idle,
                Err(_) => break End::Lost,
            }
        };
        let has_answered = connection.last_read.is_some();
        for flight in connection.flights {
            let query = flight.query;
            // A nameserver may close a connection when it likes; the query may have crossed that.
            if has_answered && !query.is_repeated {
                self.repeated.push_back(Query {
                    is_repeated: true,
                    ..query
                });
            } else {
                self.fail(&query).await;
            }
        }
        has_answered || matches!(end, End::Idle)
    }

    async fn step(&mut self, connection: &mut Connection) -> io::Result<Step> {
        let deadline = connection.deadline(self.answer_timeout);
        let has_room = connection.flights.len() < PIPELINED_MAX && !connection.has_output();
        let mut chunk = [0; READ_BYTES];
        let (mut reader, mut writer) = connection.stream.split();
        tokio::select! {
            read = reader.read(&mut chunk) => {
                let length = read?;
                if length == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                connection.input.extend_from_slice(&chunk[..length]);
                for bytes in connection.messages() {
                    self.report(bytes).await;
                }
            }
            written = writer.write(&connection.output[connection.written..]),
                if connection.written < connection.output.len() =>
            {
                connection.written += written?;
                if !connection.has_output() {
                    connection.output.clear();
                    connection.written = 0;
                }
            }
            query = self.queries.recv(), if has_room => match query {
                Some(query) => connection.push(query),
                None => return Ok(Step::Idle),
            },
            () = sleep_until(deadline) => return connection.expire(self.answer_timeout),
        }
        Ok(Step::Goes)
    }

    async fn report(&self, bytes: Vec<u8>) {
        // The loop has ended otherwise, and this task ends with it.
        let _ = self
            .reports
            .send(Inbound::Message {
                origin: self.origin,
                transport: Transport::Tcp,
                bytes,
            })
            .await;
    }

    async fn fail(&self, query: &Query) {
        let _ = self
            .reports
            .send(Inbound::Failure {
                origin: self.origin,
                transport: Transport::Tcp,
                id: query.id,
            })
            .await;
    }
}

enum Step {
    Goes,
    Idle,
}

enum End {
    Idle,
    Lost,
}

struct Connection {
    stream: TcpStream,
    /// The part of a message: at most 65535 bytes, its length, and one read.
    input: Vec<u8>,
    output: Vec<u8>,
    /// How much of the output has been written.
    written: usize,
    flights: VecDeque<Flight>,
    /// When the last message came.
    last_read: Option<Instant>,
    last_used: Instant,
}

impl Connection {
    fn has_output(&self) -> bool {
        self.written < self.output.len()
    }

    fn push(&mut self, query: Query) {
        let now = Instant::now();
        let Ok(length) = u16::try_from(query.bytes.len()) else {
            return;
        };
        self.output.extend_from_slice(&length.to_be_bytes());
        self.output.extend_from_slice(&query.bytes);
        self.last_used = now;
        self.flights.push_back(Flight { query, sent: now });
    }

    /// Takes the whole messages out of the input.
    fn messages(&mut self) -> Vec<Vec<u8>> {
        let mut messages = Vec::new();
        let mut at = 0;
        while let Some(&[high, low]) = self.input.get(at..at + LENGTH_BYTES) {
            let length = usize::from(u16::from_be_bytes([high, low]));
            let begin = at + LENGTH_BYTES;
            let Some(message) = self.input.get(begin..begin + length) else {
                break;
            };
            messages.push(message.to_vec());
            at = begin + length;
        }
        self.input.drain(..at);
        if !messages.is_empty() {
            self.last_used = Instant::now();
            self.last_read = Some(self.last_used);
        }
        for message in &messages {
            if let &[high, low, ..] = message.as_slice() {
                let id = u16::from_be_bytes([high, low]);
                let answered = |flight: &Flight| flight.query.id == id;
                if let Some(index) = self.flights.iter().position(answered) {
                    self.flights.remove(index);
                }
            }
        }
        messages
    }

    fn deadline(&self, answer_timeout: Duration) -> Instant {
        match self.flights.front() {
            Some(oldest) => oldest.sent + answer_timeout,
            None => self.last_used + IDLE_MAX,
        }
    }

    /// The oldest query has had no answer, or there was nothing to do for a while. A connection
    /// without any answer since that query is lost. The resolver knows of overdue answers itself.
    fn expire(&mut self, answer_timeout: Duration) -> io::Result<Step> {
        let Some(oldest) = self.flights.front() else {
            return Ok(Step::Idle);
        };
        let is_silent = self.last_read.is_none_or(|read| read < oldest.sent);
        let now = Instant::now();
        self.flights
            .retain(|flight| now - flight.sent < answer_timeout);
        if is_silent {
            Err(io::ErrorKind::TimedOut.into())
        } else {
            Ok(Step::Goes)
        }
    }
}
