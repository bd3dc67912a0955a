//! `probabilistic`: a share of all traces, by a hash of their identifiers (FNV-1a of 64 bits over
//! the salt, then the identifier), so that all collectors with the same salt keep the same ones.

use super::node::sampled_if;
use super::{Trace, Vote};
use ottl::fnv::{OFFSET, fnv1a};

/// The salt where none is given.
const SALT: &str = "default-hash-seed";

/// The policy.
#[derive(Debug)]
pub struct Probabilistic {
    /// The hash of the salt, to go on from.
    salted: u64,
    /// Hashes up to here are kept.
    hash_max: u64,
    /// What the share is as a threshold of 56 bits.
    threshold: u64,
}

impl Probabilistic {
    pub fn new(percentage: f64, salt: &str) -> Probabilistic {
        let ratio = percentage / 100.0;
        let salt = if salt.is_empty() { SALT } else { salt };
        let never = otlp::tracestate::THRESHOLD_MAX;
        Probabilistic {
            salted: fnv1a(OFFSET, salt.as_bytes()),
            hash_max: share(ratio),
            threshold: otlp::tracestate::threshold_of(ratio).unwrap_or(never),
        }
    }

    pub fn vote(&self, trace: &Trace<'_>) -> (Vote, u64) {
        let sampled = fnv1a(self.salted, trace.id) <= self.hash_max;
        (sampled_if(sampled), self.threshold)
    }
}

/// `ratio` of 2^64 - 1: the product to 64 significant bits (to the nearest, then to even), then the
/// whole part. The Collector computes it so.
fn share(ratio: f64) -> u64 {
    if ratio.is_nan() || ratio <= 0.0 {
        return 0;
    }
    if ratio >= 1.0 {
        return u64::MAX;
    }
    let bits = ratio.to_bits();
    let (exponent, fraction) = ((bits >> 52) as i32, bits & ((1 << 52) - 1));
    if exponent == 0 {
        return 0;
    }
    // ratio = mantissa * 2^(exponent - 1075)
    let product = u128::from(u64::MAX) * u128::from(fraction | 1 << 52);
    let excess = (128 - product.leading_zeros()).saturating_sub(64);
    let (mut kept, rest) = (product >> excess, product & ((1_u128 << excess) - 1));
    let half = 1_u128 << excess.saturating_sub(1);
    if excess > 0 && (rest > half || rest == half && kept & 1 == 1) {
        kept += 1;
    }
    let down = 1075 - exponent - excess as i32;
    match u32::try_from(down) {
        Ok(down) => kept.checked_shr(down).unwrap_or(0) as u64,
        Err(_) => u64::try_from(kept << down.unsigned_abs()).unwrap_or(u64::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_fnv() {
        // Known values of FNV-1a 64.
        assert_eq!(fnv1a(OFFSET, b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(OFFSET, b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(OFFSET, b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn shares_of_all_hashes() {
        assert_eq!(share(0.0), 0);
        assert_eq!(share(1.0), u64::MAX);
        assert_eq!(share(2.0), u64::MAX);
        assert_eq!(share(-0.5), 0);
        // (2^64 - 1) / 2 is not whole: 2^63 - 0.5.
        assert_eq!(share(0.5), (1 << 63) - 1);
        assert_eq!(share(0.25), (1 << 62) - 1);
        let tenth = share(0.1);
        assert!(tenth.abs_diff(u64::MAX / 10) < 256, "{tenth}");
        assert_eq!(share(f64::MIN_POSITIVE), 0);
    }

    #[test]
    fn about_as_many_as_asked_for() {
        for percentage in [1.0, 10.0, 50.0] {
            let policy = Probabilistic::new(percentage, "");
            let kept = (0..20_000_u64).filter(|n| {
                let trace = Trace {
                    id: &crate::tests::trace_id(*n),
                    bits: 0,
                    more: &[],
                    spans: 1,
                    bytes: 1,
                };
                policy.vote(&trace).0 == Vote::Sampled
            });
            let share = kept.count() as f64 / 200.0;
            assert!((share - percentage).abs() < 1.5, "{share} of {percentage}");
        }
    }
}
