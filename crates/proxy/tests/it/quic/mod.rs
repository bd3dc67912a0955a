//! The network of a life with QUIC: datagrams on their way, and the machines of the peers. It draws
//! its own numbers, so that other lives do not depend on it.

mod host;
mod peer;
mod weather;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use net::{DatagramSock, Datagrams, ListenerId};
use quic::Run;
use testing::Random;

use crate::client::Client;
use crate::stage::Stage;
use crate::wire::Whim;
use crate::worker::Worker;
use host::Host;
pub use peer::EARLY;
use peer::QuicPeer;
use weather::{Weather, damage};

/// The proxy's listener of QUIC, and its address.
pub const LISTENER: ListenerId = ListenerId(1);
const PROXY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 1, 0, 1)), 443);
/// How many datagrams a call of the engine has at most.
const RUN_MAX: usize = 8;
/// A client's port grows by so much when its address changes.
const REBOUND_PORTS: u16 = 1000;
/// Address changes in a life.
const REBINDINGS_MAX: u32 = 3;
const NS_PER_MS: u64 = 1_000_000;
/// The form of the header and the first bit of the type: Initial and 0-RTT packets, which have no
/// connection id of the proxy at first (RFC 9000 §17.2). The bit between them may have any value
/// (RFC 9287).
const FIRST_MASK: u8 = 0xa0;
const FIRST: u8 = 0x80;

/// A datagram on its way.
#[derive(Debug)]
struct Flight {
    from: SocketAddr,
    to: SocketAddr,
    ecn: u8,
    bytes: Vec<u8>,
}

/// See the module.
#[derive(Debug)]
pub struct Network {
    /// Writes down what happens.
    pub verbose: bool,
    random: Random,
    weather: Weather,
    /// By their times, monotonic milliseconds, and their numbers.
    flying: BTreeMap<(u64, u64), Flight>,
    number: u64,
    hosts: Vec<Host>,
    /// Clients that begin at these times.
    coming: Vec<(u64, Client)>,
    rebindings: u32,
    /// Until this time nobody listens at the servers' ports, monotonic milliseconds.
    refuses_until_ms: u64,
}

impl Network {
    /// `clients`: those that speak HTTP/3. `now_ms`: when the life begins.
    pub fn new(seed: u64, stage: &Stage<'_>, clients: Vec<Client>, now_ms: u64) -> Network {
        let mut random = Random::new(seed);
        let weather = Weather::new(&mut random, stage.mood.calm);
        let mut hosts = Vec::new();
        if stage.setup.h3_servers {
            for index in 0..stage.setup.maxconn.len() {
                let address = SocketAddr::from(([127, 0, 0, 1], 81 + index as u16));
                let early = stage.setup.takes_early_data;
                hosts.push(Host::server(&mut random, address, index, early));
            }
        }
        let begins = |client| (now_ms + random.pick(&[0, 0, 0, 50, 3000]), client);
        Network {
            verbose: false,
            coming: clients.into_iter().map(begins).collect(),
            random,
            weather,
            flying: BTreeMap::new(),
            number: 0,
            hosts,
            rebindings: 0,
            refuses_until_ms: 0,
        }
    }

    /// Nothing is on its way, and no peer has a connection.
    pub fn is_quiet(&self) -> bool {
        let alone = |host: &Host| host.peers.is_empty();
        self.coming.is_empty() && self.flying.is_empty() && self.hosts.iter().all(alone)
    }

    /// A client has a connection or will begin one.
    pub fn has_clients(&self) -> bool {
        let clients = |host: &Host| host.is_client() && !host.peers.is_empty();
        !self.coming.is_empty() || self.hosts.iter().any(clients)
    }

    /// When something happens by itself, monotonic milliseconds.
    pub fn wakes_ms(&mut self, workers: &[Worker]) -> Option<u64> {
        let flying = self.flying.first_key_value().map(|((at_ms, _), _)| *at_ms);
        let coming = self.coming.iter().map(|(at_ms, _)| *at_ms).min();
        let waits = |worker: &&Worker| !worker.driver.udp.waiting.is_empty();
        let full = workers.iter().filter(waits);
        let full = full.map(|worker| worker.driver.udp.full_until_ms).min();
        let hosts = self.hosts.iter_mut();
        let hosts = hosts.filter_map(Host::wakes_ms).min();
        [flying, coming, full, hosts].into_iter().flatten().min()
    }

    /// Servers close their idle connections. Returns whether there was one.
    pub fn close_idle_servers(&mut self, now_ns: u64, stage: &mut Stage<'_>) -> bool {
        let mut any = false;
        for place in 0..self.hosts.len() {
            for peer in &mut self.hosts[place].peers {
                if peer.is_idle_server() && peer.pipe.held_until_ms <= now_ns / NS_PER_MS {
                    peer.pipe.peer_ended = true;
                    any = true;
                }
            }
            self.step(place, now_ns, stage);
        }
        any
    }

    /// Takes what a worker has sent.
    pub fn take(&mut self, worker: &mut Worker) {
        let now_ms = worker.driver.now.ms();
        for sent in std::mem::take(&mut worker.driver.udp.sent) {
            let from = match sent.sock {
                DatagramSock::Listener(_) => PROXY,
                DatagramSock::Server(sock) => match worker.driver.udp.socks.get(sock) {
                    Some(of) => of.local,
                    // It left before its socket was closed.
                    None => SocketAddr::from(([127, 0, 0, 1], 1)),
                },
            };
            self.send(now_ms, from, sent.to, sent.ecn, sent.bytes);
        }
    }

    /// Writes a line of the trace.
    #[expect(clippy::print_stderr, reason = "the trace of a replayed seed")]
    fn say(&self, now_ms: u64, line: std::fmt::Arguments<'_>) {
        if self.verbose {
            eprintln!("{:>8} net: {line}", now_ms - 1000);
        }
    }

    fn send(&mut self, now_ms: u64, from: SocketAddr, to: SocketAddr, ecn: u8, bytes: Vec<u8>) {
        let fates = self.weather.fates(&mut self.random, bytes.len());
        let len = bytes.len();
        self.say(
            now_ms,
            format_args!("{len} bytes {from} to {to}: {fates:?}"),
        );
        for (delay_ms, is_damaged) in fates {
            let mut bytes = bytes.clone();
            if is_damaged {
                damage(&mut self.random, &mut bytes);
            }
            self.number += 1;
            let flight = Flight {
                from,
                to,
                ecn,
                bytes,
            };
            self.flying.insert((now_ms + delay_ms, self.number), flight);
        }
    }

    fn step(&mut self, place: usize, now_ns: u64, stage: &mut Stage<'_>) {
        self.hosts[place].step(now_ns, stage, &mut self.random);
        self.collect(place, now_ns);
    }

    /// Takes what a host has sent.
    fn collect(&mut self, place: usize, now_ns: u64) {
        let host = &mut self.hosts[place];
        let from = host.address;
        for sent in std::mem::take(&mut host.sent) {
            self.send(now_ns / NS_PER_MS, from, sent.to, sent.ecn, sent.bytes);
        }
    }

    /// Something happens, if anything can at this moment.
    pub fn turn(&mut self, workers: &mut [Worker], stage: &mut Stage<'_>) -> bool {
        let now = workers[0].driver.now;
        let (now_ns, now_ms) = (now.mono_ns, now.ms());
        if self.random.chance(3) {
            self.misfortune(workers, now_ms, stage);
            (0..self.hosts.len()).for_each(|place| self.step(place, now_ns, stage));
        }
        if let Some(place) = self.coming.iter().position(|(at_ms, _)| *at_ms <= now_ms) {
            let (_, client) = self.coming.swap_remove(place);
            let index = client.index;
            let address = SocketAddr::from(([10, 0, 0, index as u8 + 1], 5000 + index as u16));
            let random = &mut self.random;
            let host = Host::client(random, address, PROXY, now_ns, client);
            self.hosts.push(host);
            self.step(self.hosts.len() - 1, now_ns, stage);
            return true;
        }
        if let Some(first) = self.flying.first_entry()
            && first.key().0 <= now_ms
        {
            let flight = first.remove();
            self.deliver(flight, workers, now_ns, stage);
            return true;
        }
        let is_due = |host: &mut Host| host.wakes_ms().is_some_and(|at| at <= now_ms);
        if let Some(place) = self.hosts.iter_mut().position(is_due) {
            self.step(place, now_ns, stage);
            return true;
        }
        for worker in workers {
            let udp = &mut worker.driver.udp;
            if now_ms >= udp.full_until_ms
                && let Some(sock) = udp.waiting.pop()
            {
                worker.datagram_room(sock, stage);
                return true;
            }
        }
        false
    }

    /// A datagram arrives, and with it others that follow it.
    fn deliver(
        &mut self,
        flight: Flight,
        workers: &mut [Worker],
        now_ns: u64,
        stage: &mut Stage<'_>,
    ) {
        let Flight {
            from,
            to,
            ecn,
            mut bytes,
        } = flight;
        let len = bytes.len();
        self.say(
            now_ns / NS_PER_MS,
            format_args!("{len} bytes {from} to {to} come"),
        );
        let segment = bytes.len();
        let is_first = bytes[0] & FIRST_MASK == FIRST;
        let mut count = 1;
        while count < RUN_MAX
            && let Some(next) = self.flying.first_entry()
            && next.key().0 * NS_PER_MS <= now_ns
            && (next.get().from, next.get().to, next.get().ecn) == (from, to, ecn)
            && next.get().bytes.len() <= segment
            && bytes.len() % segment == 0
        {
            bytes.extend(next.remove().bytes);
            count += 1;
        }
        if let Some(place) = self.hosts.iter().position(|host| host.has(to)) {
            if now_ns / NS_PER_MS < self.refuses_until_ms && !self.hosts[place].is_client() {
                return self.refuse(from, workers, stage);
            }
            let run = Run {
                peer: from,
                local: Some(to.ip()),
                ecn,
                segment,
                bytes: &bytes,
            };
            self.hosts[place].receive(now_ns, &run, stage, &mut self.random);
            return self.collect(place, now_ns);
        }
        let (at, sock) = if to == PROXY {
            // All first packets of a client are received at the same socket.
            let home = usize::from(from.port()) % workers.len();
            let at = if is_first || self.random.chance(70) {
                home
            } else {
                self.random.below(workers.len())
            };
            let driver = &workers[at].driver;
            let is_closed = driver.unlistened.get(LISTENER.0 as usize) != Some(&false);
            if is_closed || driver.udp.deaf.contains(&LISTENER) {
                return;
            }
            (at, DatagramSock::Listener(LISTENER))
        } else {
            let found = workers.iter().enumerate();
            let mut found = found.filter_map(|(at, worker)| Some((at, worker.driver.udp.at(to)?)));
            match found.next() {
                Some((at, sock)) => (at, DatagramSock::Server(sock)),
                None => return,
            }
        };
        let datagrams = Datagrams {
            sock,
            peer: from,
            local: Some(to.ip()),
            ecn,
            segment,
            bytes: &mut bytes,
        };
        workers[at].datagrams(datagrams, stage);
    }

    /// The network tells a socket that nobody listens where it sends.
    fn refuse(&mut self, from: SocketAddr, workers: &mut [Worker], stage: &mut Stage<'_>) {
        for worker in workers {
            if let Some(sock) = worker.driver.udp.at(from) {
                return worker.datagrams_refused(sock, stage);
            }
        }
    }

    /// An event that no peer planned. In a calm life it delays nothing beyond a timeout.
    fn misfortune(&mut self, workers: &mut [Worker], now_ms: u64, stage: &mut Stage<'_>) {
        let calm = stage.mood.calm;
        let random = &mut self.random;
        match random.below(6) {
            0 => {
                let most_ms = if calm { 100 } else { 5_000 };
                let worker = random.below(workers.len());
                let udp = &mut workers[worker].driver.udp;
                if !calm || stage.hesitations > 0 {
                    stage.hesitations = stage.hesitations.saturating_sub(1);
                    udp.full_until_ms = now_ms + random.number_below(most_ms);
                }
            }
            1 if self.rebindings < REBINDINGS_MAX => {
                // A client must not change its address before the handshake is confirmed
                // (RFC 9000 §9): the proxy drops such packets.
                let bears_it = |peer: &QuicPeer| peer.is_up() && (peer.is_answered || !calm);
                let may =
                    |host: &&mut Host| host.is_client() && host.peers.first().is_some_and(bears_it);
                if let Some(host) = self.hosts.iter_mut().find(may) {
                    self.rebindings += 1;
                    host.rebind(host.address.port() + REBOUND_PORTS, calm);
                }
            }
            2 if !calm => {
                let bytes = (0..1 + random.below(1400)).map(|_| random.next() as u8);
                let mut bytes: Vec<u8> = bytes.collect();
                // The proxy's answer to a packet that is not of version 1 differs in each run.
                bytes[0] &= 0x7f;
                let from = SocketAddr::from(([10, 0, 0, 1 + random.below(4) as u8], 5000));
                self.send(now_ms, from, PROXY, 0, bytes);
            }
            3 if !calm && random.chance(20) => {
                self.refuses_until_ms = now_ms + random.number_below(4_000);
            }
            _ => self.misfortune_of_peer(now_ms, stage),
        }
    }

    fn misfortune_of_peer(&mut self, now_ms: u64, stage: &mut Stage<'_>) {
        let random = &mut self.random;
        let peers = self.hosts.iter_mut().flat_map(|host| &mut host.peers);
        let mut peers: Vec<_> = peers.filter(|peer| peer.is_up()).collect();
        if peers.is_empty() {
            return;
        }
        let place = random.below(peers.len());
        let peer = &mut peers[place];
        if stage.mood.stale && peer.is_idle_server() {
            peer.pipe.peer_ended = true;
            return;
        }
        if stage.mood.calm {
            if stage.hesitations > 0 {
                stage.hesitations -= 1;
                let until_ms = now_ms + random.number_below(500);
                peer.pipe.held_until_ms = peer.pipe.held_until_ms.max(until_ms);
                peer.pipe.unread_until_ms = until_ms;
            }
            return;
        }
        let until_ms = match random.below(3) {
            0 => u64::MAX,
            _ => now_ms + random.number_below(20_000),
        };
        match random.below(8) {
            0 => peer.pipe.peer_reset = true,
            1 => peer.pipe.held_until_ms = until_ms,
            2 => peer.pipe.unread_until_ms = until_ms,
            3 => peer.pipe.peer_ended = true,
            4 => peer.has_vanished = true,
            5 => peer.whim(Whim::Reset),
            6 => peer.whim(Whim::Refuse),
            _ => peer.whim(Whim::GoAway),
        }
    }
}
