//! `tune.quic.*` and related keywords: QUIC with clients and servers (manual §3.2, §5.1, §5.2), and the
//! rules for new connections (§4.2).

use std::time::Duration;

use syntax::octets::Octets;

/// QUIC in `global`. None is the default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuicTune {
    /// `cluster-secret`: the keys of QUIC follow from it.
    pub secret: Option<Octets>,
    /// `tune.quic.listen`: the lines with QUIC are bound.
    pub listens: bool,
    /// `harden.reject-privileged-ports.quic`: clients with ports below 1024 get no answer.
    pub rejects_privileged: bool,
    /// `tune.quic.fe.*`
    pub clients: QuicSide,
    /// `tune.quic.be.*`
    pub servers: QuicSide,
    /// `tune.quic.fe.stream.max-concurrent`: most requests of a connection at a time.
    pub streams_max: Option<u32>,
    /// `tune.quic.fe.stream.max-total`: most requests in the life of a connection.
    pub total_streams_max: Option<u32>,
    /// `tune.quic.fe.sec.retry-threshold`: handshakes under way in a worker, from which clients have
    /// to show that they have their address.
    pub retry_threshold: Option<u32>,
}

/// What `global` says of the connections with clients, or of those with servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuicSide {
    /// `max-idle-timeout`; zero: no limit.
    pub idle: Option<Duration>,
    /// `stream.rxbuf`: most bytes that the peer sends ahead on a connection.
    pub rxbuf_bytes: Option<u32>,
    /// `stream.data-ratio`: per cent of it that one stream may have.
    pub data_percent: Option<u32>,
    /// `cc.max-win-size`: most bytes of a connection that are not acknowledged.
    pub window_bytes: Option<u32>,
    /// `sec.glitches-threshold`: a connection ends after this many glitches.
    pub glitches_max: Option<u32>,
    /// `tx.udp-gso`: the kernel cuts messages into datagrams.
    pub joins_datagrams: bool,
}

impl Default for QuicSide {
    fn default() -> Self {
        QuicSide {
            idle: None,
            rxbuf_bytes: None,
            data_percent: None,
            window_bytes: None,
            glitches_max: None,
            joins_datagrams: true,
        }
    }
}

impl Default for QuicTune {
    fn default() -> Self {
        QuicTune {
            secret: None,
            listens: true,
            rejects_privileged: true,
            clients: QuicSide::default(),
            servers: QuicSide::default(),
            streams_max: None,
            total_streams_max: None,
            retry_threshold: None,
        }
    }
}

/// QUIC on a `server` line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuicServer {
    /// `quic-cc-algo`
    pub congestion: QuicCongestion,
    /// Its argument: most bytes of a connection that are not acknowledged.
    pub window_bytes: Option<u32>,
    /// `proto quic`: the address must be one of QUIC.
    pub is_required: bool,
}

/// QUIC on a `bind` line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuicBind {
    /// `quic-cc-algo`
    pub congestion: QuicCongestion,
    /// Its argument: most bytes of a connection that are not acknowledged.
    pub window_bytes: Option<u32>,
    /// `proto quic`: the address must be one of QUIC.
    pub is_required: bool,
    /// `quic-force-retry`: each client has to show that it has its address.
    pub forces_retry: bool,
    /// The inherited descriptor that has the address (`quic+fd@`).
    pub descriptor: Option<i32>,
}

/// An algorithm that decides how much is in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum QuicCongestion {
    #[default]
    Cubic,
    NewReno,
    Bbr,
    /// The largest window always.
    None,
}

/// A `quic-initial` rule (manual §4.2).
#[derive(Debug)]
pub struct QuicRule {
    /// The action.
    pub action: QuicAction,
    /// None means always.
    pub condition: Option<sample::Condition>,
    /// The place of the rule.
    pub place: sample::RulePlace,
}

/// The actions of `quic-initial` rules (manual §4.4). All but `do-log` end the evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuicAction {
    /// `accept`
    Accept,
    /// `dgram-drop`: the packet is ignored.
    Drop,
    /// `reject`: the client is told that the connection is refused.
    Reject,
    /// `send-retry`: a client that has not shown yet that it has its address is asked to.
    SendRetry,
    /// `do-log`, with the index of a profile in [`super::Config::log_profiles`].
    DoLog {
        /// None: the profiles of the log targets.
        profile: Option<usize>,
    },
}
