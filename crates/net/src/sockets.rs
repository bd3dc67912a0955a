//! Read-only queries about a driver's connections and its machine.
//!
//! A request that makes no query pays nothing: each query is a system call of its own, made when an
//! expression needs the answer.

use std::net::IpAddr;

use crate::{Addr, SockId};

/// What the kernel knows of a TCP connection (`TCP_INFO`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Smoothed round-trip time, microseconds.
    pub rtt_us: u32,
    /// Its mean deviation, microseconds.
    pub rttvar_us: u32,
    /// Segments sent and not acknowledged.
    pub unacked: u32,
    /// Segments acknowledged selectively.
    pub sacked: u32,
    /// Segments thought lost.
    pub lost: u32,
    /// Segments retransmitted and not acknowledged.
    pub retrans: u32,
    /// Segments that the forward acknowledgement counts.
    pub fackets: u32,
    /// Segments that may arrive out of order before one is considered lost.
    pub reordering: u32,
}

/// The owner of measured processor time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuOf {
    /// The driver's thread.
    Thread,
    /// All threads of the process together.
    Process,
}

/// Read-only queries of a driver. The default answers are those of a driver that does not know.
pub trait Sockets {
    /// What the kernel knows of a TCP connection; none if it is not TCP or is gone.
    fn tcp_info(&self, _sock: SockId) -> Option<TcpInfo> {
        None
    }
    /// Appends the packet that opened a client connection, if its listener keeps it (`tcp-ss`); the
    /// kernel returns it once. False for a connection that is not TCP or is gone.
    fn saved_syn(&self, _sock: SockId, _out: &mut Vec<u8>) -> bool {
        false
    }
    /// The local address of a connection.
    fn local_addr(&self, _sock: SockId) -> Option<Addr> {
        None
    }
    /// The local address of a datagram socket to a server.
    fn datagrams_addr(&self, _sock: SockId) -> Option<Addr> {
        None
    }
    /// Whether an address belongs to this machine; none if the system does not say.
    fn is_local(&self, _ip: IpAddr) -> Option<bool> {
        None
    }
    /// Processor time since the last measurement, in percent of the elapsed time.
    fn cpu_usage(&self, _of: CpuOf) -> u32 {
        0
    }
}
