//! What received bytes mean, as events of exchanges. The mux of the connection reads them; the
//! layers above do not know which mux that is.

use http::Head;
use http::h1::{ParseError, Parsed};
use net::Driver;

use super::Links;
use super::mux::Mux;
use super::mux::h1::{Pull, Rules};
use crate::ids::{ConnId, ExchangeId, Timers};

/// An event of a connection.
#[derive(Debug)]
pub(crate) enum Ingress<'a> {
    /// More bytes are needed.
    More,
    /// More bytes are needed: a part of a request's head has come.
    Partial,
    /// The bytes wait until the exchange at hand has ended.
    Wait,
    /// Nothing that the layers above have to know.
    Nothing,
    /// Bytes that belong to no exchange.
    Unexpected,
    /// A head, in [`Reading::head`]. `behind`: how many bytes at hand may be its body.
    Head {
        exchange: ExchangeId,
        parsed: Parsed,
        behind: usize,
    },
    /// Payload of an exchange; [`Links::took`] is told how much of it is used. `framing`: the bytes
    /// around it.
    Data {
        exchange: ExchangeId,
        bytes: &'a [u8],
        framing: usize,
    },
    /// A message is over; its trailers are in [`Reading::trailers`]. `wire`: the bytes of its end.
    End { exchange: ExchangeId, wire: usize },
    /// A part of a request that was answered early has been discarded.
    Discarded(ExchangeId),
    /// All of a request that was answered early has come, or will not come.
    Drained(ExchangeId),
    /// The peer has ended an exchange before its messages were complete.
    Reset { exchange: ExchangeId, why: Reset },
    /// The message at hand violates the protocol, and the connection cannot go on.
    Bad(ParseError),
    /// The connection violates its protocol; the peer has been told.
    Failed,
    /// A request was invalid and is answered; the connection goes on.
    Refused,
    /// An exchange that waited for the peer's credit may send.
    Writable(ExchangeId),
    /// The peer's settings have come: exchanges that wait for them, or for credit, may continue.
    Settled,
    /// The peer begins or accepts no further exchanges.
    Ending,
    /// The peer has shown that it is alive.
    Alive,
}

/// Why a peer has ended an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reset {
    /// It was not processed and may be repeated (RFC 9113 §8.7).
    Unprocessed,
    /// The response is complete, and the rest of the request is not wanted (RFC 9113 §8.1).
    Answered,
    /// It is lost.
    Lost,
}

/// What a mux needs in order to read.
pub(crate) struct Reading<'a> {
    pub rules: Rules,
    pub timers: &'a mut Timers,
    /// Receives a head.
    pub head: &'a mut Head,
    /// Receives trailers.
    pub trailers: &'a mut Head,
    /// Receives the number of the peer's glitches in these bytes.
    pub glitches: u32,
}

/// How much of an exchange's message is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// Some payload is left.
    Part,
    /// All payload that has come.
    All,
    /// The exchange has ended meanwhile.
    Gone,
    /// All of the message: it is over.
    Message {
        /// It has trailers, which are in the given buffer.
        has_trailers: bool,
    },
}

impl Links {
    /// The next event of a connection's bytes, and how many of them it used.
    #[inline]
    pub fn pull<'a, D: Driver>(
        &mut self,
        io: &mut D,
        conn: ConnId,
        bytes: &'a [u8],
        reading: &mut Reading<'_>,
    ) -> (usize, Ingress<'a>) {
        let Some(link) = self.links.get_mut(conn.into()) else {
            return (bytes.len(), Ingress::Nothing);
        };
        let is_used = link.stream.is_some();
        let (used, pull) = match &mut link.mux {
            Mux::Front(front) => {
                let head = &mut *reading.head;
                let (used, pull) = front.pull(bytes, reading.rules, head, reading.trailers);
                if !is_used {
                    let drains = front.drains();
                    return (
                        used,
                        unused_event(conn.only_exchange(), pull, used, bytes, drains),
                    );
                }
                (used, pull)
            }
            Mux::Back(back) if is_used => {
                let head = &mut *reading.head;
                back.pull(bytes, reading.rules, head, reading.trailers)
            }
            Mux::Raw if is_used && !bytes.is_empty() => (bytes.len(), Pull::Data(bytes)),
            Mux::Back(_) | Mux::Raw => return (0, unexpected(bytes)),
            Mux::Connection(_) => return self.pull_frame(io, conn, bytes, reading),
            Mux::Stream(_) => return (bytes.len(), Ingress::Nothing),
        };
        (
            used,
            message_event(conn.only_exchange(), pull, used, bytes.len() - used),
        )
    }

    /// Notes that the layers above used some of an exchange's payload, and `left` bytes of it not.
    /// Returns the number of announced bytes that are not used yet, too.
    #[inline]
    pub fn took<D: Driver>(
        &mut self,
        io: &mut D,
        exchange: ExchangeId,
        used: usize,
        left: usize,
        trailers: &mut Head,
    ) -> (Taken, u64) {
        let Some(link) = self.links.get_mut(exchange.into()) else {
            return (Taken::Gone, 0);
        };
        let announced = link.mux.announced() + left as u64;
        let taken = match &link.mux {
            Mux::Stream(_) => self.took_of_stream(io, exchange, (used, left), trailers),
            _ if left > 0 => Taken::Part,
            mux if mux.has_all() => {
                link.mux.end_body();
                Taken::Message {
                    has_trailers: false,
                }
            }
            _ => Taken::All,
        };
        (taken, announced)
    }

    /// Keeps the unused rest of payload that came in an event. Whether its bytes count as used:
    /// otherwise they are the last bytes of the event, and stay with the caller.
    pub fn keep_rest(&mut self, exchange: ExchangeId, rest: &[u8]) -> bool {
        let Some(link) = self.links.get_mut(exchange.into()) else {
            return true;
        };
        if let Mux::Stream(_) = link.mux {
            link.input.extend_from_slice(rest);
            return true;
        }
        link.mux.unread(rest.len());
        rest.is_empty()
    }

    /// The rest of a request that was answered early has been discarded: a connection that serves
    /// one exchange at a time is ready for its next request.
    pub fn drained(&mut self, exchange: ExchangeId) {
        if let Some(Mux::Front(front)) = self.get_mut(exchange).map(|link| &mut link.mux) {
            front.drained();
        }
    }

    /// The peer of a connection has ended its side. Whether this is the end of a message: of one
    /// whose length was not announced.
    pub fn input_ended(&mut self, conn: ConnId) -> bool {
        match self.get_mut(conn).map(|link| &mut link.mux) {
            Some(Mux::Back(back)) => back.end_of_input(),
            Some(Mux::Raw | Mux::Front(_) | Mux::Connection(_) | Mux::Stream(_)) | None => false,
        }
    }
}

/// The event of a client's message that no stream uses: the head that begins one, or the rest of a
/// request that was answered early.
#[inline]
fn unused_event<'a>(
    exchange: ExchangeId,
    pull: Pull<'a>,
    used: usize,
    bytes: &[u8],
    drains: bool,
) -> Ingress<'a> {
    match pull {
        Pull::End if drains => Ingress::Drained(exchange),
        Pull::More | Pull::Data(_) if drains && used > 0 => Ingress::Discarded(exchange),
        Pull::More if !drains && !bytes.is_empty() => Ingress::Partial,
        Pull::Data(_) | Pull::End => Ingress::Nothing,
        pull => message_event(exchange, pull, used, bytes.len() - used),
    }
}

/// The event of one message of HTTP/1.
#[inline]
fn message_event(exchange: ExchangeId, pull: Pull<'_>, used: usize, behind: usize) -> Ingress<'_> {
    match pull {
        Pull::More => Ingress::More,
        Pull::Hold => Ingress::Wait,
        Pull::Head(parsed) => Ingress::Head {
            exchange,
            parsed,
            behind,
        },
        Pull::Data(bytes) => Ingress::Data {
            exchange,
            bytes,
            framing: used - bytes.len(),
        },
        Pull::End => Ingress::End {
            exchange,
            wire: used,
        },
        Pull::Bad(error) => Ingress::Bad(error),
    }
}

fn unexpected(bytes: &[u8]) -> Ingress<'static> {
    if bytes.is_empty() {
        Ingress::More
    } else {
        Ingress::Unexpected
    }
}
