//! How long parts of a connection may take.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use tokio::time::Instant;

use super::activity::Limits;
use super::protocol::{Protocol, Settings};
use super::watched::PingPolicy;

/// The head of a request that takes longer is given up, where the settings say nothing.
const HEAD_MAX: Duration = Duration::from_secs(60);
/// The time between pings of a client, at least: gRPC's own default.
const CLIENT_PINGS_MIN: Duration = Duration::from_secs(300);

/// A time that is up to a tenth longer or shorter, so that connections of one moment do not end in
/// one moment (gRPC, "A9: Server-side Connection Management").
pub(super) fn spread(time: Duration) -> Duration {
    let random = RandomState::new().hash_one(0) % 201;
    time.mul_f64((900 + random) as f64 / 1000.0)
}

/// A moment, or never.
pub(super) async fn at(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// How long what may take, and how often clients may ping.
pub(super) struct Bounds {
    pub limits: Limits,
    /// A response, from when its request's head was there.
    pub write: Option<Duration>,
    pub pings: Option<PingPolicy>,
}

impl Bounds {
    pub(super) fn of(protocol: &Protocol) -> Bounds {
        let some = |ns: u64| (ns > 0).then(|| Duration::from_nanos(ns));
        match protocol.settings() {
            Settings::Grpc(grpc) => {
                let keepalive = &grpc.keepalive;
                Bounds {
                    limits: Limits {
                        head: Some(HEAD_MAX),
                        idle: some(keepalive.connection_idle_ns),
                        age: some(keepalive.connection_age_ns),
                        grace: some(keepalive.connection_age_grace_ns),
                    },
                    write: None,
                    pings: Some(PingPolicy {
                        min_time: some(keepalive.client_ping_min_ns).unwrap_or(CLIENT_PINGS_MIN),
                        without_stream: keepalive.permit_without_stream,
                    }),
                }
            }
            Settings::Http(server) => {
                let read = some(server.read_timeout_ns);
                Bounds {
                    limits: Limits {
                        head: some(server.read_header_timeout_ns)
                            .or(read)
                            .or(Some(HEAD_MAX)),
                        idle: some(server.idle_timeout_ns).or(read),
                        ..Limits::default()
                    },
                    write: some(server.write_timeout_ns),
                    pings: None,
                }
            }
        }
    }
}

/// A response took too long: its connection, or its stream, ends.
#[derive(Debug)]
pub(super) struct Late;

impl fmt::Display for Late {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the response took too long")
    }
}

impl std::error::Error for Late {}
