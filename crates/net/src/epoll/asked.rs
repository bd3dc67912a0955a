//! What the epoll driver reports about its sockets and its thread on request.

use std::cell::Cell;
use std::net::IpAddr;
use std::os::fd::AsRawFd;

use super::EpollDriver;
use crate::sockets::{CpuOf, Sockets, TcpInfo};
use crate::{Addr, Now, SockId, sys};

/// The shortest interval over which a share of processor time is measured; within it, the last
/// value is returned.
const CPU_STRETCH_NS: u64 = 100_000_000;

/// Share of processor time, measured between one query and the next.
#[derive(Debug)]
pub(super) struct CpuMeter {
    last: Cell<Measure>,
}

#[derive(Clone, Copy, Debug)]
struct Measure {
    at_ns: u64,
    cpu_ns: u64,
    percent: u32,
}

impl CpuMeter {
    /// Starts measuring now.
    pub(super) fn new(now: Now, cpu_ns: u64) -> CpuMeter {
        let last = Measure {
            at_ns: now.mono_ns,
            cpu_ns,
            percent: 0,
        };
        CpuMeter {
            last: Cell::new(last),
        }
    }

    fn percent(&self, now: Now, cpu_ns: impl FnOnce() -> u64) -> u32 {
        let last = self.last.get();
        let stretch_ns = now.mono_ns.saturating_sub(last.at_ns);
        if stretch_ns < CPU_STRETCH_NS {
            return last.percent;
        }
        let cpu_ns = cpu_ns();
        let used_ns = cpu_ns.saturating_sub(last.cpu_ns);
        let percent = (u128::from(used_ns) * 100 / u128::from(stretch_ns)) as u32;
        self.last.set(Measure {
            at_ns: now.mono_ns,
            cpu_ns,
            percent,
        });
        percent
    }
}

impl Sockets for EpollDriver {
    fn tcp_info(&self, sock: SockId) -> Option<TcpInfo> {
        sys::tcp_info(self.socks.get(sock)?.fd.as_raw_fd())
    }

    fn saved_syn(&self, sock: SockId, out: &mut Vec<u8>) -> bool {
        self.socks
            .get(sock)
            .is_some_and(|entry| sys::saved_syn(entry.fd.as_raw_fd(), out))
    }

    fn local_addr(&self, sock: SockId) -> Option<Addr> {
        sys::local_addr(self.socks.get(sock)?.fd.as_raw_fd()).ok()
    }

    fn datagrams_addr(&self, sock: SockId) -> Option<Addr> {
        sys::local_addr(self.datagrams.server_fd(sock)?).ok()
    }

    fn is_local(&self, ip: IpAddr) -> Option<bool> {
        sys::is_local(ip)
    }

    fn cpu_usage(&self, of: CpuOf) -> u32 {
        match of {
            CpuOf::Thread => self.thread_cpu.percent(self.now, sys::thread_cpu_ns),
            CpuOf::Process => self.process_cpu.percent(self.now, sys::process_cpu_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Now {
        Now::new(ms * 1_000_000, 0)
    }

    #[test]
    fn a_share_is_that_of_the_time_since_the_last_measure() {
        let meter = CpuMeter::new(at(1000), 5_000_000);
        assert_eq!(meter.percent(at(1050), || unreachable!()), 0, "too soon");
        assert_eq!(meter.percent(at(1100), || 30_000_000), 25);
        assert_eq!(meter.percent(at(1199), || unreachable!()), 25, "too soon");
        assert_eq!(meter.percent(at(1300), || 430_000_000), 200, "two threads");
    }
}
