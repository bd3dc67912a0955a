//! Lookups: nameservers are asked one after the other.

use super::*;
use crate::ASKED_NAMES_MAX;
use crate::scripted::{NXDOMAIN, REFUSED, SERVFAIL};
use crate::section::Hold;

/// Two attempts, 5 seconds for an answer, answers kept for 3 seconds.
fn lookups(nameservers: usize) -> World {
    let mut section = section(nameservers);
    section.resolve_retries = 2;
    section.timeout_retry_ms = 5000;
    section.hold = Hold {
        valid_ms: 3000,
        nx_ms: 0,
        refused_ms: 0,
        timeout_ms: 0,
        other_ms: 0,
        obsolete_ms: 0,
    };
    World::new(section)
}

impl World {
    fn look_up(&mut self, family: Family) -> LookedUp {
        let found = self.resolver.look_up(name(HOST), family, self.now_ms);
        found.unwrap()
    }

    /// The addresses of the only event.
    fn looked_up(&mut self) -> Result<Vec<IpAddr>, Status> {
        let events = self.events();
        assert_eq!(events.len(), 1, "{events:?}");
        match &events[0] {
            Outcome::LookedUp(found) => found.clone().map(|records| records.addresses.clone()),
            other => panic!("{other:?}"),
        }
    }
}

fn addresses(host: &str, addresses: &[&str]) -> Reply {
    let records = addresses.iter().map(|address| Record::a(host, address));
    Reply::of(records.collect())
}

fn asked(transmits: &[Transmit]) -> Vec<usize> {
    transmits
        .iter()
        .map(|transmit| transmit.nameserver)
        .collect()
}

#[test]
fn all_addresses_of_a_family_come_from_the_first_nameserver() {
    let mut world = lookups(3);
    assert!(matches!(world.look_up(Family::V4), LookedUp::Later(_)));
    assert!(matches!(world.look_up(Family::V6), LookedUp::Later(_)));
    let sent = world.step();
    assert_eq!(types(&sent), [TYPE_A, TYPE_AAAA]);
    assert_eq!(asked(&sent), [0, 0]);
    world.reply(&sent[0], &addresses(HOST, &["10.0.0.2", "10.0.0.1"]));
    let expected = vec![ip("10.0.0.1"), ip("10.0.0.2")];
    assert_eq!(world.looked_up(), Ok(expected.clone()));
    world.reply(&sent[1], &Reply::default());
    assert_eq!(world.looked_up(), Err(Status::NoData));
    // Both outcomes serve for `hold valid`, without a query.
    world.now_ms += 2999;
    match world.look_up(Family::V4) {
        LookedUp::Now(Ok(records)) => assert_eq!(records.addresses, expected),
        other => panic!("{other:?}"),
    }
    assert_eq!(
        world.look_up(Family::V6),
        LookedUp::Now(Err(Status::NoData))
    );
    assert!(world.pass(1).is_empty());
    assert_empty(&world.resolver);
}

#[test]
fn a_nameserver_that_does_not_answer_is_passed_over_in_time() {
    let mut world = lookups(2);
    let begin_ms = world.now_ms;
    world.look_up(Family::V4);
    let mut turns = Vec::new();
    while world.resolver.poll_timeout().is_some() {
        let sent = world.step();
        turns.extend(
            sent.iter()
                .map(|one| (world.now_ms - begin_ms, one.nameserver)),
        );
    }
    assert_eq!(turns, [(0, 0), (5000, 1), (10_000, 0), (15_000, 1)]);
    assert_eq!(world.looked_up(), Err(Status::Timeout));
    assert_eq!(world.now_ms - begin_ms, 20_000);
    assert_empty(&world.resolver);
    let timeouts = |world: &World, place| world.resolver.counters(place).timeout;
    assert!(timeouts(&world, 0) >= 2 && timeouts(&world, 1) >= 2);
}

#[test]
fn an_error_passes_the_question_on_and_a_negative_answer_ends_it() {
    let mut world = lookups(3);
    world.look_up(Family::V4);
    let first = world.step();
    world.reply(&first[0], &Reply::error(SERVFAIL));
    let second = world.sent();
    assert_eq!(asked(&second), [1]);
    world.reply(&second[0], &Reply::error(REFUSED));
    let third = world.sent();
    assert_eq!(asked(&third), [2]);
    // Again the same error of a nameserver whose turn is over.
    world.reply(&first[0], &Reply::error(SERVFAIL));
    assert!(world.sent().is_empty() && world.events().is_empty());
    world.reply(&third[0], &Reply::error(NXDOMAIN));
    assert_eq!(world.looked_up(), Err(Status::Nx));
    assert_eq!(world.look_up(Family::V4), LookedUp::Now(Err(Status::Nx)));
}

#[test]
fn errors_of_all_nameservers_end_a_lookup_and_are_not_kept() {
    let mut world = lookups(2);
    world.look_up(Family::V4);
    let mut sent = world.step();
    let mut count = 0;
    while let Some(query) = sent.pop() {
        count += 1;
        world.reply(&query, &Reply::error(SERVFAIL));
        sent = world.sent();
    }
    assert_eq!(count, 4);
    assert_eq!(world.looked_up(), Err(Status::Other));
    assert_empty(&world.resolver);
}

#[test]
fn a_late_answer_of_an_earlier_nameserver_counts() {
    let mut world = lookups(2);
    world.look_up(Family::V4);
    let first = world.step();
    assert_eq!(asked(&world.step()), [1]);
    world.reply(&first[0], &addresses(HOST, &["10.0.0.1"]));
    assert_eq!(world.looked_up(), Ok(vec![ip("10.0.0.1")]));
}

#[test]
fn a_message_that_cannot_be_sent_passes_the_question_on() {
    let mut world = lookups(2);
    world.look_up(Family::V4);
    let mut nameservers = Vec::new();
    let mut sent = world.step();
    while let Some(query) = sent.pop() {
        nameservers.push(query.nameserver);
        let failure = SendFailure {
            nameserver: query.nameserver,
            transport: query.transport,
            id: query.id,
        };
        world.resolver.handle_send_failure(failure, world.now_ms);
        sent = world.sent();
    }
    assert_eq!(nameservers, [0, 1, 0, 1]);
    assert_eq!(world.looked_up(), Err(Status::Timeout));
    assert_empty(&world.resolver);
}

#[test]
fn lookups_and_questions_of_rules_share_nothing_but_the_limit() {
    let mut world = lookups(2);
    world.look_up(Family::V4);
    let question = world.resolver.ask(name(HOST), Family::V4, world.now_ms);
    assert!(matches!(question, Ok(Asked::Later(_))));
    assert_eq!(asked(&world.step()), [0, 0, 1]);
    for number in 2..ASKED_NAMES_MAX {
        let name = name(&format!("h{number}.test"));
        let found = world.resolver.look_up(name, Family::V4, world.now_ms);
        assert!(matches!(found, Ok(LookedUp::Later(_))));
    }
    let late = world
        .resolver
        .look_up(name("late.test"), Family::V4, world.now_ms);
    assert_eq!(late, Err(TooMany));
}

#[test]
fn what_is_given_up_leaves_nothing() {
    let mut world = lookups(2);
    let LookedUp::Later(request) = world.look_up(Family::V4) else {
        panic!("nothing is known yet");
    };
    let sent = world.step();
    world.resolver.unsubscribe(request, world.now_ms);
    assert_empty(&world.resolver);
    world.reply(&sent[0], &addresses(HOST, &["10.0.0.1"]));
    assert!(world.events().is_empty());
}
