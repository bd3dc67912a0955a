//! How often a peer's address may change. The answer to a datagram from a new address may be much
//! longer than that datagram. A peer that forges a new address for each datagram could have many bytes
//! sent to others (RFC 9000 §8.1, §9.3.1).

use std::net::SocketAddr;

/// Changes that may follow each other.
const CHANGES_MAX: u64 = 8;
/// One more is allowed after this time.
const CHANGE_NS: u64 = 1_000_000_000;
/// An address that the peer has kept for this time is its home. It may return there always.
const HOME_NS: u64 = 3_000_000_000;

/// The addresses of a connection.
#[derive(Debug)]
pub(crate) struct Paths {
    home: SocketAddr,
    current: SocketAddr,
    /// When the peer came to `current`.
    since_ns: u64,
    /// What is left of the changes, as the time in which they come again.
    left_ns: u64,
    counted_ns: u64,
}

impl Paths {
    pub fn new(home: SocketAddr) -> Paths {
        Paths {
            home,
            current: home,
            since_ns: 0,
            left_ns: CHANGES_MAX * CHANGE_NS,
            counted_ns: 0,
        }
    }

    /// Whether a datagram from this address is read. `current`: the address that we send to now.
    pub fn admits(&mut self, from: SocketAddr, current: SocketAddr, now_ns: u64) -> bool {
        if from == current && current == self.home {
            return true;
        }
        if current != self.current {
            (self.current, self.since_ns) = (current, now_ns);
        }
        if from == current && now_ns.saturating_sub(self.since_ns) >= HOME_NS {
            self.home = current;
        }
        if from == current || from == self.home {
            return true;
        }
        let passed_ns = now_ns.saturating_sub(self.counted_ns);
        let left_ns = self.left_ns.saturating_add(passed_ns);
        self.left_ns = left_ns.min(CHANGES_MAX * CHANGE_NS);
        self.counted_ns = now_ns;
        let is_admitted = self.left_ns >= CHANGE_NS;
        if is_admitted {
            self.left_ns -= CHANGE_NS;
        }
        is_admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addr(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], port))
    }

    #[test]
    fn changes_are_counted_and_the_way_home_is_free() {
        let mut paths = Paths::new(addr(1));
        let mut now_ns = 0;
        let mut changes = 0;
        for _ in 0..200 {
            now_ns += 1_000_000;
            let is_admitted = paths.admits(addr(2), addr(1), now_ns);
            changes += u64::from(is_admitted);
            let current = if is_admitted { addr(2) } else { addr(1) };
            assert!(paths.admits(addr(1), current, now_ns));
        }
        assert_eq!(changes, CHANGES_MAX);
        now_ns += CHANGE_NS;
        assert!(paths.admits(addr(3), addr(1), now_ns));
        assert!(!paths.admits(addr(4), addr(1), now_ns));
    }

    #[test]
    fn a_peer_that_stays_has_a_new_home() {
        let mut paths = Paths::new(addr(1));
        assert!(paths.admits(addr(2), addr(1), 0));
        for ms in 0..3_100 {
            assert!(paths.admits(addr(2), addr(2), ms * 1_000_000));
        }
        // It comes and goes between its home and other networks, once a second.
        for second in 4..100 {
            let now_ns = second * CHANGE_NS;
            assert!(paths.admits(addr(3), addr(2), now_ns), "{second}");
            assert!(paths.admits(addr(2), addr(3), now_ns), "{second}");
        }
    }
}
