//! Access logs (manual §8.2, §8.3): when a line is written, and with which severity.
//!
//! [`crate::runtime_config::Plan`] has the moments of a stream's lines, `send` builds the line for
//! each target, `wire` adds the header.

mod event;
mod relay;
mod send;
mod wire;

use config::model::LogLevel;
use sample::{ConnError, LogOrigin};

use crate::evaluation::Eval;
use crate::ids::ProxyId;
use crate::shared::Count;
use crate::stream::Stream;
pub use event::{event, event_of_process};
pub use relay::LogRelay;
pub(crate) use send::Logging;
use send::{Line, Text};

/// The severity of an ordinary line, and of an error's with `option log-separate-errors`.
const INFO: u8 = 6;
const ERROR: u8 = 3;

/// An evaluation context, and the log.
pub(crate) struct Scene<'a> {
    pub eval: Eval<'a>,
    pub logging: &'a mut Logging,
}

impl Logging {
    /// A stream has ended: writes its line unless it is already written.
    pub fn end(&mut self, eval: &mut Eval<'_>, stream: &mut Stream) {
        // In HAProxy a request that was not read never became a stream, so its line is that of a
        // failed connection.
        if stream.txn.is_http && stream.txn.request_line.is_empty() {
            stream.log.written = true;
            stream.txn.unread = true;
            return self.unread(eval, stream);
        }
        let null = stream.txn.bytes_in == 0 && !stream.txn.is_http;
        if null
            && eval
                .runtime_config
                .proxy(stream.frontend)
                .options
                .dontlognull
        {
            stream.log.written = true;
            return;
        }
        if stream.log.moments.has(LogOrigin::Close) {
            self.due(eval, stream, LogOrigin::Close);
        }
        stream.log.written = true;
    }

    /// Writes the line of a stream at a log moment.
    pub fn due(&mut self, eval: &mut Eval<'_>, stream: &mut Stream, at: LogOrigin) {
        let plan = eval.runtime_config.log_plan(stream.frontend);
        if stream.log.written {
            return;
        }
        if let Some(connect) = &plan.connect {
            let line = Line {
                origin: LogOrigin::Unspecified,
                severity: INFO,
                text: Text::Format(if eval.session.src.is_unix() {
                    &connect.unix
                } else {
                    &connect.inet
                }),
                profile: None,
            };
            return self.emit(eval, Some(stream), stream.frontend, &line);
        }
        stream.log.written = !plan.repeats;
        // Captures by converters may not be stored yet.
        eval.settle_vars(stream);
        let proxy = eval.runtime_config.proxy(stream.frontend);
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

    /// Writes the line of an invalid HTTP/2 request, which never became a stream.
    pub fn refused_request(&mut self, eval: &mut Eval<'_>, frontend: ProxyId) {
        self.bad_request(eval, None, frontend);
    }

    /// Writes the line of a request that was invalid or did not come.
    fn unread(&mut self, eval: &mut Eval<'_>, stream: &Stream) {
        self.bad_request(eval, Some(stream), stream.frontend);
    }

    fn bad_request(&mut self, eval: &mut Eval<'_>, stream: Option<&Stream>, frontend: ProxyId) {
        let proxy = eval.runtime_config.proxy(frontend);
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

    /// Writes the line of a connection that failed before its session began: the reason, or
    /// `error-log-format` (manual §8.2.5). `silent`: the client sent nothing, which `option
    /// dontlognull` excludes from logs.
    pub fn failed_session(
        &mut self,
        eval: &mut Eval<'_>,
        frontend: ProxyId,
        why: ConnError,
        silent: bool,
    ) {
        eval.session.error = why;
        let proxy = eval.runtime_config.proxy(frontend);
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

    /// `do-log` of a stream's rules (manual §4.4). Its line is independent of log options and of
    /// the stream's own line.
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
        let format = eval.runtime_config.proxy(frontend).log_format.as_ref();
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

/// The severity of a stream's lines; none if `set-log-level` is `silent`.
fn level(stream: &Stream, error: bool) -> Option<u8> {
    match stream.log.level {
        Some(LogLevel::Silent) => None,
        Some(LogLevel::Severity(severity)) => Some(severity),
        None => Some(severity(error)),
    }
}

fn severity(error: bool) -> u8 {
    if error { ERROR } else { INFO }
}

/// Whether a stream is an error for `option dontlog-normal` and `log-separate-errors` (manual
/// §8.1).
fn is_error(stream: &Stream) -> bool {
    let txn = &stream.txn;
    txn.redispatched
        || !matches!(txn.termination[0], 0 | b'L')
        || (txn.termination[0] == 0 && txn.retries > 0)
        || (txn.is_http && txn.status >= 500)
}
