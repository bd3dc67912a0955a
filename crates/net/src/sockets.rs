//! What can be asked about a driver's connections and its machine without changing anything.
//!
//! None of it is on the way of a request that does not ask: the answers are system calls of their own, made when an
//! expression wants them.

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
    /// Segments sent again and not acknowledged.
    pub retrans: u32,
    /// Segments that the forward acknowledgement counts.
    pub fackets: u32,
    /// Segments that may arrive out of order before one is thought lost.
    pub reordering: u32,
}

/// Whose processor time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuOf {
    /// The driver's thread.
    Thread,
    /// All threads of the process together.
    Process,
}

/// See the module. A driver that has no such facts keeps the answers given here: it does not know.
pub trait Sockets {
    /// What the kernel knows of a TCP connection; none for one that is no TCP or is gone.
    fn tcp_info(&self, _sock: SockId) -> Option<TcpInfo> {
        None
    }
    /// Appends the packet that opened a client connection, if its listener keeps it (`tcp-ss`); the kernel gives it once.
    /// False for a connection that is no TCP or is gone.
    fn saved_syn(&self, _sock: SockId, _out: &mut Vec<u8>) -> bool {
        false
    }
    /// The address that a connection has on this machine.
    fn local_addr(&self, _sock: SockId) -> Option<Addr> {
        None
    }
    /// Whether an address is one of this machine's; none when the system does not say.
    fn is_local(&self, _ip: IpAddr) -> Option<bool> {
        None
    }
    /// Processor time since it was last measured, in percent of the time that went by.
    fn cpu_usage(&self, _of: CpuOf) -> u32 {
        0
    }
}
