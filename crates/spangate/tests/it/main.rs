//! The program, run as a child.

mod collect;
mod collector;
mod command_line;
mod common;
mod crash;
mod delivery;
mod differential;
mod grpc;
mod grpc_calls;
mod h2_abuse;
mod h2_clients;
mod h2_limits;
mod h2_pairs;
mod h2_servers;
mod health;
mod life;
mod logs;
mod master;
mod otel;
mod runtime;
mod serving;
mod tls_bytes;
mod tls_clients;
mod tls_servers;
mod tls_tunnels;
mod tracing;
