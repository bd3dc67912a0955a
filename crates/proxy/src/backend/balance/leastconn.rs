//! `balance leastconn`: the server with the fewest connections for its weight.

use super::{Balance, Candidates};

/// Equal servers are used in turn.
#[derive(Debug)]
pub(crate) struct LeastConn {
    next: usize,
}

impl LeastConn {
    pub fn new(worker: usize) -> Self {
        LeastConn { next: worker }
    }
}

impl Balance for LeastConn {
    fn pick(
        &mut self,
        candidates: &Candidates<'_>,
        _: Option<u32>,
        _: &mut dyn FnMut() -> u64,
    ) -> Option<usize> {
        let count = candidates.weights.len();
        let from = self.next % count.max(1);
        let mut best: Option<(usize, u64)> = None;
        for server in (from..from + count)
            .map(|index| index % count)
            .filter(|server| (candidates.may)(*server))
        {
            // Adds one connection to each, so that weights matter among idle servers too.
            let load = u64::from((candidates.load)(server)) + 1;
            let weight = u64::from(candidates.weights[server].max(1));
            let share = load * u64::from(u32::MAX) / weight;
            if best.is_none_or(|(_, least)| share < least) {
                best = Some((server, share));
            }
        }
        let (server, _) = best?;
        self.next = server + 1;
        Some(server)
    }
}
