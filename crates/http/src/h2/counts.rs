//! What a connection counts for statistics.

/// Frames, errors and streams of a connection since they were last taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// HEADERS frames from the peer.
    pub headers: u32,
    /// DATA frames from the peer.
    pub data: u32,
    /// SETTINGS frames from the peer.
    pub settings: u32,
    /// RST_STREAM frames from the peer.
    pub resets: u32,
    /// GOAWAY frames from the peer.
    pub goaways: u32,
    /// CANCEL_PUSH frames from the peer, which only HTTP/3 has.
    pub cancelled_pushes: u32,
    /// MAX_PUSH_ID frames from the peer, which only HTTP/3 has.
    pub push_limits: u32,
    /// Errors of the peer that end the connection.
    pub connection_errors: u32,
    /// Errors of the peer that end a stream, or a request before it becomes one.
    pub stream_errors: u32,
    /// RST_STREAM frames that we sent.
    pub sent_resets: u32,
    /// GOAWAY frames that we sent.
    pub sent_goaways: u32,
    /// Streams that were opened.
    pub streams: u32,
}

impl super::Connection {
    /// Takes the counts since the last call.
    pub fn take_counts(&mut self) -> Counts {
        std::mem::take(&mut self.counts)
    }
}
