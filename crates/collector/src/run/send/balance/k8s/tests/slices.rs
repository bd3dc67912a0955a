//! What lists and events say.

use super::*;
use crate::run::k8s::Lines;

fn hosts(slices: &Slices) -> Vec<&str> {
    let mut hosts: Vec<&str> = slices.hosts().collect();
    hosts.sort_unstable();
    hosts
}

fn wrong<T>(result: Result<T, Fault>) -> String {
    match result {
        Err(Fault::Wrong(why)) => why,
        _ => panic!("it is followed"),
    }
}

#[test]
fn what_go_leaves_out_is_nothing() {
    let mut slices = Slices::new(false);
    slices
        .list(b"{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":null}")
        .unwrap();
    assert_eq!((slices.version(), hosts(&slices).len()), (Some("7"), 0));
    let lines = [
        "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\",\"managedFields\":[{}]},\"endpoints\":null,\"ports\":null}}",
        "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"b\"},\"endpoints\":[{\"addresses\":null,\"conditions\":{}},{\"addresses\":[\"10.0.0.1\",\"fd00::1\"],\"conditions\":null,\"hostname\":null}]}}",
    ];
    for line in lines {
        assert_eq!(slices.event(line.as_bytes()), Ok(true));
    }
    assert_eq!(hosts(&slices), ["10.0.0.1", "fd00::1"]);
    // Later kinds of events change nothing.
    assert_eq!(slices.event(b"{\"type\":\"NEW\",\"object\":{}}"), Ok(false));
    assert_eq!(slices.version(), Some("7"));
}

#[test]
fn what_is_no_host_is_left_out() {
    let mut slices = Slices::new(false);
    let endpoints = [("10.0.0.1", ""), ("x/y", ""), ("", ""), ("a:b@c", "")];
    slices
        .list(list(1, &[slice("a", 1, &endpoints)]).as_bytes())
        .unwrap();
    assert_eq!(hosts(&slices), ["10.0.0.1"]);
    assert_eq!(slices.lacking(), Some("the address of an endpoint is none"));
    slices
        .list(list(1, &[slice("a", 1, &endpoints[..1])]).as_bytes())
        .unwrap();
    assert_eq!(slices.lacking(), None);
}

#[test]
fn a_list_that_cannot_be_read_leaves_what_there_is() {
    let mut slices = Slices::new(false);
    slices
        .list(list(1, &[slice("a", 1, &[("10.0.0.1", "")])]).as_bytes())
        .unwrap();
    let named = slice("a", 2, &[]);
    for body in [
        "".to_owned(),
        "[]".to_owned(),
        "{}".to_owned(),
        "{\"metadata\":{},\"items\":[]}".to_owned(),
        "[".repeat(10_000),
        list(2, &["{\"metadata\":{}}".to_owned()]),
        list(2, &[slice(&"n".repeat(254), 1, &[])]),
        list(2, &[slice("a", 1, &[("10.0.0.2", ""); 1001])]),
        list(2, &vec![named.clone(); 1025]),
        named
            .replace("\"2\"", "\"2&watch=x\"")
            .replace("{\"metadata\"", "{\"items\":[],\"metadata\""),
    ] {
        wrong(slices.list(body.as_bytes()));
        assert_eq!(
            (slices.version(), &hosts(&slices)[..]),
            (Some("1"), &["10.0.0.1"][..])
        );
    }
}

#[test]
fn there_is_a_bound_of_all_hosts() {
    let mut slices = Slices::new(false);
    let many = [("10.0.0.1", ""); 1000];
    for number in 0..16 {
        let object = slice(&format!("slice-{number}"), number, &many);
        slices.event(event("ADDED", &object).as_bytes()).unwrap();
    }
    let beyond = event("ADDED", &slice("one-more", 20, &many));
    assert!(wrong(slices.event(beyond.as_bytes())).contains("16384 addresses"));
    // One that is there may be told anew.
    let again = event("MODIFIED", &slice("slice-3", 21, &many));
    assert_eq!(slices.event(again.as_bytes()), Ok(true));
    assert_eq!(slices.hosts().count(), 16_000);
}

#[test]
fn errors_are_told() {
    let mut slices = Slices::new(false);
    let error = |code: u16| event("ERROR", &format!("{{\"code\":{code},\"message\":\"no\"}}"));
    assert_eq!(slices.event(error(410).as_bytes()), Err(Fault::Expired));
    assert_eq!(wrong(slices.event(error(500).as_bytes())), "status 500: no");
}

#[test]
fn lines_come_in_any_pieces() {
    let text = b"one\n\n \r\ntwo\r\nthree\nrest";
    for size in 1..text.len() {
        let (mut lines, mut found) = (Lines::default(), Vec::new());
        for piece in text.chunks(size) {
            lines.push(piece);
            while let Some(line) = lines.line().unwrap() {
                found.push(line);
            }
        }
        assert_eq!(found, [&b"one"[..], b"two\r", b"three"]);
    }
    let mut lines = Lines::default();
    let piece = [b'x'; 1 << 16];
    for _ in 0..32 {
        lines.push(&piece);
        assert_eq!(lines.line(), Ok(None));
    }
    lines.push(b"x");
    assert!(wrong(lines.line()).contains("more than 2097152 bytes"));
    lines.push(b"\n");
    wrong(lines.line());
}
