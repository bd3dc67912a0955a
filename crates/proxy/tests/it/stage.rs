//! What all peers of a life share: the plans, what was seen so far, and what went wrong.

use crate::worker::Peer;
use config::model::HttpReuse;

use super::plan::{Exchange, Mood};
use super::setups::Setup;
use testing::Random;

/// See the module.
#[derive(Debug)]
pub struct Stage<'a> {
    pub setup: &'a Setup,
    pub mood: Mood,
    pub random: Random,
    /// By client.
    pub plans: Vec<Vec<Exchange>>,
    /// By client and request: how often a server saw its head.
    pub seen: Vec<Vec<u32>>,
    /// Statuses that clients got, by client and request.
    pub got: Vec<Vec<u16>>,
    /// By client: bytes that came to it.
    pub bytes: Vec<usize>,
    pub draining: bool,
    /// Stalls that a calm life may still have: all together are shorter than every timeout.
    pub hesitations: usize,
    pub faults: Vec<String>,
    /// The other ends of connections that are between two workers, by the numbers of their moves.
    pub moving: Vec<(u64, Option<Peer>)>,
}

impl<'a> Stage<'a> {
    pub fn new(setup: &'a Setup, mood: Mood, plans: Vec<Vec<Exchange>>, random: Random) -> Self {
        Stage {
            setup,
            mood,
            seen: plans.iter().map(|plan| vec![0; plan.len()]).collect(),
            got: plans.iter().map(|plan| vec![0; plan.len()]).collect(),
            bytes: vec![0; plans.len()],
            plans,
            draining: false,
            hesitations: 3,
            faults: Vec::new(),
            moving: Vec::new(),
            random,
        }
    }
}

/// How often a request goes out again because its connection was stale.
const RESENT_MAX: u32 = 1;

impl Stage<'_> {
    pub fn fault(&mut self, text: String) {
        self.faults.push(text);
    }

    /// A server saw the head of a request.
    pub fn saw(&mut self, exchange: Exchange) {
        let Exchange { client, number, .. } = exchange;
        if self.setup.denies && number == 1 && exchange.method != "CONNECT" {
            self.fault(format!("request {client}/{number} was to be denied"));
        }
        self.seen[client][number] += 1;
        let times = self.seen[client][number];
        // Once more on a fresh connection, where the first was stale.
        let may_resend = exchange.is_idempotent() && (!self.mood.calm || self.mood.stale);
        // A handshake may fail after the server has read early data. It is not early data again.
        let may_be_early = self.setup.takes_early_data && exchange.is_safe();
        let times_max = 1
            + u32::from(may_resend) * RESENT_MAX
            + u32::from(may_be_early)
            + self.setup.sent_again_max;
        if times > times_max {
            self.fault(format!(
                "request {client}/{number} reached servers {times} times"
            ));
        }
    }

    /// A server connection that has served `served` requests before gets one of this client.
    pub fn check_reuse(&mut self, exchange: Exchange, last_client: usize) {
        let Exchange { client, number, .. } = exchange;
        let other = client != last_client;
        if self.setup.h3_servers {
            // The first request on a connection may come after the others: its datagram was lost.
            return;
        }
        let broken = match self.setup.reuse {
            HttpReuse::Never => other,
            HttpReuse::Safe => number == 0 && other,
            HttpReuse::Aggressive | HttpReuse::Always => false,
        };
        if broken || (other && self.setup.sends_proxy) {
            self.fault(format!(
                "request {client}/{number} on a connection of client {last_client}"
            ));
        }
    }
}
