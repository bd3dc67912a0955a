//! Sections that talk to each other, on a virtual clock.

mod behaviour;
mod hostile;
mod learning;

use std::collections::BTreeMap;
use std::sync::Arc;

use tables::{Data, Definition, KeyType, Table, UpdateLog};

use super::{ConnId, PeerSetup, Section, Setup, SharedTable};

/// A period for `store`.
fn period(text: &str) -> Option<u32> {
    text.parse().ok()
}

/// A table that stores `gpc0`, `conn_cur`, a rate, an array and servers.
fn table(name: &str) -> Arc<Table> {
    let mut definition = Definition::new(name, KeyType::String, 100_000);
    definition.expire_ms = Some(60_000);
    let stores: [(Data, &[&str]); 4] = [
        (Data::Gpc0, &[]),
        (Data::ConnCur, &[]),
        (Data::HttpReqRate, &["10000"]),
        (Data::Gpt, &["3"]),
    ];
    for (data, arguments) in stores {
        definition
            .store(data, arguments, period)
            .expect("a data type");
    }
    definition.store_server();
    Arc::new(Table::new(definition))
}

fn add(table: &Table, key: &str, now_ms: u64) {
    let added = table.with_new(key.as_bytes(), now_ms, |entry| {
        entry.add(Data::Gpc0, 0, 1);
        entry.touch();
    });
    assert!(added.is_some());
}

fn gpc0(table: &Table, key: &str, now_ms: u64) -> Option<i64> {
    table.with(key.as_bytes(), now_ms, |entry| entry.get(Data::Gpc0, 0))?
}

/// A process of a test.
struct Node {
    section: Section,
    table: Arc<Table>,
    is_up: bool,
}

/// One end of a connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct End {
    node: usize,
    id: ConnId,
}

/// Processes and their connections.
struct Network {
    now_ms: u64,
    nodes: Vec<Node>,
    links: BTreeMap<End, End>,
    /// Bytes that were moved.
    bytes: usize,
}

fn section(local: &str, names: &[&str], table: &Arc<Table>, now_ms: u64) -> Section {
    section_after(local, names, table, now_ms, false)
}

fn section_after(
    local: &str,
    names: &[&str],
    table: &Arc<Table>,
    now_ms: u64,
    follows_another: bool,
) -> Section {
    let log = UpdateLog::open(Arc::clone(table), || {}).expect("no log yet");
    let mut state = local.len() as u64 + 7;
    let peers = names.iter().map(|name| PeerSetup {
        name: (*name).to_owned(),
        shown: (*name).to_owned(),
        shard: 0,
    });
    let setup = Setup {
        name: "peers".to_owned(),
        local: local.to_owned(),
        pid: 1,
        peers: peers.collect(),
        tables: vec![SharedTable {
            log,
            write_to: None,
        }],
        shards: 0,
        follows_another,
        random: Box::new(move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            state >> 33
        }),
    };
    Section::new(setup, now_ms)
}

impl Network {
    fn new(names: &[&str]) -> Network {
        let mut network = Network {
            now_ms: 1_000,
            nodes: Vec::new(),
            links: BTreeMap::new(),
            bytes: 0,
        };
        for name in names {
            let table = table("t");
            network.nodes.push(Node {
                section: section(name, names, &table, network.now_ms),
                table,
                is_up: true,
            });
        }
        network
    }

    /// Opens the connections that a process wants.
    fn open(&mut self, node: usize) {
        for (id, peer) in self.nodes[node].section.take_connections() {
            let other = self.nodes[node].section.peers[peer].name.clone();
            let other = self.nodes.iter().position(|one| {
                one.is_up && one.section.local == other && one.section.stop.is_none()
            });
            let now_ms = self.now_ms;
            let accepted = other.and_then(|other| {
                let id = self.nodes[other].section.accept(now_ms)?;
                Some(End { node: other, id })
            });
            match accepted {
                Some(there) => {
                    let here = End { node, id };
                    self.links.insert(here, there);
                    self.links.insert(there, here);
                    self.nodes[node].section.connected(id, now_ms);
                }
                None => self.nodes[node].section.lost(id, now_ms),
            }
        }
    }

    /// Moves bytes once; returns whether there were any.
    fn exchange(&mut self) -> bool {
        let mut any = false;
        for (here, there) in self.links.clone() {
            let bytes = if self.nodes[here.node].is_up {
                self.nodes[here.node].section.pull(here.id, self.now_ms)
            } else {
                Vec::new()
            };
            self.bytes += bytes.len();
            if !bytes.is_empty() {
                any = true;
                let now_ms = self.now_ms;
                self.nodes[there.node]
                    .section
                    .receive(there.id, &bytes, now_ms);
            }
            if !self.nodes[here.node].is_up || !self.nodes[here.node].section.exists(here.id) {
                self.nodes[there.node].section.lost(there.id, self.now_ms);
                self.links.remove(&here);
                self.links.remove(&there);
                any = true;
            }
        }
        any
    }

    /// Lets all happen that happens within this time.
    fn run(&mut self, ms: u64) {
        let end = self.now_ms + ms;
        loop {
            let mut rounds = 0;
            loop {
                let mut any = false;
                for node in 0..self.nodes.len() {
                    if self.nodes[node].is_up {
                        any |= self.nodes[node].section.collect();
                        self.nodes[node].section.tick(self.now_ms);
                        self.open(node);
                    }
                }
                any |= self.exchange();
                rounds += 1;
                assert!(rounds < 100_000, "no rest");
                if !any {
                    break;
                }
            }
            let deadlines = self.nodes.iter().filter(|node| node.is_up);
            let next = deadlines
                .filter_map(|node| node.section.deadline_ms())
                .min();
            let next = next.unwrap_or(end).max(self.now_ms + 1);
            if next > end {
                self.now_ms = end;
                return;
            }
            self.now_ms = next;
        }
    }

    fn gpc0(&self, node: usize, key: &str) -> Option<i64> {
        gpc0(&self.nodes[node].table, key, self.now_ms)
    }

    fn add(&mut self, node: usize, key: &str) {
        add(&self.nodes[node].table, key, self.now_ms);
    }

    fn is_finished(&self, node: usize) -> bool {
        self.nodes[node].section.view(self.now_ms).flags == 3
    }

    fn statuses(&self, node: usize) -> Vec<&'static str> {
        let view = self.nodes[node].section.view(self.now_ms);
        view.peers
            .iter()
            .filter(|peer| !peer.is_local)
            .map(|peer| peer.status)
            .collect()
    }
}
