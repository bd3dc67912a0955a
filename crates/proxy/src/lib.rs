//! The engine: connections, streams and their phases, rules, backends, balancing and logs.
//!
//! Pure state: no system call, no clock, no thread and no randomness. It stands behind the boundary of crate `net` and does
//! what a driver tells it. The way of a request is `stream::phases`, top to bottom. Beside it: `rules` (what actions do),
//! `persist` (what binds a request to a server), `backend` and `balance` (which server), `pace` and `rates` (how many a
//! second), `logging` (who is told).
#![forbid(unsafe_code)]

mod accept;
mod audit;
mod backend;
mod balance;
mod client;
mod conn;
mod engine;
mod error_pages;
mod forwarded;
mod input;
mod logging;
mod names;
mod pace;
mod persist;
mod pool;
mod proc_vars;
mod proxy_header;
mod queue;
mod rates;
mod reply;
mod rules;
mod running;
mod server;
mod shared;
mod stream;
mod tracing;
mod world;

pub use engine::{Engine, Message};
pub use logging::event;
pub use running::{ListenerInfo, LogTargetId, Process, Running};
pub use shared::Shared;
pub use tracing::{Counters, Filter, FilterExport, Logging, Switches};
