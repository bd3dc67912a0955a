//! The clock and the random numbers that functions such as `Now` and `UUID` need. The caller gives
//! them: this crate reads neither.

use super::Failure;

/// Functions of the caller. Without them, `Now` and its like fail.
#[derive(Clone, Copy, Debug)]
pub struct Outside {
    /// The time now, in nanoseconds since 1970.
    pub now_ns: fn() -> Option<i64>,
    /// 64 random bits.
    pub random: fn() -> Option<u64>,
}

impl Default for Outside {
    fn default() -> Outside {
        Outside {
            now_ns: || None,
            random: || None,
        }
    }
}

impl PartialEq for Outside {
    /// Always equal, so that settings with it compare by their options alone.
    fn eq(&self, _: &Outside) -> bool {
        true
    }
}

impl Outside {
    pub(super) fn now(self) -> Result<i64, Failure> {
        (self.now_ns)().ok_or(Failure::Outside)
    }

    pub(super) fn random(self) -> Result<u64, Failure> {
        (self.random)().ok_or(Failure::Outside)
    }
}
