//! Activity of a peer that costs more than it is worth.

use super::code::{self, Failure};
use crate::h2::Limits;

/// Counts of it; see [`Limits`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    resets: u32,
    idle_frames: u32,
    pub glitches: u32,
    pub spares_glitches: bool,
    /// When `resets` and `idle_frames` were last halved, monotonic milliseconds.
    halved_ms: u64,
}

/// The time in which the counts of resets and of idle frames halve, milliseconds.
const HALF_LIFE_MS: u64 = 1000;

impl Load {
    /// Halves the counts of resets and of idle frames for each [`HALF_LIFE_MS`] that has passed.
    #[inline]
    pub fn decay(&mut self, now_ms: u64) {
        let periods = now_ms.saturating_sub(self.halved_ms) / HALF_LIFE_MS;
        if periods > 0 {
            self.halved_ms += periods * HALF_LIFE_MS;
            let shift = u32::try_from(periods).unwrap_or(u32::MAX);
            self.resets = self.resets.checked_shr(shift).unwrap_or(0);
            self.idle_frames = self.idle_frames.checked_shr(shift).unwrap_or(0);
        }
    }

    /// Counts a glitch.
    pub fn glitch(&mut self, limits: &Limits) -> Result<(), Failure> {
        self.glitches = self.glitches.saturating_add(1);
        let is_limited = limits.glitches_max > 0 && !self.spares_glitches;
        if is_limited && self.glitches >= limits.glitches_max {
            return Err(Failure::new(code::EXCESSIVE_LOAD, "too many glitches"));
        }
        Ok(())
    }

    /// Counts a frame, an instruction or a stream that does no work.
    pub fn idle_frame(&mut self, limits: &Limits) -> Result<(), Failure> {
        self.idle_frames += 1;
        if self.idle_frames > limits.idle_frames_max {
            let message = "too many frames that do no work";
            return Err(Failure::new(code::EXCESSIVE_LOAD, message));
        }
        Ok(())
    }

    /// Counts a stream that the peer reset, or made us reset.
    pub fn peer_reset(&mut self, limits: &Limits) -> Result<(), Failure> {
        self.resets += 1;
        if self.resets > limits.resets_max {
            return Err(Failure::new(code::EXCESSIVE_LOAD, "too many streams reset"));
        }
        Ok(())
    }

    /// Counts a frame that did work.
    #[inline]
    pub fn worked(&mut self) {
        self.idle_frames = self.idle_frames.saturating_sub(1);
    }

    /// Counts a stream that ended well.
    pub fn ended_well(&mut self) {
        self.resets = self.resets.saturating_sub(1);
    }
}
