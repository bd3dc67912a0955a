//! What each target of a frontend gets of a line: by its levels, its sample, its profile; and which server of a log backend.

use config::model::{Balance, LogProfile, LogSink, LogTarget};
use net::{ConnId, Driver};
use sample::{LogFormat, LogOrigin, Scope};

use super::wire::{Dates, Header};
use crate::balance;
use crate::engine::{Core, Cx};
use crate::stream::Stream;

/// The name that lines carry where `log-tag` gives none.
const DEFAULT_TAG: &str = "haproxy";

/// One worker's state of logging.
#[derive(Debug, Default)]
pub(crate) struct Logging {
    dates: Dates,
    buffers: Buffers,
    /// By the targets' numbers: where each is in its window of [`config::model::LogSample`].
    samples: Vec<u32>,
}

/// The pieces of the line at hand.
#[derive(Debug, Default)]
struct Buffers {
    /// By the proxy's formats.
    text: Vec<u8>,
    sd: Vec<u8>,
    /// By those of a target's profile.
    own_text: Vec<u8>,
    own_sd: Vec<u8>,
    /// A message with its header.
    message: Vec<u8>,
}

/// A line that is due.
pub(super) struct Line<'a> {
    pub origin: LogOrigin,
    pub severity: u8,
    pub text: Text<'a>,
    /// Goes before the targets' own.
    pub profile: Option<usize>,
}

/// What a line says where no profile says otherwise.
#[derive(Clone, Copy)]
pub(super) enum Text<'a> {
    None,
    Format(&'a LogFormat),
    /// A connection failed early: who, when, and this.
    Failed(&'a str),
}

/// What a line is about.
#[derive(Clone, Copy)]
pub(super) enum Whose<'a> {
    Stream(&'a Stream),
    Connection(ConnId),
}

impl Core {
    /// Writes a line to every target of a frontend that takes it.
    pub(super) fn emit<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        whose: Whose<'_>,
        frontend: usize,
        line: &Line<'_>,
    ) {
        let running = cx.running;
        let proxy = running.proxy(frontend);
        if let Some(client) = whose.connection().and_then(|conn| self.conns.client(conn)) {
            client.session.log_origin = line.origin;
        }
        let mut buffers = std::mem::take(&mut self.logging.buffers);
        // Rendered for the first target that wants them.
        let (mut has_text, mut has_sd) = (false, false);
        for (target, place) in proxy.log.iter().zip(&running.log_places[frontend]) {
            if line.severity > target.level_max || !self.logging.samples(target, place.number) {
                continue;
            }
            let profile = line.profile.or(target.profile);
            let profile: Option<&LogProfile> =
                profile.map(|index| &running.config.log_profiles[index]);
            let step = profile
                .filter(|_| line.origin != LogOrigin::Unspecified)
                .and_then(|profile| profile.step(line.origin));
            if step.is_some_and(|step| step.drop) {
                continue;
            }
            let text = match step.and_then(|step| step.format.as_ref()) {
                Some(format) => {
                    self.write_anew(cx, whose, format, &mut buffers.own_text);
                    &buffers.own_text
                }
                None => {
                    if !std::mem::replace(&mut has_text, true) {
                        self.write_text(cx, whose, line.text, &mut buffers.text);
                    }
                    &buffers.text
                }
            };
            let text = trimmed(text);
            if text.is_empty() {
                continue;
            }
            let sd = match step.and_then(|step| step.sd.as_ref()) {
                Some(format) => {
                    self.write_anew(cx, whose, format, &mut buffers.own_sd);
                    &buffers.own_sd
                }
                None => {
                    if let Some(format) = &proxy.log_format_sd
                        && !std::mem::replace(&mut has_sd, true)
                    {
                        self.write_anew(cx, whose, format, &mut buffers.sd);
                    }
                    &buffers.sd
                }
            };
            let Some(sink) = self.sink(cx, whose, target, place.sink, text) else {
                continue;
            };
            let tag = profile.and_then(|profile| profile.tag.as_deref());
            let tag = tag
                .or(proxy.log_tag.as_deref())
                .or(running.config.global.log_tag.as_deref());
            let header = Header {
                level: line.severity.max(target.level_min),
                tag: tag.unwrap_or(DEFAULT_TAG.as_bytes()),
                sd: sd.trim_ascii_end(),
                steady: profile.is_none().then_some(place.number),
            };
            let now = cx.driver.now();
            let dates = &mut self.logging.dates;
            dates.write(running, target, &header, now, text, &mut buffers.message);
            cx.driver.log(sink, &buffers.message);
        }
        buffers.sd.clear();
        self.logging.buffers = buffers;
    }

    /// Writes a message of a filter to every target of the filter that takes it. No format of a profile applies: the message
    /// is none of a stream's life.
    pub(crate) fn emit_for_filter<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &Stream,
        filter: usize,
        severity: u8,
        text: &[u8],
    ) {
        let running = cx.running;
        let config = &running.config.otel[filter];
        let mut message = std::mem::take(&mut self.logging.buffers.message);
        for (target, place) in config.log.iter().zip(&running.filter_log_places[filter]) {
            if severity > target.level_max || !self.logging.samples(target, place.number) {
                continue;
            }
            let Some(sink) = self.sink(cx, Whose::Stream(stream), target, place.sink, text) else {
                continue;
            };
            let profile = target
                .profile
                .map(|index| &running.config.log_profiles[index]);
            let tag = profile.and_then(|profile| profile.tag.as_deref());
            let tag = tag
                .or(running.proxy(config.proxy).log_tag.as_deref())
                .or(running.config.global.log_tag.as_deref());
            let header = Header {
                level: severity.max(target.level_min),
                tag: tag.unwrap_or(DEFAULT_TAG.as_bytes()),
                sd: b"",
                steady: profile.is_none().then_some(place.number),
            };
            let now = cx.driver.now();
            let dates = &mut self.logging.dates;
            dates.write(running, target, &header, now, text, &mut message);
            cx.driver.log(sink, &message);
        }
        self.logging.buffers.message = message;
    }

    /// The sink that a message for a target goes to; none where a log backend has no server for it.
    fn sink<D: Driver>(
        &mut self,
        cx: &Cx<'_, D>,
        whose: Whose<'_>,
        target: &LogTarget,
        first: usize,
        text: &[u8],
    ) -> Option<usize> {
        let LogSink::Backend(backend) = target.to else {
            return Some(first);
        };
        let proxy = cx.running.proxy(backend);
        let key = match &proxy.balance {
            Balance::LogHash(key) => Some(self.message_key(cx, whose, proxy, key, text)?),
            _ => None,
        };
        let server = self.log_server(cx, backend, key)?;
        Some(first + server)
    }

    /// The hash of what converters make of a message.
    fn message_key<D: Driver>(
        &self,
        cx: &Cx<'_, D>,
        whose: Whose<'_>,
        backend: &config::model::Proxy,
        key: &sample::Expr,
        text: &[u8],
    ) -> Option<u32> {
        let view = self.view(cx);
        let scope = Scope {
            now: cx.now(),
            world: &view,
            session: self.conns.session(whose.connection()?)?,
            txn: None,
            request: None,
            response: None,
            request_data: text,
            response_data: &[],
            from_server: false,
            last_chance: true,
        };
        key.with_binary(&scope, |bytes| balance::hash(bytes, backend.hash_type))
    }

    fn write_text<D: Driver>(
        &self,
        cx: &Cx<'_, D>,
        whose: Whose<'_>,
        text: Text<'_>,
        out: &mut Vec<u8>,
    ) {
        match text {
            Text::None => out.clear(),
            Text::Format(format) => self.write_anew(cx, whose, format, out),
            Text::Failed(why) => {
                if let Some(format) = &cx.running.session_prefix {
                    self.write_anew(cx, whose, format, out);
                }
                out.push(b'/');
                if let Some(conn) = whose.connection()
                    && let Some(session) = self.conns.session(conn)
                {
                    let frontend = cx.running.proxy(session.frontend as usize);
                    let bind = &frontend.binds[session.bind as usize];
                    match &bind.name {
                        Some(name) => out.extend_from_slice(name.as_bytes()),
                        None => sample::text::push_uint(out, u64::from(bind.id)),
                    }
                }
                out.extend_from_slice(b": ");
                out.extend_from_slice(why.as_bytes());
            }
        }
    }

    fn write_anew<D: Driver>(
        &self,
        cx: &Cx<'_, D>,
        whose: Whose<'_>,
        format: &LogFormat,
        out: &mut Vec<u8>,
    ) {
        out.clear();
        match whose {
            Whose::Stream(stream) => self.render(cx, stream, format, out),
            Whose::Connection(conn) => {
                self.with_session(cx, conn, |scope| format.render(scope, out));
            }
        }
    }
}

impl Whose<'_> {
    /// The client's connection.
    fn connection(self) -> Option<ConnId> {
        match self {
            Whose::Stream(stream) => stream.client,
            Whose::Connection(conn) => Some(conn),
        }
    }
}

/// A line feed or a NUL at the end is the format's author's; the wire has its own.
fn trimmed(text: &[u8]) -> &[u8] {
    let end = text
        .iter()
        .rposition(|byte| !matches!(byte, b'\n' | 0))
        .map_or(0, |last| last + 1);
    &text[..end]
}

impl Logging {
    /// Whether the line at hand is one of those that a target samples; counts it.
    fn samples(&mut self, target: &LogTarget, number: usize) -> bool {
        let Some(sample) = &target.sample else {
            return true;
        };
        if self.samples.len() <= number {
            self.samples.resize(number + 1, 0);
        }
        let place = &mut self.samples[number];
        *place = *place % sample.size.max(1) + 1;
        let ranges = &sample.ranges;
        ranges
            .iter()
            .any(|(low, high)| (*low..=*high).contains(place))
    }
}
