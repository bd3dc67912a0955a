//! What a connection tells of itself, for operators.

use std::time::Duration;

use quinn_proto::{ConnectionId, Dir};

use crate::streams::{Stream, parts};
use crate::{Connection, Parameters, StreamId};

/// Where a connection is in its life (RFC 9000 §10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The handshake is not complete.
    Handshake,
    /// Streams can be used.
    Open,
    /// This side has closed it.
    Closing,
    /// The peer has closed it, or does not know it any longer.
    Draining,
}

/// The ids of both sides in the handshake. Later packets may have others (RFC 9000 §5.1).
#[derive(Clone, Copy, Debug)]
pub(crate) struct HandshakeIds {
    local: ConnectionId,
    peer: ConnectionId,
}

impl HandshakeIds {
    /// The ids of a packet of this side; none if it is not one of the handshake (RFC 9000 §17.2).
    pub fn of(packet: &[u8]) -> Option<HandshakeIds> {
        let (first, rest) = packet.split_first()?;
        if first & 0x80 == 0 {
            return None;
        }
        let (_version, rest) = rest.split_at_checked(4)?;
        let (peer, rest) = prefixed(rest)?;
        let (local, _) = prefixed(rest)?;
        Some(HandshakeIds {
            local: ConnectionId::new(local),
            peer: ConnectionId::new(peer),
        })
    }
}

/// An id with its length before it, and what follows.
fn prefixed(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    /// RFC 9000 §17.2.
    const ID_BYTES_MAX: usize = 20;
    let (len, rest) = bytes.split_first()?;
    let len = usize::from(*len);
    (len <= ID_BYTES_MAX).then(|| rest.split_at_checked(len))?
}

/// A snapshot of a connection.
#[derive(Clone, Debug)]
pub struct Report {
    /// See [`Stage`].
    pub stage: Stage,
    /// The id of this side in the handshake; empty before the first packet of this side.
    pub local_id: Vec<u8>,
    /// The same of the peer.
    pub peer_id: Vec<u8>,
    /// The smoothed round-trip time.
    pub rtt: Duration,
    /// The shortest round-trip time.
    pub rtt_min: Duration,
    /// The congestion window, bytes.
    pub window_bytes: u64,
    /// Bytes of the datagrams of this side.
    pub sent_bytes: u64,
    /// Packets of this side.
    pub sent_packets: u64,
    /// Those of them that were declared lost.
    pub lost_packets: u64,
    /// How often the peer's address has changed.
    pub migrations: u64,
    /// Frames of the peer that say that it could send more: DATA_BLOCKED, STREAM_DATA_BLOCKED and
    /// STREAMS_BLOCKED of both directions (RFC 9000 §19.12 to §19.14).
    pub blocked: Blocked,
    /// Bytes that were written and wait for the windows of the peer.
    pub queued_bytes: usize,
    /// Streams of requests that are open.
    pub requests: usize,
}

/// Received frames that report a limit which blocks the peer (RFC 9000 §19.12–19.14).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Blocked {
    /// DATA_BLOCKED
    pub data: u64,
    /// STREAM_DATA_BLOCKED
    pub stream_data: u64,
    /// STREAMS_BLOCKED of streams with two directions
    pub streams_bidi: u64,
    /// STREAMS_BLOCKED of streams with one direction
    pub streams_uni: u64,
}

/// A snapshot of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamReport {
    /// Its number.
    pub id: StreamId,
    /// The peer may send more on it.
    pub receives: bool,
    /// This side may send more on it.
    pub sends: bool,
    /// Bytes that came and were not used yet.
    pub ahead_bytes: u64,
    /// Bytes that were written and wait.
    pub queued_bytes: usize,
}

impl StreamReport {
    /// Whether it has both directions, as those of requests.
    #[must_use]
    pub fn is_bidirectional(&self) -> bool {
        is_bidirectional(self.id)
    }
}

fn is_bidirectional(id: StreamId) -> bool {
    parts(id).1 == Dir::Bi
}

impl Connection {
    /// What is known of the connection now.
    #[must_use]
    pub fn report(&self) -> Report {
        let stats = self.inner.stats();
        let stage = if self.is_draining {
            Stage::Draining
        } else if self.inner.is_closed() {
            Stage::Closing
        } else if self.inner.is_handshaking() {
            Stage::Handshake
        } else {
            Stage::Open
        };
        let id = |of: fn(&HandshakeIds) -> &ConnectionId| {
            let ids = self.ids.as_ref();
            ids.map_or_else(Vec::new, |ids| of(ids).to_vec())
        };
        let received = &stats.frame_rx;
        let streams = self.streams.all();
        Report {
            stage,
            local_id: id(|ids| &ids.local),
            peer_id: id(|ids| &ids.peer),
            rtt: stats.path.rtt,
            rtt_min: stats.path.min_rtt,
            window_bytes: stats.path.cwnd,
            sent_bytes: stats.udp_tx.bytes,
            sent_packets: stats.path.sent_packets,
            lost_packets: stats.path.lost_packets,
            migrations: self.migrations,
            blocked: Blocked {
                data: received.data_blocked,
                stream_data: received.stream_data_blocked,
                streams_bidi: received.streams_blocked_bidi,
                streams_uni: received.streams_blocked_uni,
            },
            queued_bytes: self.streams.queued(),
            requests: streams.filter(|(id, _)| is_bidirectional(*id)).count(),
        }
    }

    /// The transport parameters of this side, and of the peer.
    #[must_use]
    pub fn parameters(&self) -> [Parameters; 2] {
        let agreed = self.agreed();
        let encoded = [agreed.local_parameters, agreed.peer_parameters];
        encoded.map(|bytes| Parameters::read(&bytes))
    }

    /// The streams, by their numbers.
    #[must_use]
    pub fn stream_reports(&self) -> Vec<StreamReport> {
        let report = |(id, stream): (StreamId, &Stream)| StreamReport {
            id,
            receives: stream.receives,
            sends: stream.sends,
            ahead_bytes: stream.ahead,
            queued_bytes: stream.queue.len(),
        };
        let mut streams: Vec<StreamReport> = self.streams.all().map(report).collect();
        streams.sort_unstable_by_key(|stream| stream.id);
        streams
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_of_the_handshake_tell_both_ids() {
        let packet = b"\xc3\0\0\0\x01\x03abc\x02xy and more";
        let ids = HandshakeIds::of(packet).expect("a packet of the handshake");
        assert_eq!((&*ids.peer, &*ids.local), (&b"abc"[..], &b"xy"[..]));
        for len in 0..packet.len() - 11 {
            assert!(HandshakeIds::of(&packet[..len]).is_none(), "{len}");
        }
        assert!(HandshakeIds::of(b"\x43\0\0\0\x01\x03abc\x02xy").is_none());
        let long = [&b"\xc3\0\0\0\x01\x15"[..], &[0; 60]].concat();
        assert!(HandshakeIds::of(&long).is_none());
    }
}
