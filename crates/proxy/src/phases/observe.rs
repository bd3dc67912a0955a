//! What traffic shows about the health of a server (manual §5.2 observe).

use net::Driver;

use super::{Cause, Cx};
use crate::ids::ServerId;
use crate::shared::Seen;
use crate::stream::{Phase, Stream};

impl<D: Driver> Cx<'_, D> {
    /// Reports an outcome for the server of a stream.
    #[inline]
    pub(super) fn observe(&mut self, stream: &Stream, seen: Seen) {
        if let Some(server) = stream.route.target
            && self.core.ambient.shared.servers.observes(server.backend)
        {
            self.observe_server(stream, server, seen);
        }
    }

    #[inline(never)]
    fn observe_server(&mut self, stream: &Stream, server: ServerId, seen: Seen) {
        let shared = &self.core.ambient.shared;
        shared.observe(server, seen, &mut |worker| self.io.wake(worker));
        self.judge(stream, server, seen);
    }

    /// Reports the outcome of a try that is repeated: the client does not see the failure, but the
    /// server counts it.
    #[inline(never)]
    pub(super) fn observe_retried(&mut self, stream: &Stream, seen: Seen) {
        if let Some(server) = stream.route.target
            && self.core.ambient.shared.servers.observes(server.backend)
        {
            self.judge(stream, server, seen);
        }
    }

    /// Reports the outcome to `outlier-ejection`.
    fn judge(&mut self, stream: &Stream, server: ServerId, seen: Seen) {
        let now = self.now();
        let latency_us = now.mono_ns.saturating_sub(stream.route.asked_ns) / 1000;
        let shared = &self.core.ambient.shared;
        shared.judge(server, seen, latency_us, now.ms(), &mut |worker| {
            self.io.wake(worker);
        });
    }

    /// Reports a response.
    #[inline]
    pub(super) fn observe_response(&mut self, stream: &Stream) {
        let seen = match stream.txn.server_status {
            100..500 => Seen::GoodResponse,
            _ => Seen::WrongResponse,
        };
        self.observe(stream, seen);
    }

    /// Reports the cause of a stream's end, if it may be the server's fault.
    pub(super) fn observe_fault(&mut self, stream: &Stream, cause: Cause) {
        let is_awaited = matches!(stream.phase, Phase::ResponseHead);
        let seen = match cause {
            Cause::ServerTimeout if is_awaited => Seen::ReadTimeout,
            Cause::EmptyResponse => Seen::Closed,
            Cause::BadResponse if is_awaited => Seen::InvalidHead,
            Cause::BadResponse => Seen::InvalidResponse,
            Cause::ServerGone => Seen::ReadError,
            _ => return,
        };
        self.observe(stream, seen);
    }
}
