//! Subscriptions that share a resolution, questions, kicks, limits.

use super::*;
use crate::scripted::NXDOMAIN;

#[test]
fn subscribers_of_one_name_and_type_share_a_resolution() {
    let mut world = World::new(section(1));
    let first = world.subscribe(HOST, ADDRESS);
    world.subscribe("WWW.example.COM.", ADDRESS);
    let other = world.subscribe(HOST, Question::Address { prefer: Family::V6 });
    let sent = world.step();
    assert_eq!(types(&sent), [TYPE_A, TYPE_AAAA]);
    world.reply(&sent[0], &Reply::of(vec![Record::a(HOST, "10.0.0.1")]));
    assert_eq!(world.events().len(), 2);
    // A later one has the current records at once.
    let late = world.subscribe(HOST, ADDRESS);
    let events = world.events();
    assert_eq!(found(&events[0]), [ip("10.0.0.1")]);
    assert!(matches!(
        events[0],
        Outcome::Found {
            nameserver: None,
            ..
        }
    ));
    world.resolver.unsubscribe(other, world.now_ms);
    world.resolver.unsubscribe(first, world.now_ms);
    world.resolve(&["10.0.0.1"]);
    world.resolver.unsubscribe(late, world.now_ms);
    let sent = world.step();
    assert_eq!(sent.len(), 1, "one subscriber is left");
}

#[test]
fn nothing_is_left_of_what_ended() {
    let mut world = World::new(section(2));
    let waiting = world.subscribe("a", ADDRESS);
    let running = world.subscribe("b", Question::Service);
    let sent = world.step();
    world.reply(&sent[0], &Reply::of(vec![Record::a("a", "10.0.0.1")]));
    world.resolver.unsubscribe(waiting, world.now_ms);
    world.resolver.unsubscribe(running, world.now_ms);
    world.resolver.unsubscribe(running, world.now_ms);
    assert!(world.events().is_empty());
    assert_empty(&world.resolver);
    assert_eq!(world.resolver.records(waiting), None);
    world.reply(&sent[2], &Reply::error(NXDOMAIN));
    assert_eq!(world.resolver.counters(sent[2].nameserver).outdated, 1);
}

fn later(asked: Asked) -> RequestId {
    match asked {
        Asked::Later(request) => request,
        Asked::Now(address) => panic!("{address}"),
    }
}

#[test]
fn a_question_is_answered_once_and_its_answer_serves_for_hold_valid() {
    let mut world = World::new(section(1));
    let ask = |world: &mut World| {
        let now_ms = world.now_ms;
        world.resolver.ask(name(HOST), Family::V4, now_ms).unwrap()
    };
    later(ask(&mut world));
    later(ask(&mut world));
    let sent = world.step();
    assert_eq!(sent.len(), 1);
    let answers = vec![Record::a(HOST, "10.0.0.1"), Record::a(HOST, "10.0.0.2")];
    world.reply(&sent[0], &Reply::of(answers));
    // Addresses take turns.
    let addresses = [ip("10.0.0.1"), ip("10.0.0.2")];
    assert_eq!(world.events(), addresses.map(Outcome::Address));
    assert!(world.pass(9_999).is_empty());
    assert_eq!(ask(&mut world), Asked::Now(addresses[0]));
    assert_eq!(ask(&mut world), Asked::Now(addresses[1]));
    assert!(world.pass(1).is_empty());
    assert_empty(&world.resolver);
    later(ask(&mut world));
    assert_eq!(world.step().len(), 1);
}

#[test]
fn a_question_that_fails_is_not_cached() {
    let mut world = World::new(section(1));
    let asked = world.resolver.ask(name(HOST), Family::V4, world.now_ms);
    later(asked.unwrap());
    assert_eq!(world.fail(NXDOMAIN), [Outcome::NoAddress]);
    assert_empty(&world.resolver);
}

#[test]
fn a_question_that_is_given_up_ends_its_queries() {
    let mut world = World::new(section(1));
    let asked = world.resolver.ask(name(HOST), Family::V6, world.now_ms);
    let request = later(asked.unwrap());
    assert_eq!(world.step().len(), 1);
    world.resolver.unsubscribe(request, world.now_ms);
    assert_empty(&world.resolver);
}

#[test]
fn without_hold_valid_nothing_is_cached() {
    let mut settings = section(1);
    settings.hold.valid_ms = 0;
    let mut world = World::new(settings);
    let asked = world.resolver.ask(name(HOST), Family::V4, world.now_ms);
    later(asked.unwrap());
    assert_eq!(
        world.resolve(&["10.0.0.1"]),
        [Outcome::Address(ip("10.0.0.1"))]
    );
    assert_empty(&world.resolver);
}

/// A question about a name that failed does not wait for the name's next turn.
#[test]
fn a_question_resolves_at_once() {
    let mut settings = section(1);
    settings.timeout_resolve_ms = 100_000;
    let mut world = World::new(settings);
    let server = world.subscribe(HOST, ADDRESS);
    world.fail(NXDOMAIN);
    let before_ms = world.now_ms;
    later(
        world
            .resolver
            .ask(name(HOST), Family::V4, before_ms)
            .unwrap(),
    );
    let events = world.resolve(&["10.0.0.1"]);
    assert_eq!(world.now_ms, before_ms);
    assert_eq!(events.len(), 2);
    assert!(world.resolver.records(server).is_some());
}

#[test]
fn kicks_resolve_now_unless_an_answer_is_fresh() {
    let mut settings = section(1);
    settings.timeout_resolve_ms = 60_000;
    let mut world = World::new(settings);
    let request = world.subscribe(HOST, ADDRESS);
    world.resolve(&["10.0.0.1"]);
    let now_ms = world.now_ms;
    assert!(!world.resolver.kick(request, now_ms + 9_999));
    assert!(world.pass(10_000).is_empty());
    let now_ms = world.now_ms;
    assert!(world.resolver.kick(request, now_ms));
    assert_eq!(world.step().len(), 1);
    assert_eq!(world.now_ms, now_ms);
    assert!(!world.resolver.kick(request, now_ms), "it is under way");
    // After an error the age of the last answer does not matter.
    world.fail(NXDOMAIN);
    let now_ms = world.now_ms;
    assert!(world.resolver.kick(request, now_ms));
    assert!(!world.resolver.kick(RequestId(999), now_ms));
}

#[test]
fn questions_are_bounded_and_cached_answers_make_room() {
    let mut world = World::new(section(1));
    let now_ms = world.now_ms;
    for host in 0..ASKED_NAMES_MAX {
        let asked = world
            .resolver
            .ask(name(&format!("h{host}")), Family::V4, now_ms);
        later(asked.unwrap());
    }
    let refused = world.resolver.ask(name("more"), Family::V4, now_ms);
    assert_eq!(refused, Err(TooMany));
    // Subscriptions have a limit of their own.
    world.subscribe(HOST, ADDRESS);
    let sent = world.step();
    let first = Reply::of(vec![Record::a("h0", "10.0.0.1")]);
    let of_h0 = sent
        .iter()
        .find(|sent| question(&sent.bytes).starts_with(b"\x02h0\0"));
    world.reply(of_h0.unwrap(), &first);
    assert_eq!(world.events(), [Outcome::Address(ip("10.0.0.1"))]);
    later(
        world
            .resolver
            .ask(name("more"), Family::V4, now_ms)
            .unwrap(),
    );
    let refused = world.resolver.ask(name("yet-more"), Family::V4, now_ms);
    assert_eq!(refused, Err(TooMany));
}
