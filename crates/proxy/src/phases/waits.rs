//! How long connections without a stream wait, and for what. A connection has one deadline; while a
//! stream uses it, the deadlines are the stream's, and one of the connection that passes has no
//! effect.

use net::Driver;
use net::timers::NEVER_MS;

use super::Cx;
use crate::ids::{ConnId, LinkId, ProxyId};
use crate::runtime_config::{RuntimeConfig, deadline};

/// How long a client's connection is read and discarded after the proxy has ended it, milliseconds.
const LINGER_MS: u64 = 1000;
/// How long a client's connection stays open after its last use while draining, so that a request
/// which is already on its way is answered instead of reset, milliseconds.
const DRAIN_IDLE_MS: u64 = 1000;

/// For what a connection without a stream waits. Clients have the timeouts of their frontend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnWait {
    /// The PROXY protocol header, or the TLS handshake.
    Handshake(ProxyId),
    /// The head of a request: the first one, or one that has begun.
    Request(ProxyId),
    /// The first byte of the next request.
    NextRequest(ProxyId),
    /// That the client accepts the rest of a response, or sends the rest of a request that was
    /// answered early.
    Activity(ProxyId),
    /// The peer's end, after ours.
    End,
    /// A request for its server, which closes idle connections after this time, 0 for never.
    Reuse { purge_ms: u64 },
    /// A request of the client that keeps a server's connection, as long as its own connection is
    /// open.
    Keeper,
}

impl ConnWait {
    /// How long it may last, milliseconds; [`NEVER_MS`] for ever. `is_stopping`: the worker drains.
    #[inline(always)]
    pub fn timeout_ms(self, runtime_config: &RuntimeConfig, is_stopping: bool) -> u64 {
        match self {
            ConnWait::Handshake(frontend) => runtime_config.timeouts(frontend).client_hs,
            ConnWait::Request(frontend) => runtime_config.timeouts(frontend).http_request,
            ConnWait::NextRequest(frontend) => {
                let wait_ms = runtime_config.timeouts(frontend).http_keep_alive;
                if is_stopping {
                    wait_ms.min(DRAIN_IDLE_MS)
                } else {
                    wait_ms
                }
            }
            ConnWait::Activity(frontend) => runtime_config.timeouts(frontend).client,
            ConnWait::End => LINGER_MS,
            ConnWait::Reuse { purge_ms: 0 } | ConnWait::Keeper => NEVER_MS,
            ConnWait::Reuse { purge_ms } => purge_ms,
        }
    }
}

impl<D: Driver> Cx<'_, D> {
    /// How long a wait may last now, milliseconds.
    #[inline(always)]
    pub fn wait_ms(&self, wait: ConnWait) -> u64 {
        wait.timeout_ms(self.runtime_config, self.is_stopping())
    }

    /// When a wait ends that begins now, monotonic milliseconds.
    #[inline(always)]
    pub fn wait_ends_ms(&self, wait: ConnWait) -> u64 {
        deadline(self.now(), self.wait_ms(wait))
    }

    /// A connection, or an exchange that shares one, waits from now on.
    #[inline]
    pub fn wait_on(&mut self, link: impl Into<LinkId>, wait: ConnWait) {
        let ends_ms = self.wait_ends_ms(wait);
        self.set_link_deadline(link, ends_ms);
    }

    /// A connection that may have no exchanges for long waits from now on. Its mux may have work to
    /// do before the end of the wait.
    pub fn wait_idle_on(&mut self, conn: ConnId, wait: ConnWait) {
        let ends_ms = self.wait_ends_ms(wait);
        let now_ms = self.now_ms();
        let at_ms = self.core.links.begin_idle(conn, now_ms, ends_ms);
        self.set_link_deadline(conn, at_ms);
    }

    /// A connection without exchanges ends when the present bytes are processed, unless they begin
    /// one.
    pub fn end_idle_now(&mut self, conn: ConnId) {
        let now_ms = self.now_ms();
        let at_ms = self.core.links.begin_idle(conn, now_ms, now_ms);
        self.set_link_deadline(conn, at_ms);
    }

    /// Sets the deadline of a connection without a stream.
    #[inline]
    pub fn set_link_deadline(&mut self, link: impl Into<LinkId>, at_ms: u64) {
        if let Some(link) = self.core.links.get(link) {
            self.core.timers.set(link.timer, at_ms);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime_config::for_tests::{from_text, proxy_named};

    /// The wait of a row, for the connection of a frontend's client.
    type Wait = fn(ProxyId) -> ConnWait;

    #[test]
    fn each_wait_has_its_timeout() {
        let text = |timeouts: &str| {
            from_text(&format!(
                "defaults\n mode http\n timeout connect 1\n timeout server 1\n {timeouts}\n\
                 frontend f\n bind :80\n default_backend b\n\
                 backend b\n server s 127.0.0.1:81\n"
            ))
        };
        let all = "timeout client 10s\n timeout client-hs 3s\n timeout http-request 4s\n\
                   timeout http-keep-alive 5s";
        let request = "timeout client 10s\n timeout http-request 4s";
        let client = "timeout client 10s";
        let handshake = |frontend| ConnWait::Handshake(frontend);
        let first = |frontend| ConnWait::Request(frontend);
        let next = |frontend| ConnWait::NextRequest(frontend);
        let activity = |frontend| ConnWait::Activity(frontend);
        let end = |_| ConnWait::End;
        let reuse = |_| ConnWait::Reuse { purge_ms: 9000 };
        let endless = |_| ConnWait::Reuse { purge_ms: 0 };
        let keeper = |_| ConnWait::Keeper;
        // Timeouts, the wait, and how long it lasts: while serving, while draining.
        let rows: &[(&str, Wait, u64, u64)] = &[
            (all, handshake, 3000, 3000),
            (client, handshake, 10_000, 10_000),
            (all, first, 4000, 4000),
            (client, first, 10_000, 10_000),
            (all, next, 5000, 1000),
            (request, next, 4000, 1000),
            (client, next, 10_000, 1000),
            (
                "timeout client 10s\n timeout http-keep-alive 300ms",
                next,
                300,
                300,
            ),
            ("", next, NEVER_MS, 1000),
            (all, activity, 10_000, 10_000),
            ("", activity, NEVER_MS, NEVER_MS),
            (all, end, 1000, 1000),
            (all, reuse, 9000, 9000),
            (all, endless, NEVER_MS, NEVER_MS),
            (all, keeper, NEVER_MS, NEVER_MS),
        ];
        for (timeouts, wait, serving_ms, draining_ms) in rows {
            let runtime_config = text(timeouts);
            let wait = wait(proxy_named(&runtime_config, "f"));
            let found = [false, true].map(|stops| wait.timeout_ms(&runtime_config, stops));
            assert_eq!(found, [*serving_ms, *draining_ms], "{wait:?} {timeouts}");
        }
    }
}
