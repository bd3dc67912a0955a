//! The timers of a stream (manual §8.4), in milliseconds; -1 for a phase that was not reached.

use crate::Scope;

/// Milliseconds from the accept (or the end of the previous request) to the end of each phase; -1
/// if it was not reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Timers {
    /// Duration of the handshakes (`%Th`).
    pub handshake: i64,
    /// Duration of the idle time before the request (`%Ti`).
    pub idle: i64,
    /// Up to the complete request (`%Tq`).
    pub request: i64,
    queue: i64,
    connect: i64,
    response: i64,
    /// Up to the end, or until now (`%Tt`).
    pub close: i64,
}

impl Timers {
    /// The current timers.
    pub(crate) fn of(scope: &Scope<'_>) -> Timers {
        let handshake = i64::from(scope.session.handshake_ms);
        let Some(txn) = scope.txn else {
            let close = scope.now.ms().saturating_sub(scope.session.accepted.ms()) as i64;
            return Timers {
                handshake,
                idle: 0,
                request: -1,
                queue: -1,
                connect: -1,
                response: -1,
                close,
            };
        };
        let timing = &txn.timing;
        let start = timing.start.ms();
        let since = |moment: Option<u64>| moment.map_or(-1, |ms| ms.saturating_sub(start) as i64);
        let handshake = if txn.first_request || !txn.is_http {
            handshake
        } else {
            0
        };
        let idle = since(timing.request_start.map(|at| at.ms()));
        Timers {
            handshake,
            idle: if idle < 0 {
                -1
            } else {
                (idle - handshake).max(0)
            },
            request: since(timing.request_complete_ms),
            queue: since(timing.queued_ms),
            connect: since(timing.connected_ms),
            response: since(timing.response_start_ms),
            close: since(Some(timing.data_end_ms.unwrap_or_else(|| scope.now.ms()))),
        }
    }

    /// `%TR`: the time for the request's head.
    pub(crate) fn request_head(&self) -> i64 {
        if self.request < 0 {
            -1
        } else {
            self.request - self.idle.max(0) - self.handshake
        }
    }

    /// `%Tw`: the time in queues.
    pub(crate) fn waited(&self) -> i64 {
        between(self.request, self.queue)
    }

    /// `%Tc`: the time to connect.
    pub(crate) fn connecting(&self) -> i64 {
        between(self.queue, self.connect)
    }

    /// `%Tr`: the time until the server's response.
    pub(crate) fn response_head(&self) -> i64 {
        between(self.connect, self.response)
    }

    /// `%Td`: the time of the transfer. In mode TCP, it begins with the connection.
    pub(crate) fn data(&self, is_http: bool) -> i64 {
        let from = if is_http { self.response } else { self.connect };
        if from < 0 {
            -1
        } else {
            between(from, self.close)
        }
    }

    /// `%Ta`: the active time.
    pub(crate) fn active(&self) -> i64 {
        if self.idle < 0 {
            self.close
        } else {
            self.close - self.idle - self.handshake
        }
    }

    /// `%Tu`: the time as the user sees it.
    pub(crate) fn user(&self) -> i64 {
        self.close - self.idle.max(0)
    }
}

/// The time from one phase to a later one; -1 if the later one was not reached. HAProxy also
/// subtracts the -1 of an earlier phase that was not reached. So a TCP stream, which has no
/// request, shows a `%Tw` that is one larger.
fn between(from: i64, to: i64) -> i64 {
    if to < 0 { -1 } else { to - from }
}
