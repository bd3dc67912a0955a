//! Failures and their outcome: one table from the cause to termination flags, status, and what
//! happens to the client's connection.

use net::Driver;

use super::Cx;
use crate::stream::{Phase, Stream};

/// Why a stream fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// The client's bytes violate the protocol; the status to answer with.
    BadRequest(u16),
    /// The client did not send in time.
    ClientTimeout,
    /// The client ended its side before the request was complete, or does not wait for its
    /// response.
    ClientAborted,
    /// The client's connection is closed.
    ClientGone,
    /// The client did not take sent data in time.
    ClientStuck,
    /// No backend takes the request.
    NoBackend,
    /// The chosen backend has another mode.
    WrongMode,
    /// The request has header names that are refused (`option http-restrict-req-hdr-names reject`).
    BadNames,
    /// No server takes the request.
    NoServer,
    /// The queue of the server that the request is bound to is full.
    QueueFull,
    /// The request waited too long for a slot.
    QueueTimeout,
    /// The connection to the server failed.
    NotConnected { timeout: bool },
    /// The server's timeout has passed.
    ServerTimeout,
    /// The server closed without a response.
    EmptyResponse,
    /// The server closed its idle connection while this request was sent. Only the client can tell
    /// whether the request may be sent twice, so the client's connection is closed without a
    /// response and the client tries again (as in HAProxy).
    StaleServer,
    /// The server's bytes violate the protocol.
    BadResponse,
    /// The server's connection closed in the middle of its response.
    ServerGone,
    /// A command ended the stream.
    Killed,
    /// The server went down, or its sessions are to end for another reason.
    ServerDown,
    /// The response sets cookies and is cacheable (`option checkcache`).
    CacheableCookies,
    /// Rules failed a response; its termination flags are already set.
    RulesFailed,
    /// An internal error.
    Internal,
}

/// The outcome of a failure for a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ending {
    /// The termination flags: who ended it, and when (manual §8.5).
    who: u8,
    when: u8,
    /// The status of the response, where one can still be sent.
    status: Option<u16>,
    /// The client's connection can be kept.
    goes_on: bool,
}

impl Cause {
    fn ending(self, phase: Phase, letter: u8) -> Ending {
        let answered = |who: u8, when: u8, status: u16| Ending {
            who,
            when,
            status: Some(status),
            goes_on: true,
        };
        // The bytes that follow on this connection cannot be interpreted.
        let refused = |who: u8, status: u16| Ending {
            goes_on: false,
            ..answered(who, letter, status)
        };
        let cut = |who: u8, when: u8| Ending {
            who,
            when,
            status: None,
            goes_on: false,
        };
        match self {
            Cause::BadRequest(status) => refused(b'P', status),
            Cause::ClientTimeout => match phase {
                Phase::Tunnel(_) => cut(b'c', b'D'),
                Phase::RequestHead(_) => refused(b'c', 408),
                phase if phase.awaits_upload() => refused(b'c', 408),
                _ => refused(b'c', 400),
            },
            Cause::ClientAborted => refused(b'C', 400),
            // HAProxy detects a reset while it forwards the request's end, so the phase is data,
            // not headers.
            Cause::ClientGone => match phase {
                Phase::ResponseHead => cut(b'C', b'D'),
                _ => cut(b'C', letter),
            },
            Cause::ClientStuck => cut(b'c', letter),
            Cause::NoBackend => answered(b'S', b'C', 503),
            Cause::WrongMode => cut(b'I', b'R'),
            Cause::BadNames => answered(b'P', b'R', 403),
            Cause::NoServer => answered(b'S', b'C', 503),
            Cause::QueueFull => answered(b'S', b'Q', 503),
            Cause::QueueTimeout => answered(b's', b'Q', 503),
            Cause::NotConnected { timeout: true } => answered(b's', b'C', 503),
            Cause::NotConnected { timeout: false } => answered(b'S', b'C', 503),
            Cause::ServerTimeout => match phase {
                Phase::ResponseHead | Phase::BackendResponse(_) => answered(b's', b'H', 504),
                _ => cut(b's', b'D'),
            },
            Cause::EmptyResponse => answered(b'S', b'H', 502),
            Cause::StaleServer => cut(b'S', b'H'),
            Cause::BadResponse => match phase {
                Phase::Transfer => cut(b'P', b'D'),
                _ => answered(b'P', b'H', 502),
            },
            Cause::ServerGone => match phase {
                Phase::BackendResponse(_) => answered(b'S', b'H', 502),
                _ => cut(b'S', b'D'),
            },
            Cause::Killed => cut(b'K', letter),
            Cause::ServerDown => cut(b'D', letter),
            Cause::CacheableCookies => answered(b'P', b'H', 502),
            Cause::RulesFailed => answered(b'P', b'H', 500),
            Cause::Internal => answered(b'I', letter, 500),
        }
    }
}

impl<D: Driver> Cx<'_, D> {
    /// Ends a stream for a cause: with an error page, or with a close where a response can no
    /// longer be sent.
    #[inline(never)]
    pub fn fail(&mut self, stream: &mut Stream, cause: Cause) {
        self.accounts().tell_fault(stream, cause);
        self.observe_fault(stream, cause);
        match blame(stream, cause) {
            Some(status) if stream.txn.is_http && !stream.answered => {
                self.error_page(stream, status);
            }
            _ => self.cut(stream),
        }
    }

    /// A side of a tunnel has been silent for too long: the first time is told and counted.
    pub(super) fn note_silence(&mut self, stream: &mut Stream, cause: Cause) {
        if !stream.has_ending() {
            self.accounts().tell_fault(stream, cause);
            self.observe_fault(stream, cause);
        }
        blame(stream, cause);
    }

    /// The client's connection is closed: ends its stream.
    pub fn client_lost(&mut self, stream: &mut Stream) {
        let connects = matches!(stream.letter(), b'Q' | b'C');
        if stream.txn.is_http && stream.txn.status == 0 && !connects {
            stream.txn.status = 400;
        }
        self.accounts().tell_fault(stream, Cause::ClientGone);
        blame(stream, Cause::ClientGone);
        self.vanish(stream);
    }

    /// The client does not take sent data: ends the stream.
    pub(super) fn client_stuck(&mut self, stream: &mut Stream) {
        if stream.txn.is_http && stream.txn.status == 0 {
            stream.txn.status = 400;
        }
        self.accounts().tell_fault(stream, Cause::ClientStuck);
        blame(stream, Cause::ClientStuck);
        self.abandon(stream);
    }
}

/// Sets the termination flags for a cause. Returns the status of the response where one can still
/// be sent.
fn blame(stream: &mut Stream, cause: Cause) -> Option<u16> {
    let ending = cause.ending(stream.phase, stream.letter());
    stream.ended_by(ending.who, ending.when);
    stream.close_client |= !ending.goes_on;
    ending.status
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::{Rules, Until};

    #[test]
    fn causes_in_their_phases() {
        let ending = |cause: Cause, phase: Phase| {
            let ending = cause.ending(phase, phase.letter(false));
            let messages = [ending.who, ending.when];
            (
                String::from_utf8(messages.to_vec()).expect("letters"),
                ending.status,
                ending.goes_on,
            )
        };
        let cases = [
            (
                Cause::BadRequest(431),
                Phase::default(),
                ("PR", Some(431), false),
            ),
            (
                Cause::ClientTimeout,
                Phase::default(),
                ("cR", Some(408), false),
            ),
            (
                Cause::ClientTimeout,
                Phase::FrontendBody(Until::default()),
                ("cR", Some(408), false),
            ),
            (
                Cause::ClientTimeout,
                Phase::Transfer,
                ("cD", Some(400), false),
            ),
            (Cause::ClientGone, Phase::ResponseHead, ("CD", None, false)),
            (
                Cause::QueueTimeout,
                Phase::SelectServer,
                ("sQ", Some(503), true),
            ),
            (
                Cause::ServerTimeout,
                Phase::ResponseHead,
                ("sH", Some(504), true),
            ),
            (Cause::ServerTimeout, Phase::Transfer, ("sD", None, false)),
            (
                Cause::ServerGone,
                Phase::BackendResponse(Rules::default()),
                ("SH", Some(502), true),
            ),
        ];
        for (cause, phase, (messages, status, goes_on)) in cases {
            let wanted = (messages.to_owned(), status, goes_on);
            assert_eq!(ending(cause, phase), wanted, "{cause:?} in {phase:?}");
        }
    }
}
