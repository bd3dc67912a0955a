//! `balance sticky`: the same server as long as it is available, then the next one.

use super::{Balance, Candidates};

/// The current server.
#[derive(Debug, Default)]
pub(crate) struct Sticky(usize);

impl Balance for Sticky {
    fn pick(
        &mut self,
        candidates: &Candidates<'_>,
        _: Option<u32>,
        _: &mut dyn FnMut() -> u64,
    ) -> Option<usize> {
        let count = candidates.weights.len();
        let from = self.0;
        self.0 = (from..from + count)
            .map(|server| server % count)
            .find(|server| (candidates.may)(*server))?;
        Some(self.0)
    }
}
