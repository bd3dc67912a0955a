use super::*;
use crate::scripted::{FORMERR, REFUSED, Record, Reply, SERVFAIL, TYPE_TXT};

const HOST: &str = "www.example.com";

fn name(text: &str) -> Name {
    Name::parse(text).unwrap()
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn ask(kind: Kind) -> Vec<u8> {
    query(0x1234, &name(HOST), kind, 1232)
}

fn read_reply(kind: Kind, reply: &Reply) -> Result<Answer, Fault> {
    read(&reply.to(&ask(kind)), &name(HOST), kind)
}

fn addresses(kind: Kind, answers: Vec<Record>) -> Result<Vec<IpAddr>, Fault> {
    read_reply(kind, &Reply::of(answers)).map(|answer| answer.addresses)
}

#[test]
fn a_query_is_what_rfc_1035_and_6891_say() {
    let mut expected = b"\x12\x34\x01\x00\0\x01\0\0\0\0\0\x01".to_vec();
    expected.extend(b"\x03www\x07example\x03com\0\0\x1c\0\x01");
    expected.extend(b"\0\0\x29\x04\xd0\0\0\0\0\0\0");
    assert_eq!(ask(Kind::Aaaa), expected);
}

#[test]
fn records_of_the_type_and_the_name_count() {
    let answers = vec![
        Record::a("WWW.Example.com", "10.0.0.1"),
        Record::a("other.example.com", "10.6.6.6"),
        Record::aaaa(HOST, "2001:db8::1"),
        Record::new(HOST, TYPE_TXT, b"\x01x"),
        Record::a(HOST, "10.0.0.2"),
    ];
    let found = addresses(Kind::A, answers.clone()).unwrap();
    assert_eq!(found, [ip("10.0.0.1"), ip("10.0.0.2")]);
    let found = addresses(Kind::Aaaa, answers).unwrap();
    assert_eq!(found, [ip("2001:db8::1")]);
}

#[test]
fn aliases_are_followed_in_any_order_within_the_message() {
    let answers = vec![
        Record::a("c.example.com", "10.0.0.1"),
        Record::cname("b.example.com", "c.example.com"),
        Record::cname(HOST, "b.example.com"),
        Record::a(HOST, "10.6.6.6"),
        Record::a("b.example.com", "10.6.6.7"),
    ];
    let answer = read_reply(Kind::A, &Reply::of(answers.clone())).unwrap();
    assert_eq!(answer.addresses, [ip("10.0.0.1")]);
    assert!(answer.is_alias);
    assert_eq!(addresses(Kind::A, answers[1..].to_vec()), Err(Fault::Alias));
    let circle = vec![
        Record::cname(HOST, "b.example.com"),
        Record::cname("b.example.com", HOST),
        Record::a(HOST, "10.0.0.1"),
    ];
    assert_eq!(addresses(Kind::A, circle), Err(Fault::Alias));
    let chain = |length: usize| {
        let host = |at: usize| {
            if at == 0 {
                HOST.to_owned()
            } else {
                format!("h{at}")
            }
        };
        let mut chain: Vec<Record> = (0..length)
            .map(|at| Record::cname(&host(at), &host(at + 1)))
            .collect();
        chain.push(Record::a(&host(length), "10.0.0.1"));
        chain
    };
    assert!(addresses(Kind::A, chain(CNAMES_MAX)).is_ok());
    assert_eq!(addresses(Kind::A, chain(CNAMES_MAX + 1)), Err(Fault::Alias));
}

#[test]
fn errors_have_their_kinds() {
    let error = |rcode| read_reply(Kind::A, &Reply::error(rcode));
    assert_eq!(error(crate::scripted::NXDOMAIN), Err(Fault::Nx));
    assert_eq!(error(REFUSED), Err(Fault::Refused));
    assert_eq!(error(SERVFAIL), Err(Fault::Other));
    assert_eq!(error(crate::scripted::NOERROR), Err(Fault::Empty));
    let others = vec![Record::a("other.example.com", "10.0.0.1")];
    assert_eq!(addresses(Kind::A, others), Err(Fault::Invalid));
    let others = vec![Record::new(HOST, TYPE_TXT, b"\x01x")];
    assert_eq!(addresses(Kind::A, others), Err(Fault::Other));
    // A nameserver that does not understand the query.
    let mut bytes = Reply::error(FORMERR).to(&ask(Kind::A));
    bytes.truncate(12);
    bytes[5] = 0;
    assert_eq!(read(&bytes, &name(HOST), Kind::A), Err(Fault::Other));
}

#[test]
fn messages_that_do_not_answer_the_question_are_unrelated() {
    let reply = Reply::of(vec![Record::a(HOST, "10.0.0.1")]);
    let good = reply.to(&ask(Kind::A));
    let fault = |bytes: &[u8]| read(bytes, &name(HOST), Kind::A).unwrap_err();
    assert!(read(&good, &name(HOST), Kind::A).is_ok());
    assert_eq!(
        read(&good, &name("www.example.org"), Kind::A),
        Err(Fault::Unrelated)
    );
    assert_eq!(read(&good, &name(HOST), Kind::Aaaa), Err(Fault::Unrelated));
    let changed = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        bytes
    };
    assert_eq!(fault(&changed(2, 0x01)), Fault::Unrelated, "a query");
    assert_eq!(fault(&changed(2, 0xa1)), Fault::Unrelated, "an update");
    assert_eq!(fault(&changed(5, 0)), Fault::Unrelated, "no question");
    assert_eq!(fault(&changed(5, 2)), Fault::Unrelated, "two questions");
    assert_eq!(fault(&changed(32, 3)), Fault::Unrelated, "another class");
    assert_eq!(fault(&good[..11]), Fault::Invalid);
}

#[test]
fn every_cut_and_every_count_that_lies_is_refused() {
    let reply = Reply::of(vec![
        Record::cname(HOST, "b.example.com"),
        Record::a("b.example.com", "10.0.0.1"),
    ]);
    let good = reply.to(&ask(Kind::A));
    for end in 0..good.len() {
        assert!(
            read(&good[..end], &name(HOST), Kind::A).is_err(),
            "cut at {end}"
        );
    }
    for count in [3_u16, 4096, 4097, 65_535] {
        let mut bytes = good.clone();
        bytes[6..8].copy_from_slice(&count.to_be_bytes());
        assert_eq!(read(&bytes, &name(HOST), Kind::A), Err(Fault::Invalid));
    }
    // Additional records matter with services only.
    let service = Reply {
        answers: vec![Record::srv(HOST, "a.example.com", 80, 1)],
        additional: vec![Record::a("a.example.com", "10.0.0.1")],
        ..Reply::default()
    };
    let mut bytes = service.to(&ask(Kind::Srv));
    bytes[11] = 2;
    assert_eq!(read(&bytes, &name(HOST), Kind::Srv), Err(Fault::Invalid));
    for wrong in [3, 5, 16] {
        let mut record = Record::a(HOST, "10.0.0.1");
        record.content.resize(wrong, 0);
        assert_eq!(addresses(Kind::A, vec![record]), Err(Fault::Invalid));
    }
}

#[test]
fn compression_is_followed_backwards_only() {
    let pointed = |owner: &[u8]| {
        let record = Record {
            owner: owner.to_vec(),
            ..Record::a(HOST, "10.0.0.1")
        };
        addresses(Kind::A, vec![record])
    };
    // The question's name is at 12, this record's at 33.
    assert_eq!(pointed(b"\xc0\x0c"), Ok(vec![ip("10.0.0.1")]));
    assert_eq!(pointed(b"\x03www\xc0\x10"), Ok(vec![ip("10.0.0.1")]));
    assert_eq!(pointed(b"\xc0\x21"), Err(Fault::Invalid), "to itself");
    assert_eq!(pointed(b"\x01a\xc0\x21"), Err(Fault::Invalid), "a loop");
    assert_eq!(pointed(b"\xc0\x30"), Err(Fault::Invalid), "forwards");
    assert_eq!(pointed(b"\xff\xff"), Err(Fault::Invalid), "outside");
    assert_eq!(pointed(b"\x80\x0c"), Err(Fault::Invalid), "no label type");
}

/// A pointer to a pointer, and so on, and a name that grows by each.
#[test]
fn compression_bombs_are_refused() {
    let mut bytes = Reply::of(Vec::new()).to(&ask(Kind::A));
    let mut target = 12_u16;
    let mut records = 0_u16;
    while bytes.len() < 16_000 {
        let at = bytes.len() as u16;
        bytes.extend(b"\x0aaaaaaaaaaa");
        bytes.extend((0xc000 | target).to_be_bytes());
        bytes.extend(b"\0\x01\0\x01\0\0\0\0\0\x04\x0a\0\0\x01");
        target = at;
        records += 1;
    }
    bytes[6..8].copy_from_slice(&records.to_be_bytes());
    assert_eq!(read(&bytes, &name(HOST), Kind::A), Err(Fault::Invalid));
}

#[test]
fn the_largest_message_is_read() {
    let mut reply = Reply::default();
    let record = Record {
        owner: b"\xc0\x0c".to_vec(),
        ..Record::a(HOST, "10.0.0.1")
    };
    while reply.answers.len() < 4090 {
        let mut record = record.clone();
        record.content[2..].copy_from_slice(&(reply.answers.len() as u16).to_be_bytes());
        reply.answers.push(record);
    }
    let bytes = reply.to(&ask(Kind::A));
    assert!(bytes.len() > 65_000);
    assert_eq!(
        read(&bytes, &name(HOST), Kind::A).unwrap().addresses.len(),
        4090
    );
}

#[test]
fn services_take_the_addresses_of_their_targets_only() {
    let reply = Reply {
        answers: vec![
            Record::srv(HOST, "A.example.com", 8080, 512),
            Record::srv(HOST, "b.example.com", 8081, 0),
            Record::srv("other.example.com", "c.example.com", 1, 1),
        ],
        additional: vec![
            Record::a("a.example.com", "10.0.0.1"),
            Record::aaaa("a.example.com", "2001:db8::1"),
            Record::a("bank.example.org", "10.6.6.6"),
            Record::a("c.example.com", "10.6.6.7"),
        ],
        ..Reply::default()
    };
    let answer = read_reply(Kind::Srv, &reply).unwrap();
    let services: Vec<_> = answer
        .services
        .iter()
        .map(|service| (service.target.as_str(), service.port, service.weight))
        .collect();
    assert_eq!(
        services,
        [("a.example.com", 8080, 512), ("b.example.com", 8081, 0)]
    );
    let targets: Vec<IpAddr> = answer.targets.iter().map(|target| target.address).collect();
    assert_eq!(targets, [ip("10.0.0.1"), ip("2001:db8::1")]);
    assert!(answer.addresses.is_empty());
}

#[test]
fn a_service_that_is_not_offered_is_empty() {
    let mut record = Record::srv(HOST, "a", 80, 1);
    record.content.truncate(6);
    record.content.push(0);
    let reply = Reply::of(vec![record]);
    assert_eq!(read_reply(Kind::Srv, &reply), Err(Fault::Empty));
}

#[test]
fn truncated_answers_are_errors_except_those_of_services() {
    let truncated = |answers| Reply {
        is_truncated: true,
        answers,
        ..Reply::default()
    };
    let reply = truncated(vec![Record::a(HOST, "10.0.0.1")]);
    assert_eq!(read_reply(Kind::A, &reply), Err(Fault::Truncated));
    let reply = truncated(Vec::new());
    assert_eq!(read_reply(Kind::A, &reply), Err(Fault::Truncated));
    assert_eq!(read_reply(Kind::Srv, &reply), Err(Fault::Truncated));
    let reply = truncated(vec![Record::srv(HOST, "a", 80, 1)]);
    let answer = read_reply(Kind::Srv, &reply).unwrap();
    assert!(answer.is_truncated && answer.services.len() == 1);
}
