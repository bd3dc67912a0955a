//! Access logs (manual §8.2, §8.3): when a line is due, and of which severity.
//!
//! [`crate::running::Plan`] says at which moments of a stream, `send` what each target gets, `wire` how a message is wrapped.

mod event;
mod send;
mod wire;

use config::model::LogLevel;
use sample::{ConnError, LogOrigin};

use crate::facts::Eval;
use crate::ids::ProxyId;
use crate::shared::Count;
use crate::stream::Stream;
pub use event::{event, event_of_process};
pub(crate) use send::Logging;
use send::{Line, Text};

/// Severity of an ordinary line, and of an error's under `option log-separate-errors`.
const INFO: u8 = 6;
const ERROR: u8 = 3;

/// An evaluation, and the log that is told of it.
pub(crate) struct Scene<'a> {
    pub eval: Eval<'a>,
    pub logging: &'a mut Logging,
}

impl Logging {
    /// The end of a stream: its line, unless it was written before.
    pub fn end(&mut self, eval: &mut Eval<'_>, stream: &mut Stream) {
        // A request that was not read never became a stream in HAProxy: its line is that of a failed connection.
        if stream.txn.is_http && stream.txn.request_line.is_empty() {
            stream.log.written = true;
            stream.txn.unread = true;
            return self.unread(eval, stream);
        }
        let null = stream.txn.bytes_in == 0 && !stream.txn.is_http;
        if null && eval.running.proxy(stream.frontend).options.dontlognull {
            stream.log.written = true;
            return;
        }
        if stream.log.moments.has(LogOrigin::Close) {
            self.due(eval, stream, LogOrigin::Close);
        }
        stream.log.written = true;
    }

    /// A stream comes to a moment that has a line.
    pub fn due(&mut self, eval: &mut Eval<'_>, stream: &mut Stream, at: LogOrigin) {
        let plan = eval.running.log_plan(stream.frontend);
        if stream.log.written {
            return;
        }
        if let Some(connect) = &plan.connect {
            let line = Line {
                origin: LogOrigin::Unspecified,
                severity: INFO,
                text: Text::Format(match eval.session.src.is_unix() {
                    true => &connect.unix,
                    false => &connect.inet,
                }),
                profile: None,
            };
            return self.emit(eval, Some(stream), stream.frontend, &line);
        }
        stream.log.written = !plan.repeats;
        // Captures of converters may still wait.
        eval.settle_vars(stream);
        let proxy = eval.running.proxy(stream.frontend);
        let is_error = is_error(stream);
        if proxy.options.dontlog_normal && !is_error {
            return;
        }
        let severe = is_error && proxy.options.log_separate_errors;
        let Some(severity) = level(stream, severe) else {
            return;
        };
        stream.txn.log_early = proxy.options.logasap;
        let line = Line {
            origin: at,
            severity,
            text: proxy.log_format.as_ref().map_or(Text::None, Text::Format),
            profile: None,
        };
        self.emit(eval, Some(stream), stream.frontend, &line);
        count(eval, stream.frontend);
    }

    /// The line of a request of HTTP/2 that was not understood: it never became a stream.
    pub fn refused_request(&mut self, eval: &mut Eval<'_>, frontend: ProxyId) {
        self.bad_request(eval, None, frontend);
    }

    /// The line of a request that was not understood or did not come.
    fn unread(&mut self, eval: &mut Eval<'_>, stream: &Stream) {
        self.bad_request(eval, Some(stream), stream.frontend);
    }

    fn bad_request(&mut self, eval: &mut Eval<'_>, stream: Option<&Stream>, frontend: ProxyId) {
        let proxy = eval.running.proxy(frontend);
        if proxy.log.is_empty() {
            return;
        }
        let format = proxy.error_log_format.as_ref();
        let format = format.or(proxy.log_format.as_ref());
        let line = Line {
            origin: LogOrigin::SessionError,
            severity: severity(proxy.options.log_separate_errors),
            text: format.map_or(Text::None, Text::Format),
            profile: None,
        };
        self.emit(eval, stream, frontend, &line);
        count(eval, frontend);
    }

    /// Writes the line of a connection that failed before it became a session: why, or what `error-log-format` says
    /// (manual §8.2.5). `silent`: nothing had come of it, which `option dontlognull` passes over.
    pub fn failed_session(
        &mut self,
        eval: &mut Eval<'_>,
        frontend: ProxyId,
        why: ConnError,
        silent: bool,
    ) {
        eval.session.error = why;
        let proxy = eval.running.proxy(frontend);
        if proxy.log.is_empty() || (silent && proxy.options.dontlognull) {
            return;
        }
        let line = Line {
            origin: LogOrigin::SessionKilled,
            severity: severity(proxy.options.log_separate_errors),
            text: match &proxy.error_log_format {
                Some(format) => Text::Format(format),
                None => Text::Failed(why.text()),
            },
            profile: None,
        };
        self.emit(eval, None, frontend, &line);
        count(eval, frontend);
    }

    /// `do-log` of a stream's rules (manual §4.4). It is written whatever options say, and leaves the stream's own line alone.
    pub fn do_log(
        &mut self,
        eval: &mut Eval<'_>,
        stream: &Stream,
        origin: LogOrigin,
        profile: Option<usize>,
    ) {
        if let Some(severity) = level(stream, false) {
            let frontend = stream.frontend;
            self.emit_now(eval, (Some(stream), frontend), severity, origin, profile);
        }
    }

    /// `do-log` of a connection's rules.
    pub fn do_log_session(
        &mut self,
        eval: &mut Eval<'_>,
        frontend: ProxyId,
        origin: LogOrigin,
        profile: Option<usize>,
    ) {
        self.emit_now(eval, (None, frontend), INFO, origin, profile);
    }

    fn emit_now(
        &mut self,
        eval: &mut Eval<'_>,
        (stream, frontend): (Option<&Stream>, ProxyId),
        severity: u8,
        origin: LogOrigin,
        profile: Option<usize>,
    ) {
        let format = eval.running.proxy(frontend).log_format.as_ref();
        let line = Line {
            origin,
            severity,
            text: format.map_or(Text::None, Text::Format),
            profile,
        };
        self.emit(eval, stream, frontend, &line);
    }
}

fn count(eval: &Eval<'_>, frontend: ProxyId) {
    let ambient = eval.ambient;
    ambient.shared.add(ambient.worker, Count::Logged(frontend));
}

/// The severity of a stream's lines; none where `set-log-level` silences it.
fn level(stream: &Stream, error: bool) -> Option<u8> {
    match stream.log.level {
        Some(LogLevel::Silent) => None,
        Some(LogLevel::Severity(severity)) => Some(severity),
        None => Some(severity(error)),
    }
}

fn severity(error: bool) -> u8 {
    match error {
        true => ERROR,
        false => INFO,
    }
}

/// What `option dontlog-normal` and `log-separate-errors` call an error (manual §8.1).
fn is_error(stream: &Stream) -> bool {
    let txn = &stream.txn;
    txn.redispatched
        || !matches!(txn.termination[0], 0 | b'L')
        || (txn.termination[0] == 0 && txn.retries > 0)
        || (txn.is_http && txn.status >= 500)
}
