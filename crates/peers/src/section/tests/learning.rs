//! What a process learns when it starts, and what it teaches when it stops.

use super::*;

#[test]
fn a_new_process_learns_from_a_peer() {
    let mut network = Network::new(&["a", "b"]);
    network.nodes[1].is_up = false;
    for number in 0..3_000 {
        network.add(0, &number.to_string());
    }
    network.run(10_000);
    assert!(network.is_finished(0));
    // Old updates, which the first one will not send by itself.
    let names = ["a", "b"];
    network.nodes[1].table = table("t");
    let table = Arc::clone(&network.nodes[1].table);
    network.nodes[1].section = section("b", &names, &table, network.now_ms);
    network.nodes[1].is_up = true;
    network.run(20_000);
    assert!(network.is_finished(1));
    assert_eq!(network.gpc0(1, "0"), Some(1));
    assert_eq!(table.used(network.now_ms), 3_000);
}

#[test]
fn learned_entries_expire_in_time() {
    let mut network = Network::new(&["a", "b"]);
    network.nodes[1].is_up = false;
    network.add(0, "x");
    network.run(50_000);
    let names = ["a", "b"];
    network.nodes[1].table = table("t");
    let table = Arc::clone(&network.nodes[1].table);
    network.nodes[1].section = section("b", &names, &table, network.now_ms);
    // All is told already: only a lesson brings the entry.
    for share in &mut network.nodes[0].section.peers[1].shares {
        share.acked = 1;
    }
    network.nodes[1].is_up = true;
    network.run(9_000);
    assert_eq!(network.gpc0(1, "x"), Some(1));
    network.run(2_000);
    assert_eq!(network.gpc0(1, "x"), None);
}

#[test]
fn an_old_process_teaches_the_new_one() {
    let mut network = Network::new(&["a"]);
    network.run(1);
    for number in 0..3_000 {
        network.add(0, &number.to_string());
    }
    let new = table("t");
    network.nodes.push(Node {
        section: section_after("a", &["a"], &new, network.now_ms, true),
        table: Arc::clone(&new),
        is_up: true,
    });
    let now_ms = network.now_ms;
    network.nodes[0].section.stop(now_ms, None);
    network.run(100);
    assert!(network.nodes[0].section.is_over());
    assert!(network.is_finished(1));
    assert_eq!(new.used(network.now_ms), 3_000);
}

#[test]
fn an_old_process_without_a_new_one_ends_at_once() {
    let mut network = Network::new(&["a", "b"]);
    network.run(10_000);
    network.nodes[1].is_up = false;
    let now_ms = network.now_ms;
    network.nodes[0].section.stop(now_ms, None);
    network.run(1);
    assert!(network.nodes[0].section.is_over());
}

#[test]
fn a_new_process_whose_old_one_is_silent_asks_others() {
    let mut network = Network::new(&["a", "b"]);
    network.add(1, "x");
    let names = ["a", "b"];
    network.nodes[0].table = table("t");
    let table = Arc::clone(&network.nodes[0].table);
    network.nodes[0].section = section_after("a", &names, &table, network.now_ms, true);
    network.run(4_000);
    assert!(!network.is_finished(0));
    network.run(4_000);
    assert!(network.is_finished(0));
    assert_eq!(network.gpc0(0, "x"), Some(1));
}

#[test]
fn alone_nothing_is_missing() {
    let mut network = Network::new(&["a", "b"]);
    network.nodes[1].is_up = false;
    network.run(4_900);
    assert!(!network.is_finished(0));
    network.run(200);
    assert!(network.is_finished(0));
    let mut alone = Network::new(&["a"]);
    alone.run(1);
    assert!(alone.is_finished(0));
}
