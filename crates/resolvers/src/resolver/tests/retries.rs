//! Attempts: all nameservers at once, the first valid answer, retries, the other address family.

use super::*;
use crate::scripted::{NXDOMAIN, REFUSED, SERVFAIL};
use crate::section::Families;

#[test]
fn a_query_goes_to_all_nameservers_and_the_first_valid_answer_wins() {
    let mut world = World::new(section(2));
    world.subscribe(HOST, ADDRESS);
    let sent = world.step();
    assert_eq!(types(&sent), [TYPE_A, TYPE_A]);
    assert_ne!(sent[0].id, sent[1].id);
    world.reply(&sent[1], &Reply::of(vec![Record::a(HOST, "10.0.0.2")]));
    world.reply(&sent[0], &Reply::of(vec![Record::a(HOST, "10.0.0.1")]));
    let events = world.events();
    assert_eq!(events.len(), 1);
    assert_eq!(found(&events[0]), [ip("10.0.0.2")]);
    assert!(matches!(
        events[0],
        Outcome::Found {
            nameserver: Some(1),
            changed: true,
            ..
        }
    ));
    let counters = world.resolver.counters(0);
    assert_eq!(
        (counters.sent, counters.outdated, counters.valid),
        (1, 1, 0)
    );
    assert_eq!(world.resolver.counters(1).valid, 1);
    // The next one begins `timeout resolve` later.
    assert_eq!(world.resolver.poll_timeout(), Some(world.now_ms + 1000));
}

#[test]
fn one_valid_answer_after_an_error_is_enough() {
    let mut world = World::new(section(2));
    world.subscribe(HOST, ADDRESS);
    let sent = world.step();
    world.reply(&sent[0], &Reply::error(NXDOMAIN));
    // The same nameserver's error again is no second one.
    world.reply(&sent[0], &Reply::error(NXDOMAIN));
    assert!(world.sent().is_empty() && world.events().is_empty());
    world.reply(&sent[1], &Reply::of(vec![Record::a(HOST, "10.0.0.1")]));
    assert_eq!(found(&world.events()[0]), [ip("10.0.0.1")]);
    assert_eq!(world.resolver.counters(0).nx, 2);
}

#[test]
fn the_other_family_is_asked_for_when_all_nameservers_failed() {
    let mut world = World::new(section(2));
    world.subscribe(HOST, ADDRESS);
    let sent = world.step();
    world.reply(&sent[0], &Reply::error(NXDOMAIN));
    world.reply(&sent[1], &Reply::of(Vec::new()));
    let sent = world.sent();
    assert_eq!(types(&sent), [TYPE_AAAA, TYPE_AAAA]);
    world.reply(
        &sent[0],
        &Reply::of(vec![Record::aaaa(HOST, "2001:db8::1")]),
    );
    assert_eq!(found(&world.events()[0]), [ip("2001:db8::1")]);
    // The next resolution begins with the preferred family again.
    assert_eq!(types(&world.step()), [TYPE_A, TYPE_A]);
}

#[test]
fn a_late_answer_to_an_earlier_attempt_is_as_good() {
    let mut world = World::new(section(1));
    world.subscribe(HOST, ADDRESS);
    let first = world.step();
    let second = world.step();
    assert_eq!(first, second, "a repetition is the same message");
    world.reply(&second[0], &Reply::error(NXDOMAIN));
    assert_eq!(types(&world.sent()), [TYPE_AAAA]);
    world.reply(&first[0], &Reply::of(vec![Record::a(HOST, "10.0.0.1")]));
    assert_eq!(found(&world.events()[0]), [ip("10.0.0.1")]);
}

#[test]
fn without_an_answer_the_same_query_is_repeated_up_to_resolve_retries() {
    let mut world = World::new(section(2));
    world.subscribe(HOST, ADDRESS);
    let begin_ms = world.now_ms;
    for attempt in 0..3 {
        let sent = world.step();
        assert_eq!(types(&sent), [TYPE_A, TYPE_A]);
        assert_eq!(world.now_ms, begin_ms + attempt * 1000);
        assert!(world.events().is_empty());
    }
    assert!(world.step().is_empty());
    assert_eq!(world.now_ms, begin_ms + 3000);
    assert_eq!(world.events(), [Outcome::Held(Status::Timeout)]);
    assert_eq!(world.resolver.counters(0).timeout, 3);
    assert_eq!(world.resolver.counters(0).sent, 3);
}

#[test]
fn errors_go_through_both_families_in_each_try() {
    let mut world = World::new(section(1));
    world.subscribe(HOST, ADDRESS);
    let begin_ms = world.now_ms;
    for attempt in 0..3 {
        let sent = world.step();
        assert_eq!(types(&sent), [TYPE_A]);
        assert_eq!(world.now_ms, begin_ms + attempt * 1000);
        world.reply(&sent[0], &Reply::error(SERVFAIL));
        let sent = world.sent();
        assert_eq!(types(&sent), [TYPE_AAAA]);
        world.reply(&sent[0], &Reply::error(NXDOMAIN));
        assert!(world.sent().is_empty());
    }
    // The last error is the one of the resolution, without a further wait.
    assert_eq!(world.now_ms, begin_ms + 2000);
    assert_eq!(world.events(), [Outcome::Held(Status::Nx)]);
    let counters = world.resolver.counters(0);
    assert_eq!((counters.other, counters.nx), (3, 3));
}

#[test]
fn one_error_and_one_silence_change_the_family_after_the_wait() {
    let mut world = World::new(section(2));
    world.subscribe(HOST, ADDRESS);
    let sent = world.step();
    world.reply(&sent[0], &Reply::error(REFUSED));
    assert!(world.sent().is_empty());
    assert_eq!(types(&world.step()), [TYPE_AAAA, TYPE_AAAA]);
    assert_eq!(world.resolver.counters(1).timeout, 1);
    assert_eq!(world.resolver.counters(0).timeout, 0);
    // Nobody answers: back to the preferred family, which is the next try.
    assert_eq!(types(&world.step()), [TYPE_A, TYPE_A]);
}

#[test]
fn a_single_family_and_services_have_no_other_type() {
    for (families, question, record_type) in [
        (
            Families::V4,
            Question::Address { prefer: Family::V6 },
            TYPE_A,
        ),
        (Families::V6, ADDRESS, TYPE_AAAA),
        (Families::Both, Question::Service, TYPE_SRV),
    ] {
        let mut settings = section(1);
        settings.families = families;
        let mut world = World::new(settings);
        world.subscribe(HOST, question);
        for _ in 0..3 {
            let sent = world.step();
            assert_eq!(types(&sent), [record_type]);
            world.reply(&sent[0], &Reply::error(NXDOMAIN));
            assert!(world.sent().is_empty() && world.events().is_empty());
        }
        assert!(world.step().is_empty());
        assert_eq!(world.events(), [Outcome::Held(Status::Nx)]);
    }
}

#[test]
fn timeouts_of_zero_do_not_loop() {
    let mut settings = section(1);
    settings.timeout_resolve_ms = 0;
    settings.timeout_retry_ms = 0;
    settings.resolve_retries = 0;
    let mut world = World::new(settings);
    world.subscribe(HOST, ADDRESS);
    assert_eq!(world.step().len(), 1);
    let before_ms = world.now_ms;
    for _ in 0..10 {
        world.step();
    }
    assert!(world.now_ms >= before_ms + 10);
}

#[test]
fn a_section_without_nameservers_times_out() {
    let mut world = World::new(section(0));
    world.subscribe(HOST, ADDRESS);
    assert!(world.step().is_empty());
    for _ in 0..3 {
        world.step();
    }
    assert_eq!(world.events(), [Outcome::Held(Status::Timeout)]);
}

/// Every id of the only nameserver but one is taken: the names still get on.
#[test]
fn ids_under_way_are_not_used_twice() {
    let mut world = World::new(section(1));
    for host in 0..5000 {
        world.subscribe(&format!("h{host}"), ADDRESS);
    }
    let sent = world.step();
    let ids: std::collections::HashSet<u16> = sent.iter().map(|sent| sent.id).collect();
    assert_eq!((sent.len(), ids.len()), (5000, 5000));
    assert_eq!(world.resolver.pending.len(), 5000);
}
