//! What each bulk transfer gets, compared with the others that could go on all the time.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What a stream of a life is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A download or an upload without end, which both ends keep going.
    Down,
    Up,
    /// Small requests, one after the other.
    Small,
    /// The server sends interim responses without end.
    Hints,
    /// The server stops in the middle of its response.
    Half,
    /// A download that the client asks for and gives no credit.
    Uncredited,
    /// An upload that the server gives no credit, or does not read.
    Unread,
    /// A download that the client takes in tiny credits.
    Tiny,
    /// A request to a server that floods.
    Flooded,
}

impl Kind {
    /// It can go on all the time.
    pub fn is_runnable(self) -> bool {
        matches!(self, Kind::Down | Kind::Up | Kind::Small)
    }

    pub fn is_bulk(self) -> bool {
        matches!(self, Kind::Down | Kind::Up)
    }

    pub fn is_upload(self) -> bool {
        matches!(self, Kind::Up | Kind::Unread)
    }
}

/// One stream, or one client's small requests.
#[derive(Debug)]
pub struct Flow {
    pub kind: Kind,
    /// The client's connection, and the server's once there is one.
    pub client: usize,
    pub server: Option<usize>,
    /// What the client's connection may be sent before it gives credit; none for HTTP/1.
    pub window: Option<u32>,
    /// Payload that was received; of small requests, answers.
    pub got: usize,
    /// The round in which something was received last.
    pub moved: usize,
    /// What it had at the start of the window at hand.
    base: usize,
}

impl Flow {
    pub fn new(kind: Kind, client: usize, window: Option<u32>) -> Flow {
        Flow {
            kind,
            client,
            server: None,
            window,
            got: 0,
            moved: 0,
            base: 0,
        }
    }

    /// The connection that receives it.
    fn receiver(&self) -> Option<usize> {
        if self.kind.is_upload() {
            self.server
        } else {
            Some(self.client)
        }
    }

    fn share(&self) -> usize {
        self.got - self.base
    }
}

/// Transfers that are alike: what limits one of them limits the others, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Alike {
    kind: Kind,
    window: Option<u32>,
    /// What shares the client's connection, and the server's.
    beside_client: Beside,
    beside_server: Beside,
}

/// The streams of one connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Beside {
    bulk: usize,
    others: usize,
}

/// What the peers of a life know in common.
#[derive(Debug, Default)]
pub struct Board {
    pub flows: Vec<Flow>,
    pub round: usize,
    pub now_ms: u64,
    pub faults: Vec<String>,
    /// The receiving connections whose transfers were compared.
    compared: Vec<usize>,
}

/// A stream gets at least this part of what the most-served one of its connection gets.
const LEAST_PART: usize = 3;

impl Board {
    /// A connection received payload of a stream.
    pub fn received(&mut self, flow: usize, bytes: usize) {
        if let Some(flow) = self.flows.get_mut(flow) {
            flow.got += bytes;
            flow.moved = self.round;
        }
    }

    /// A server's connection got the request of a stream. Its kind; none for a request that is no
    /// stream's.
    pub fn asked(&mut self, flow: usize, server: usize) -> Option<Kind> {
        let flow = self.flows.get_mut(flow)?;
        flow.server = Some(server);
        Some(flow.kind)
    }

    pub fn fault(&mut self, text: String) {
        self.faults.push(text);
    }

    /// Whether every bulk transfer has begun, so that they can be compared.
    pub fn have_all_begun(&self) -> bool {
        let mut bulk = self.flows.iter().filter(|flow| flow.kind.is_bulk());
        bulk.all(|flow| flow.got > 0)
    }

    /// The window begins in which transfers are compared.
    pub fn begin_window(&mut self) {
        for flow in &mut self.flows {
            flow.base = flow.got;
        }
    }

    /// Compares the transfers of each receiving connection, once one of them has got so many
    /// bytes; whether all connections were compared by now.
    ///
    /// # Errors
    /// One has less than a third of what another like it has.
    pub fn check_shares(&mut self, window_bytes: usize) -> Result<bool, String> {
        let mut receivers = BTreeMap::<usize, BTreeMap<Alike, Vec<usize>>>::new();
        for flow in self.flows.iter().filter(|flow| flow.kind.is_bulk()) {
            if let Some(receiver) = flow.receiver() {
                let group = receivers.entry(receiver).or_default();
                group
                    .entry(self.alike(flow))
                    .or_default()
                    .push(flow.share());
            }
        }
        for (place, groups) in &receivers {
            let most = groups.values().flatten().max();
            if most.is_none_or(|most| *most < window_bytes) || self.compared.contains(place) {
                continue;
            }
            self.compared.push(*place);
            for (alike, shares) in groups.iter() {
                self.compare(shares, &format!("{:?} on #{place}", alike.kind))?;
            }
        }
        Ok(self.compared.len() == receivers.len())
    }

    /// Compares the receiving connections that have the same transfers.
    ///
    /// # Errors
    /// One has less than a third of what another has.
    pub fn check_connections(&self) -> Result<(), String> {
        let mut sums = BTreeMap::<(Alike, usize), usize>::new();
        let mut counts = BTreeMap::<(Alike, usize), usize>::new();
        for flow in self.flows.iter().filter(|flow| flow.kind.is_bulk()) {
            if let Some(receiver) = flow.receiver() {
                let key = (self.alike(flow), receiver);
                *sums.entry(key).or_default() += flow.share();
                *counts.entry(key).or_default() += 1;
            }
        }
        // By the transfers of a connection, and how many they are.
        let mut alike = BTreeMap::<(Alike, usize), Vec<usize>>::new();
        for (key, sum) in sums {
            let connections = alike.entry((key.0, counts[&key])).or_default();
            connections.push(sum);
        }
        for ((alike, count), sums) in alike {
            let what = format!("connections with {count} times {:?}", alike.kind);
            self.compare(&sums, &what)?;
        }
        Ok(())
    }

    fn alike(&self, flow: &Flow) -> Alike {
        let count = |of: &dyn Fn(&Flow) -> bool| {
            let all = self.flows.iter().filter(|other| of(other));
            let (bulk, others): (Vec<_>, Vec<_>) = all.partition(|other| other.kind.is_bulk());
            Beside {
                bulk: bulk.len(),
                others: others.len(),
            }
        };
        Alike {
            kind: flow.kind,
            window: flow.window,
            beside_client: count(&|other| other.client == flow.client),
            beside_server: count(&|other| other.server == flow.server),
        }
    }

    fn compare(&self, shares: &[usize], what: &str) -> Result<(), String> {
        let (Some(least), Some(most)) = (shares.iter().min(), shares.iter().max()) else {
            return Ok(());
        };
        if least * LEAST_PART < *most {
            return Err(format!("{what}: shares of {shares:?}{}", self.shown()));
        }
        Ok(())
    }

    /// Checks that everything that can go on has gone on in the last `rounds`.
    ///
    /// # Errors
    /// A stream that stands still.
    pub fn check_progress(&self, rounds: usize) -> Result<(), String> {
        let stands = |flow: &Flow| flow.kind.is_runnable() && self.round - flow.moved > rounds;
        match self.flows.iter().position(stands) {
            Some(at) => Err(format!(
                "stream {at} stands still for {rounds} rounds{}",
                self.shown()
            )),
            None => Ok(()),
        }
    }

    /// All streams, for a message.
    fn shown(&self) -> String {
        let mut text = format!(", in round {}:", self.round);
        for (number, flow) in self.flows.iter().enumerate() {
            let (share, server) = (flow.share(), flow.server);
            let Flow {
                kind,
                client,
                got,
                moved,
                ..
            } = flow;
            let _ = write!(
                text,
                "\n  stream {number} {kind:?} of #{client} and {server:?}: {got}, of these {share} in \
                 this window; moved in round {moved}"
            );
        }
        text
    }
}
