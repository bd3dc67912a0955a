//! `Murmur3Hash` and `Murmur3Hash128`: MurmurHash3, x86 of 32 bits and x64 of 128 bits, with the
//! seed 0 (Austin Appleby, MurmurHash3.cpp).

use super::text::text;
use super::{Function, eval};
use crate::value::Value;
use syntax::hex;

pub const FUNCTIONS: &[Function] = &[
    eval("Murmur3Hash", &["target"], |args| {
        let hash = hash32(text(&args[0])?);
        Ok(Value::text(hex::text(&hash.to_le_bytes())))
    }),
    eval("Murmur3Hash128", &["target"], |args| {
        let (low, high) = hash128(text(&args[0])?);
        let bytes = [low.to_le_bytes(), high.to_le_bytes()].concat();
        Ok(Value::text(hex::text(&bytes)))
    }),
];

fn hash32(data: &[u8]) -> u32 {
    const C1: u32 = 0xcc9e_2d51;
    const C2: u32 = 0x1b87_3593;
    let mix = |block: u32| block.wrapping_mul(C1).rotate_left(15).wrapping_mul(C2);
    let (blocks, tail) = data.as_chunks::<4>();
    let mut hash = 0_u32;
    for block in blocks {
        hash ^= mix(u32::from_le_bytes(*block));
        hash = hash
            .rotate_left(13)
            .wrapping_mul(5)
            .wrapping_add(0xe654_6b64);
    }
    if !tail.is_empty() {
        let mut block = [0; 4];
        block[..tail.len()].copy_from_slice(tail);
        hash ^= mix(u32::from_le_bytes(block));
    }
    hash ^= data.len() as u32;
    hash ^= hash >> 16;
    hash = hash.wrapping_mul(0x85eb_ca6b);
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(0xc2b2_ae35);
    hash ^ hash >> 16
}

fn hash128(data: &[u8]) -> (u64, u64) {
    const C1: u64 = 0x87c3_7b91_1142_53d5;
    const C2: u64 = 0x4cf5_ad43_2745_937f;
    let mix_low = |block: u64| block.wrapping_mul(C1).rotate_left(31).wrapping_mul(C2);
    let mix_high = |block: u64| block.wrapping_mul(C2).rotate_left(33).wrapping_mul(C1);
    let halves = |block: &[u8; 16]| {
        let block = u128::from_le_bytes(*block);
        (block as u64, (block >> 64) as u64)
    };
    let (blocks, tail) = data.as_chunks::<16>();
    let (mut low, mut high) = (0_u64, 0_u64);
    for block in blocks {
        let (first, second) = halves(block);
        low ^= mix_low(first);
        low = low.rotate_left(27).wrapping_add(high);
        low = low.wrapping_mul(5).wrapping_add(0x52dc_e729);
        high ^= mix_high(second);
        high = high.rotate_left(31).wrapping_add(low);
        high = high.wrapping_mul(5).wrapping_add(0x3849_5ab5);
    }
    if !tail.is_empty() {
        let mut block = [0; 16];
        block[..tail.len()].copy_from_slice(tail);
        let (first, second) = halves(&block);
        // A half without bytes is 0, which mixes to 0.
        high ^= mix_high(second);
        low ^= mix_low(first);
    }
    low ^= data.len() as u64;
    high ^= data.len() as u64;
    low = low.wrapping_add(high);
    high = high.wrapping_add(low);
    low = avalanche(low);
    high = avalanche(high);
    low = low.wrapping_add(high);
    (low, high.wrapping_add(low))
}

fn avalanche(mut hash: u64) -> u64 {
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ hash >> 33
}
