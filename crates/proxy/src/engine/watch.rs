//! Streams for commands: shows and ends them (`show sess`, `shutdown session`).

use std::sync::mpsc::SyncSender;

use net::timers::NEVER_MS;
use net::{Addr, Driver, WorkerId};

use super::Turn;
use crate::ids::{ExchangeId, ProxyId, ServerId};
use crate::phases::Cause;
use crate::shared::Killed;
use crate::stream::{Phase, Stream};

/// How many bytes of a request line are shown.
const REQUEST_LINE_BYTES_MAX: usize = 1024;

/// A request for some of a worker's streams.
#[derive(Clone, Debug)]
pub struct StreamsAsked {
    /// The place to continue from; 0 at first.
    pub from: u32,
    /// The largest number of streams to return.
    pub most: usize,
    /// Receives the part. The channel must have room: the worker does not wait.
    pub reply: SyncSender<StreamsPart>,
}

/// Some of a worker's streams.
#[derive(Clone, Debug, Default)]
pub struct StreamsPart {
    /// The streams.
    pub streams: Vec<StreamView>,
    /// The place to continue from; none after the last stream.
    pub next: Option<u32>,
}

/// A snapshot of a stream.
#[derive(Clone, Debug)]
pub struct StreamView {
    /// Its number since the start of the process.
    pub id: u64,
    /// The worker that serves it.
    pub worker: WorkerId,
    /// The places of its frontend and backend in the configuration, and of its server in the
    /// backend.
    pub frontend: usize,
    /// See `frontend`.
    pub backend: Option<usize>,
    /// See `frontend`.
    pub server: Option<usize>,
    /// The client's address.
    pub client: Option<Addr>,
    /// The client's connection is one of QUIC.
    pub is_quic: bool,
    /// The address that the client connected to.
    pub local: Option<Addr>,
    /// The server's address.
    pub server_address: Option<Addr>,
    /// Milliseconds since its start.
    pub age_ms: u64,
    /// Milliseconds until its next deadline.
    pub expires_ms: Option<u64>,
    /// Its phase in one word.
    pub phase: &'static str,
    /// Whether it is HTTP.
    pub is_http: bool,
    /// The beginning of its request line.
    pub request_line: Vec<u8>,
    /// Connection retries.
    pub retries: u32,
    /// Waiting bytes from the client, and from the server.
    pub waiting: (usize, usize),
    /// Bytes from the client.
    pub bytes_in: u64,
    /// Bytes to the client.
    pub bytes_out: u64,
    /// Whether it has a connection to a server.
    pub is_connected: bool,
}

impl<D: Driver> Turn<'_, D> {
    pub(super) fn show_streams(&mut self, asked: &StreamsAsked) {
        let mut part = StreamsPart::default();
        let ids = self.streams.ids().skip(asked.from as usize);
        for (place, id) in (asked.from..).zip(ids) {
            if part.streams.len() >= asked.most {
                part.next = Some(place);
                break;
            }
            let view = self.streams.get(id).and_then(|stream| self.view(stream));
            part.streams.extend(view);
        }
        // The receiver may be gone.
        let _ = asked.reply.try_send(part);
    }

    fn view(&self, stream: &Stream) -> Option<StreamView> {
        if matches!(stream.phase, Phase::Done) {
            return None;
        }
        let now = self.cx.now();
        let txn = &stream.txn;
        let session = stream
            .client
            .and_then(|link: ExchangeId| self.cx.core.links.session(link));
        let due_ms = stream
            .deadlines(self.older.config_of(stream, self.cx.runtime_config))
            .first_ms();
        let line = &txn.request_line;
        let began = txn.timing.request_start.unwrap_or(txn.timing.start);
        Some(StreamView {
            id: txn.id,
            worker: self.cx.core.ambient.worker,
            frontend: stream.frontend.place(),
            backend: txn.backend.map(|_| stream.backend.place()),
            server: stream.route.target.map(ServerId::place),
            client: session.map(|session| session.src_of(Some(txn)).clone()),
            is_quic: stream
                .client
                .is_some_and(|client| self.cx.core.links.quic_of(client).is_some()),
            local: session.map(|session| session.dst_of(Some(txn)).clone()),
            server_address: txn.server_dst.clone(),
            age_ms: now.ms().saturating_sub(began.ms()),
            expires_ms: (due_ms != NEVER_MS).then(|| due_ms.saturating_sub(now.ms())),
            phase: stream.phase.name(),
            is_http: txn.is_http,
            request_line: line[..line.len().min(REQUEST_LINE_BYTES_MAX)].to_vec(),
            retries: txn.retries,
            waiting: (stream.up.waiting.len(), stream.down.waiting.len()),
            bytes_in: txn.bytes_in,
            bytes_out: txn.bytes_out,
            is_connected: stream.server.link().is_some(),
        })
    }

    pub(super) fn kill(&mut self, killed: &Killed) {
        for id in self.streams.ids() {
            let stream = self.streams.get(id);
            if !stream.is_some_and(|stream| means(killed, stream)) {
                continue;
            }
            if let Killed::Stream(_, found) = killed {
                // The receiver may be gone.
                let _ = found.send(());
            }
            self.with_stream(id, |cx, stream| cx.fail(stream, cause(killed)));
        }
    }
}

/// Whether a stream is one of those to end.
fn means(killed: &Killed, stream: &Stream) -> bool {
    let targets = |backend: usize, server: usize| {
        stream.route.target == Some(ServerId::at(ProxyId::at(backend), server))
    };
    match killed {
        _ if matches!(stream.phase, Phase::Done) => false,
        Killed::All => true,
        Killed::Stream(number, _) => stream.txn.id == *number,
        Killed::Server(backend, server) => targets(*backend, *server),
        Killed::ServerDown(backend, server) => {
            targets(*backend, *server) && stream.server.link().is_some()
        }
    }
}

fn cause(killed: &Killed) -> Cause {
    match killed {
        Killed::Stream(..) | Killed::Server(..) | Killed::All => Cause::Killed,
        Killed::ServerDown(..) => Cause::ServerDown,
    }
}
