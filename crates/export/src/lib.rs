//! The exporters: they send what workers encoded to receivers of telemetry.
//!
//! Workers put batches of encoded records into bounded queues ([`telemetry::queue`]). One thread
//! with its own asynchronous runtime takes the batches out, adds OTLP's envelope without decoding
//! them, and sends them; requests that a receiver cannot accept are retried for a while. Whatever a
//! receiver does (refuse, hang, respond slowly), workers never wait: queues fill up, and records
//! that no longer fit are counted. At every moment, for each queue, the records started equal those
//! exported, lost by some cause, waiting or in flight ([`telemetry::account`]).
#![forbid(unsafe_code)]

mod causes;
pub mod client;
pub mod clock;
mod compress;
pub mod cookies;
mod dial;
mod exporters;
pub mod get;
mod grpc;
mod health;
mod http;
mod lines;
mod lock;
pub mod lookup;
mod memory;
mod plan;
mod proxy;
mod pump;
mod reply;
mod request;
mod retry;
mod rotate;
pub mod rpc;
mod sink;
mod text;
pub mod tls;
mod zipkin;

pub use exporters::{Exporters, Pipeline};
pub use health::Health;
pub use memory::Memory;
pub use plan::{Log, MetricSource, PipelinePlan, Places, Plan, QUEUE_BYTES_MAX, Schedule};
pub use retry::{Delays, Retry};
pub use sink::{Collectors, InProcess, Taking};
