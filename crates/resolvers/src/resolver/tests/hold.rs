//! Hold periods.

use super::*;
use crate::scripted::{NXDOMAIN, REFUSED, SERVFAIL};

fn held(rcode: u8) -> Status {
    match rcode {
        NXDOMAIN => Status::Nx,
        REFUSED => Status::Refused,
        _ => Status::Other,
    }
}

/// Each kind of error is ignored for its own period after the last valid answer.
#[test]
fn an_error_counts_after_its_hold_period() {
    for rcode in [NXDOMAIN, REFUSED, SERVFAIL] {
        let mut settings = section(1);
        settings.hold.nx_ms = 20_000;
        settings.hold.refused_ms = 25_000;
        settings.hold.other_ms = 35_000;
        let hold_ms = match rcode {
            NXDOMAIN => settings.hold.nx_ms,
            REFUSED => settings.hold.refused_ms,
            _ => settings.hold.other_ms,
        };
        let mut world = World::new(settings);
        let request = world.subscribe(HOST, ADDRESS);
        world.resolve(&["10.0.0.1"]);
        let valid_ms = world.now_ms;
        loop {
            let outcome = world.fail(rcode).remove(0);
            if world.now_ms < valid_ms + hold_ms {
                assert_eq!(outcome, Outcome::Held(held(rcode)));
                let records = world.resolver.records(request).unwrap();
                assert_eq!(records.addresses, [ip("10.0.0.1")]);
            } else {
                assert_eq!(outcome, Outcome::Lost(held(rcode)));
                break;
            }
        }
        assert!(world.now_ms < valid_ms + hold_ms + 4000);
        let records = world.resolver.records(request).unwrap();
        assert!(records.addresses.is_empty());
        // It is said again, and a valid answer ends it at once.
        assert_eq!(world.fail(rcode), [Outcome::Lost(held(rcode))]);
        assert_eq!(found(&world.resolve(&["10.0.0.2"])[0]), [ip("10.0.0.2")]);
        assert_eq!(world.fail(rcode), [Outcome::Held(held(rcode))]);
    }
}

#[test]
fn silence_counts_after_hold_timeout() {
    let mut settings = section(1);
    settings.hold.timeout_ms = 5000;
    let mut world = World::new(settings);
    world.subscribe(HOST, ADDRESS);
    world.resolve(&["10.0.0.1"]);
    let mut outcomes = Vec::new();
    while outcomes.len() < 2 {
        world.step();
        outcomes.extend(world.events());
    }
    // The first one ends 4 seconds after the answer, the second one 8 seconds after it.
    assert_eq!(
        outcomes,
        [
            Outcome::Held(Status::Timeout),
            Outcome::Lost(Status::Timeout)
        ]
    );
}

/// The hold period is that of the last error, not of those before.
#[test]
fn the_last_error_decides_the_period() {
    let mut settings = section(1);
    settings.hold.nx_ms = 0;
    let mut world = World::new(settings);
    world.subscribe(HOST, ADDRESS);
    world.resolve(&["10.0.0.1"]);
    assert_eq!(world.fail(REFUSED), [Outcome::Held(Status::Refused)]);
    assert_eq!(world.fail(NXDOMAIN), [Outcome::Lost(Status::Nx)]);
}

#[test]
fn records_that_vanish_stay_for_hold_obsolete() {
    let mut settings = section(1);
    settings.hold.obsolete_ms = 2500;
    let mut world = World::new(settings);
    world.subscribe(HOST, ADDRESS);
    world.resolve(&["10.0.0.1", "10.0.0.2"]);
    let both = [ip("10.0.0.1"), ip("10.0.0.2")];
    for _ in 0..2 {
        let events = world.resolve(&["10.0.0.2"]);
        assert_eq!(found(&events[0]), both);
        assert!(matches!(events[0], Outcome::Found { changed: false, .. }));
    }
    let events = world.resolve(&["10.0.0.2"]);
    assert_eq!(found(&events[0]), [ip("10.0.0.2")]);
    assert!(matches!(events[0], Outcome::Found { changed: true, .. }));
}

#[test]
fn by_default_records_vanish_at_once() {
    let mut world = World::new(section(1));
    world.subscribe(HOST, ADDRESS);
    world.resolve(&["10.0.0.1", "10.0.0.2"]);
    let events = world.resolve(&["10.0.0.2"]);
    assert_eq!(found(&events[0]), [ip("10.0.0.2")]);
}

/// A nameserver that gives other records each time does not fill the memory.
#[test]
fn kept_records_are_bounded() {
    let mut settings = section(1);
    settings.hold.obsolete_ms = 1_000_000;
    settings.accepted_payload_bytes = 65_535;
    let mut world = World::new(settings);
    let request = world.subscribe(HOST, ADDRESS);
    for round in 0..5_u8 {
        let sent = world.step();
        let record = |at: u16| Record {
            owner: b"\xc0\x0c".to_vec(),
            ..Record::a(HOST, &format!("10.{round}.{}.{}", at / 256, at % 256))
        };
        world.reply(&sent[0], &Reply::of((0..4000).map(record).collect()));
        let records = world.resolver.records(request).unwrap();
        assert!(records.addresses.len() >= 4000);
        assert!(records.addresses.len() <= crate::KEPT_RECORDS_MAX);
    }
    assert_eq!(world.resolver.counters(0).valid, 5);
}

#[test]
fn services_change_their_weights_and_vanish() {
    const SERVICE: &str = "_http._tcp.example.com";
    let mut settings = section(1);
    settings.hold.obsolete_ms = 500;
    let mut world = World::new(settings);
    let request = world.subscribe(SERVICE, Question::Service);
    let sent = world.step();
    let mut low = Record::srv(SERVICE, "z.example.com", 80, 1);
    low.content[1] = 0;
    let reply = Reply {
        answers: vec![
            Record::srv(SERVICE, "a.example.com", 80, 10),
            Record::srv(SERVICE, "a.example.com", 81, 20),
            low,
        ],
        additional: vec![
            Record::a("a.example.com", "10.0.0.2"),
            Record::aaaa("a.example.com", "2001:db8::1"),
            Record::a("a.example.com", "10.0.0.1"),
        ],
        ..Reply::default()
    };
    world.reply(&sent[0], &reply);
    let records = world.resolver.records(request).unwrap();
    let ports: Vec<u16> = records
        .services
        .iter()
        .map(|service| service.port)
        .collect();
    assert_eq!(ports, [80, 80, 81], "by priority, then by target and port");
    assert_eq!(records.services[0].target.as_str(), "z.example.com");
    assert!(records.services[0].addresses.is_empty());
    let addresses = [ip("10.0.0.1"), ip("10.0.0.2"), ip("2001:db8::1")];
    assert_eq!(records.services[1].addresses, addresses);
    assert_eq!(records.services[2].addresses, addresses);
    let sent = world.step();
    let answers = vec![Record::srv(SERVICE, "A.example.com", 80, 30)];
    world.reply(&sent[0], &Reply::of(answers));
    let records = world.resolver.records(request).unwrap();
    assert_eq!(records.services.len(), 1);
    assert_eq!(records.services[0].weight, 30);
    assert!(records.services[0].addresses.is_empty());
}

#[test]
fn additional_addresses_of_a_refused_family_are_ignored() {
    const SERVICE: &str = "_http._tcp.example.com";
    let mut settings = section(1);
    settings.families = Families::V4;
    let mut world = World::new(settings);
    let request = world.subscribe(SERVICE, Question::Service);
    let sent = world.step();
    let reply = Reply {
        answers: vec![Record::srv(SERVICE, "a.example.com", 80, 10)],
        additional: vec![
            Record::aaaa("a.example.com", "2001:db8::1"),
            Record::a("a.example.com", "10.0.0.1"),
        ],
        ..Reply::default()
    };
    world.reply(&sent[0], &reply);
    let records = world.resolver.records(request).unwrap();
    assert_eq!(records.services[0].addresses, [ip("10.0.0.1")]);
}
