//! Answers of nameservers, and the two files of names.

use std::net::IpAddr;

use resolvers::{
    ANSWER_RECORDS_MAX, Counters, Family, Hosts, MESSAGE_BYTES_MAX, Name, Nameserver, Outcome,
    Question, Resolver, SEARCH_DOMAINS_MAX, Section, Transport, parse_resolv_conf,
};

/// The time of all calls, in milliseconds.
const NOW_MS: u64 = 1000;

/// What a nameserver sends, as the answer to each kind of question: it is counted once, it ends
/// the resolution or leaves it as it is, and its records are bounded.
pub fn dns_answer(data: &[u8]) {
    for question in [
        Question::Address { prefer: Family::V4 },
        Question::Address { prefer: Family::V6 },
        Question::Service,
    ] {
        for transport in [Transport::Udp, Transport::Tcp] {
            answer(data, question, transport);
        }
    }
}

fn answer(data: &[u8], question: Question, transport: Transport) {
    let mut section = Section::new("fuzz");
    section.accepted_payload_bytes = u16::MAX;
    section.nameservers.push(Nameserver {
        name: "ns".to_owned(),
        address: ([127, 0, 0, 1], 53).into(),
        transport,
    });
    let mut number = 0;
    let random = Box::new(move || {
        number += 1;
        number
    });
    let mut resolver = Resolver::new(section, random);
    let name = Name::parse("a.test").expect("a name");
    let request = resolver.subscribe(name, question, NOW_MS);
    let request = request.expect("a first name");
    resolver.handle_timeout(NOW_MS);
    let query = resolver.poll_transmit().expect("a query");
    // Any bytes, then the same as an answer to this query.
    let before = total(&resolver.counters(0));
    resolver.handle_message(0, transport, data, NOW_MS);
    assert_eq!(total(&resolver.counters(0)), before + 1);
    let mut bytes = data.to_vec();
    if let Some(id) = bytes.get_mut(..2) {
        id.copy_from_slice(&query.id.to_be_bytes());
    }
    let before = total(&resolver.counters(0));
    resolver.handle_message(0, transport, &bytes, NOW_MS);
    assert_eq!(total(&resolver.counters(0)), before + 1);
    let records = resolver.records(request).expect("the request");
    assert!(data.len() <= MESSAGE_BYTES_MAX || records.addresses.is_empty());
    assert!(records.addresses.len() + records.services.len() <= ANSWER_RECORDS_MAX);
    assert!(records.addresses.is_sorted());
    let is_asked_for = |address: &IpAddr| match question {
        Question::Address { prefer } => Family::of(*address) == prefer,
        Question::Service => false,
    };
    assert!(records.addresses.iter().all(is_asked_for));
    let is_valid = resolver.counters(0).valid == 1;
    assert_eq!(
        is_valid,
        !records.addresses.is_empty() || !records.services.is_empty()
    );
    while let Some(event) = resolver.poll_event() {
        assert!(is_valid && matches!(event.outcome, Outcome::Found { .. }));
    }
    resolver.unsubscribe(request, NOW_MS);
    assert_eq!(resolver.poll_timeout(), None);
}

/// All messages that a nameserver sent, each once; an alias is counted beside the answer.
fn total(counters: &Counters) -> u64 {
    let all: u64 = counters.values().into_iter().sum();
    let total = all - counters.sent - counters.cname;
    // A truncated answer of services that is used is counted as both.
    total - counters.valid.min(counters.truncated)
}

/// Any text: what is found is in it, each nameserver once.
pub fn dns_files(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let found = parse_resolv_conf(&text);
    for (index, nameserver) in found.nameservers.iter().enumerate() {
        assert!(text.contains(&nameserver.name));
        let others = &found.nameservers[..index];
        assert!(others.iter().all(|other| other.name != nameserver.name));
    }
    assert!(found.nameservers.len() + found.warnings.len() <= text.lines().count());
    let search = found.search.unwrap_or_default();
    assert!(search.len() <= SEARCH_DOMAINS_MAX);
    assert!(found.ndots <= 15);
    assert!((1..=30).contains(&found.timeout_seconds) && (1..=5).contains(&found.attempts));
    let hosts = Hosts::parse(&text);
    for word in text.split_ascii_whitespace().take(64) {
        let Ok(name) = Name::parse(word) else {
            continue;
        };
        assert_eq!(Name::parse(name.as_str()).as_ref(), Ok(&name));
        let addresses = hosts.addresses(&name);
        let address = hosts.address(&name, Family::V4);
        assert_eq!(address.is_some(), !addresses.is_empty());
    }
}
