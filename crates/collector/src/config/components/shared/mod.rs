//! Options that several components have in common.

pub mod address;
pub mod auth;
pub mod context;
pub mod grpc;
pub mod headers;
pub mod http;
pub mod kafka;
pub mod queue;
pub mod retry;
pub(crate) mod storage;
pub mod tls;
