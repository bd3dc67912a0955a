//! Sources, sizes, truncation, messages that could not be sent; hostile answers.

use super::*;
use crate::scripted::NXDOMAIN;

fn failure(transmit: &Transmit) -> SendFailure {
    SendFailure {
        nameserver: transmit.nameserver,
        transport: transmit.transport,
        id: transmit.id,
    }
}

fn truncated(answers: Vec<Record>) -> Reply {
    Reply {
        is_truncated: true,
        answers,
        ..Reply::default()
    }
}

#[test]
fn answers_with_another_id_source_or_question_are_ignored() {
    let mut world = World::new(section(2));
    let request = world.subscribe(HOST, ADDRESS);
    let sent = world.step();
    let poison = Reply::of(vec![Record::a(HOST, "10.6.6.6")]);
    let mut wrong_id = poison.to(&sent[0].bytes);
    wrong_id[1] ^= 1;
    world.message(&sent[0], &wrong_id);
    // The id of the other nameserver's query.
    let other = poison.to(&sent[1].bytes);
    world.message(&sent[0], &other);
    let over_tcp = Transmit {
        transport: Transport::Tcp,
        ..sent[0].clone()
    };
    world.reply(&over_tcp, &poison);
    assert_eq!(world.resolver.counters(0).outdated, 3);
    let mut wrong_question = poison.to(&sent[0].bytes);
    wrong_question[13] = b'x';
    world.message(&sent[0], &wrong_question);
    world.message(&sent[0], &[]);
    world.message(&sent[0], &sent[0].bytes);
    assert_eq!(world.resolver.counters(0).invalid, 3);
    world
        .resolver
        .handle_message(9, Transport::Udp, &other, world.now_ms);
    assert!(world.events().is_empty());
    assert!(
        world
            .resolver
            .records(request)
            .unwrap()
            .addresses
            .is_empty()
    );
    // The true answers still count, and one failure of each nameserver.
    world.reply(&sent[1], &Reply::error(NXDOMAIN));
    assert!(world.sent().is_empty());
    world.reply(&sent[0], &Reply::of(vec![Record::a(HOST, "10.0.0.1")]));
    assert_eq!(found(&world.events()[0]), [ip("10.0.0.1")]);
}

#[test]
fn records_of_other_names_are_never_used() {
    let mut world = World::new(section(1));
    let request = world.subscribe(HOST, ADDRESS);
    let sent = world.step();
    let reply = Reply {
        answers: vec![
            Record::a(HOST, "10.0.0.1"),
            Record::a("bank.example.org", "10.6.6.6"),
        ],
        additional: vec![Record::a(HOST, "10.6.6.7")],
        ..Reply::default()
    };
    world.reply(&sent[0], &reply);
    let records = world.resolver.records(request).unwrap();
    assert_eq!(records.addresses, [ip("10.0.0.1")]);
}

#[test]
fn answers_beyond_the_accepted_size_are_ignored() {
    let mut world = World::new(section(1));
    world.subscribe(HOST, ADDRESS);
    let sent = world.step();
    let mut bytes = Reply::of(vec![Record::a(HOST, "10.0.0.1")]).to(&sent[0].bytes);
    let valid = bytes.clone();
    bytes.resize(513, 0);
    world.message(&sent[0], &bytes);
    world.message(&sent[0], &[0; 65_535]);
    assert_eq!(world.resolver.counters(0).too_big, 2);
    assert!(world.events().is_empty());
    world.message(&sent[0], &valid);
    assert_eq!(world.events().len(), 1);
}

#[test]
fn a_truncated_answer_goes_over_tcp_once() {
    let mut world = World::new(section(1));
    world.subscribe(HOST, ADDRESS);
    let udp = world.step();
    world.reply(&udp[0], &truncated(Vec::new()));
    let tcp = world.sent();
    assert_eq!(tcp.len(), 1);
    assert_eq!((tcp[0].transport, tcp[0].id), (Transport::Tcp, udp[0].id));
    assert_eq!(tcp[0].bytes, udp[0].bytes);
    // A late datagram of the same id is not what is awaited now.
    world.reply(&udp[0], &Reply::of(vec![Record::a(HOST, "10.6.6.6")]));
    assert_eq!(world.resolver.counters(0).outdated, 1);
    // The answer may be larger than a datagram.
    let record = |at: u8| Record::a(HOST, &format!("10.0.0.{at}"));
    let reply = Reply::of((0..100).map(record).collect());
    assert!(reply.to(&tcp[0].bytes).len() > 512);
    world.reply(&tcp[0], &reply);
    assert_eq!(found(&world.events()[0]).len(), 100);
    let counters = world.resolver.counters(0);
    assert_eq!(
        (counters.truncated, counters.sent, counters.valid),
        (1, 2, 1)
    );
}

#[test]
fn a_truncated_answer_over_tcp_is_an_error() {
    let mut world = World::new(section(1));
    world.subscribe(HOST, ADDRESS);
    let udp = world.step();
    world.reply(&udp[0], &truncated(Vec::new()));
    let tcp = world.sent();
    world.reply(&tcp[0], &truncated(Vec::new()));
    assert_eq!(world.resolver.counters(0).truncated, 2);
    assert_eq!(types(&world.sent()), [TYPE_AAAA]);
}

#[test]
fn truncation_without_tcp_is_an_error() {
    let mut world = World::new(section(1));
    world.subscribe(HOST, ADDRESS);
    let udp = world.step();
    world.reply(&udp[0], &truncated(Vec::new()));
    let tcp = world.sent();
    world
        .resolver
        .handle_send_failure(failure(&tcp[0]), world.now_ms);
    let counters = world.resolver.counters(0);
    assert_eq!((counters.sent, counters.snd_error), (1, 1));
    assert_eq!(types(&world.sent()), [TYPE_AAAA]);
}

/// What a truncated answer of services has is better than nothing.
#[test]
fn truncated_services_serve_when_tcp_gives_nothing() {
    const SERVICE: &str = "_http._tcp.example.com";
    let part = || truncated(vec![Record::srv(SERVICE, "a", 80, 1)]);
    for fails in [false, true] {
        let mut world = World::new(section(1));
        let request = world.subscribe(SERVICE, Question::Service);
        let udp = world.step();
        world.reply(&udp[0], &part());
        let tcp = world.sent();
        assert_eq!(tcp[0].transport, Transport::Tcp);
        assert!(world.events().is_empty());
        if fails {
            world
                .resolver
                .handle_send_failure(failure(&tcp[0]), world.now_ms);
        } else {
            world.step();
        }
        assert_eq!(world.events().len(), 1);
        let records = world.resolver.records(request).unwrap();
        assert_eq!(records.services.len(), 1);
        // Next time the whole answer comes.
        let udp = world.step();
        world.reply(&udp[0], &part());
        let tcp = world.sent();
        let answers = ["a", "b"].map(|target| Record::srv(SERVICE, target, 80, 1));
        world.reply(&tcp[0], &Reply::of(answers.to_vec()));
        let records = world.resolver.records(request).unwrap();
        assert_eq!(records.services.len(), 2);
    }
}

#[test]
fn a_nameserver_that_cannot_be_asked_does_not_count() {
    let mut world = World::new(section(2));
    world.subscribe(HOST, ADDRESS);
    let sent = world.step();
    world
        .resolver
        .handle_send_failure(failure(&sent[0]), world.now_ms);
    world
        .resolver
        .handle_send_failure(failure(&sent[0]), world.now_ms);
    assert!(world.sent().is_empty());
    world.reply(&sent[1], &Reply::error(NXDOMAIN));
    assert_eq!(types(&world.sent()), [TYPE_AAAA, TYPE_AAAA]);
    let counters = world.resolver.counters(0);
    assert_eq!((counters.sent, counters.snd_error), (1, 2));
}

#[test]
fn when_nothing_can_be_sent_attempts_wait_and_time_out() {
    let mut world = World::new(section(2));
    world.subscribe(HOST, ADDRESS);
    let begin_ms = world.now_ms;
    for attempt in 0..3 {
        let sent = world.step();
        assert_eq!(world.now_ms, begin_ms + attempt * 1000);
        assert_eq!(sent.len(), 2);
        for transmit in sent {
            world
                .resolver
                .handle_send_failure(failure(&transmit), world.now_ms);
        }
        assert!(world.sent().is_empty() && world.events().is_empty());
    }
    world.step();
    assert_eq!(world.events(), [Outcome::Held(Status::Timeout)]);
    assert_eq!(world.resolver.counters(0).timeout, 0);
}
