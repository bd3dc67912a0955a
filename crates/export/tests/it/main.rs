//! The exporters, each with a receiver of its kind.

mod account;
mod files;
mod grpc;
mod http;
mod support;
mod tls;
