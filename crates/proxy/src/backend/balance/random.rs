//! `balance random`: draws some servers by weight and takes the least loaded of them.

use super::consistent::Bound;
use super::{Balance, Candidates};

#[derive(Debug)]
pub(crate) struct Random {
    pub draws: u32,
    pub bound: Option<Bound>,
}

impl Balance for Random {
    fn pick(
        &mut self,
        candidates: &Candidates<'_>,
        _: Option<u32>,
        random: &mut dyn FnMut() -> u64,
    ) -> Option<usize> {
        let round = self.bound.as_ref().map(|bound| bound.now(candidates));
        let is_within = |server| round.as_ref().is_none_or(|round| round.takes(server));
        let weight = |server: usize| {
            if (candidates.may)(server) && is_within(server) {
                u64::from(candidates.weights[server])
            } else {
                0
            }
        };
        let count = candidates.weights.len();
        let total: u64 = (0..count).map(weight).sum();
        if total == 0 {
            return None;
        }
        let mut draw = || {
            let mut left = random() % total;
            (0..count).find(|server| {
                let share = weight(*server);
                let hit = left < share;
                left = left.saturating_sub(share);
                hit
            })
        };
        let drawn: Option<usize> =
            (0..self.draws.max(1)).fold(None, |best, _| match (best, draw()) {
                (Some(best), Some(other))
                    if relative(candidates, other) >= relative(candidates, best) =>
                {
                    Some(best)
                }
                (best, other) => other.or(best),
            });
        drawn
    }
}

fn relative(candidates: &Candidates<'_>, server: usize) -> u64 {
    u64::from((candidates.load)(server)) * 256 / u64::from(candidates.weights[server].max(1))
}
