//! `status_code` and `trace_flags`: what a few bits of a span say.

use crate::settings::StatusCodes;

/// Bits that each status sets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Statuses([u64; 3]);

impl Statuses {
    /// `bit` is set by these codes.
    pub fn add(&mut self, codes: StatusCodes, bit: u64) {
        for (code, asked) in [codes.unset, codes.ok, codes.error].into_iter().enumerate() {
            self.0[code] |= if asked { bit } else { 0 };
        }
    }

    /// The bits of a `status.code`; one that there is not sets none.
    #[inline]
    pub fn bits(&self, code: i32) -> u64 {
        let code = usize::try_from(code).ok();
        code.and_then(|code| self.0.get(code))
            .copied()
            .unwrap_or_default()
    }
}

/// `trace_flags`: whether a span's flags have the sampled bit (W3C trace flags, the lowest byte).
#[inline]
pub fn is_sampled(flags: u32) -> bool {
    flags & 1 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_sets_its_bits() {
        let mut statuses = Statuses::default();
        let codes = |unset, ok, error| StatusCodes { unset, ok, error };
        statuses.add(codes(false, false, true), 1);
        statuses.add(codes(true, false, true), 2);
        assert_eq!(
            [-1, 0, 1, 2, 3].map(|code| statuses.bits(code)),
            [0, 2, 0, 3, 0]
        );
    }

    #[test]
    fn the_lowest_flag_counts() {
        assert_eq!(
            [0, 1, 2, 0x101, 0x300].map(is_sampled),
            [false, true, false, true, false]
        );
    }
}
