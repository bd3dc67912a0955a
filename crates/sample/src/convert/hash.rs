//! Hashes that are not cryptographic. For the older ones, a nonzero argument adds a full avalanche.
//! Those of the xxHash family take a seed.

use net::crc;

use super::{Convert, bytes_in, convert};
use crate::args::ArgKind::Int;
use crate::args::{Arg, int_at, spec};
use crate::{Kind, Value};

const AVALANCHE: crate::args::Spec = spec(0, &[Int]);
const SEED: crate::args::Spec = spec(0, &[Int]);

pub(crate) const CONVERTERS: &[Convert] = &[
    convert(
        "crc32",
        AVALANCHE,
        Kind::Bin,
        Kind::Int,
        "CRC-32 (IEEE)",
        |args, value, _| hash(args, &value, crc32_ieee),
    ),
    convert(
        "crc32c",
        AVALANCHE,
        Kind::Bin,
        Kind::Int,
        "CRC-32 (Castagnoli)",
        |args, value, _| hash(args, &value, |bytes| crc::CASTAGNOLI.of(&[bytes])),
    ),
    convert(
        "djb2",
        AVALANCHE,
        Kind::Bin,
        Kind::Int,
        "DJB2",
        |args, value, _| hash(args, &value, djb2),
    ),
    convert(
        "sdbm",
        AVALANCHE,
        Kind::Bin,
        Kind::Int,
        "SDBM",
        |args, value, _| hash(args, &value, sdbm),
    ),
    convert(
        "wt6",
        AVALANCHE,
        Kind::Bin,
        Kind::Int,
        "WT6",
        |args, value, _| hash(args, &value, wt6),
    ),
    convert(
        "xxh3",
        SEED,
        Kind::Bin,
        Kind::Int,
        "XXH3 of 64 bits, with a seed",
        |args, value, _| {
            seeded(args, &value, |bytes, seed| {
                xxhash_rust::xxh3::xxh3_64_with_seed(bytes, seed as u64) as i64
            })
        },
    ),
    convert(
        "xxh32",
        SEED,
        Kind::Bin,
        Kind::Int,
        "XXH32, with a seed",
        |args, value, _| {
            seeded(args, &value, |bytes, seed| {
                xxhash_rust::xxh32::xxh32(bytes, seed as u32).into()
            })
        },
    ),
    convert(
        "xxh64",
        SEED,
        Kind::Bin,
        Kind::Int,
        "XXH64, with a seed",
        |args, value, _| {
            seeded(args, &value, |bytes, seed| {
                xxhash_rust::xxh64::xxh64(bytes, seed as u64) as i64
            })
        },
    ),
];

fn hash<'a>(args: &[Arg], value: &Value<'_>, with: impl Fn(&[u8]) -> u32) -> Option<Value<'a>> {
    let bytes = bytes_in(value)?;
    let mut hash = with(bytes);
    if int_at(args, 0).is_some_and(|flag| flag != 0) {
        hash = avalanche(hash).wrapping_mul(AVALANCHE_FACTOR);
    }
    Some(Value::Int(hash.into()))
}

fn seeded<'a>(
    args: &[Arg],
    value: &Value<'_>,
    with: impl Fn(&[u8], i64) -> i64,
) -> Option<Value<'a>> {
    let bytes = bytes_in(value)?;
    Some(Value::Int(with(bytes, int_at(args, 0).unwrap_or(0))))
}

/// The multiplier after the avalanche: a prime near three quarters of the 32-bit range.
const AVALANCHE_FACTOR: u32 = 3_221_225_473;

/// Bob Jenkins' full avalanche of 32 bits.
fn avalanche(mut a: u32) -> u32 {
    a = a.wrapping_add(0x7ed5_5d16).wrapping_add(a << 12);
    a = (a ^ 0xc761_c23c) ^ (a >> 19);
    a = a.wrapping_add(0x1656_67b1).wrapping_add(a << 5);
    a = a.wrapping_add(0xd3a2_646c) ^ (a << 9);
    a = a.wrapping_add(0xfd70_46c5).wrapping_add(a << 3);
    (a ^ 0xb55a_4f09) ^ (a >> 16)
}

/// The avalanche and its multiplication, applied to a hash where `avalanche` is set.
#[must_use]
pub fn full_avalanche(hash: u32) -> u32 {
    avalanche(hash).wrapping_mul(AVALANCHE_FACTOR)
}

/// CRC-32 of IEEE 802.3.
#[must_use]
pub fn crc32_ieee(bytes: &[u8]) -> u32 {
    crc::IEEE.of(&[bytes])
}

/// Daniel J. Bernstein's hash.
#[must_use]
pub fn djb2(bytes: &[u8]) -> u32 {
    bytes.iter().fold(5381, |hash: u32, byte| {
        hash.wrapping_mul(33).wrapping_add(u32::from(*byte))
    })
}

/// The hash of the sdbm library.
#[must_use]
pub fn sdbm(bytes: &[u8]) -> u32 {
    sdbm_from(0, bytes)
}

/// Continues the sdbm hash of the preceding bytes.
pub(crate) fn sdbm_from(hash: u32, bytes: &[u8]) -> u32 {
    bytes.iter().fold(hash, |hash, byte| {
        hash.wrapping_mul(65_599).wrapping_add(u32::from(*byte))
    })
}

/// HAProxy's own hash for `hash-type … wt6`.
#[must_use]
pub fn wt6(bytes: &[u8]) -> u32 {
    let (mut h0, mut h1) = (0xa53c_965a_u32, 0x5ca6_953a_u32);
    let (mut step0, mut step1) = (6, 18);
    for byte in bytes {
        h0 = !(h0 ^ u32::from(*byte));
        h1 = !(h1.wrapping_add(u32::from(*byte)));
        (h0, h1) = (h1.rotate_left(step0), h0.rotate_left(step1));
        let steps = ((h0 >> 16) ^ h1) & 0xffff;
        step0 = steps & 0x1f;
        step1 = steps >> 11;
    }
    h0 ^ h1
}

#[cfg(test)]
mod tests {
    use crate::testing::convert_text;

    #[test]
    fn known_values() {
        for (expr, wanted) in [
            ("str(123456789),crc32", "3421780262"),
            ("str(123456789),crc32c", "3808858755"),
            ("str(hello),djb2", "261238937"),
            ("str(hello),sdbm", "684824882"),
            // xxHash's values for the empty input, and those of its specification.
            ("str(),xxh32", "46947589"),
            ("str(),xxh64", "-1205034819632174695"),
            ("str(),xxh3", "3244421341483603138"),
            ("str(hello),wt6", "3538347703"),
            ("str(hello),wt6(1)", "140457739"),
            ("str(hello),djb2(1)", "1119739105"),
            ("str(hello),crc32c", "2591144780"),
        ] {
            assert_eq!(convert_text(expr), wanted, "{expr}");
        }
    }
}
