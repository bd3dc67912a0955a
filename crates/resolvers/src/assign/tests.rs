use super::*;

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn ips(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|text| ip(text)).collect()
}

fn network(text: &str) -> Network {
    let (address, bits) = text.split_once('/').unwrap();
    Network {
        address: ip(address),
        prefix_bits: bits.parse().unwrap(),
    }
}

fn resolved<'a>(address: &str, preference: &'a Preference) -> Member<'a> {
    Member {
        address: Some(ip(address)),
        is_resolved: true,
        preference,
    }
}

fn configured<'a>(address: &str, preference: &'a Preference) -> Member<'a> {
    Member {
        is_resolved: false,
        ..resolved(address, preference)
    }
}

fn empty(preference: &Preference) -> Member<'_> {
    Member {
        address: None,
        is_resolved: false,
        preference,
    }
}

fn take(address: &str) -> AddressChange {
    AddressChange::Take(ip(address))
}

#[test]
fn a_server_keeps_an_address_that_answers_have() {
    let v6 = Preference::default();
    let addresses = ips(&["10.0.0.1", "2001:db8::1"]);
    let changes = assign_addresses(&addresses, &[resolved("10.0.0.1", &v6)]);
    assert_eq!(changes, [AddressChange::Keep]);
    // One from the configuration is left for a better one.
    let changes = assign_addresses(&addresses, &[configured("10.0.0.1", &v6)]);
    assert_eq!(changes, [take("2001:db8::1")]);
    let addresses = ips(&["10.0.0.1", "10.0.0.2"]);
    let changes = assign_addresses(&addresses, &[configured("10.0.0.2", &v6)]);
    assert_eq!(changes, [AddressChange::Keep]);
}

#[test]
fn family_comes_before_network_and_network_before_order() {
    let mut preference = Preference {
        prefer: Family::V4,
        networks: vec![network("10.2.0.0/16"), network("fd00::/8")],
        ..Preference::default()
    };
    let addresses = ips(&["10.1.0.1", "10.2.0.1", "fd00::1"]);
    assert_eq!(
        choose_address(&addresses, 0, &preference).unwrap().address,
        ip("10.2.0.1")
    );
    preference.prefer = Family::V6;
    assert_eq!(
        choose_address(&addresses, 0, &preference).unwrap().address,
        ip("fd00::1")
    );
    // A list of IPv4 networks alone leaves IPv6 out, whatever is preferred.
    preference.networks.truncate(1);
    assert_eq!(
        choose_address(&addresses, 0, &preference).unwrap().address,
        ip("10.2.0.1")
    );
    // No address in the networks: another one.
    preference.networks = vec![network("10.9.0.0/16")];
    assert_eq!(
        choose_address(&addresses, 0, &preference).unwrap().address,
        ip("10.1.0.1")
    );
}

#[test]
fn servers_of_a_group_get_different_addresses() {
    let strict = Preference::default();
    let loose = Preference {
        allow_duplicates: true,
        ..Preference::default()
    };
    let addresses = ips(&["10.0.0.1", "10.0.0.2"]);
    let group = [
        resolved("10.0.0.2", &strict),
        empty(&strict),
        empty(&strict),
    ];
    assert_eq!(
        assign_addresses(&addresses, &group),
        [AddressChange::Keep, take("10.0.0.1"), AddressChange::Lose]
    );
    let group = [empty(&loose), empty(&loose), empty(&loose)];
    assert_eq!(
        assign_addresses(&addresses, &group),
        [take("10.0.0.1"), take("10.0.0.2"), take("10.0.0.1")]
    );
    let one = ips(&["10.0.0.1"]);
    let group = [empty(&loose), empty(&loose)];
    assert_eq!(
        assign_addresses(&one, &group),
        [take("10.0.0.1"), take("10.0.0.1")]
    );
}

#[test]
fn an_address_that_vanished_is_replaced_or_lost() {
    let preference = Preference::default();
    let addresses = ips(&["10.0.0.3"]);
    let group = [
        resolved("10.0.0.1", &preference),
        resolved("10.0.0.2", &preference),
    ];
    assert_eq!(
        assign_addresses(&addresses, &group),
        [take("10.0.0.3"), AddressChange::Lose]
    );
    assert_eq!(
        assign_addresses(&[], &group),
        [AddressChange::Lose, AddressChange::Lose]
    );
}

#[test]
fn addresses_take_turns() {
    let preference = Preference::default();
    let addresses = ips(&["10.0.0.1", "10.0.0.2"]);
    let mut turn = 0;
    let mut seen = Vec::new();
    for _ in 0..3 {
        let choice = choose_address(&addresses, turn, &preference).unwrap();
        turn = choice.next;
        seen.push(choice.address);
    }
    assert_eq!(seen, ips(&["10.0.0.1", "10.0.0.2", "10.0.0.1"]));
    assert_eq!(choose_address(&[], 3, &preference), None);
}

#[test]
fn prefixes_end_within_bytes() {
    assert!(network("10.0.0.128/25").contains(ip("10.0.0.129")));
    assert!(!network("10.0.0.128/25").contains(ip("10.0.0.127")));
    assert!(network("0.0.0.0/0").contains(ip("255.1.2.3")));
    assert!(!network("0.0.0.0/0").contains(ip("::1")));
    assert!(network("fd00::/8").contains(ip("fdff::1")));
    assert!(!network("fd00::/8").contains(ip("fe00::1")));
    assert!(network("10.0.0.1/99").contains(ip("10.0.0.1")));
}

fn service(target: &str, port: u16) -> Service {
    Service {
        target: Name::parse(target).unwrap(),
        port,
        priority: 0,
        weight: 0,
        addresses: Vec::new(),
    }
}

fn slot(target: &str, port: u16) -> Option<Endpoint> {
    let target = Name::parse(target).unwrap();
    Some(Endpoint { target, port })
}

#[test]
fn slots_keep_their_services_and_free_ones_fill_in_order() {
    let services = [service("a", 80), service("b", 80), service("c", 80)];
    let slots = [slot("gone", 80), None, slot("b", 80), None];
    assert_eq!(
        assign_services(&services, &slots),
        [
            SlotChange::Release,
            SlotChange::Take(0),
            SlotChange::Keep(1),
            SlotChange::Take(2),
        ]
    );
    // A slot whose service has vanished comes last, and is filled too.
    let slots = [slot("a", 81), slot("b", 80), None];
    assert_eq!(
        assign_services(&services, &slots),
        [
            SlotChange::Take(2),
            SlotChange::Keep(1),
            SlotChange::Take(0),
        ]
    );
    assert_eq!(
        assign_services(&[], &slots),
        [SlotChange::Release, SlotChange::Release, SlotChange::Free]
    );
    // The port is part of a service.
    let services = [service("a", 80), service("a", 81)];
    let slots = [slot("a", 81), slot("a", 81)];
    assert_eq!(
        assign_services(&services, &slots),
        [SlotChange::Keep(1), SlotChange::Take(0)]
    );
}

#[test]
fn weights_keep_zero() {
    let weights = [0, 1, 256, 257, 65_535].map(server_weight);
    assert_eq!(weights, [0, 1, 1, 2, 256]);
}
