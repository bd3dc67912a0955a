//! Kafka: a receiver that is a member of a consumer group, and an exporter.
//!
//! **Nothing is lost.** Messages that are received within half a second share a [`Token`], which
//! goes along with their records through everything that they pass, a sampler too, as the segments
//! of a journal do. Once its last clone is gone, all of them were delivered, or dropped by a
//! processor that was told to. The offset that is committed is that of the first message of its
//! partition which is not settled (`Offsets`); so whoever owns the partition next reads the
//! others again.
//!
//! What needs the client (librdkafka) is in `consume` and `produce`; a build without the
//! feature `kafka` has neither, and takes no configuration that needs them. All else is here in
//! every build: it is tested without a broker.
//!
//! [`Token`]: super::storage::Token
#![cfg_attr(
    not(feature = "kafka"),
    allow(
        dead_code,
        reason = "what only the client calls is built and tested without it"
    )
)]

#[cfg(not(feature = "kafka"))]
mod absent;
#[cfg(feature = "kafka")]
mod client;
#[cfg(feature = "kafka")]
mod consume;
mod counts;
mod decode;
mod exporter;
mod messages;
mod metrics;
mod offsets;
#[cfg(feature = "kafka")]
mod produce;
mod properties;
mod receiver;
#[cfg(test)]
mod settings;
#[cfg(test)]
mod tests;

#[cfg(not(feature = "kafka"))]
use absent::{Member, Pending, Producer, start};
#[cfg(feature = "kafka")]
use consume::{Member, start};
use counts::{Broker, Counts, Partition, State};
#[cfg(feature = "kafka")]
use produce::{Pending, Producer};
