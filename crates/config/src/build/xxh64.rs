//! XXH64 (the xxHash specification, §"XXH64"): what dynamic cookies are made with.

const PRIMES: [u64; 5] = [
    0x9e37_79b1_85eb_ca87,
    0xc2b2_ae3d_27d4_eb4f,
    0x1656_67b1_9e37_79f9,
    0x85eb_ca77_c2b2_ae63,
    0x27d4_eb2f_1656_67c5,
];

/// Bytes that the four lanes take at a time.
const STRIPE_BYTES: usize = 32;

/// The hash of `bytes`.
pub fn xxh64(bytes: &[u8], seed: u64) -> u64 {
    let mut stripes = bytes.chunks_exact(STRIPE_BYTES);
    let mut hash = match bytes.len() {
        0..STRIPE_BYTES => seed.wrapping_add(PRIMES[4]),
        _ => lanes(&mut stripes, seed),
    };
    hash = hash.wrapping_add(bytes.len() as u64);
    let mut rest = stripes.remainder();
    while let Some((word, tail)) = rest.split_first_chunk() {
        let lane = round(0, u64::from_le_bytes(*word));
        hash = mix(hash ^ lane, 27, PRIMES[0], PRIMES[3]);
        rest = tail;
    }
    if let Some((word, tail)) = rest.split_first_chunk() {
        let lane = u64::from(u32::from_le_bytes(*word)).wrapping_mul(PRIMES[0]);
        hash = mix(hash ^ lane, 23, PRIMES[1], PRIMES[2]);
        rest = tail;
    }
    for byte in rest {
        let lane = u64::from(*byte).wrapping_mul(PRIMES[4]);
        hash = mix(hash ^ lane, 11, PRIMES[0], 0);
    }
    hash = (hash ^ (hash >> 33)).wrapping_mul(PRIMES[1]);
    hash = (hash ^ (hash >> 29)).wrapping_mul(PRIMES[2]);
    hash ^ (hash >> 32)
}

fn lanes<'a>(stripes: &mut impl Iterator<Item = &'a [u8]>, seed: u64) -> u64 {
    let mut lanes = [
        seed.wrapping_add(PRIMES[0]).wrapping_add(PRIMES[1]),
        seed.wrapping_add(PRIMES[1]),
        seed,
        seed.wrapping_sub(PRIMES[0]),
    ];
    for stripe in stripes {
        for (lane, word) in lanes.iter_mut().zip(stripe.as_chunks().0) {
            *lane = round(*lane, u64::from_le_bytes(*word));
        }
    }
    let turned = lanes.iter().zip([1, 7, 12, 18]);
    let sum = turned.fold(0_u64, |sum, (lane, by)| {
        sum.wrapping_add(lane.rotate_left(by))
    });
    lanes.iter().fold(sum, |hash, lane| {
        (hash ^ round(0, *lane))
            .wrapping_mul(PRIMES[0])
            .wrapping_add(PRIMES[3])
    })
}

fn round(lane: u64, word: u64) -> u64 {
    lane.wrapping_add(word.wrapping_mul(PRIMES[1]))
        .rotate_left(31)
        .wrapping_mul(PRIMES[0])
}

fn mix(hash: u64, by: u32, times: u64, plus: u64) -> u64 {
    hash.rotate_left(by).wrapping_mul(times).wrapping_add(plus)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_vectors() {
        for (text, hash) in [
            ("", 0xef46_db37_51d8_e999),
            ("a", 0xd24e_c4f1_a98c_6e5b),
            ("abc", 0x44bc_2cf5_ad77_0999),
            (
                "Nobody inspects the spammish repetition",
                0xfbce_a83c_8a37_8bf1,
            ),
        ] {
            assert_eq!(xxh64(text.as_bytes(), 0), hash, "{text}");
        }
    }
}
