//! Sends requests again (`retry-on`, manual §4.2): the head is serialised anew, the body was kept
//! while it was sent.

use net::Driver;
use sample::BodyFacts;

use super::Cx;
use crate::shared::{BackCount, Seen};
use crate::stream::{Phase, Stream, Until};

/// Why a request may be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    Empty,
    Junk,
    Timeout,
    Status(u16),
}

impl<D: Driver> Cx<'_, D> {
    /// Sends the request again, to the same server or another one, if `retry-on` includes this
    /// failure, all of the request was kept and tries are left. Returns whether it does.
    pub fn retry(&mut self, stream: &mut Stream, failure: Failure) -> bool {
        let may = stream.replay.retriable && stream.up.done && !stream.answered;
        if !may || stream.route.tries >= stream.retries_max(self.runtime_config) {
            return false;
        }
        let events = &self.runtime_config.proxy(stream.backend).retry_on;
        let wanted = match failure {
            Failure::Empty => events.empty_response,
            Failure::Junk => events.junk_response,
            Failure::Timeout => events.response_timeout,
            Failure::Status(status) => events.statuses.contains(&status),
        };
        // The answer is for whoever has sent the request early (RFC 8470 §5.2).
        let came_early = failure == Failure::Status(425)
            && !stream.route.is_marked_early
            && stream.request.get(http::Name::EarlyData).is_some();
        if !wanted || came_early || !self.budget_allows(stream) {
            return false;
        }
        let status = match failure {
            Failure::Status(status) => Some(status),
            Failure::Empty | Failure::Junk | Failure::Timeout => None,
        };
        self.trace_failed_try(stream, status);
        if let Some(status) = status {
            self.accounts().tell_response(stream, status);
        }
        let seen = match failure {
            Failure::Empty => Seen::Closed,
            Failure::Junk => Seen::InvalidHead,
            Failure::Timeout => Seen::ReadTimeout,
            Failure::Status(..500) => Seen::GoodResponse,
            Failure::Status(_) => Seen::WrongResponse,
        };
        self.observe_retried(stream, seen);
        stream.route.tries += 1;
        stream.txn.retries += 1;
        if let Some(server) = stream.route.target {
            self.accounts()
                .tell_server(stream, server, BackCount::Retries);
        }
        if stream.route.is_marked_early {
            self.mark_early_data(stream);
        }
        stream.response.clear();
        (stream.txn.status, stream.txn.server_status) = (0, 0);
        stream.txn.timing.response_start_ms = None;
        stream.txn.response_body = BodyFacts::default();
        stream.route.fresh_only = true;
        let redispatches = self.may_redispatch(stream);
        self.drop_server(stream);
        stream.phase = if redispatches {
            self.redispatch(stream);
            Phase::SelectServer
        } else {
            Phase::Connect(Until::default())
        };
        self.run(stream);
        true
    }

    /// Whether the backend's retry budget allows a retry; a refusal is counted.
    pub(super) fn budget_allows(&self, stream: &Stream) -> bool {
        let shared = &self.core.ambient.shared;
        let is_allowed = shared.take_retry(stream.backend, self.now_ms());
        if !is_allowed && let Some(server) = stream.route.target {
            self.accounts()
                .tell_server(stream, server, BackCount::RefusedRetries);
        }
        is_allowed
    }

    /// Sends the body of a repeated request. Bytes that the server does not take at once wait in
    /// the channel.
    #[inline(never)]
    pub(super) fn send_again(&mut self, stream: &mut Stream) {
        stream.up.waiting = std::mem::take(&mut stream.replay.body);
        (stream.up.done, stream.up.is_open) = (false, false);
        self.open_upload(stream);
    }
}
