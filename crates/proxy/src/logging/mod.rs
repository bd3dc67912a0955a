//! Access logs (manual §8.2, §8.3): when a line is due, and of which severity.
//!
//! `plan` says at which moments of a stream, `send` what each target gets, `wire` how a message is wrapped.

mod event;
mod plan;
mod send;
mod wire;

use config::model::LogLevel;
use net::{ConnId, Driver};
use sample::{ConnError, LogOrigin};

use crate::engine::{Core, Cx};
use crate::shared::Count;
use crate::stream::Stream;
pub use event::event;
pub(crate) use plan::{Moments, Plan};
pub(crate) use send::Logging;
use send::{Line, Text, Whose};

/// Severity of an ordinary line, and of an error's under `option log-separate-errors`.
const INFO: u8 = 6;
const ERROR: u8 = 3;

impl Core {
    /// A stream comes to a moment that may have a line: most have none.
    #[inline]
    pub fn log_at<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream, at: LogOrigin) {
        if stream.log_moments.has(at) {
            self.log_due(cx, stream, at);
        }
    }

    /// The end of a stream: its line, unless it was written before.
    pub fn log_stream<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream) {
        if stream.logged {
            return;
        }
        // A request that was not read never became a stream in HAProxy: its line is that of a failed connection.
        if stream.txn.is_http && stream.txn.request_line.is_empty() {
            stream.logged = true;
            return self.log_unread(cx, stream);
        }
        let null = stream.txn.bytes_in == 0 && !stream.txn.is_http;
        if null && cx.running.proxy(stream.frontend).options.dontlognull {
            stream.logged = true;
            return;
        }
        self.log_at(cx, stream, LogOrigin::Close);
        stream.logged = true;
    }

    fn log_due<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &mut Stream, at: LogOrigin) {
        let plan = &cx.running.log_plans[stream.frontend];
        if stream.logged {
            return;
        }
        if let Some(connect) = &plan.connect {
            let session = self.session(stream);
            let unix = session.is_some_and(|session| session.src.is_unix());
            let line = Line {
                origin: LogOrigin::Unspecified,
                severity: INFO,
                text: Text::Format(match unix {
                    true => &connect.unix,
                    false => &connect.inet,
                }),
                profile: None,
            };
            return self.emit(cx, Whose::Stream(stream), stream.frontend, &line);
        }
        stream.logged = !plan.repeats;
        // Captures of converters may still wait.
        self.settle_vars(cx, stream);
        let proxy = cx.running.proxy(stream.frontend);
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
        self.emit(cx, Whose::Stream(stream), stream.frontend, &line);
        self.count(Count::Logged(stream.frontend));
    }

    /// The line of a request that was not understood or did not come.
    fn log_unread<D: Driver>(&mut self, cx: &mut Cx<'_, D>, stream: &Stream) {
        let proxy = cx.running.proxy(stream.frontend);
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
        self.emit(cx, Whose::Stream(stream), stream.frontend, &line);
        self.count(Count::Logged(stream.frontend));
    }

    /// Writes the line of a connection that failed before it became a session: why, or what `error-log-format` says
    /// (manual §8.2.5). `silent`: nothing had come of it, which `option dontlognull` passes over.
    pub fn log_failed_session<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        conn: ConnId,
        why: ConnError,
        silent: bool,
    ) {
        let Some(client) = self.conns.client(conn) else {
            return;
        };
        let session = &mut client.session;
        session.error = why;
        let frontend = session.frontend as usize;
        let proxy = cx.running.proxy(frontend);
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
        self.emit(cx, Whose::Connection(conn), frontend, &line);
        self.count(Count::Logged(frontend));
    }

    /// `do-log` of a stream's rules (manual §4.4).
    pub fn do_log<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &Stream,
        origin: LogOrigin,
        profile: Option<usize>,
    ) {
        if let Some(severity) = level(stream, false) {
            let whose = (Whose::Stream(stream), stream.frontend);
            self.emit_now(cx, whose, severity, origin, profile);
        }
    }

    /// `do-log` of a connection's rules.
    pub fn do_log_session<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        conn: ConnId,
        origin: LogOrigin,
        profile: Option<usize>,
    ) {
        if let Some(session) = self.conns.session(conn) {
            let frontend = session.frontend as usize;
            let whose = (Whose::Connection(conn), frontend);
            self.emit_now(cx, whose, INFO, origin, profile);
        }
    }

    /// What a rule asks for is written whatever options say, and leaves the stream's own line alone.
    fn emit_now<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        (whose, frontend): (Whose<'_>, usize),
        severity: u8,
        origin: LogOrigin,
        profile: Option<usize>,
    ) {
        let format = cx.running.proxy(frontend).log_format.as_ref();
        let line = Line {
            origin,
            severity,
            text: format.map_or(Text::None, Text::Format),
            profile,
        };
        self.emit(cx, whose, frontend, &line);
    }
}

/// The severity of a stream's lines; none where `set-log-level` silences it.
fn level(stream: &Stream, error: bool) -> Option<u8> {
    match stream.log_level {
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
