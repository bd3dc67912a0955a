//! `balance first`: the first server by id that has a free slot.

use super::{Balance, Candidates};

#[derive(Debug)]
pub(crate) struct First;

impl Balance for First {
    fn pick(
        &mut self,
        candidates: &Candidates<'_>,
        _: Option<u32>,
        _: &mut dyn FnMut() -> u64,
    ) -> Option<usize> {
        let servers = (0..candidates.weights.len()).filter(|server| (candidates.may)(*server));
        servers.min_by_key(|server| (candidates.id)(*server))
    }
}
