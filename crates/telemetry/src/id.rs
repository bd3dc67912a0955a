//! Identifiers of traces and spans, and their generator.

/// 16 bytes, not all zero (W3C Trace Context §3.2.2.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct TraceId(pub [u8; 16]);

/// 8 bytes, not all zero (W3C Trace Context §3.2.2.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SpanId(pub [u8; 8]);

impl TraceId {
    /// Whether it names a trace.
    #[must_use]
    pub fn is_valid(self) -> bool {
        self.0 != [0; 16]
    }

    /// The 56 random bits that samplers use (W3C Trace Context level 2 §4.2): the rightmost seven
    /// bytes.
    #[must_use]
    pub fn randomness(self) -> u64 {
        let mut bytes = [0; 8];
        bytes[1..].copy_from_slice(&self.0[9..]);
        u64::from_be_bytes(bytes)
    }
}

impl SpanId {
    /// Whether it names a span.
    #[must_use]
    pub fn is_valid(self) -> bool {
        self.0 != [0; 8]
    }
}

/// Generates identifiers with xoshiro256++. Its state is large enough that the sequences of a
/// fleet's processes do not overlap.
#[derive(Clone, Debug)]
pub struct Ids {
    state: [u64; 4],
}

impl Ids {
    /// A generator. All randomness comes from the seed: two generators with the same seed make the
    /// same identifiers.
    #[must_use]
    pub fn new(seed: [u64; 4]) -> Ids {
        // The generator never leaves the all-zero state.
        let state = if seed == [0; 4] { [1, 2, 3, 4] } else { seed };
        Ids { state }
    }

    /// 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A new trace identifier.
    #[inline]
    pub fn trace_id(&mut self) -> TraceId {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&self.next_u64().to_be_bytes());
        // Never all zeros.
        id[8..].copy_from_slice(&self.next_u64().max(1).to_be_bytes());
        TraceId(id)
    }

    /// A new span identifier.
    #[inline]
    pub fn span_id(&mut self) -> SpanId {
        SpanId(self.next_u64().max(1).to_be_bytes())
    }
}
