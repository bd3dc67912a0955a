//! Builds the line for each target of a frontend, by its levels, its sample and its profile, and
//! chooses the server of a log backend.

use config::model::{Balance as Configured, LogProfile, LogSink, LogTarget, Mode};
use net::Now;
use sample::{LogFormat, LogOrigin, Scope};

use super::wire::{Dates, Header};
use crate::backend::balance::{self, Balance, Beginning, Candidates};
use crate::evaluation::{Ambient, Eval};
use crate::ids::{ProxyId, ServerId};
use crate::runtime_config::RuntimeConfig;
use crate::stream::Stream;

/// The tag of lines without `log-tag`.
pub(super) const DEFAULT_TAG: &[u8] = b"haproxy";

/// One worker's state of logging.
#[derive(Debug)]
pub(crate) struct Logging {
    pub(super) dates: Dates,
    /// Boxed, because they are taken out for each line.
    buffers: Option<Box<Buffers>>,
    /// By target number: its position in the window of [`config::model::LogSample`].
    samples: Vec<u32>,
    /// By proxy: the balancing state of a log backend.
    backends: Vec<Option<LogBackend>>,
}

/// Buffers for the current line.
#[derive(Debug, Default)]
struct Buffers {
    /// Rendered with the proxy's formats.
    text: Vec<u8>,
    sd: Vec<u8>,
    /// Rendered with the formats of a target's profile.
    own_text: Vec<u8>,
    own_sd: Vec<u8>,
    /// The message with its header.
    message: Vec<u8>,
}

/// A backend in `mode log`.
#[derive(Debug)]
struct LogBackend {
    /// The epoch of the data that is derived from its servers.
    epoch: u32,
    balance: Box<dyn Balance>,
    usable: Vec<bool>,
    weights: Vec<u32>,
}

/// A line to write.
pub(super) struct Line<'a> {
    pub origin: LogOrigin,
    pub severity: u8,
    pub text: Text<'a>,
    /// Takes precedence over the profiles of targets.
    pub profile: Option<usize>,
}

/// The text of a line, unless a profile defines another one.
#[derive(Clone, Copy)]
pub(super) enum Text<'a> {
    None,
    Format(&'a LogFormat),
    /// A connection failed early: the line has its client, the time, and this reason.
    Failed(&'a str),
}

/// Work with a scope in which bytes are those of a request.
type WithBytes<'a> = dyn Fn(&[u8], &mut dyn FnMut(&Scope<'_>)) + 'a;

/// The place of a message, from where the server of a log backend is chosen.
pub(super) struct Site<'a> {
    pub runtime_config: &'a RuntimeConfig,
    pub ambient: &'a Ambient,
    pub now: Now,
    /// Evaluates with these bytes as the request's.
    pub with_bytes: &'a WithBytes<'a>,
}

impl LogBackend {
    fn new(runtime_config: &RuntimeConfig, ambient: &Ambient, id: ProxyId) -> LogBackend {
        let proxy = runtime_config.proxy(id);
        let servers = &ambient.shared.servers;
        let epoch = servers.epoch(id);
        let usable = servers.usable(id);
        let weights: Vec<u32> = servers
            .of(id)
            .map(|server| servers.weight(server))
            .collect();
        let worker = ambient.worker.0 as usize;
        LogBackend {
            epoch,
            balance: balance::new(&Beginning {
                proxy,
                weights: &weights,
                weight_units: 1,
                usable: &usable,
                ring_key: &|place| {
                    let server = &proxy.servers[place];
                    balance::ring_key(server, &server.address)
                },
                worker,
            }),
            usable,
            weights,
        }
    }
}

/// By proxy: the balancing state of a log backend.
fn log_backends(runtime_config: &RuntimeConfig, ambient: &Ambient) -> Vec<Option<LogBackend>> {
    let backend = |place: usize| {
        let id = ProxyId::at(place);
        let is_log = runtime_config.proxy(id).mode == Mode::Log;
        is_log.then(|| LogBackend::new(runtime_config, ambient, id))
    };
    let proxies = runtime_config.config.proxies.len();
    (0..proxies).map(backend).collect()
}

impl Logging {
    pub fn new(runtime_config: &RuntimeConfig, ambient: &Ambient) -> Logging {
        Logging {
            dates: Dates::default(),
            buffers: None,
            samples: Vec::new(),
            backends: log_backends(runtime_config, ambient),
        }
    }

    /// The worker goes on with another configuration. The targets of lines begin their samples
    /// again.
    pub fn renew(&mut self, runtime_config: &RuntimeConfig, ambient: &Ambient) {
        self.dates = Dates::default();
        self.samples.clear();
        self.backends = log_backends(runtime_config, ambient);
    }

    /// Writes a line to every target of a frontend that accepts it.
    pub(super) fn emit(
        &mut self,
        eval: &mut Eval<'_>,
        stream: Option<&Stream>,
        frontend: ProxyId,
        line: &Line<'_>,
    ) {
        let runtime_config = eval.runtime_config;
        let proxy = runtime_config.proxy(frontend);
        eval.session.log_origin = line.origin;
        let mut buffers = self.buffers.take().unwrap_or_default();
        // Rendered only for the first target that needs it.
        let (mut has_text, mut has_sd) = (false, false);
        for (target, place) in proxy.log.iter().zip(runtime_config.log_places(frontend)) {
            if line.severity > target.level_max || !self.samples(target, place.number) {
                continue;
            }
            let profile = line.profile.or(target.profile);
            let profile: Option<&LogProfile> =
                profile.map(|index| &runtime_config.config.log_profiles[index]);
            let step = profile
                .filter(|_| line.origin != LogOrigin::Unspecified)
                .and_then(|profile| profile.step(line.origin));
            if step.is_some_and(|step| step.drop) {
                continue;
            }
            let text = match step.and_then(|step| step.format.as_ref()) {
                Some(format) => {
                    write_anew(eval, stream, format, &mut buffers.own_text);
                    &buffers.own_text
                }
                None => {
                    if !std::mem::replace(&mut has_text, true) {
                        write_text(eval, stream, line.text, &mut buffers.text);
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
                    write_anew(eval, stream, format, &mut buffers.own_sd);
                    &buffers.own_sd
                }
                None => {
                    if let Some(format) = &proxy.log_format_sd
                        && !std::mem::replace(&mut has_sd, true)
                    {
                        write_anew(eval, stream, format, &mut buffers.sd);
                    }
                    &buffers.sd
                }
            };
            let Some(sink) = self.sink_in(eval, target, place.sink, text) else {
                continue;
            };
            let tag = profile.and_then(|profile| profile.tag.as_deref());
            let tag = tag.or(proxy.log_tag.as_deref()).or(runtime_config
                .config
                .global
                .log_tag
                .as_deref());
            let header = Header {
                level: line.severity.max(target.level_min),
                tag: tag.unwrap_or(DEFAULT_TAG),
                sd: sd.trim_ascii_end(),
                steady: profile.is_none().then_some(place.number),
            };
            let dates = &mut self.dates;
            dates.write(
                runtime_config,
                target,
                &header,
                eval.now,
                text,
                &mut buffers.message,
            );
            eval.io.log(sink, &buffers.message);
        }
        buffers.sd.clear();
        self.buffers = Some(buffers);
    }

    /// Writes a message of a filter to every target of the filter that accepts it. No format of a
    /// profile applies, because the message is not part of a stream's log.
    pub(crate) fn emit_for_filter(
        &mut self,
        eval: &mut Eval<'_>,
        filter: usize,
        severity: u8,
        text: &[u8],
    ) {
        let runtime_config = eval.runtime_config;
        let config = &runtime_config.config.otel[filter];
        let mut buffers = self.buffers.take().unwrap_or_default();
        let message = &mut buffers.message;
        for (target, place) in config
            .log
            .iter()
            .zip(&runtime_config.filter_log_places[filter])
        {
            if severity > target.level_max || !self.samples(target, place.number) {
                continue;
            }
            let Some(sink) = self.sink_in(eval, target, place.sink, text) else {
                continue;
            };
            let profile = target
                .profile
                .map(|index| &runtime_config.config.log_profiles[index]);
            let tag = profile.and_then(|profile| profile.tag.as_deref());
            let tag = tag
                .or(runtime_config.config.proxies[config.proxy]
                    .log_tag
                    .as_deref())
                .or(runtime_config.config.global.log_tag.as_deref());
            let header = Header {
                level: severity.max(target.level_min),
                tag: tag.unwrap_or(DEFAULT_TAG),
                sd: b"",
                steady: profile.is_none().then_some(place.number),
            };
            let dates = &mut self.dates;
            dates.write(runtime_config, target, &header, eval.now, text, message);
            eval.io.log(sink, message);
        }
        self.buffers = Some(buffers);
    }

    /// [`Logging::sink`] for a message about traffic.
    fn sink_in(
        &mut self,
        eval: &Eval<'_>,
        target: &LogTarget,
        first: usize,
        text: &[u8],
    ) -> Option<usize> {
        let site = Site {
            runtime_config: eval.runtime_config,
            ambient: eval.ambient,
            now: eval.now,
            with_bytes: &|bytes, work| eval.with_bytes(bytes, |scope| work(scope)),
        };
        self.sink(&site, target, first, text)
    }

    /// The sink for a message to a target; none if the target is a log backend without a server for
    /// the message.
    pub(super) fn sink(
        &mut self,
        site: &Site<'_>,
        target: &LogTarget,
        first: usize,
        text: &[u8],
    ) -> Option<usize> {
        let LogSink::Backend(backend) = target.to else {
            return Some(first);
        };
        let id = ProxyId::at(backend);
        let Site {
            runtime_config,
            ambient,
            ..
        } = *site;
        let proxy = runtime_config.proxy(id);
        let key = match &proxy.balance {
            // The hash is computed by converters from the message.
            Configured::LogHash(key) => {
                let mut hash = None;
                (site.with_bytes)(text, &mut |scope| {
                    hash = key.with_binary(scope, |bytes| balance::hash(bytes, proxy.hash_type));
                });
                Some(hash?)
            }
            _ => None,
        };
        let state = self.backends[backend].as_mut()?;
        if state.epoch != ambient.shared.servers.epoch(id) {
            *state = LogBackend::new(runtime_config, ambient, id);
        }
        let LogBackend {
            balance,
            usable,
            weights,
            ..
        } = state;
        let candidates = Candidates {
            id: &|server| proxy.servers[server].id,
            weights,
            joined: &|server| ambient.shared.servers.joined(ServerId::at(id, server)),
            may: &|server| usable[server],
            stays_out: &|server| !usable[server],
            load: &|_| 0,
            is_full: &|_| false,
            now_ns: site.now.mono_ns,
            turn: ambient.shared.servers.turn(id),
            releases: ambient.shared.servers.releases(id),
        };
        let server = balance.pick(&candidates, key, &mut || ambient.random())?;
        Some(first + server)
    }

    /// Counts the current line of a target with a sample. Whether the line is in the sample.
    pub(super) fn samples(&mut self, target: &LogTarget, number: usize) -> bool {
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

fn write_text(eval: &Eval<'_>, stream: Option<&Stream>, text: Text<'_>, out: &mut Vec<u8>) {
    match text {
        Text::None => out.clear(),
        Text::Format(format) => write_anew(eval, stream, format, out),
        Text::Failed(why) => {
            if let Some(format) = &eval.runtime_config.session_prefix {
                write_anew(eval, stream, format, out);
            }
            out.push(b'/');
            let session = &eval.session;
            let frontend = ProxyId::at(session.frontend as usize);
            let bind = &eval.runtime_config.proxy(frontend).binds[session.bind as usize];
            match &bind.name {
                Some(name) => out.extend_from_slice(name.as_bytes()),
                None => sample::text::push_uint(out, u64::from(bind.id)),
            }
            out.extend_from_slice(b": ");
            out.extend_from_slice(why.as_bytes());
        }
    }
}

fn write_anew(eval: &Eval<'_>, stream: Option<&Stream>, format: &LogFormat, out: &mut Vec<u8>) {
    out.clear();
    match stream {
        Some(stream) => eval.render(stream, format, out),
        None => eval.with_session(|scope| format.render(scope, out)),
    }
}

/// Removes a line feed or a NUL at the end of a rendered format; the wire format adds its own.
pub(super) fn trimmed(text: &[u8]) -> &[u8] {
    let end = text
        .iter()
        .rposition(|byte| !matches!(byte, b'\n' | 0))
        .map_or(0, |last| last + 1);
    &text[..end]
}
