//! The static Huffman code (RFC 7541 §5.2, Appendix B).
//!
//! The code is canonical: the codes of one length are consecutive numbers in the order of the
//! symbols, and a longer code compares greater than every shorter one. So the lengths define it,
//! and all tables are computed from them.

use super::BlockError;

/// The number of the symbol EOS.
const EOS: u16 = 256;
/// The longest code, in bits.
const BITS_MAX: usize = 30;
/// Codes of at most this many bits are found in one step.
const SHORT_BITS: u32 = 8;

/// The length of the code of each symbol, in bits.
#[rustfmt::skip]
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
    6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
    13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
    20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
    20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
    30,
];

/// The code of each symbol.
static CODES: [u32; 257] = codes();
/// The symbols in the order of their codes.
static SYMBOLS: [u16; 257] = symbols();
/// For each length, its first code, and the place of that code's symbol in [`SYMBOLS`].
static FIRST: [(u32, u16); BITS_MAX + 2] = firsts();
/// For each run of [`SHORT_BITS`] bits, the symbol whose code begins it and the code's length;
/// length 0 for a longer code.
static SHORT: [(u8, u8); 1 << SHORT_BITS] = short();

/// Appends the decoded string to `out`.
pub(crate) fn decode(code: &[u8], out: &mut Vec<u8>) -> Result<(), BlockError> {
    let from = out.len();
    // The shortest code has five bits.
    out.resize(from + code.len() * 8 / 5, 0);
    let decoded = decode_to(code, &mut out[from..]);
    out.truncate(from + decoded.unwrap_or(0));
    decoded.map(|_| ()).ok_or(BlockError::BadHuffman)
}

/// Returns the length of the string; none for a malformed code.
fn decode_to(code: &[u8], out: &mut [u8]) -> Option<usize> {
    let mut bits = Bits {
        next: 0,
        count: 0,
        rest: code,
    };
    let mut len = 0;
    loop {
        bits.refill();
        // As long as the next code is complete, no more bytes are loaded.
        while bits.count >= BITS_MAX as u32 || bits.rest.is_empty() {
            let (symbol, length) = match SHORT[(bits.next >> (64 - SHORT_BITS)) as usize] {
                (_, 0) => long_symbol(bits.next)?,
                (symbol, length) => (symbol, u32::from(length)),
            };
            if length > bits.count {
                return bits.is_padding().then_some(len);
            }
            *out.get_mut(len)? = symbol;
            len += 1;
            bits.next <<= length;
            bits.count -= length;
        }
    }
}

/// The next bits of a code.
struct Bits<'a> {
    /// The next `count` bits at the high end, then zeros.
    next: u64,
    count: u32,
    rest: &'a [u8],
}

impl Bits<'_> {
    /// Loads more bytes, until more than 56 bits or all are loaded.
    #[inline]
    fn refill(&mut self) {
        if let Some(word) = self.rest.first_chunk() {
            let bytes = (64 - self.count) / 8;
            self.next |= u64::from_be_bytes(*word) >> self.count;
            self.count += 8 * bytes;
            self.next &= u64::MAX << (64 - self.count);
            self.rest = &self.rest[bytes as usize..];
            return;
        }
        while self.count <= 56
            && let Some((byte, rest)) = self.rest.split_first()
        {
            self.next |= u64::from(*byte) << (56 - self.count);
            self.count += 8;
            self.rest = rest;
        }
    }

    /// Whether the remaining bits may end a string: fewer than eight, all of them 1.
    fn is_padding(&self) -> bool {
        self.count < 8 && self.next.leading_ones() >= self.count
    }
}

/// The symbol whose code, longer than [`SHORT_BITS`], begins `bits`, and its length; none for EOS.
fn long_symbol(bits: u64) -> Option<(u8, u32)> {
    for length in SHORT_BITS + 1..=BITS_MAX as u32 {
        let (first, place) = FIRST[length as usize];
        let (_, next) = FIRST[length as usize + 1];
        let nth = ((bits >> (64 - length)) as u32).wrapping_sub(first);
        if nth < u32::from(next - place) {
            let symbol = SYMBOLS[usize::from(place) + nth as usize];
            return Some((u8::try_from(symbol).ok()?, length));
        }
    }
    None
}

/// The encoded size of a string, bytes.
pub(crate) fn encoded_len(text: &[u8]) -> usize {
    let bits: usize = text
        .iter()
        .map(|byte| usize::from(LENGTHS[usize::from(*byte)]))
        .sum();
    bits.div_ceil(8)
}

/// Appends the encoded string.
pub(crate) fn encode(text: &[u8], out: &mut Vec<u8>) {
    let (mut bits, mut count) = (0u64, 0);
    for byte in text {
        let symbol = usize::from(*byte);
        bits = bits << LENGTHS[symbol] | u64::from(CODES[symbol]);
        count += u32::from(LENGTHS[symbol]);
        while count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }
    if count > 0 {
        out.push((bits << (8 - count)) as u8 | (0xff >> count));
    }
}

const fn symbols() -> [u16; 257] {
    let mut symbols = [0; 257];
    let (mut place, mut length) = (0, 1);
    while length <= BITS_MAX {
        let mut symbol = 0;
        while symbol <= EOS {
            if LENGTHS[symbol as usize] as usize == length {
                symbols[place] = symbol;
                place += 1;
            }
            symbol += 1;
        }
        length += 1;
    }
    symbols
}

const fn firsts() -> [(u32, u16); BITS_MAX + 2] {
    let mut firsts = [(0, 0); BITS_MAX + 2];
    let (mut code, mut place, mut length) = (0u32, 0, 1);
    while length <= BITS_MAX + 1 {
        code <<= 1;
        firsts[length] = (code, place);
        let mut symbol = 0;
        while symbol <= EOS as usize {
            if LENGTHS[symbol] as usize == length {
                code += 1;
                place += 1;
            }
            symbol += 1;
        }
        length += 1;
    }
    firsts
}

const fn codes() -> [u32; 257] {
    let (symbols, firsts) = (symbols(), firsts());
    let mut codes = [0; 257];
    let mut place = 0;
    while place < symbols.len() {
        let symbol = symbols[place] as usize;
        let (first, from) = firsts[LENGTHS[symbol] as usize];
        codes[symbol] = first + (place as u32 - from as u32);
        place += 1;
    }
    codes
}

const fn short() -> [(u8, u8); 1 << SHORT_BITS] {
    let codes = codes();
    let mut short = [(0, 0); 1 << SHORT_BITS];
    let mut symbol = 0;
    while symbol < EOS {
        let length = LENGTHS[symbol as usize];
        if length as u32 <= SHORT_BITS {
            let rest = SHORT_BITS - length as u32;
            let from = codes[symbol as usize] << rest;
            let mut at = from;
            while at < from + (1 << rest) {
                short[at as usize] = (symbol as u8, length);
                at += 1;
            }
        }
        symbol += 1;
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_the_appendix() {
        for (symbol, code) in [
            (0, 0x1ff8),
            (b'0' as usize, 0),
            (b'a' as usize, 3),
            (b'z' as usize, 0x7b),
            (b'{' as usize, 0x7ffe),
            (127, 0xfff_fffc),
            (195, 0x7fff1),
            (255, 0x3ff_ffee),
            (256, 0x3fff_ffff),
        ] {
            assert_eq!(CODES[symbol], code, "{symbol}");
        }
    }

    #[test]
    fn strings_come_back() {
        let mut texts = vec![Vec::new(), (0..=255).collect::<Vec<u8>>()];
        for byte in 0..=255u8 {
            for len in 1..20 {
                texts.push(vec![byte; len]);
                texts.push((0..len).map(|at| byte.wrapping_mul(at as u8)).collect());
            }
        }
        for text in texts {
            let (mut code, mut back) = (Vec::new(), b"kept".to_vec());
            encode(&text, &mut code);
            assert_eq!(code.len(), encoded_len(&text));
            decode(&code, &mut back).expect("a code");
            assert_eq!(&back[4..], text);
        }
    }

    #[test]
    fn malformed_codes() {
        let bad: &[&[u8]] = &[
            &[0xff],                         // a whole byte of padding
            &[0x1f, 0xff],                   // `a`, then 11 bits of padding
            &[0x1e],                         // `a`, then padding that is not of ones
            &[0xff, 0xff, 0xff, 0xff],       // EOS
            &[0xff, 0xff, 0xff, 0xfc],       // EOS, then zeros
            &[0xff, 0xff, 0xff, 0xff, 0xff], // EOS, then padding
            &[0xfe, 0x00],                   // `!0`, then padding that is not of ones
        ];
        for code in bad {
            let mut out = b"kept".to_vec();
            assert_eq!(
                decode(code, &mut out),
                Err(BlockError::BadHuffman),
                "{code:x?}"
            );
            assert_eq!(out, b"kept");
        }
        let mut out = Vec::new();
        assert_eq!(decode(&[], &mut out), Ok(()));
        assert_eq!(decode(&[0x1f], &mut out), Ok(()));
        assert_eq!(out, b"a");
    }
}
