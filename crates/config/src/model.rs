//! The typed configuration, which runs. It does not change after the build. Names are resolved to
//! indexes, settings of `defaults` are copied and their rules shared, and expressions are compiled.

mod balance;
mod bandwidth;
mod bind;
mod certificate;
mod check;
mod collector;
mod compression;
mod dashboard;
mod global;
mod h2;
mod log;
mod otel;
mod persist;
mod proxy;
mod proxy_name;
mod resilience;
mod resolvers;
mod rules;
mod server;
mod statistics;
mod tables;
mod tls;

pub use balance::*;
pub use bandwidth::*;
pub use bind::*;
pub use certificate::*;
pub use check::*;
pub use collector::*;
pub use compression::*;
pub use dashboard::*;
pub use global::*;
pub use h2::*;
pub use log::*;
pub use otel::*;
pub use persist::*;
pub use proxy::*;
pub use proxy_name::ProxyName;
pub use resilience::*;
pub use resolvers::*;
pub use rules::*;
pub use server::*;
pub use statistics::*;
pub use tables::*;
pub use tls::*;
