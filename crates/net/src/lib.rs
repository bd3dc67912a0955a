//! The boundary between the engine and its I/O, and the drivers behind it.
//!
//! The data path is a sans-IO [`Engine`]: pure state, without a system call, a clock, a thread or
//! randomness. A [`Driver`] does the I/O and calls the engine. The drivers are [`epoll`] and the
//! simulated driver of the engine's tests.

pub mod activity;
pub mod addr;
pub mod boundary;
pub mod crc;
pub mod datagrams;
pub mod epoll;
pub mod listen;
mod log_stream;
pub mod logs;
pub mod proxy_protocol;
mod reach;
pub mod relay;
pub mod ring;
pub mod ring_file;
pub mod slots;
pub mod sockets;
pub mod socks4;
mod stopwatch;
pub mod sys;
pub mod syslog;
pub mod tcp;
pub mod timers;
mod udp;

pub use addr::Addr;
pub use boundary::{
    Accepted, Close, Connect, ConnectError, DatagramSock, Driver, Engine, Labels, ListenerId,
    Message, Now, Parcel, Sent, SockId, Took, WorkerId,
};
pub use datagrams::{DatagramCounts, Datagrams, Outgoing};
pub use sockets::{CpuOf, Sockets, TcpInfo};
pub use tcp::{Keepalive, TcpOptions};
