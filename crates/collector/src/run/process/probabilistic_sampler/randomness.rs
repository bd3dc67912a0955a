//! Randomness of records, and thresholds for shares.

use otlp::tracestate::{DIGITS, THRESHOLD_MAX, threshold_digits};

/// Of the hash, the lowest 14 bits decide.
pub const BUCKETS: u64 = 1 << 14;

/// The randomness that an identifier or a value gets by its hash: FNV-1a of 32 bits over the seed
/// (the lowest byte first) and the bytes. The lowest 14 bits of the hash, turned round so that low
/// ones are kept, become the highest, which decide; its highest 14, mixed over 28, and the lowest
/// once more follow, as the Collector puts them.
#[must_use]
pub fn hashed(bytes: &[u8], seed: u32) -> u64 {
    let seed = seed.to_le_bytes();
    let all = seed.iter().chain(bytes);
    let hash = all.fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    });
    let bucket = u64::from(hash) % BUCKETS;
    let other = u64::from(hash >> 18);
    let mixed = other ^ other << 10;
    (BUCKETS - 1 - bucket) << 42 | mixed << 14 | bucket
}

/// The randomness of a trace's identifier: its last 7 bytes (W3C Trace Context level 2 §3.2.2.3).
/// None where all is 0.
#[must_use]
pub fn of_trace_id(id: [u8; 16]) -> Option<u64> {
    let bits = u128::from_be_bytes(id);
    (bits != 0).then_some(bits as u64 & (THRESHOLD_MAX - 1))
}

/// The threshold that keeps a share, in so many hexadecimal digits after those at the beginning
/// that are all `0` or all `f`; none where the share is out of range: below 2⁻⁵⁶ or above 1.
#[must_use]
pub fn threshold_of(share: f64, digits: u32) -> Option<u64> {
    let least = 1.0 / THRESHOLD_MAX as f64;
    if !(least..=1.0).contains(&share) {
        return None;
    }
    if share == 1.0 {
        return Some(0);
    }
    // Digits that are the same whatever the share says, and tell nothing.
    let idle = |part: f64| (-exponent(part) / 4).max(0) as u32;
    let digits = digits + idle(share).max(idle(1.0 - share));
    let kept = (share * THRESHOLD_MAX as f64).round() as u64;
    let threshold = THRESHOLD_MAX - kept;
    let shift = 4 * (DIGITS as u32).saturating_sub(digits);
    if shift == 0 {
        return Some(threshold);
    }
    let half = 1_u64 << (shift - 1);
    Some((threshold + half) >> shift << shift)
}

/// The power of two that is just above a number between 0 and 1 (or is twice it).
fn exponent(part: f64) -> i32 {
    (part.to_bits() >> 52 & 0x7ff) as i32 - 1022
}

/// Randomness as it is written.
#[must_use]
pub fn randomness_text(randomness: u64) -> String {
    format!("{randomness:014x}")
}

/// A threshold as it is written: without zeros at the end.
#[must_use]
pub fn threshold_text(threshold: u64) -> String {
    let (digits, len) = threshold_digits(threshold);
    digits[..len]
        .iter()
        .map(|digit| char::from(*digit))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_become_thresholds() {
        for (share, digits, wanted) in [
            (1.0, 4, "0"),
            (0.5, 4, "8"),
            (0.25, 1, "c"),
            (1.0 / 3.0, 14, "aaaaaaaaaaaaac"),
            (1.0 / 3.0, 4, "aaab"),
            (1.0 / 3.0, 1, "b"),
            (0.1, 4, "e666"),
            // Two digits are `f` and do not count.
            (0.001, 4, "ffbe77"),
            (0.001, 1, "ffc"),
            (0.999, 3, "00419"),
        ] {
            let threshold = threshold_of(share, digits).map(threshold_text);
            assert_eq!(threshold.as_deref(), Some(wanted), "{share} {digits}");
        }
        for share in [0.0, -1.0, 1.1, f64::NAN, 1.0 / (1_u64 << 57) as f64] {
            assert_eq!(threshold_of(share, 4), None, "{share}");
        }
        let least = threshold_of(1.0 / THRESHOLD_MAX as f64, 4);
        assert_eq!(least, Some(THRESHOLD_MAX - 1));
    }

    #[test]
    fn hashes_are_fnv_1a() {
        // FNV-1a of four zero bytes and `a`, by hand: the bucket is its lowest 14 bits.
        let mut hash = 0x811c_9dc5_u32;
        for byte in [0_u32, 0, 0, 0, 0x61] {
            hash = (hash ^ byte).wrapping_mul(0x0100_0193);
        }
        let got = hashed(b"a", 0);
        assert_eq!(got % BUCKETS, u64::from(hash) % BUCKETS);
        assert_eq!(got >> 42, BUCKETS - 1 - u64::from(hash) % BUCKETS);
        assert!(got < THRESHOLD_MAX);
        assert_ne!(hashed(b"a", 1), got);
    }
}
