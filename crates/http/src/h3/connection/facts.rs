//! What a caller may ask of a connection, and the names of its streams.

use super::read::Reading;
use super::{Connection, Role};
use crate::h3::{Counts, Limits, StreamId};

impl Connection {
    /// The limits that we set for the peer.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// How many streams are open. A stream of a client is open once its head has arrived.
    #[must_use]
    pub fn stream_count(&self) -> usize {
        self.streams.len() - self.headless
    }

    /// No stream is open, not even one whose head has not arrived, and no record is partially read:
    /// the connection can be closed without loss.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.streams.is_empty() && self.later.is_empty() && matches!(self.reading, Reading::Record)
    }

    /// Whether we, as a client, can send another request on this connection now.
    #[must_use]
    pub fn can_open(&self) -> bool {
        self.room_for_streams() > 0
    }

    /// How many more requests a client can send now.
    #[must_use]
    pub fn room_for_streams(&self) -> usize {
        let ends = self.goaway.got.is_some() || self.goaway.announced || self.has_failed();
        if self.role == Role::Server || ends {
            return 0;
        }
        let permitted = self.requests_max.min(u64::from(u32::MAX));
        let left = permitted.saturating_sub(self.opened.next);
        let most = (self.limits.streams_max as usize).saturating_sub(self.streams.len());
        usize::try_from(left).map_or(most, |left| left.min(most))
    }

    /// The peer supports the extended CONNECT (RFC 9220 §3). A client knows this once
    /// [`Connection::has_settings`] is true.
    #[must_use]
    pub fn takes_extended_connect(&self) -> bool {
        self.peer.extended_connect
    }

    /// The peer's settings have arrived.
    #[must_use]
    pub fn has_settings(&self) -> bool {
        self.peer.are_known
    }

    /// The peer announced the end of the connection.
    #[must_use]
    pub fn got_goaway(&self) -> bool {
        self.goaway.got.is_some()
    }

    /// The number of the peer's glitches so far (`fc_glitches`, `bc_glitches`).
    #[must_use]
    pub fn glitches(&self) -> u32 {
        self.load.glitches
    }

    /// Sets whether the connection ends when it has reached [`Limits::glitches_max`]. If this is
    /// never called, it ends (`tune.glitches.kill.cpu-usage`).
    pub fn set_glitch_kill(&mut self, kills: bool) {
        self.load.spares_glitches = !kills;
    }

    /// The caller's name for a stream, if the stream is open.
    #[must_use]
    pub fn token(&self, stream: StreamId) -> Option<u32> {
        self.streams.get(stream).map(|stream| stream.token)
    }

    /// Names a stream.
    pub fn set_token(&mut self, stream: StreamId, token: u32) {
        if let Some(stream) = self.streams.get_mut(stream) {
            stream.token = token;
        }
    }

    /// Takes the counts since the last call.
    pub fn take_counts(&mut self) -> Counts {
        std::mem::take(&mut self.counts)
    }

    /// Bytes that count for [`BUFFERED_BYTES_MAX`].
    #[cfg(test)]
    pub(in crate::h3) fn buffered(&self) -> usize {
        let block = |stream: &crate::h3::streams::Stream| stream.block.len();
        let held =
            |stream: &crate::h3::streams::Stream| stream.held.as_ref().map_or(0, |held| held.len());
        let counted = self
            .streams
            .iter()
            .map(|stream| block(stream) + held(stream));
        assert_eq!(counted.sum::<usize>(), self.buffered);
        self.buffered
    }

    /// Sections of ours refer to entries that the peer may not have yet.
    #[cfg(test)]
    pub(in crate::h3) fn be_bold(&mut self) {
        self.encoder.is_bold = true;
    }

    /// How many sections of ours with references the peer has acknowledged.
    #[cfg(test)]
    pub(in crate::h3) fn acknowledged(&self) -> u64 {
        self.encoder.acknowledged
    }
}
