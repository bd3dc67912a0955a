//! What runs a configuration: receivers, processors, exporters and connectors, put together as its
//! pipelines say.
//!
//! Data pass as the bytes they came in ([`data::Batch`]). A consumer takes a batch whole or gives
//! it back; every record of a batch is settled once, in the [`account`].

pub mod account;
pub mod auth;
mod buckets;
mod charge;
pub mod connect;
pub mod consume;
pub mod data;
pub mod k8s;
mod kafka;
pub mod log;
pub(crate) mod metrics;
pub mod origin;
mod own;
mod page;
pub mod part;
mod prefixed;
pub mod process;
pub mod receive;
pub mod send;
mod start;
pub mod storage;
mod tasks;
pub mod translate;

pub use charge::{Charge, Memory};
pub use log::{Level, Log};
pub use receive::{Intake, Listeners, Sharing};
pub use start::{Collector, END_MAX, Host, Setup, StartError, View};
