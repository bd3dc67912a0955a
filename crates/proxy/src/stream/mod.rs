//! A stream: one request and its response, or one TCP session. Its state, and the table of all
//! streams of a worker.
//!
//! A stream has a client's end and a server's end. The client's end is a connection; the server's
//! end is a connection or a response that the process makes. Between them are two channels, one for
//! each direction.

mod channel;
mod deadlines;
mod filters;
mod followed;
mod limits;
mod phase;
mod route;

use std::sync::Arc;

use config::model::Direction;
use http::Head;
use http::h1::Resume;
use net::WorkerId;
use net::timers::TimerId;
use sample::Txn;

use crate::ids::{ExchangeId, Owner, ProxyId, StreamId, Timers};
use crate::link::HttpMajor;
use crate::runtime_config::{Moments, Skips};
use crate::shared::StreamRef;
use crate::statistics::generated_body::GeneratedBody;
pub(crate) use channel::Channel;
pub(crate) use deadlines::{Activity, Due, Until};
pub(crate) use filters::{Compressors, FULL, Limit, rate_of};
pub(crate) use followed::{Attached, FOLLOWS_TRIES, Requests, Tracing};
pub(crate) use phase::{Inspection, Phase, Queue, RuleWait, Rules, Step, Tarpit, Tunnel};
pub(crate) use route::{Binding, Early, Replay, Route};

/// A request and its response, or a TCP session. Boxed and used again: its buffers keep their
/// memory.
#[derive(Debug)]
pub(crate) struct Stream {
    pub id: StreamId,
    pub timer: TimerId,
    /// The [`crate::RuntimeConfig::generation`] whose rules it follows.
    pub generation: u32,
    pub phase: Phase,
    pub frontend: ProxyId,
    pub backend: ProxyId,
    /// The client's connection; none after it is released.
    pub client: Option<ExchangeId>,
    pub server: ServerEnd,
    pub activity: Activity,
    pub txn: Txn,
    pub request: Head,
    pub response: Head,
    /// The size of the head that rules work on, as it was read.
    pub read: HeadRead,
    /// The bytes of a head that could not be used.
    pub unread_bytes: usize,
    /// The bytes that were counted while they flowed (`option contstats`), in the order of a row's
    /// cells.
    pub counted: [u64; 4],
    /// The bodies of the request and of the response.
    pub up: Channel,
    pub down: Channel,
    pub route: Route,
    pub replay: Replay,
    pub log: Log,
    /// The phases that have nothing to do.
    pub skips: Skips,
    pub tracing: Tracing,
    /// How the response may be compressed.
    pub coding: Option<config::model::Coding>,
    /// The stream is counted at its backend.
    pub backend_counted: bool,
    /// Statistics do not count it.
    pub ignored: bool,
    pub account: Account,
    /// It began as TCP, and its `tcp-request content` rules have run.
    pub was_tcp: bool,
    /// Interim responses that were dropped because the client does not read.
    pub interim_dropped: u16,
    /// A part of the response has been sent to the client.
    pub answered: bool,
    /// The client's connection ends with this exchange, whatever the client asks for.
    pub close_client: bool,
    /// The request asked for another protocol (`Upgrade`, CONNECT).
    pub wants_tunnel: bool,
    /// The client speaks HTTP/1.0.
    pub is_old: bool,
    /// `strict-mode off` applies in the current rule set.
    pub soft_rewrites: bool,
    /// `http-after-response` rules failed, so they do not run again.
    pub rules_failed: bool,
    /// The realm for the challenge of the next page (RFC 9110 §11.5).
    pub challenge: Option<Box<[u8]>>,
    /// Keys under which the server is to be stored (`stick`).
    pub sticks: Vec<Stick>,
    /// In mode TCP: whether the received bytes begin with an HTTP request, which `request` then
    /// holds.
    pub sniffed: Sniffed,
    /// The names that `do-resolve` rules asked for.
    pub lookups: Vec<Lookup>,
}

/// What statistics have to know at the end of a stream.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Account {
    /// Its request is counted.
    pub request_counted: bool,
    /// What the client's connection speaks.
    pub client: HttpMajor,
    /// What the server's connection speaks.
    pub server: HttpMajor,
}

impl Account {
    /// Whether one of the connections carries other streams too.
    #[inline(always)]
    pub fn is_shared(&self) -> bool {
        self.client != HttpMajor::H1 || self.server != HttpMajor::H1
    }
}

/// The server's end of a stream.
#[derive(Clone, Debug, Default)]
pub(crate) enum ServerEnd {
    #[default]
    Nobody,
    /// A connection.
    Link(ExchangeId),
    /// A page of our own, with the position of its unsent part.
    Page(Page),
    /// A body of our own that is generated while it is sent.
    Generated(Box<GeneratedBody>),
}

impl ServerEnd {
    /// The connection, if it is one.
    #[inline]
    pub fn link(&self) -> Option<ExchangeId> {
        match self {
            ServerEnd::Link(link) => Some(*link),
            ServerEnd::Nobody | ServerEnd::Page(_) | ServerEnd::Generated(_) => None,
        }
    }

    /// Replaces the connection.
    pub fn set_link(&mut self, link: ExchangeId) {
        *self = ServerEnd::Link(link);
    }

    /// Takes the connection out, if there is one.
    pub fn take_link(&mut self) -> Option<ExchangeId> {
        let link = self.link()?;
        *self = ServerEnd::Nobody;
        Some(link)
    }
}

/// A body that is complete in memory, and how many bytes of it have been sent.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    pub body: Arc<[u8]>,
    pub sent: usize,
}

/// The size of a head when it was read, and the size of the body that came with it. Rewrites may
/// only use the space that is left.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeadRead {
    pub bytes: usize,
    pub body: usize,
}

/// The log state of a stream.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Log {
    /// The line was written, or will never be.
    pub written: bool,
    /// The steps at which its frontend writes lines.
    pub moments: Moments,
    /// Its level, if a rule set one.
    pub level: Option<config::model::LogLevel>,
}

/// A name that a `do-resolve` rule asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lookup {
    pub rule: sample::RulePlace,
    pub state: LookupState,
}

/// The state of a lookup.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LookupState {
    /// The answer is awaited.
    Asked,
    /// The address, or none; the rule has not used it.
    Answered(Option<std::net::IpAddr>),
    /// The rule has run.
    Used,
}

/// A key of a stick table under which the server is to be stored.
#[derive(Debug)]
pub(crate) struct Stick {
    pub table: Arc<tables::Table>,
    pub key: Box<[u8]>,
}

/// The result of looking for HTTP in the bytes of a TCP stream.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sniffed {
    pub is_http: bool,
    /// How many more bytes are needed before parsing again.
    pub resume: Resume,
}

impl Stream {
    /// Goes on with the next phase.
    #[inline(always)]
    pub fn go(&mut self, next: Phase) -> Step {
        self.phase = next;
        Step::Go
    }

    /// One direction of the stream.
    #[inline(always)]
    pub fn channel_mut(&mut self, direction: Direction) -> &mut Channel {
        match direction {
            Direction::Up => &mut self.up,
            Direction::Down => &mut self.down,
        }
    }

    /// The connection that payload of a direction comes from.
    #[inline(always)]
    pub fn sender(&self, direction: Direction) -> Option<ExchangeId> {
        match direction {
            Direction::Up => self.client,
            Direction::Down => self.server.link(),
        }
    }

    /// The connection that payload of a direction is sent to.
    #[inline(always)]
    pub fn receiver(&self, direction: Direction) -> Option<ExchangeId> {
        match direction {
            Direction::Up => self.server.link(),
            Direction::Down => self.client,
        }
    }

    /// The receiver of a direction has accepted bytes, or stopped accepting them. `is_blocked`: some
    /// are still to be accepted.
    #[inline(always)]
    pub fn receiver_took(&mut self, direction: Direction, is_blocked: bool, now_ms: u64) {
        let activity = &mut self.activity;
        match direction {
            Direction::Up => activity.server.took(&mut self.up, is_blocked, now_ms),
            Direction::Down => activity.client.took(&mut self.down, is_blocked, now_ms),
        }
    }

    /// The reference that other threads use for this stream of `worker`.
    pub fn reference(&self, worker: WorkerId) -> StreamRef {
        StreamRef {
            worker,
            place: self.id.0,
            number: self.txn.id,
        }
    }

    fn new(id: StreamId, timer: TimerId) -> Stream {
        Stream {
            id,
            timer,
            generation: 0,
            phase: Phase::default(),
            frontend: ProxyId::default(),
            backend: ProxyId::default(),
            client: None,
            server: ServerEnd::Nobody,
            activity: Activity::default(),
            txn: Txn::default(),
            request: Head::default(),
            response: Head::default(),
            read: HeadRead::default(),
            unread_bytes: 0,
            counted: [0; 4],
            up: Channel::default(),
            down: Channel::default(),
            route: Route::default(),
            replay: Replay::default(),
            log: Log::default(),
            skips: Skips::default(),
            tracing: Tracing::default(),
            coding: None,
            backend_counted: false,
            account: Account::default(),
            ignored: false,
            was_tcp: false,
            interim_dropped: 0,
            answered: false,
            close_client: false,
            wants_tunnel: false,
            is_old: false,
            soft_rewrites: false,
            rules_failed: false,
            challenge: None,
            sticks: Vec::new(),
            sniffed: Sniffed::default(),
            lookups: Vec::new(),
        }
    }

    /// Resets it and keeps the memory. Every field is named, so that a new one cannot be forgotten.
    /// Each is a plain store, whereas assigning a new stream would copy two kilobytes per request.
    fn reset(&mut self) {
        let Stream {
            id: _,
            timer: _,
            // The next stream sets it.
            generation: _,
            phase,
            frontend,
            backend,
            client,
            server,
            activity,
            txn,
            request,
            response,
            read,
            unread_bytes,
            counted,
            up,
            down,
            route,
            replay,
            log,
            skips,
            tracing,
            coding,
            backend_counted,
            account,
            ignored,
            was_tcp,
            interim_dropped,
            answered,
            close_client,
            wants_tunnel,
            is_old,
            soft_rewrites,
            rules_failed,
            challenge,
            sticks,
            sniffed,
            lookups,
        } = self;
        *phase = Phase::default();
        (*frontend, *backend) = (ProxyId::default(), ProxyId::default());
        *client = None;
        *server = ServerEnd::Nobody;
        *activity = Activity::default();
        txn.reset();
        for head in [request, response] {
            head.clear();
            head.keep_little();
        }
        *read = HeadRead::default();
        *unread_bytes = 0;
        *counted = [0; 4];
        up.reset();
        down.reset();
        *route = Route::default();
        replay.reset();
        *log = Log::default();
        *skips = Skips::default();
        tracing.reset();
        *coding = None;
        *account = Account::default();
        *interim_dropped = 0;
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
        lookups.clear();
    }

    /// A stream that is in no table.
    pub fn lone() -> Stream {
        let id = StreamId::default();
        Stream::new(id, Timers::default().add(Owner::Stream(id)))
    }

    /// Sets the termination flags; the first ones stay.
    pub fn ended_by(&mut self, who: u8, when: u8) {
        if self.txn.termination[0] == 0 {
            self.txn.termination[0] = who;
            self.txn.termination[1] = when;
        }
    }

    /// Whether they are set.
    pub fn has_ending(&self) -> bool {
        self.txn.termination[0] != 0
    }

    /// The second termination flag at this moment (manual §8.5).
    pub fn letter(&self) -> u8 {
        self.phase.letter(self.down.done)
    }

    /// Whether a request's head was read.
    pub fn has_request(&self) -> bool {
        self.txn.is_http
            && !matches!(self.phase, Phase::RequestHead(_))
            && !self.txn.request_line.is_empty()
    }

    /// Whether the head of a response is present: the server's or our own.
    pub fn has_response(&self) -> bool {
        self.response.status() != 0
    }

    /// The request was read and its rules have ended or responded: the end of `%TR`.
    pub fn request_processed(&mut self, now: net::Now) {
        let complete = &mut self.txn.timing.request_complete_ms;
        complete.get_or_insert(now.ms());
    }
}

/// Spare streams that keep their memory, whatever the recent load was.
const SPARE_MAX: usize = 256;

/// The streams of a worker by their places.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    /// Boxed, because a stream is large and many places are empty.
    places: Vec<Option<Box<Stream>>>,
    /// Places of unused streams that keep their memory, and empty places.
    spare: Vec<StreamId>,
    empty: Vec<StreamId>,
    in_use: usize,
    /// The most streams that were recently in use: as many may be spare.
    peak: usize,
}

impl Streams {
    /// Takes a fresh stream.
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

    /// Makes an ended stream a spare one.
    pub fn end(&mut self, id: StreamId, timers: &mut Timers) {
        let place = &mut self.places[id.0 as usize];
        let Some(stream) = place else { return };
        debug_assert_eq!(stream.phase, Phase::Done);
        self.in_use -= 1;
        if self.spare.len() < self.peak.max(SPARE_MAX) {
            // If its timer expires, the stream is unused, or computes its deadlines again.
            stream.reset();
            self.spare.push(id);
        } else {
            timers.remove(stream.timer);
            *place = None;
            self.empty.push(id);
        }
    }

    /// Frees the spare streams above the recent peak. The peak decays by half with each call.
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

    /// All places, in use or not.
    pub fn ids(&self) -> impl Iterator<Item = StreamId> + use<> {
        (0..self.places.len() as u32).map(StreamId)
    }

    pub fn in_use(&self) -> usize {
        self.in_use
    }
}

impl Stream {
    /// A spare stream has no client.
    fn is_in_use(&self) -> bool {
        self.client.is_some() || matches!(self.phase, Phase::Done)
    }
}
