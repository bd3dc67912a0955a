//! Messages that were refused because they violate the protocol: the last request of each frontend
//! and the last response of each backend, for `show errors` (management guide §9.3).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use http::Head;
use http::h1::{Limits, ParseError, Strictness, parse_request, parse_response};
use net::{Addr, Now};

use super::succession::Succession;
use crate::ids::{ProxyId, ServerId};

/// The kind of a refused message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// A request; the backend, if one was chosen.
    Request(Option<usize>),
    /// A response to a request of this frontend; the server's place in its backend.
    Response(usize, Option<usize>),
}

/// A refused message.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Its number, from 0, counted over all proxies.
    pub event: u64,
    /// The time of the refusal.
    pub at: Now,
    /// The kind of the message.
    pub what: Refused,
    /// The client's address.
    pub client: Option<Addr>,
    /// The rule that it violates.
    pub error: ParseError,
    /// The first received bytes of the message, at most `tune.bufsize`.
    pub bytes: Vec<u8>,
    how: How,
}

/// The rules by which it was read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct How {
    pub limits: Limits,
    pub strictness: Strictness,
    /// Whether the bytes begin with a head.
    pub has_head: bool,
}

impl Snapshot {
    /// The position of the refused byte; 0 if the bytes are from within a body.
    #[must_use]
    pub fn position(&self) -> usize {
        if !self.how.has_head {
            return 0;
        }
        // Parsing fails as soon as the input includes the first invalid byte, so a binary search
        // finds it.
        let (mut fine, mut refused) = (0, self.bytes.len());
        let mut head = Head::default();
        while fine < refused {
            let middle = fine + (refused - fine) / 2;
            if self.is_refused(&self.bytes[..=middle], &mut head) {
                refused = middle
            } else {
                fine = middle + 1
            }
        }
        fine
    }

    fn is_refused(&self, bytes: &[u8], head: &mut Head) -> bool {
        let How {
            limits, strictness, ..
        } = self.how;
        let parsed = match self.what {
            Refused::Request(_) => parse_request(bytes, limits, strictness, head),
            Refused::Response(..) => {
                parse_response(bytes, http::Method::Get, limits, strictness, head)
            }
        };
        parsed.is_err()
    }
}

/// A refused message in a worker, borrowed.
#[derive(Debug)]
pub(crate) struct Message<'a> {
    pub at: Now,
    pub frontend: ProxyId,
    pub backend: Option<ProxyId>,
    pub server: Option<ServerId>,
    pub client: Option<&'a Addr>,
    pub error: ParseError,
    pub bytes: &'a [u8],
    pub how: How,
}

/// The last refused messages of all proxies.
#[derive(Debug)]
pub(super) struct RefusedMessages {
    /// By proxy: the request and the response.
    last: Vec<[Mutex<Option<Box<Snapshot>>>; 2]>,
    bytes_max: usize,
    events: AtomicU64,
}

const REQUEST: usize = 0;
const RESPONSE: usize = 1;

impl RefusedMessages {
    pub fn new(proxies: usize, bytes_max: usize) -> Self {
        RefusedMessages {
            last: (0..proxies).map(|_| Default::default()).collect(),
            bytes_max,
            events: AtomicU64::new(0),
        }
    }

    /// Takes the messages of the proxies of both configurations over.
    pub fn succeed(&mut self, before: &RefusedMessages, both: &Succession<'_>) {
        for proxy in &both.proxies {
            let (to, from) = (&self.last[proxy.place()], &before.last[proxy.place()]);
            for (to, from) in to.iter().zip(from) {
                *lock(to) = lock(from).take();
            }
        }
        self.events = before.events.load(Ordering::Relaxed).into();
    }

    pub fn note_request(&self, message: &Message<'_>) {
        let what = Refused::Request(message.backend.map(ProxyId::place));
        self.note(message.frontend, REQUEST, what, message);
    }

    pub fn note_response(&self, message: &Message<'_>) {
        let Some(backend) = message.backend else {
            return;
        };
        let server = message.server.map(ServerId::place);
        let what = Refused::Response(message.frontend.place(), server);
        self.note(backend, RESPONSE, what, message);
    }

    fn note(&self, proxy: ProxyId, kind: usize, what: Refused, message: &Message<'_>) {
        let event = self.events.fetch_add(1, Ordering::Relaxed);
        let Some(cells) = self.last.get(proxy.place()) else {
            return;
        };
        let kept = &message.bytes[..message.bytes.len().min(self.bytes_max)];
        let mut cell = lock(&cells[kind]);
        // Reuses the buffer of the previous message.
        let mut bytes = cell.take().map_or_else(Vec::new, |old| old.bytes);
        bytes.clear();
        bytes.extend_from_slice(kept);
        *cell = Some(Box::new(Snapshot {
            event,
            at: message.at,
            what,
            client: message.client.cloned(),
            error: message.error,
            bytes,
            how: message.how,
        }));
    }

    /// The number of refused messages since the start.
    pub fn events(&self) -> u64 {
        self.events.load(Ordering::Relaxed)
    }

    /// The last request and the last response of a proxy.
    pub fn last(&self, proxy: usize) -> [Option<Snapshot>; 2] {
        let copy = |kind: usize| {
            let cells = self.last.get(proxy)?;
            lock(&cells[kind]).as_deref().cloned()
        };
        [copy(REQUEST), copy(RESPONSE)]
    }
}

fn lock(cell: &Mutex<Option<Box<Snapshot>>>) -> MutexGuard<'_, Option<Box<Snapshot>>> {
    cell.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(bytes: &[u8], what: Refused) -> (usize, ParseError) {
        let how = How {
            limits: Limits::default(),
            strictness: Strictness::Strict,
            has_head: true,
        };
        let mut head = Head::default();
        let parsed = match what {
            Refused::Request(_) => parse_request(bytes, how.limits, how.strictness, &mut head),
            Refused::Response(..) => parse_response(
                bytes,
                http::Method::Get,
                how.limits,
                how.strictness,
                &mut head,
            ),
        };
        let snapshot = Snapshot {
            event: 0,
            at: Now::default(),
            what,
            client: None,
            error: parsed.expect_err("it is refused"),
            bytes: bytes.to_vec(),
            how,
        };
        (snapshot.position(), snapshot.error)
    }

    #[test]
    fn the_byte_that_is_refused_is_found() {
        let request = Refused::Request(None);
        let cases: [(&[u8], usize, ParseError); 4] = [
            (b"GET /a b HTTP/1.1\r\n\r\n", 8, ParseError::BadVersion),
            (b"G\x01T / HTTP/1.1\r\n\r\n", 1, ParseError::BadMethod),
            (
                b"GET / HTTP/1.1\r\nhost: a\r\nx y: z\r\n\r\n",
                26,
                ParseError::SpaceBeforeColon,
            ),
            (
                b"GET / HTTP/1.1\r\nhost: a\x00b\r\n\r\n",
                23,
                ParseError::NulInFieldValue,
            ),
        ];
        for (bytes, position, error) in cases {
            assert_eq!(refused(bytes, request), (position, error), "{bytes:?}");
        }
        let response = Refused::Response(0, None);
        assert_eq!(
            refused(b"HTTP/1.1 20x OK\r\n\r\n", response),
            (11, ParseError::BadStatus)
        );
    }

    #[test]
    fn no_more_is_kept_than_a_bound() {
        let messages = RefusedMessages::new(1, 4);
        let note = |bytes: &[u8]| {
            messages.note_request(&Message {
                at: Now::default(),
                frontend: ProxyId::at(0),
                backend: None,
                server: None,
                client: None,
                error: ParseError::BadMethod,
                bytes,
                how: How {
                    limits: Limits::default(),
                    strictness: Strictness::Strict,
                    has_head: true,
                },
            });
        };
        assert!(messages.last(0).iter().all(Option::is_none));
        note(b"abcdef");
        note(b"g");
        let [request, response] = messages.last(0);
        let request = request.expect("the last one");
        assert_eq!((request.event, &request.bytes[..]), (1, &b"g"[..]));
        assert!(response.is_none());
        assert_eq!(messages.events(), 2);
        note(b"abcdef");
        let [request, _] = messages.last(0);
        assert_eq!(request.expect("the last one").bytes, b"abcd");
        assert!(messages.last(7).iter().all(Option::is_none));
    }
}
