//! What the network does to datagrams, and when.

use testing::Random;

/// Datagrams that a calm life may lose: each costs a second at most while a handshake is under way,
/// less than every timeout.
const CALM_LOSSES_MAX: u32 = 1;
/// Datagrams are never smaller than this, and networks permit as much (RFC 9000 §14).
const MTU_BYTES_MIN: usize = 1200;
/// Bytes of a long header, which are not changed: what stands there was drawn by the system, so that
/// two runs could differ.
const LONG_HEADER_BYTES: usize = 60;
/// RFC 9000 §17.2.
const LONG_HEADER: u8 = 0x80;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Weather {
    lost_percent: u64,
    doubled_percent: u64,
    damaged_percent: u64,
    /// Larger datagrams vanish.
    mtu_bytes: usize,
    delay_ms: u64,
    /// Each datagram may take so much longer.
    jitter_ms: u64,
    /// None: no limit.
    losses_left: Option<u32>,
}

impl Weather {
    pub fn new(random: &mut Random, calm: bool) -> Weather {
        Weather {
            lost_percent: random.pick(&[0, 0, 1, 5, 20]),
            doubled_percent: random.pick(&[0, 0, 2, 10]),
            damaged_percent: random.pick(&[0, 0, 1, 5]),
            mtu_bytes: random.pick(&[MTU_BYTES_MIN, 1280, 1400, 1452, 1500]),
            delay_ms: random.pick(&[0, 1, 10, 40]),
            jitter_ms: random.pick(&[0, 0, 1, 10, if calm { 20 } else { 200 }]),
            losses_left: calm.then_some(CALM_LOSSES_MAX),
        }
    }

    /// When the copies of a datagram arrive, milliseconds from now, and whether one is damaged.
    pub fn fates(&mut self, random: &mut Random, bytes: usize) -> Vec<(u64, bool)> {
        if bytes > self.mtu_bytes {
            return Vec::new();
        }
        if random.chance(self.lost_percent) && self.may_lose() {
            return Vec::new();
        }
        let copies = 1 + usize::from(random.chance(self.doubled_percent));
        let is_damaged = random.chance(self.damaged_percent) && self.may_lose();
        let fate = |copy| {
            let delay_ms = self.delay_ms + random.number_below(self.jitter_ms + 1);
            (delay_ms, copy == 0 && is_damaged)
        };
        (0..copies).map(fate).collect()
    }

    fn may_lose(&mut self) -> bool {
        match &mut self.losses_left {
            None => true,
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
        }
    }
}

/// Changes one byte of a datagram.
pub fn damage(random: &mut Random, bytes: &mut [u8]) {
    let is_long = bytes.first().is_some_and(|first| first & LONG_HEADER != 0);
    let first = if is_long { LONG_HEADER_BYTES } else { 0 };
    if bytes.len() > first {
        let place = first + random.below(bytes.len() - first);
        // A short header stays a short header: read as a long one, its bytes differ in each run.
        let mask = random.below(127) as u8 + 1;
        bytes[place] ^= if place == 0 { mask & 0x7f } else { mask };
    }
}
