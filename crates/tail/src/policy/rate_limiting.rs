//! `rate_limiting` and `bytes_limiting`: a bucket of tokens, one a span or a byte. A trace takes as
//! many as it has, or none and is not sampled; one that needs more than the bucket holds never
//! passes.

/// A bucket of tokens.
#[derive(Clone, Debug)]
pub struct Limiter {
    per_second: u64,
    burst: u64,
    tokens: f64,
    /// When `tokens` were in it.
    at_ns: Option<u64>,
}

impl Limiter {
    /// A full bucket; `burst` 0 is twice the rate. Rates are divided among shards, bursts are not.
    pub fn new(per_second: u64, burst: u64, shards: u32) -> Limiter {
        let burst = if burst == 0 {
            per_second.saturating_mul(2)
        } else {
            burst
        };
        let per_second = (per_second / u64::from(shards)).max(u64::from(per_second > 0));
        Limiter {
            per_second,
            burst,
            tokens: burst as f64,
            at_ns: None,
        }
    }

    /// Takes so many tokens, if they are there.
    pub fn allow(&mut self, cost: u64, now_ns: u64) -> bool {
        let elapsed_ns = now_ns.saturating_sub(self.at_ns.unwrap_or(now_ns));
        let gained = elapsed_ns as f64 / 1e9 * self.per_second as f64;
        let tokens = (self.tokens + gained).min(self.burst as f64);
        if cost > self.burst || (cost as f64) > tokens {
            return false;
        }
        self.tokens = tokens - cost as f64;
        self.at_ns = Some(now_ns.max(self.at_ns.unwrap_or(0)));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::SECOND_NS;

    #[test]
    fn a_bucket_of_ten_a_second() {
        let mut limiter = Limiter::new(10, 0, 1);
        assert!(!limiter.allow(21, 0), "more than it ever holds");
        assert!(limiter.allow(15, 0));
        assert!(!limiter.allow(6, 0));
        assert!(limiter.allow(5, 0));
        assert!(!limiter.allow(1, SECOND_NS / 20));
        assert!(limiter.allow(1, SECOND_NS / 10));
        assert!(!limiter.allow(20, SECOND_NS));
        assert!(limiter.allow(20, 100 * SECOND_NS));
    }

    #[test]
    fn shards_share_the_rate_but_not_the_burst() {
        let mut limiter = Limiter::new(10, 8, 4);
        assert!(limiter.allow(8, 0));
        assert!(!limiter.allow(3, SECOND_NS));
        assert!(limiter.allow(2, SECOND_NS));
        assert_eq!(Limiter::new(1, 0, 8).per_second, 1);
    }
}
