//! `balance sticky`: the same server as long as it is available, then the one that has been available
//! for the longest time.

use super::{Balance, Candidates};

/// See the module. All workers choose the same server, because the order is shared.
#[derive(Debug)]
pub(crate) struct Sticky;

impl Balance for Sticky {
    fn pick(
        &mut self,
        candidates: &Candidates<'_>,
        _: Option<u32>,
        _: &mut dyn FnMut() -> u64,
    ) -> Option<usize> {
        let servers = 0..candidates.weights.len();
        let usable = servers.filter(|server| (candidates.may)(*server));
        usable.min_by_key(|server| (candidates.joined)(*server))
    }
}
