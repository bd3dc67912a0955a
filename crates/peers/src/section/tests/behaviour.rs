//! Updates, connections and timers.

use super::*;

#[test]
fn updates_reach_all_others() {
    let mut network = Network::new(&["a", "b", "c"]);
    network.run(10_000);
    for node in 0..3 {
        assert!(network.is_finished(node));
        assert_eq!(network.statuses(node), ["ESTA", "ESTA"]);
    }
    network.add(0, "x");
    network.add(1, "y");
    network.run(10);
    for node in 0..3 {
        assert_eq!(
            (network.gpc0(node, "x"), network.gpc0(node, "y")),
            (Some(1), Some(1))
        );
    }
    // The last one wins, without aggregation.
    network.add(2, "x");
    network.run(10);
    assert_eq!([0, 1, 2].map(|node| network.gpc0(node, "x")), [Some(2); 3]);
}

#[test]
fn all_kinds_of_values_arrive() {
    let mut network = Network::new(&["a", "b"]);
    network.run(10_000);
    let now_ms = network.now_ms;
    let from = &network.nodes[0].table;
    from.store_server(b"k", now_ms, 7, "be/s7");
    from.with(b"k", now_ms, |entry| {
        entry.add(Data::Gpc0, 0, u64::from(u32::MAX));
        entry.add(Data::ConnCur, 0, 5);
        entry.add(Data::HttpReqRate, 0, 9);
        entry.set(Data::Gpt, 0, 1);
        entry.set(Data::Gpt, 2, 300);
        entry.touch();
    });
    network.run(100);
    let now_ms = network.now_ms;
    let to = &network.nodes[1].table;
    let found = to.with(b"k", now_ms, |entry| {
        let gpt = [0, 1, 2].map(|index| entry.get(Data::Gpt, index).unwrap_or(-1));
        assert_eq!(gpt, [1, 0, 300]);
        assert_eq!(entry.get(Data::Gpc0, 0), Some(i64::from(u32::MAX)));
        assert_eq!(
            entry.get(Data::ConnCur, 0),
            Some(0),
            "belongs to its process"
        );
        assert_eq!(entry.get(Data::HttpReqRate, 0), Some(9));
        assert_eq!(entry.get(Data::ServerId, 0), Some(7));
        to.server_name(entry)
    });
    assert_eq!(found, Some(Some("be/s7".into())));
}

#[test]
fn an_update_is_sent_once() {
    let mut network = Network::new(&["a", "b"]);
    network.run(10_000);
    network.add(0, "x");
    network.run(10);
    network.bytes = 0;
    network.run(60_000);
    // Heartbeats only: two bytes every three seconds in each direction.
    assert!((70..100).contains(&network.bytes), "{}", network.bytes);
}

#[test]
fn a_peer_that_was_away_gets_what_it_missed() {
    let mut network = Network::new(&["a", "b"]);
    network.run(10_000);
    network.add(0, "before");
    network.run(10);
    network.nodes[1].is_up = false;
    network.run(1_000);
    for number in 0..500 {
        network.add(0, &number.to_string());
    }
    network.run(5_000);
    assert_eq!(network.gpc0(1, "499"), None);
    network.nodes[1].is_up = true;
    network.bytes = 0;
    network.run(10_000);
    assert_eq!(network.gpc0(1, "0"), Some(1));
    assert_eq!(network.gpc0(1, "499"), Some(1));
    assert!(network.bytes < 500 * 40, "{} bytes", network.bytes);
}

#[test]
fn a_silent_peer_is_left_and_tried_again() {
    let mut network = Network::new(&["a", "b"]);
    network.run(10_000);
    // It stands still, but its connections do not end.
    let links = std::mem::take(&mut network.links);
    network.nodes[1].is_up = false;
    network.run(15_000);
    let view = network.nodes[0].section.view(network.now_ms);
    let peer = view.peers.iter().find(|peer| !peer.is_local).expect("b");
    assert_eq!(peer.counters.silences, 1);
    assert!(!peer.is_connected);
    drop(links);
}

#[test]
fn connections_in_both_directions_become_one() {
    let mut network = Network::new(&["a", "b"]);
    for _ in 0..20 {
        network.run(2_000);
    }
    for node in 0..2 {
        assert_eq!(network.nodes[node].section.connections.len(), 1);
        assert_eq!(network.statuses(node), ["ESTA"]);
    }
}

#[test]
fn entries_are_split_between_shards() {
    let mut network = Network::new(&["a", "b", "c"]);
    network.nodes[0].section.shards = 2;
    for (at, peer) in network.nodes[0].section.peers.iter_mut().enumerate() {
        peer.shard = at as u32;
    }
    network.run(10_000);
    for number in 0..200 {
        network.add(0, &number.to_string());
    }
    network.run(100);
    let mut count = [0; 3];
    for number in 0..200 {
        let key = number.to_string();
        let has = [1, 2].map(|node| network.gpc0(node, &key).is_some());
        count[usize::from(has[0]) + usize::from(has[1])] += 1;
    }
    assert_eq!(
        count[0] + count[2],
        0,
        "each entry has one place: {count:?}"
    );
}

#[test]
fn write_to_copies_what_stands_for_itself() {
    let mut network = Network::new(&["a", "b"]);
    let copy = table("copy");
    network.nodes[1].section.tables[0].write_to = Some(Arc::clone(&copy));
    network.run(10_000);
    let now_ms = network.now_ms;
    network.nodes[0].table.with_new(b"k", now_ms, |entry| {
        entry.set(Data::Gpc0, 0, 5);
        entry.set(Data::Gpt, 1, 6);
        entry.touch();
    });
    network.run(100);
    assert_eq!(network.gpc0(1, "k"), Some(5));
    let copied = copy.with(b"k", network.now_ms, |entry| {
        [Data::Gpc0, Data::Gpt].map(|data| entry.get(data, u32::from(data == Data::Gpt)))
    });
    assert_eq!(copied, Some([Some(0), Some(6)]));
}

#[test]
fn recv_only_tables_learn_local_values() {
    let mut network = Network::new(&["a", "b"]);
    let mut definition = network.nodes[1].table.definition().clone();
    definition.receives_only = true;
    let passive = Arc::new(Table::new(definition));
    network.nodes[1].section = section("b", &["a", "b"], &passive, network.now_ms);
    network.run(10_000);
    let now_ms = network.now_ms;
    network.nodes[0].table.with_new(b"k", now_ms, |entry| {
        entry.add(Data::ConnCur, 0, 3);
        entry.touch();
    });
    network.run(100);
    let current = passive.with(b"k", network.now_ms, |entry| entry.get(Data::ConnCur, 0));
    assert_eq!(current, Some(Some(3)));
}
