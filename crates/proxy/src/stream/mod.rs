//! A stream: one request and its answer, or one TCP session. Its state, and the table of all streams of a worker.
//!
//! A stream has a client's end and a server's end. The client's is a connection; the server's is a connection or something inside
//! the process. Between them lie two channels, one a direction.

mod bandwidth;
mod channel;
mod compressor;
mod followed;
mod limits;
mod phase;
mod route;

use std::sync::Arc;

use http::Head;
use http::h1::Resume;
use net::timers::{NEVER_MS, TimerId};
use sample::Txn;

use crate::ids::{LinkId, Owner, ProxyId, StreamId, Timers};
use crate::running::Moments;
use crate::statistics::made::Made;
pub(crate) use bandwidth::{Bandwidth, FULL, Limit};
pub(crate) use channel::Channel;
pub(crate) use compressor::{Compressor, Compressors};
pub(crate) use followed::{Attached, FOLLOWS_TRIES, Requests, Tracing};
pub(crate) use phase::{Inspection, Phase, RuleWait, Rules, Step, Tunnel};
pub(crate) use route::{Binding, Replay, Route};

/// See the module. Boxed and used again: its buffers keep their memory.
#[derive(Debug)]
pub(crate) struct Stream {
    pub id: StreamId,
    pub timer: TimerId,
    pub phase: Phase,
    pub frontend: ProxyId,
    pub backend: ProxyId,
    /// The client's end; none once it is let go.
    pub client: Option<LinkId>,
    pub server: ServerEnd,
    pub deadlines: Deadlines,
    pub txn: Txn,
    pub request: Head,
    pub response: Head,
    /// The head being ruled, as it was read.
    pub read: HeadRead,
    /// The request's body, and the response's.
    pub up: Channel,
    pub down: Channel,
    pub route: Route,
    pub replay: Replay,
    pub log: Log,
    pub tracing: Tracing,
    /// What slows its payload down.
    pub bandwidth: Bandwidth,
    /// How the response may be compressed, and what compresses it.
    pub coding: Option<config::model::Coding>,
    pub compressor: Option<Box<Compressor>>,
    /// The stream is counted at its backend.
    pub backend_counted: bool,
    /// Statistics leave it out.
    pub ignored: bool,
    /// It began as TCP: `tcp-request content` is behind it.
    pub was_tcp: bool,
    /// Something of the response has reached the client.
    pub answered: bool,
    /// The client's connection ends with this exchange, whatever the client wants.
    pub close_client: bool,
    /// The request asked for another protocol (`Upgrade`, CONNECT).
    pub wants_tunnel: bool,
    /// The client speaks HTTP/1.0.
    pub is_old: bool,
    /// `strict-mode off`, in the rule set at hand.
    pub soft_rewrites: bool,
    /// `http-after-response` rules failed: no more of them run.
    pub rules_failed: bool,
    /// The realm of the challenge that the next page has (RFC 9110 §11.5).
    pub challenge: Option<Box<[u8]>>,
    /// Keys that a server is to be remembered by (`stick`).
    pub sticks: Vec<Stick>,
    /// In TCP: whether the bytes at hand begin with an HTTP request, which `request` holds then.
    pub sniffed: Sniffed,
}

/// What is at the server's end of a stream.
#[derive(Clone, Debug, Default)]
pub(crate) enum ServerEnd {
    #[default]
    Nobody,
    /// A connection.
    Link(LinkId),
    /// A page of our own: what of its body has not left.
    Page(Page),
    /// A body of our own that is made while it leaves.
    Made(Box<Made>),
}

impl ServerEnd {
    /// The connection, if it is one.
    #[inline]
    pub fn link(&self) -> Option<LinkId> {
        match self {
            ServerEnd::Link(link) => Some(*link),
            ServerEnd::Nobody | ServerEnd::Page(_) | ServerEnd::Made(_) => None,
        }
    }

    /// Another connection takes the place of the one that is there.
    pub fn set_link(&mut self, link: LinkId) {
        *self = ServerEnd::Link(link);
    }

    /// Takes the connection away, if it is one.
    pub fn take_link(&mut self) -> Option<LinkId> {
        let link = self.link()?;
        *self = ServerEnd::Nobody;
        Some(link)
    }
}

/// A body that is whole in memory, and how much of it has left.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    pub body: Arc<[u8]>,
    pub sent: usize,
}

/// When what a stream waits for has taken too long: monotonic milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadlines {
    /// The client's silence.
    pub client_ms: u64,
    /// The server's.
    pub server_ms: u64,
    /// What the phase waits for.
    pub wait_ms: u64,
    /// When a limit of bandwidth lets more pass.
    pub pace_ms: u64,
}

impl Default for Deadlines {
    fn default() -> Self {
        Deadlines {
            client_ms: NEVER_MS,
            server_ms: NEVER_MS,
            wait_ms: NEVER_MS,
            pace_ms: NEVER_MS,
        }
    }
}

impl Deadlines {
    /// The first of them.
    #[inline]
    pub fn first_ms(&self) -> u64 {
        let silence_ms = self.client_ms.min(self.server_ms);
        silence_ms.min(self.wait_ms).min(self.pace_ms)
    }
}

/// What a head took where it was read, and how much of its body came along: what rewrites must fit beside.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeadRead {
    pub bytes: usize,
    pub body: usize,
}

/// A stream's log line.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Log {
    /// It was written, or never will be.
    pub written: bool,
    /// When its frontend writes lines.
    pub moments: Moments,
    /// Its level, where a rule set it.
    pub level: Option<config::model::LogLevel>,
}

/// A key of a stick table that a server is to be remembered by.
#[derive(Debug)]
pub(crate) struct Stick {
    pub table: Arc<tables::Table>,
    pub key: Box<[u8]>,
}

/// What was found in the bytes of a TCP stream.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sniffed {
    pub is_http: bool,
    /// When more bytes are worth another look.
    pub resume: Resume,
}

impl Stream {
    /// Goes on with the next phase.
    #[inline(always)]
    pub fn go(&mut self, next: Phase) -> Step {
        self.phase = next;
        Step::Go
    }

    fn new(id: StreamId, timer: TimerId) -> Stream {
        Stream {
            id,
            timer,
            phase: Phase::RequestHead,
            frontend: ProxyId::default(),
            backend: ProxyId::default(),
            client: None,
            server: ServerEnd::Nobody,
            deadlines: Deadlines::default(),
            txn: Txn::default(),
            request: Head::default(),
            response: Head::default(),
            read: HeadRead::default(),
            up: Channel::default(),
            down: Channel::default(),
            route: Route::default(),
            replay: Replay::default(),
            log: Log::default(),
            tracing: Tracing::default(),
            bandwidth: Bandwidth::default(),
            coding: None,
            compressor: None,
            backend_counted: false,
            ignored: false,
            was_tcp: false,
            answered: false,
            close_client: false,
            wants_tunnel: false,
            is_old: false,
            soft_rewrites: false,
            rules_failed: false,
            challenge: None,
            sticks: Vec::new(),
            sniffed: Sniffed::default(),
        }
    }

    /// Back to a fresh state, the memory kept. Every field is named, so that a new one cannot be forgotten; each is a
    /// plain store, where assigning a whole new stream would copy two kilobytes a request.
    fn reset(&mut self) {
        let Stream {
            id: _,
            timer: _,
            phase,
            frontend,
            backend,
            client,
            server,
            deadlines,
            txn,
            request,
            response,
            read,
            up,
            down,
            route,
            replay,
            log,
            tracing,
            bandwidth,
            coding,
            compressor,
            backend_counted,
            ignored,
            was_tcp,
            answered,
            close_client,
            wants_tunnel,
            is_old,
            soft_rewrites,
            rules_failed,
            challenge,
            sticks,
            sniffed,
        } = self;
        *phase = Phase::RequestHead;
        (*frontend, *backend) = (ProxyId::default(), ProxyId::default());
        *client = None;
        *server = ServerEnd::Nobody;
        *deadlines = Deadlines::default();
        txn.reset();
        for head in [request, response] {
            head.clear();
            head.keep_little();
        }
        *read = HeadRead::default();
        up.reset();
        down.reset();
        *route = Route::default();
        replay.reset();
        *log = Log::default();
        tracing.reset();
        bandwidth.reset();
        (*coding, *compressor) = (None, None);
        for flag in [
            backend_counted,
            ignored,
            was_tcp,
            answered,
            close_client,
            wants_tunnel,
            is_old,
            soft_rewrites,
            rules_failed,
        ] {
            *flag = false;
        }
        *challenge = None;
        sticks.clear();
        *sniffed = Sniffed::default();
    }

    /// One outside of any table.
    pub fn lone() -> Stream {
        let id = StreamId::default();
        Stream::new(id, Timers::default().add(Owner::Stream(id)))
    }

    /// Marks who ended it and when; the first mark stays.
    pub fn ended_by(&mut self, who: u8, when: u8) {
        if self.txn.termination[0] == 0 {
            self.txn.termination[0] = who;
            self.txn.termination[1] = when;
        }
    }

    /// When, as of now (manual §8.5).
    pub fn letter(&self) -> u8 {
        self.phase.letter(self.down.done)
    }

    /// A request's head was read.
    pub fn has_request(&self) -> bool {
        self.txn.is_http
            && !matches!(self.phase, Phase::RequestHead)
            && !self.txn.request_line.is_empty()
    }

    /// A response's head is there: the server's or our own.
    pub fn has_response(&self) -> bool {
        self.response.status() != 0
    }

    /// The request was read and its rules are done, by their end or by one that answers: what `%TR` counts to.
    pub fn request_processed(&mut self, now: net::Now) {
        let complete = &mut self.txn.timing.request_complete_ms;
        complete.get_or_insert(now.ms());
    }
}

/// Spare streams that keep their memory for those to come, whatever the load was of late.
const SPARE_MAX: usize = 256;

/// The streams of a worker, by their places.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    /// Boxed: a stream is large, and many places are empty.
    places: Vec<Option<Box<Stream>>>,
    /// Places of streams that are not in use and keep their memory, and empty places.
    spare: Vec<StreamId>,
    empty: Vec<StreamId>,
    in_use: usize,
    /// The most that were in use of late: as many may be spare.
    peak: usize,
}

impl Streams {
    /// A fresh stream.
    pub fn begin(&mut self, timers: &mut Timers) -> &mut Stream {
        self.in_use += 1;
        self.peak = self.peak.max(self.in_use);
        let id = match self.spare.pop() {
            Some(id) => id,
            None => self.build(timers),
        };
        match &mut self.places[id.0 as usize] {
            Some(stream) => stream,
            None => unreachable!("a spare place has a stream"),
        }
    }

    #[cold]
    fn build(&mut self, timers: &mut Timers) -> StreamId {
        let id = self.empty.pop().unwrap_or_else(|| {
            self.places.push(None);
            StreamId((self.places.len() - 1) as u32)
        });
        let timer = timers.add(Owner::Stream(id));
        self.places[id.0 as usize] = Some(Box::new(Stream::new(id, timer)));
        id
    }

    /// Makes a stream that is done a spare one.
    pub fn end(&mut self, id: StreamId, timers: &mut Timers) {
        let place = &mut self.places[id.0 as usize];
        let Some(stream) = place else { return };
        debug_assert_eq!(stream.phase, Phase::Done);
        self.in_use -= 1;
        if self.spare.len() < self.peak.max(SPARE_MAX) {
            timers.set(stream.timer, NEVER_MS);
            stream.reset();
            self.spare.push(id);
        } else {
            timers.remove(stream.timer);
            *place = None;
            self.empty.push(id);
        }
    }

    /// Time has passed: gives back the memory of half of the spare streams that were not needed since.
    pub fn trim(&mut self, timers: &mut Timers) {
        self.peak = self.in_use.max(self.peak / 2);
        while self.spare.len() > self.peak.max(SPARE_MAX) {
            let Some(id) = self.spare.pop() else { return };
            if let Some(stream) = self.places[id.0 as usize].take() {
                timers.remove(stream.timer);
            }
            self.empty.push(id);
        }
    }

    #[inline]
    pub fn get(&self, id: StreamId) -> Option<&Stream> {
        let stream = self.places.get(id.0 as usize)?.as_deref()?;
        stream.is_in_use().then_some(stream)
    }

    #[inline]
    pub fn get_mut(&mut self, id: StreamId) -> Option<&mut Stream> {
        let stream = self.places.get_mut(id.0 as usize)?.as_deref_mut()?;
        stream.is_in_use().then_some(stream)
    }

    /// The streams in use.
    pub fn all(&self) -> impl Iterator<Item = &Stream> {
        let streams = self.places.iter().filter_map(Option::as_deref);
        streams.filter(|stream| stream.is_in_use())
    }

    /// The places of all that there are, in use or not.
    pub fn ids(&self) -> impl Iterator<Item = StreamId> + use<> {
        (0..self.places.len() as u32).map(StreamId)
    }

    pub fn in_use(&self) -> usize {
        self.in_use
    }
}

impl Stream {
    /// A spare one has no client.
    fn is_in_use(&self) -> bool {
        self.client.is_some() || matches!(self.phase, Phase::Done)
    }
}
