//! The bandwidth limits of a channel (manual §9.7): how much of its payload may pass now.
//!
//! A limit fills a bucket at its rate. The bucket holds the bytes of [`BUCKET_US`], so that a
//! stream neither begins with a burst nor is cut into tiny parts. A shared limit also reads the
//! byte rate of its stick table, so that all streams of a key together stay within the limit and
//! each gets an equal share.

use config::model::Direction;
use tables::{Data, EntryRef};

use crate::ids::ProxyId;

/// The size of a bucket as a time at the limit's rate, microseconds.
const BUCKET_US: u64 = 20_000;

/// The initial time of emptying, far in the past: the bucket is full.
pub(crate) const FULL: i64 = i64::MIN;

/// The limits that rules enabled for a channel.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    limits: Vec<Limit>,
}

/// An enabled limit.
#[derive(Debug)]
pub(crate) struct Limit {
    /// The proxy that declares it, and its place there.
    pub of: (ProxyId, usize),
    pub direction: Direction,
    pub min_bytes: u64,
    /// The rate: `bytes` per `period_ms`, both at least 1.
    pub bytes: u64,
    pub period_ms: u64,
    /// The stick table entry of a shared limit.
    pub shared: Option<EntryRef>,
    /// The time for whose bytes the bucket has already been emptied, microseconds; [`FULL`] at
    /// first.
    pub emptied_us: i64,
}

impl Limits {
    /// Enables a limit. Restarts it if it is enabled already.
    pub fn turn_on(&mut self, limit: Limit) {
        match self.limits.iter_mut().find(|known| known.of == limit.of) {
            Some(known) => *known = limit,
            None => self.limits.push(limit),
        }
    }

    /// How much of `len` bytes may pass now.
    pub fn most(&mut self, len: usize, now_us: u64) -> usize {
        let most = self.limits.iter_mut();
        let most = most.map(|limit| limit.most(len as u64, now_us)).min();
        most.map_or(len, |most| most as usize)
    }

    /// Notes that `bytes` have passed, which [`Limits::most`] allowed, while `rest` bytes are held
    /// back. Returns how long they wait, milliseconds.
    pub fn take(&mut self, bytes: usize, rest: usize, now_us: u64) -> u64 {
        let mut wait_us = 0;
        for limit in &mut self.limits {
            limit.take(bytes as u64, now_us);
            wait_us = wait_us.max(limit.wait_us(rest as u64, now_us));
        }
        wait_us.div_ceil(1000)
    }
}

impl Limit {
    fn period_us(&self) -> u64 {
        self.period_ms * 1000
    }

    /// How long `bytes` take at the rate.
    fn time_us(&self, bytes: u64) -> u64 {
        (bytes * self.period_us()).div_ceil(self.bytes)
    }

    /// The smallest part of `len` bytes that passes at once.
    fn least(&self, len: u64) -> u64 {
        self.min_bytes.min(self.bytes).min(len).max(1)
    }

    /// The size of the bucket as a time: at least that of the smallest part.
    fn bucket_us(&self, least: u64) -> u64 {
        BUCKET_US.max(self.time_us(least))
    }

    /// How many of `len` bytes may pass.
    fn most(&mut self, len: u64, now_us: u64) -> u64 {
        let least = self.least(len);
        // Unused bytes beyond the size of the bucket are lost.
        let full_us = now_us as i64 - self.bucket_us(least) as i64;
        self.emptied_us = self.emptied_us.max(full_us);
        let filled_us = u64::try_from(now_us as i64 - self.emptied_us).unwrap_or(0);
        let most = (filled_us * self.bytes / self.period_us()).min(len);
        if most < least {
            return 0;
        }
        let Some((left, users)) = self.left_to_share(now_us) else {
            return most;
        };
        match most.min(left.div_ceil(users)) {
            share if share >= least => share,
            _ if left >= least => least,
            _ => 0,
        }
    }

    /// How many bytes all streams of a shared limit may still pass in this period, and the number
    /// of these streams.
    fn left_to_share(&self, now_us: u64) -> Option<(u64, u64)> {
        let held = self.shared.as_ref()?;
        let (passed, users) = held.with(now_us / 1000, |entry| {
            (entry.get(self.counted(), 0), entry.trackers())
        });
        let passed = passed.and_then(|passed| u64::try_from(passed).ok());
        let left = self.bytes.saturating_sub(passed.unwrap_or(0));
        Some((left, u64::from(users.max(1))))
    }

    /// How long the remaining bytes wait. A bucket becomes half full between two parts.
    fn wait_us(&self, rest: u64, now_us: u64) -> u64 {
        let least = self.least(rest);
        let enough_us = self.time_us(least).max(BUCKET_US / 2);
        let own_us = u64::try_from(self.emptied_us + enough_us as i64 - now_us as i64).unwrap_or(0);
        let shared_us = match self.left_to_share(now_us) {
            Some((left, users)) if left < least * users => self.time_us(least * users - left),
            _ => 0,
        };
        own_us
            .max(shared_us)
            .clamp(1, self.period_us().max(enough_us))
    }

    fn take(&mut self, bytes: u64, now_us: u64) {
        if bytes == 0 {
            return;
        }
        self.emptied_us += self.time_us(bytes) as i64;
        let counted = self.counted();
        if let Some(held) = &self.shared {
            held.with(now_us / 1000, |entry| {
                entry.add(counted, 0, bytes);
                entry.touch();
            });
        }
    }

    fn counted(&self) -> Data {
        rate_of(self.direction)
    }
}

/// The rate of a stick table that counts payload of a direction.
pub(crate) fn rate_of(direction: Direction) -> Data {
    match direction {
        Direction::Up => Data::BytesInRate,
        Direction::Down => Data::BytesOutRate,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(bytes: u64, period_ms: u64, min_bytes: u64) -> Limit {
        Limit {
            of: (ProxyId::default(), 0),
            direction: Direction::Down,
            min_bytes,
            bytes,
            period_ms,
            shared: None,
            emptied_us: FULL,
        }
    }

    /// The bytes that pass in one second of virtual time, and the number of parts, for a sender
    /// with parts of `part` bytes.
    fn in_a_second(limits: Vec<Limit>, part: usize) -> (usize, usize) {
        let mut all = Limits::default();
        for (place, mut limit) in limits.into_iter().enumerate() {
            limit.of.1 = place;
            all.turn_on(limit);
        }
        let start_us = 5_000_000;
        let (mut now_us, mut passed, mut parts) = (start_us, 0, 0);
        while now_us < start_us + 1_000_000 {
            let bytes = all.most(part, now_us);
            let wait_ms = all.take(bytes, part - bytes, now_us);
            passed += bytes;
            parts += 1;
            assert!(parts < 100_000, "it neither passes nor waits");
            // Timers are late by up to a millisecond. The sender has the next part ready at once.
            if bytes < part {
                now_us += wait_ms.max(1) * 1000 + 700;
            }
        }
        (passed, parts)
    }

    #[test]
    fn so_much_passes_in_a_second() {
        for (bytes, part) in [
            (1_000_000, 16_384),
            (1_000_000, 262_144),
            (100_000_000, 16_384),
            (2_000, 16_384),
        ] {
            let (passed, parts) = in_a_second(vec![limit(bytes, 1000, 0)], part);
            let (low, high) = (bytes as usize * 97 / 100, bytes as usize * 103 / 100);
            assert!((low..=high + 1).contains(&passed), "{passed} of {bytes}");
            assert!(parts < 200 + passed / part, "{parts}");
        }
    }

    #[test]
    fn the_narrowest_limit_decides() {
        let limits = vec![limit(1_000_000, 1000, 0), limit(50_000, 500, 0)];
        let (passed, _) = in_a_second(limits, 16_384);
        assert!((97_000..=103_000).contains(&passed), "{passed}");
    }

    #[test]
    fn the_least_passes_at_once_or_not_at_all() {
        let mut all = Limits::default();
        all.turn_on(limit(10_000, 1000, 2896));
        let mut now_us = 5_000_000;
        for _ in 0..20 {
            let bytes = all.most(16_384, now_us);
            assert!(bytes == 0 || bytes >= 2896, "{bytes}");
            now_us += 1000 * all.take(bytes, 16_384 - bytes, now_us);
        }
        // The last part may be smaller.
        now_us += 1_000_000;
        assert_eq!(all.most(5, now_us), 5);
    }

    #[test]
    fn what_the_peer_did_not_take_is_not_counted() {
        let mut all = Limits::default();
        all.turn_on(limit(10_000, 1000, 0));
        let now_us = 5_000_000;
        assert_eq!(all.most(1000, now_us), 200);
        all.take(50, 800, now_us);
        assert_eq!(all.most(1000, now_us), 150);
    }

    #[test]
    fn a_least_above_the_limit_does_not_stop_it() {
        let (passed, _) = in_a_second(vec![limit(100, 100, 1 << 20)], 16_384);
        assert!((900..=1100).contains(&passed), "{passed}");
    }
}
