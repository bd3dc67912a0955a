//! Options that several components have in common.

pub(crate) mod address;
pub(crate) mod grpc;
pub(crate) mod headers;
pub(crate) mod http;
pub(crate) mod queue;
pub(crate) mod retry;
pub(crate) mod tls;
