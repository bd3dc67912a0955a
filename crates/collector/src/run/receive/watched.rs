//! A connection's bytes as they pass: when a request begins to come, and how often a gRPC client
//! pings.
//!
//! Who pings too often is sent away as gRPC servers do it: by `GOAWAY` with `ENHANCE_YOUR_CALM` and
//! `too_many_pings` (gRPC, "A8: Client-side Keepalive").

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use super::activity::Activity;
use super::frames::{ACK, DATA, Frames, HEADERS, PING};

/// Without a stream clients need not ping more often than this.
const IDLE_PING_MIN: Duration = Duration::from_secs(2 * 3600);
/// Pings that come too early and are borne, until something is sent to the client.
const STRIKES_MAX: u32 = 2;
/// `GOAWAY` with the code 11 and a text; the last stream is not known here, so that none is said to
/// be lost.
const GOAWAY: &[u8] = b"\0\0\x16\x07\0\0\0\0\0\x7f\xff\xff\xff\0\0\0\x0btoo_many_pings";

/// How often clients may ping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PingPolicy {
    pub min_time: Duration,
    /// Without a stream too.
    pub without_stream: bool,
}

/// Counts the pings of one client that come too early.
#[derive(Debug)]
struct Pings {
    policy: PingPolicy,
    last: Option<Instant>,
    strikes: u32,
}

impl Pings {
    /// One more; whether it is one too many.
    fn ping(&mut self, now: Instant, has_streams: bool) -> bool {
        let min = if has_streams || self.policy.without_stream {
            self.policy.min_time
        } else {
            IDLE_PING_MIN
        };
        if self.last.is_some_and(|last| now - last < min) {
            self.strikes += 1;
        }
        self.last = Some(now);
        self.strikes > STRIKES_MAX
    }
}

/// What is known of an HTTP/2 connection.
#[derive(Debug)]
struct Http2 {
    incoming: Frames,
    outgoing: Frames,
    pings: Pings,
    /// What is left of the last frame to the client, once it pinged too often.
    goaway: Option<&'static [u8]>,
}

/// See the module.
pub(super) struct Watched<S> {
    stream: S,
    activity: Arc<Activity>,
    http2: Option<Http2>,
}

impl<S> Watched<S> {
    /// A connection; one of gRPC has a policy for pings.
    pub(super) fn new(stream: S, activity: &Arc<Activity>, policy: Option<PingPolicy>) -> Self {
        Watched {
            stream,
            activity: Arc::clone(activity),
            http2: policy.map(|policy| Http2 {
                incoming: Frames::of_client(),
                outgoing: Frames::of_server(),
                pings: Pings {
                    policy,
                    last: None,
                    strikes: 0,
                },
                goaway: None,
            }),
        }
    }

    fn came(&mut self, bytes: &[u8]) {
        self.activity.came();
        let Some(http2) = &mut self.http2 else {
            return;
        };
        let (pings, activity) = (&mut http2.pings, &self.activity);
        let mut is_too_much = false;
        http2.incoming.pass(bytes, |kind, flags| {
            if kind == PING && flags & ACK == 0 {
                is_too_much |= pings.ping(Instant::now(), activity.has_requests());
            }
        });
        if is_too_much {
            http2.goaway = Some(GOAWAY);
        }
    }

    fn went(&mut self, bytes: &[u8]) {
        let Some(http2) = &mut self.http2 else {
            return;
        };
        let pings = &mut http2.pings;
        http2.outgoing.pass(bytes, |kind, _| {
            if matches!(kind, DATA | HEADERS) {
                pings.strikes = 0;
                pings.last = None;
            }
        });
    }
}

fn too_many_pings() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "too_many_pings")
}

impl<S: AsyncRead + AsyncWrite + Unpin> Watched<S> {
    /// Sends the client away; ready with an error once it is told, or cannot be.
    fn poll_goaway(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        let Some(http2) = &mut self.http2 else {
            return Poll::Ready(too_many_pings());
        };
        while let Some(left) = http2.goaway.filter(|left| !left.is_empty())
            && (http2.outgoing.is_between() || left.len() < GOAWAY.len())
        {
            match ready!(Pin::new(&mut self.stream).poll_write(context, left)) {
                Ok(written @ 1..) => http2.goaway = left.get(written..),
                Ok(0) | Err(_) => return Poll::Ready(too_many_pings()),
            }
        }
        let _ = ready!(Pin::new(&mut self.stream).poll_shutdown(context));
        Poll::Ready(too_many_pings())
    }

    fn is_going(&self) -> bool {
        let http2 = self.http2.as_ref();
        http2.is_some_and(|http2| http2.goaway.is_some())
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        room: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_going() {
            return self.poll_goaway(context).map(Err);
        }
        let before = room.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, room))?;
        let came = &room.filled()[before..];
        if !came.is_empty() {
            self.came(came);
        }
        if self.is_going() {
            self.poll_goaway(context).map(Err)
        } else {
            Poll::Ready(Ok(()))
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.is_going() {
            return Poll::Ready(Err(too_many_pings()));
        }
        let written = ready!(Pin::new(&mut self.stream).poll_write(context, bytes))?;
        self.went(&bytes[..written]);
        Poll::Ready(Ok(written))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.is_going() {
            return Poll::Ready(Err(too_many_pings()));
        }
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(context, pieces))?;
        let mut left = written;
        for piece in pieces {
            let own = left.min(piece.len());
            self.went(&piece[..own]);
            left -= own;
        }
        Poll::Ready(Ok(written))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn pings_that_come_too_early_are_counted() {
        let policy = |without_stream| PingPolicy {
            min_time: Duration::from_secs(10),
            without_stream,
        };
        // Whether there are streams, whether they are needed, and the time between pings that is
        // borne.
        for (has_streams, without_stream, borne_s) in [
            (true, false, 10),
            (false, true, 10),
            (false, false, 2 * 3600),
        ] {
            for (every_s, is_borne) in [(borne_s, true), (borne_s - 1, false)] {
                let mut pings = Pings {
                    policy: policy(without_stream),
                    last: None,
                    strikes: 0,
                };
                let mut is_too_much = false;
                for _ in 0..4 {
                    is_too_much |= pings.ping(Instant::now(), has_streams);
                    tokio::time::advance(Duration::from_secs(every_s)).await;
                }
                assert_eq!(is_too_much, !is_borne, "{has_streams} {without_stream}");
            }
        }
    }
}
