//! Peers that send what no peer sends.

use super::*;
use crate::handshake::{LINE_BYTES_MAX, hello};
use crate::layout::Layout;
use crate::message::{self, Control, UpdateKind};
use crate::varint;

/// A section with a connection whose peer the test plays.
struct Scene {
    section: Section,
    table: Arc<Table>,
    id: ConnId,
    now_ms: u64,
}

impl Scene {
    fn new() -> Scene {
        let table = table("t");
        let mut section = section("a", &["a", "b"], &table, 1_000);
        let id = section.accept(1_000).expect("room");
        Scene {
            section,
            table,
            id,
            now_ms: 1_000,
        }
    }

    fn greeted() -> Scene {
        let mut scene = Scene::new();
        assert_eq!(
            scene.send(hello("a", "b", 1, false).as_bytes()),
            b"200\n\0\0"
        );
        scene
    }

    /// Sends bytes; returns the answer.
    fn send(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.section.receive(self.id, bytes, self.now_ms);
        let mut answer = Vec::new();
        loop {
            let part = self.section.pull(self.id, self.now_ms);
            if part.is_empty() {
                return answer;
            }
            answer.extend(part);
        }
    }

    /// The bytes that are kept for the connection.
    fn kept(&self) -> usize {
        let connection = self.section.connections.get(&self.id);
        connection.map_or(0, |one| {
            one.input.len() + one.output.len() + one.layouts.len()
        })
    }
}

#[test]
fn wrong_hellos_are_answered_and_closed() {
    let cases = [
        ("GET / HTTP/1.0\r\n".to_owned(), "501\n"),
        (hello("a", "b", 1, false).replace("2.1", "3.0"), "502\n"),
        (hello("z", "b", 1, false), "503\n"),
        (hello("a", "z", 1, false), "504\n"),
        ("x".repeat(LINE_BYTES_MAX), "501\n"),
    ];
    for (text, answer) in cases {
        let mut scene = Scene::new();
        assert_eq!(scene.send(text.as_bytes()), answer.as_bytes(), "{text}");
        assert!(!scene.section.exists(scene.id));
    }
}

#[test]
fn an_unfinished_hello_ends_in_time() {
    let mut scene = Scene::new();
    scene.send(b"HAProxyS 2.1\n");
    scene.section.tick(5_999);
    assert!(scene.section.exists(scene.id));
    scene.section.tick(6_000);
    assert!(!scene.section.exists(scene.id));
}

#[test]
fn connections_are_limited() {
    let mut scene = Scene::new();
    let more = std::iter::from_fn(|| scene.section.accept(1_000)).count();
    assert_eq!(more, 5);
}

#[test]
fn malformed_messages_end_the_connection() {
    let mut long = vec![10, 0x82];
    varint::put(&mut long, u64::MAX);
    let layout = Layout::of(table("t").definition(), 1);
    let mut short_update = Vec::new();
    message::put_definition(&mut short_update, &layout.body());
    let kind = UpdateKind {
        has_id: true,
        is_timed: false,
    };
    message::put_update(&mut short_update, kind, &[0, 0, 0, 1, 1, b'k']);
    let cases: [(&[u8], u8); 5] = [
        (&[255, 1], 0),
        (&[10, 0x82, 1, 1], 0),
        (&[10, 0x84, 0], 0),
        (&long, 1),
        (&short_update, 0),
    ];
    for (bytes, fault) in cases {
        let mut scene = Scene::greeted();
        let answer = scene.send(bytes);
        assert!(answer.ends_with(&[1, fault]), "{bytes:?}: {answer:?}");
        assert!(!scene.section.exists(scene.id));
        assert_eq!(scene.table.used(scene.now_ms), 0);
    }
}

#[test]
fn definitions_without_end_are_bounded() {
    let mut scene = Scene::greeted();
    for number in 0..20_000_u64 {
        let mut layout = Layout::of(table("t").definition(), number);
        layout.name = format!("t{}", number % 3).into_bytes();
        let mut bytes = Vec::new();
        message::put_definition(&mut bytes, &layout.body());
        layout.name = b"t".to_vec();
        message::put_definition(&mut bytes, &layout.body());
        scene.send(&bytes);
        assert!(scene.kept() < 100, "{}", scene.kept());
    }
    assert!(scene.section.exists(scene.id));
}

#[test]
fn requests_without_end_are_bounded() {
    let mut scene = Scene::greeted();
    for number in 0..5_000 {
        add(&scene.table, &number.to_string(), scene.now_ms);
    }
    let mut bytes = Vec::new();
    for _ in 0..1_000 {
        message::put_control(&mut bytes, Control::ResyncRequest);
        message::put_control(&mut bytes, Control::ResyncFinished);
    }
    // It does not read.
    for _ in 0..10 {
        scene.section.receive(scene.id, &bytes, scene.now_ms);
        assert!(scene.kept() < 100);
    }
    let first = scene.section.pull(scene.id, scene.now_ms);
    assert!(first.len() < 20 << 10, "{}", first.len());
}

#[test]
fn a_teacher_that_never_ends_is_left() {
    let mut scene = Scene::greeted();
    let mut bytes = Vec::new();
    message::put_control(&mut bytes, Control::Heartbeat);
    for _ in 0..20 {
        scene.now_ms += 1_000;
        scene.send(&bytes);
        scene.section.tick(scene.now_ms);
    }
    assert_eq!(scene.section.view(scene.now_ms).flags, 3);
}

#[test]
fn wrong_acknowledgements_change_nothing() {
    let mut scene = Scene::greeted();
    let mut end = Vec::new();
    message::put_control(&mut end, Control::ResyncFinished);
    scene.send(&end);
    for number in 0..10 {
        add(&scene.table, &number.to_string(), scene.now_ms);
    }
    scene.section.collect();
    assert!(scene.send(&[]).len() > 50);
    for number in [11, 0x0200_0000, u32::MAX] {
        let mut ack = Vec::new();
        message::put_ack(&mut ack, 1, number);
        message::put_ack(&mut ack, 99, number);
        scene.send(&ack);
    }
    assert_eq!(scene.section.peers[1].shares[0].acked, 0);
    let mut ack = Vec::new();
    message::put_ack(&mut ack, 1, 7);
    scene.send(&ack);
    assert_eq!(scene.section.peers[1].shares[0].acked, 7);
}

#[test]
fn an_older_peer_gets_the_older_version() {
    let table = table("t");
    let mut section = section("a", &["a", "b"], &table, 1_000);
    let hello_of = |section: &mut Section, now_ms: u64| {
        section.tick(now_ms);
        let (id, _) = *section.take_connections().first().expect("a connection");
        section.connected(id, now_ms);
        let hello = section.pull(id, now_ms);
        (id, String::from_utf8_lossy(&hello).into_owned())
    };
    let (id, hello) = hello_of(&mut section, 1_000);
    assert!(hello.starts_with("HAProxyS 2.1\nb\na "), "{hello}");
    section.receive(id, b"502\n", 1_000);
    assert!(!section.exists(id));
    let (id, hello) = hello_of(&mut section, 6_000);
    assert!(hello.starts_with("HAProxyS 2.0\n"), "{hello}");
    // Version 2.0 has no updates with an expiry.
    add(&table, "x", 6_000);
    section.receive(id, b"200\n", 6_000);
    section.receive(id, &[0, 0], 6_000);
    let mut sent = Vec::new();
    for _ in 0..3 {
        sent.extend(section.pull(id, 6_000));
    }
    assert!(sent.ends_with(&[0, 1]), "{sent:?}");
    let kinds = kinds_of(&sent);
    assert!(
        kinds.contains(&0x80) && !kinds.contains(&0x85),
        "{kinds:x?}"
    );
}

/// The types of messages for tables.
fn kinds_of(mut bytes: &[u8]) -> Vec<u8> {
    let mut kinds = Vec::new();
    while let Ok(Some((_, length))) = message::next(bytes) {
        kinds.extend((bytes[0] == 10).then_some(bytes[1]));
        bytes = &bytes[length..];
    }
    kinds
}

#[test]
fn unknown_tables_keep_the_dictionary_in_step() {
    let mut scene = Scene::greeted();
    let mut layout = Layout::of(scene.table.definition(), 1);
    let kind = UpdateKind {
        has_id: true,
        is_timed: false,
    };
    let body = |key: &[u8], name: &[u8]| {
        let mut body = vec![0, 0, 0, 1, key.len() as u8];
        body.extend_from_slice(key);
        // server_id, gpc0, conn_cur, a rate of three parts
        body.extend([7, 1, 0, 0, 0, 0]);
        body.extend_from_slice(name);
        body.extend([0, 0, 0]);
        body
    };
    let mut bytes = Vec::new();
    layout.name = b"other".to_vec();
    message::put_definition(&mut bytes, &layout.body());
    message::put_update(&mut bytes, kind, &body(b"k", &[4, 1, 2, b's', b'1']));
    layout.name = b"t".to_vec();
    layout.id = 2;
    message::put_definition(&mut bytes, &layout.body());
    message::put_update(&mut bytes, kind, &body(b"k", &[1, 1]));
    scene.send(&bytes);
    let table = &scene.table;
    assert_eq!(table.used(scene.now_ms), 1);
    let name = table.with(b"k", scene.now_ms, |entry| table.server_name(entry));
    assert_eq!(name, Some(Some("s1".into())));
}
