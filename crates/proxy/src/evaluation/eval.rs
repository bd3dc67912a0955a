//! Evaluates expressions, conditions and formats with the facts that are known.

use http::Head;
use net::{Driver, Now};
use sample::{Condition, Expr, LogFormat, Scope, Session};

use super::{Ambient, Connection, View};
use crate::runtime_config::RuntimeConfig;
use crate::shared::ServerTables;
use crate::stream::Stream;

/// The context of an evaluation: a client's session, the driver, and the worker.
pub(crate) struct Eval<'a> {
    pub runtime_config: &'a RuntimeConfig,
    pub servers: &'a ServerTables,
    pub ambient: &'a Ambient,
    pub io: &'a mut (dyn Driver + 'a),
    pub now: Now,
    pub session: &'a mut Session,
    /// The connections of both sides, if they exist.
    pub client: Option<Connection>,
    pub server: Option<Connection>,
    /// Received bytes of a connection that has no stream yet.
    pub input: &'a [u8],
    /// A scratch buffer; empty between uses.
    pub text: &'a mut Vec<u8>,
}

impl Eval<'_> {
    pub(super) fn view(&self) -> View<'_> {
        View {
            runtime_config: self.runtime_config,
            servers: self.servers,
            ambient: self.ambient,
            now_ms: self.now.ms(),
            sockets: Some(&*self.io),
            client: self.client,
            server: self.server,
        }
    }

    /// Evaluates with the scope of a stream. `last_chance`: data that is missing now will not come.
    #[inline]
    pub fn with_scope<R>(
        &self,
        stream: &Stream,
        last_chance: bool,
        work: impl FnOnce(&Scope<'_>) -> R,
    ) -> R {
        let view = self.view();
        work(&Scope {
            now: self.now,
            world: &view,
            session: self.session,
            txn: Some(&stream.txn),
            request: stream.visible_request(),
            response: stream.has_response().then_some(&stream.response),
            request_data: &stream.up.waiting,
            response_data: &stream.down.waiting,
            from_server: stream.phase.is_answered(),
            last_chance,
        })
    }

    /// Evaluates with the scope of a connection that has no stream.
    pub fn with_session<R>(&self, work: impl FnOnce(&Scope<'_>) -> R) -> R {
        self.with_bytes(self.input, work)
    }

    /// Evaluates as [`Eval::with_session`], with these bytes instead of the connection's.
    pub fn with_bytes<R>(&self, bytes: &[u8], work: impl FnOnce(&Scope<'_>) -> R) -> R {
        let view = self.view();
        work(&Scope {
            request_data: bytes,
            ..Scope::without_stream(self.now, &view, self.session)
        })
    }

    /// Evaluates an expression of a rule as a number, with the facts known now.
    pub fn int(&self, stream: &Stream, expr: &Expr) -> Option<i64> {
        self.with_scope(stream, true, |scope| expr.eval(scope)?.into_int())
    }

    /// Whether a condition holds, with the facts known now.
    pub fn holds(&self, stream: &Stream, condition: &Condition) -> bool {
        self.with_scope(stream, true, |scope| condition.matches(scope))
    }

    /// Appends the text of a format.
    pub fn render(&self, stream: &Stream, format: &LogFormat, out: &mut Vec<u8>) {
        self.with_scope(stream, true, |scope| format.render(scope, out));
    }

    /// Appends the bytes of an expression. Whether it has a value.
    pub fn binary(&self, stream: &Stream, expr: &Expr, out: &mut Vec<u8>) -> bool {
        self.with_scope(stream, true, |scope| expr.append_binary(scope, out))
    }

    /// The stream's unique id; none without `unique-id-format`.
    pub fn unique_id<'s>(&self, stream: &'s Stream) -> Option<&'s [u8]> {
        let frontend = self.runtime_config.proxy(stream.frontend);
        let format = frontend.unique_id_format.as_ref()?;
        let id = &stream.txn.unique_id;
        id.get_or_make(|out| self.render(stream, format, out))
    }
}

impl Stream {
    /// The request's head, if rules may read it.
    fn visible_request(&self) -> Option<&Head> {
        (self.has_request() || self.sniffed.is_http).then_some(&self.request)
    }
}
