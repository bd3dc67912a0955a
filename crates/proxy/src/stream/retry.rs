//! Requests that are sent again after they went out (`retry-on`, manual §4.2): the head is written anew, the body was kept
//! while it left.

use net::Driver;

use super::{Phase, Stream};
use crate::engine::{Core, Cx};

/// Why a request may be sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    Empty,
    Junk,
    Timeout,
    Status(u16),
}

/// Keeps the body of a request as it leaves, behind a head that leaves with it.
pub(crate) struct Keeper<'a> {
    /// None once it was too much.
    pub kept: Option<&'a mut Vec<u8>>,
    /// Bytes of the head that are still to leave.
    pub head_bytes: usize,
    pub bytes_max: usize,
}

impl Keeper<'_> {
    /// Takes what leaves.
    pub fn take(&mut self, bytes: &[u8]) {
        let Some(kept) = &mut self.kept else { return };
        let head = self.head_bytes.min(bytes.len());
        self.head_bytes -= head;
        let body = &bytes[head..];
        if kept.len() + body.len() > self.bytes_max {
            kept.clear();
            self.kept = None;
        } else {
            kept.extend_from_slice(body);
        }
    }
}

impl Core {
    /// Sends the request again, to the same server or another one, where `retry-on` has this failure, all of the request was
    /// kept and tries are left. Returns whether it does.
    pub fn retry<D: Driver>(
        &mut self,
        cx: &mut Cx<'_, D>,
        stream: &mut Stream,
        failure: Failure,
    ) -> bool {
        let may = stream.retriable && stream.upload.done && !stream.answered;
        if !may || stream.tries >= stream.retries_max(cx.running) {
            return false;
        }
        let events = &cx.running.proxy(stream.backend).retry_on;
        let wanted = match failure {
            Failure::Empty => events.empty_response,
            Failure::Junk => events.junk_response,
            Failure::Timeout => events.response_timeout,
            Failure::Status(status) => events.statuses.contains(&status),
        };
        if !wanted {
            return false;
        }
        let status = match failure {
            Failure::Status(status) => Some(status),
            _ => None,
        };
        self.trace_failed_try(cx, stream, status);
        stream.tries += 1;
        stream.txn.retries += 1;
        stream.response.clear();
        stream.head_in_parts = false;
        (stream.txn.status, stream.txn.server_status) = (0, 0);
        stream.txn.timing.response_start_ms = None;
        stream.fresh_only = true;
        let redispatches = self.may_redispatch(cx, stream);
        self.drop_server(cx, stream);
        stream.phase = match redispatches {
            true => {
                self.redispatch(cx, stream);
                Phase::SelectServer
            }
            false => Phase::Connect,
        };
        self.run(cx, stream);
        true
    }
}
