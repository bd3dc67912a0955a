//! `balance leastconn`: the server with the fewest connections for its weight.
//!
//! With few servers, a pick looks at all of them. With more, each worker keeps a tournament of the
//! servers by their last known share of the load, so that a pick looks at few of them:
//!
//! - A known share is never higher than the actual one: releases by any worker are followed before
//!   each pick (`shared::Releases`). A release that another worker is just recording may be missed
//!   until the next pick.
//! - It may be lower, because other workers take slots. So the winner's load is read again; if it
//!   has grown, the winner is moved and the next one is looked at.
//!
//! So the result is the least loaded server by the actual loads of all workers, as with a look at
//! all servers.

use super::{Balance, Candidates};
use crate::shared::Position;

/// With at most this many servers, a pick looks at all of them.
const SCANNED_SERVERS_MAX: usize = 16;
/// How many winners a pick skips because they cannot be used now; then it looks at all servers.
const SKIPPED_MAX: usize = 8;
/// All servers are looked at if more than this part of them released slots since the last pick.
const RELEASES_DIVISOR: usize = 8;

/// Equal servers are used in turn.
#[derive(Debug)]
pub(crate) struct LeastConn {
    next: usize,
    tournament: Option<Tournament>,
}

impl LeastConn {
    pub fn new(worker: usize) -> Self {
        LeastConn {
            next: worker,
            tournament: None,
        }
    }

    /// Looks at all servers.
    fn scan(&mut self, candidates: &Candidates<'_>) -> Option<usize> {
        let count = candidates.weights.len();
        let from = self.next % count.max(1);
        let mut best: Option<(usize, u64)> = None;
        let in_turn = (from..count).chain(0..from);
        for server in in_turn.filter(|server| (candidates.may)(*server)) {
            let share = share(candidates, server);
            if best.is_none_or(|(_, least)| share < least) {
                best = Some((server, share));
            }
        }
        let (server, _) = best?;
        self.next = server + 1;
        Some(server)
    }
}

impl Balance for LeastConn {
    fn pick(
        &mut self,
        candidates: &Candidates<'_>,
        _: Option<u32>,
        _: &mut dyn FnMut() -> u64,
    ) -> Option<usize> {
        if candidates.weights.len() <= SCANNED_SERVERS_MAX {
            return self.scan(candidates);
        }
        let tournament = match &mut self.tournament {
            Some(tournament) => {
                tournament.follow(candidates);
                tournament
            }
            none => none.insert(Tournament::new(candidates, self.next)),
        };
        match tournament.pick(candidates) {
            Ok(server) => server,
            Err(TooManySkipped) => {
                let server = self.scan(candidates)?;
                if let Some(tournament) = &mut self.tournament {
                    tournament.take(candidates, server);
                }
                Some(server)
            }
        }
    }
}

/// The load of a server for its weight. Adds one connection to each, so that weights matter among
/// idle servers too.
fn share(candidates: &Candidates<'_>, server: usize) -> u64 {
    share_of((candidates.load)(server), candidates.weights[server])
}

fn share_of(load: u32, weight: u32) -> u64 {
    (u64::from(load) + 1) * u64::from(u32::MAX) / u64::from(weight.max(1))
}

/// [`SKIPPED_MAX`] winners cannot be used now.
struct TooManySkipped;

/// The rank of a server: the lowest one wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    share: u64,
    /// When it was last picked: equal servers are used in turn.
    turn: u64,
}

/// The share of a server that cannot be picked until it releases a slot.
const NEVER: u64 = u64::MAX;

/// The servers as the leaves of a binary tree, in which each node has the winner of its two
/// children.
#[derive(Debug)]
struct Tournament {
    /// By server; padded to a power of two.
    ranks: Vec<Rank>,
    /// The root is at 1; the children of a node are at twice its place and the next one. Nodes at
    /// the lowest level have the servers of their own.
    winners: Vec<u32>,
    next_turn: u64,
    position: Position,
}

impl Tournament {
    /// The current state of all servers. `first`: the server whose turn is first.
    fn new(candidates: &Candidates<'_>, first: usize) -> Tournament {
        let count = candidates.weights.len();
        let leaves = count.next_power_of_two();
        let turn = |server: usize| ((server + count - first % count) % count) as u64;
        let rank = |server: usize| Rank {
            share: NEVER,
            turn: turn(server),
        };
        let mut tournament = Tournament {
            ranks: (0..leaves).map(rank).collect(),
            winners: vec![0; 2 * leaves],
            next_turn: leaves as u64,
            position: Position::default(),
        };
        for leaf in 0..leaves {
            tournament.winners[leaves + leaf] = leaf as u32;
        }
        tournament.look_at_all(candidates);
        tournament
    }

    fn look_at_all(&mut self, candidates: &Candidates<'_>) {
        self.position = candidates.releases.position();
        for (server, rank) in (0..candidates.weights.len()).zip(&mut self.ranks) {
            rank.share = share(candidates, server);
        }
        for node in (1..self.ranks.len()).rev() {
            self.decide(node);
        }
    }

    /// Looks at the servers that released slots since the last pick.
    fn follow(&mut self, candidates: &Candidates<'_>) {
        let most = candidates.weights.len() / RELEASES_DIVISOR;
        let mut position = self.position;
        let is_near = candidates.releases.follow(&mut position, most, |server| {
            // A server that was added meanwhile has no weight here yet.
            if server < candidates.weights.len() {
                self.set(server, share(candidates, server));
            }
        });
        self.position = position;
        if !is_near {
            self.look_at_all(candidates);
        }
    }

    fn pick(&mut self, candidates: &Candidates<'_>) -> Result<Option<usize>, TooManySkipped> {
        let mut skipped = [0_usize; SKIPPED_MAX];
        let mut skips = 0;
        let picked = loop {
            let server = self.winners[1] as usize;
            let known = self.ranks[server].share;
            if known == NEVER {
                break Ok(None);
            }
            let actual = share(candidates, server);
            if actual > known {
                self.set(server, actual);
            } else if (candidates.may)(server) {
                self.take(candidates, server);
                break Ok(Some(server));
            } else if (candidates.stays_out)(server) {
                self.set(server, NEVER);
            } else if skips < SKIPPED_MAX {
                self.set(server, NEVER);
                skipped[skips] = server;
                skips += 1;
            } else {
                break Err(TooManySkipped);
            }
        };
        for server in &skipped[..skips] {
            self.set(*server, share(candidates, *server));
        }
        picked
    }

    /// A server is picked: one more request is in progress there soon, and its turn is the last.
    fn take(&mut self, candidates: &Candidates<'_>, server: usize) {
        let load = (candidates.load)(server).saturating_add(1);
        self.ranks[server].turn = self.next_turn;
        self.next_turn += 1;
        self.set(server, share_of(load, candidates.weights[server]));
    }

    fn set(&mut self, server: usize, share: u64) {
        self.ranks[server].share = share;
        let mut node = (self.ranks.len() + server) / 2;
        while node > 0 {
            self.decide(node);
            node /= 2;
        }
    }

    fn decide(&mut self, node: usize) {
        let (left, right) = (self.winners[2 * node], self.winners[2 * node + 1]);
        let is_left = self.ranks[left as usize] <= self.ranks[right as usize];
        self.winners[node] = if is_left { left } else { right };
    }
}
