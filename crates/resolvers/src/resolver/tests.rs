//! Rules of resolutions on a virtual clock.

mod hold;
mod in_turn;
mod questions;
mod retries;
mod transport;

use std::net::IpAddr;

use super::*;
use crate::scripted::{Record, Reply, TYPE_A, TYPE_AAAA, TYPE_SRV, question, type_of};
use crate::section::Nameserver;

const HOST: &str = "www.example.com";

fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn section(nameservers: usize) -> Section {
    let nameserver = |index: usize| Nameserver {
        name: format!("ns{index}"),
        address: format!("127.0.0.{}:53", index + 1).parse().unwrap(),
        transport: Transport::Udp,
    };
    Section {
        nameservers: (0..nameservers).map(nameserver).collect(),
        ..Section::new("test")
    }
}

/// A resolver with its clock.
struct World {
    resolver: Resolver,
    now_ms: u64,
}

const ADDRESS: Question = Question::Address { prefer: Family::V4 };

impl World {
    fn new(section: Section) -> World {
        let mut state = 7_u64;
        let random = Box::new(move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            state >> 33
        });
        World {
            resolver: Resolver::new(section, random),
            now_ms: 1_000_000,
        }
    }

    fn subscribe(&mut self, host: &str, question: Question) -> RequestId {
        let request = self.resolver.subscribe(name(host), question, self.now_ms);
        request.unwrap()
    }

    /// The time goes on to the next deadline, and messages go out.
    fn step(&mut self) -> Vec<Transmit> {
        if let Some(due_ms) = self.resolver.poll_timeout() {
            self.now_ms = self.now_ms.max(due_ms);
        }
        self.resolver.handle_timeout(self.now_ms);
        self.sent()
    }

    /// The time goes on by so much, whatever is due.
    fn pass(&mut self, ms: u64) -> Vec<Transmit> {
        self.now_ms += ms;
        self.resolver.handle_timeout(self.now_ms);
        self.sent()
    }

    fn sent(&mut self) -> Vec<Transmit> {
        std::iter::from_fn(|| self.resolver.poll_transmit()).collect()
    }

    fn reply(&mut self, transmit: &Transmit, reply: &Reply) {
        let bytes = reply.to(&transmit.bytes);
        self.message(transmit, &bytes);
    }

    fn message(&mut self, transmit: &Transmit, bytes: &[u8]) {
        let (nameserver, transport) = (transmit.nameserver, transmit.transport);
        self.resolver
            .handle_message(nameserver, transport, bytes, self.now_ms);
    }

    fn events(&mut self) -> Vec<Outcome> {
        let events = std::iter::from_fn(|| self.resolver.poll_event());
        events.map(|event| event.outcome).collect()
    }

    /// One resolution that succeeds, with these addresses.
    fn resolve(&mut self, addresses: &[&str]) -> Vec<Outcome> {
        let sent = self.step();
        let records = addresses.iter().map(|address| Record::a(HOST, address));
        self.reply(&sent[0], &Reply::of(records.collect()));
        self.events()
    }

    /// One resolution whose attempts all get this error; its outcome.
    fn fail(&mut self, rcode: u8) -> Vec<Outcome> {
        loop {
            for transmit in self.step() {
                self.reply(&transmit, &Reply::error(rcode));
                for transmit in self.sent() {
                    self.reply(&transmit, &Reply::error(rcode));
                }
            }
            let events = self.events();
            if !events.is_empty() {
                return events;
            }
        }
    }
}

fn types(transmits: &[Transmit]) -> Vec<u16> {
    let types = transmits.iter().map(|transmit| type_of(&transmit.bytes));
    types.collect()
}

fn found(outcome: &Outcome) -> Vec<IpAddr> {
    match outcome {
        Outcome::Found { records, .. } => records.addresses.clone(),
        other => panic!("{other:?}"),
    }
}

/// The tables have nothing that belongs to no request.
fn assert_empty(resolver: &Resolver) {
    assert!(resolver.resolutions.is_empty());
    assert!(resolver.by_key.is_empty());
    assert!(resolver.requests.is_empty());
    assert!(resolver.due.is_empty() && resolver.cached.is_empty());
    assert!(resolver.pending.is_empty());
    assert_eq!((resolver.subscribed, resolver.asked), (0, 0));
}
