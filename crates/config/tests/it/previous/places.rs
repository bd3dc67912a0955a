//! Places of proxies, servers and bind lines.

use super::{after, first, layout, next, place};
use crate::common::read_after;
use spangate_config::build::previous::Previous;
use spangate_config::model::{BackendTarget, ServerTarget};
use std::sync::Arc;

const FRONT: &str = "frontend f\n bind 127.0.0.1:81\n bind 127.0.0.1:82\n default_backend a\n";
const A: &str = "backend a\n server s 127.0.0.1:1\n server t 127.0.0.1:2\n";
const B: &str = "backend b\n server s 127.0.0.1:1\n";

#[test]
fn an_unchanged_file_gives_the_same_places() {
    let text = [FRONT, A, B].concat();
    let one = first(&text);
    let shown = "f:f#2[81#1 82#2] b:a#3(s#1 t#2) b:b#4(s#1)";
    assert_eq!(layout(&one), shown);
    assert_eq!(layout(&next(&one, &text)), shown);
}

#[test]
fn removed_proxies_leave_placeholders_and_return() {
    let one = first(&[FRONT, A, B].concat());
    let two = next(&one, &[B, "backend c\n"].concat());
    let shown = "-f:f#2[-81#1 -82#2] -b:a#3(-s#1 -t#2) b:b#4(s#1) b:c#5";
    assert_eq!(layout(&two), shown);
    assert!(two.proxies[1].disabled);
    assert!(two.proxies[1].servers.iter().all(|server| server.disabled));
    let three = next(&two, &["backend c\n", FRONT, A].concat());
    let shown = "f:f#2[81#1 82#2] b:a#3(s#1 t#2) -b:b#4(-s#1) b:c#5";
    assert_eq!(layout(&three), shown);
    assert_eq!(three.proxies[0].default_backend, Some(1));
}

#[test]
fn a_proxy_of_another_kind_is_another_proxy() {
    let one = first("backend x\n server s 127.0.0.1:1\nbackend y\n");
    let listen = "listen x\n bind 127.0.0.1:81\n server s 127.0.0.1:1\nbackend y\n";
    let two = next(&one, listen);
    assert_eq!(layout(&two), "-b:x#2(-s#1) b:y#3 l:x#4[81#1](s#1)");
    assert_eq!(two.proxies[2].default_backend, Some(2));
    let three = next(&two, "backend x\n server s 127.0.0.1:1\nbackend y\n");
    assert_eq!(layout(&three), "b:x#2(s#1) b:y#3 -l:x#4[-81#1](-s#1)");
    assert_eq!(layout(&next(&three, listen)), layout(&two));
}

#[test]
fn free_places_are_used_again() {
    let one = first(&[A, B, "backend c\n"].concat());
    let two = next(&one, "backend c\n");
    let mut previous = Previous::of(Arc::clone(&two));
    previous.proxies[0].name.clear();
    let three = after(
        previous,
        &[B, "backend c\n", "backend d\n", "backend e\n"].concat(),
    );
    assert_eq!(layout(&three), "b:d#2 b:b#3(s#1) b:c#4 b:e#5");
    // A free place that nothing takes is empty.
    let mut previous = Previous::of(Arc::clone(&two));
    previous.proxies[0].name.clear();
    assert_eq!(
        layout(&after(previous, "backend c\n")),
        "-:#0 -b:b#3(-s#1) b:c#4"
    );
}

#[test]
fn ids_of_lines_come_first() {
    let one = first("backend a\nbackend b\n");
    let two = next(&one, "backend a\nbackend b\nbackend c\n id 2\n");
    assert_eq!(layout(&two), "b:a#4 b:b#3 b:c#2");
    // The id of a removed proxy may be asked for, but is not assigned.
    let three = next(&two, "backend c\n id 4\nbackend d\n");
    assert_eq!(layout(&three), "-b:a#4 -b:b#3 b:c#4 b:d#2");
    let one = first("backend a\n server s 127.0.0.1:1\n server t 127.0.0.1:2\n");
    let two = next(
        &one,
        "backend a\n server u 127.0.0.1:1 id 2\n server t 127.0.0.1:2\n server s 127.0.0.1:2\n",
    );
    assert_eq!(layout(&two), "b:a#2(s#1 t#3 u#2)");
}

#[test]
fn servers_keep_their_places() {
    let one = first(A);
    let two = next(
        &one,
        "backend a\n server u 127.0.0.1:3\n server t 127.0.0.1:2\n",
    );
    assert_eq!(layout(&two), "b:a#2(-s#1 t#2 u#3)");
    let three = next(
        &two,
        "backend a\n server-template s 1-2 127.0.0.1:3\n server s 127.0.0.1:2\n",
    );
    assert_eq!(layout(&three), "b:a#2(s#1 -t#2 -u#3 s1#4 s2#5)");
    assert_eq!(layout(&next(&three, A)), "b:a#2(s#1 t#2 -u#3 -s1#4 -s2#5)");
}

#[test]
fn servers_that_were_added_at_run_time() {
    let one = first(A);
    let mut previous = Previous::of(Arc::clone(&one));
    let servers = &mut previous.proxies[0].servers;
    servers[0].clear();
    servers.extend(["added".to_owned(), "extra".to_owned(), String::new()]);
    let text =
        "backend a\n server new 127.0.0.1:3\n server t 127.0.0.1:1\n server added 127.0.0.1:4\n";
    let two = after(previous.clone(), text);
    assert_eq!(layout(&two), "b:a#2(new#1 t#2 added#3 -extra#0 -#0)");
    // All of them are placeholders when the backend is removed.
    let two = after(previous, B);
    assert_eq!(
        layout(&two),
        "-b:a#2(-#0 -t#2 -added#0 -extra#0 -#0) b:b#3(s#1)"
    );
}

#[test]
fn bind_lines_keep_their_places() {
    let one = first("frontend f\n bind 127.0.0.1:81-83\n bind 127.0.0.1:84\n");
    assert_eq!(layout(&one), "f:f#2[81#1 82#2 83#3 84#4]");
    let two = next(
        &one,
        "frontend f\n bind 127.0.0.1:84\n bind 127.0.0.1:80,127.0.0.1:82\n bind 127.0.0.1:81 interface lo\n",
    );
    assert_eq!(layout(&two), "f:f#2[-81#1 82#2 -83#3 84#4 80#5 81#6]");
    let three = next(&two, "frontend f\n bind 127.0.0.1:80-84\n");
    assert_eq!(layout(&three), "f:f#2[81#1 82#2 83#3 84#4 80#5 -81#6]");
    let four = next(
        &three,
        "frontend f\n bind 127.0.0.1:84 id 1\n bind 127.0.0.1:81\n",
    );
    assert_eq!(layout(&four), "f:f#2[81#2 -82#2 -83#3 84#1 -80#5 -81#6]");
}

#[test]
fn references_follow_the_places() {
    let texts = [
        "backend a\n server s 127.0.0.1:1 check\n server t 127.0.0.1:2 track s\n use-server t if { srv_is_up(b/u) }\n",
        "backend b\n server v 127.0.0.1:1 track a/s\n server u 127.0.0.1:2\n",
        "frontend f\n bind 127.0.0.1:81\n use_backend b if { nbsrv(c) gt 0 }\n default_backend a\n",
        "backend c\n",
    ];
    let mut config = first(&texts.concat());
    let orders = [[3, 2, 1, 0], [0, 2, 3, 1], [1, 3, 0, 2]];
    for order in orders.iter().cycle().take(9) {
        let text: Vec<&str> = order.iter().map(|at| texts[*at]).collect();
        config = next(&config, &text.concat());
        assert_eq!(
            layout(&config),
            "b:a#2(s#1 t#2) b:b#3(v#1 u#2) f:f#4[81#1] b:c#5"
        );
        // Without `a`, all places behind it stay.
        let without = "backend x\nbackend c\nfrontend f\n bind 127.0.0.1:81\n use_backend b if { nbsrv(c) gt 0 }\n\
                       backend b\n server u 127.0.0.1:2\n server w 127.0.0.1:3 track x/y\n".replace(" track x/y", "");
        let other = next(&config, &without);
        assert_eq!(
            layout(&other),
            "-b:a#2(-s#1 -t#2) b:b#3(-v#1 u#2 w#3) f:f#4[81#1] b:c#5 b:x#6"
        );
        assert!(matches!(
            other.proxies[2].use_backend[0].target,
            BackendTarget::Static(1)
        ));
        assert!(other.proxies[3].is_named && !other.proxies[4].is_named);
    }
    let place_of = |name| place(&config, name);
    let (a, b, f, c) = (place_of("a"), place_of("b"), place_of("f"), place_of("c"));
    assert_eq!(config.proxies[f].default_backend, Some(a));
    let target = &config.proxies[f].use_backend[0].target;
    assert!(matches!(target, BackendTarget::Static(place) if *place == b));
    assert!(matches!(
        config.proxies[a].use_server[0].target,
        ServerTarget::Static(1)
    ));
    assert_eq!(config.proxies[a].servers[1].checks.tracked, Some((a, 0)));
    assert_eq!(config.proxies[b].servers[0].checks.tracked, Some((a, 0)));
    // Expressions name these: `nbsrv(c)`, `srv_is_up(b/u)`.
    assert!(config.proxies[c].is_named);
    assert!(config.proxies[b].servers[1].is_named && !config.proxies[b].servers[0].is_named);
}

#[test]
fn removed_objects_cannot_be_named() {
    let one = first(&[FRONT, A, B].concat());
    let refused = |text: &str, message: &str| {
        let previous = Arc::new(Previous::of(Arc::clone(&one)));
        let faults = read_after(Some(previous), text).expect_err("refused");
        let mut messages = faults.iter().map(|fault| &fault.message);
        let found = messages.any(|fault| fault.contains(message));
        assert!(found, "{message}: {faults:?}");
    };
    let front = "frontend f\n bind 127.0.0.1:81\n";
    let with = |line: &str| [front, line, "\n", B].concat();
    refused(
        &with(" default_backend a"),
        "unable to find required default_backend: 'a'",
    );
    refused(
        &with(" use_backend b if { nbsrv(a) 1 }"),
        "unable to find backend 'a'",
    );
    refused(
        &with(" use_backend b if { srv_is_up(a/s) }"),
        "unable to find proxy 'a'",
    );
    let lacks_t = |line: &str| ["backend a\n server s 127.0.0.1:1\n", line, "\n"].concat();
    refused(
        &lacks_t(" use-server t if TRUE"),
        "unable to find server 't'",
    );
    refused(
        &lacks_t(" server u 127.0.0.1:1 track t"),
        "unable to find required server 't'",
    );
    refused(
        &lacks_t(" server u 127.0.0.1:1 track b/s"),
        "unable to find required proxy 'b'",
    );
}

#[test]
fn placeholders_give_no_warnings() {
    let text = "frontend f\n bind 127.0.0.1:81\n timeout client 1s\n mode http\n\
                backend old\n mode tcp\n server s 127.0.0.1:1 cookie x\n balance url_param x\n timeout connect 1s\n timeout server 1s\n";
    let one = first(text);
    let front = "frontend f\n bind 127.0.0.1:82\n timeout client 1s\n mode http\n";
    let previous = Some(Arc::new(Previous::of(one)));
    let (config, diagnostics) = read_after(previous, front).expect("valid");
    assert_eq!(layout(&config), "f:f#2[-81#1 82#2] -b:old#3(-s#1)");
    assert_eq!(diagnostics.iter().count(), 0, "{diagnostics:?}");
}

const SOCKET: &str = "global\n stats socket /tmp/x\n";

/// The places by the names of their `defaults`, and those that are not reserved.
fn reserves(config: &spangate_config::model::Config) -> Vec<String> {
    let proxies = config.proxies.iter();
    let shown = proxies.map(|proxy| match proxy.reserve_of {
        Some(defaults) => format!("{}/{:?}", config.defaults[defaults].name, proxy.mode),
        None => super::shown(proxy),
    });
    let mut all: Vec<String> = shown.collect();
    all.dedup();
    all
}

#[test]
fn reserved_places_stay() {
    let defaults = |names: &[&str]| {
        let sections = names.iter().map(|name| format!("defaults {name}\n"));
        SOCKET.to_owned() + &sections.collect::<String>()
    };
    let one = first(&[&*defaults(&["d", "e"]), B].concat());
    assert_eq!(
        reserves(&one),
        ["b:b#2(s#1)", "d/Http", "d/Tcp", "e/Http", "e/Tcp"]
    );
    let two = next(&one, &[&*defaults(&["e", "d"]), "backend c\n", B].concat());
    let shown = ["b:b#2(s#1)", "d/Http", "d/Tcp", "e/Http", "e/Tcp"];
    assert_eq!(reserves(&two)[..5], shown);
    assert_eq!(reserves(&two)[5].split('#').next(), Some("b:c"));
    assert_eq!(two.proxies.len(), one.proxies.len() + 1);
    let names: Vec<_> = two.defaults.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["e", "d"]);
    // The places of a section that is gone are free.
    let three = next(
        &two,
        &[&*defaults(&["e"]), "backend c\n", B, "backend d\n"].concat(),
    );
    assert_eq!(place(&three, "d"), 1);
    let four = next(
        &three,
        &[&*defaults(&["e", "d"]), "backend c\n", B, "backend d\n"].concat(),
    );
    assert_eq!(four.proxies.len(), two.proxies.len() + 1);
}

#[test]
fn a_backend_that_was_added_at_run_time() {
    let text = [SOCKET, "defaults d\n", B].concat();
    let one = first(&text);
    assert!(one.proxies[1].name.give("added"));
    let mut previous = Previous::of(Arc::clone(&one));
    previous.proxies[1].servers.push("x".to_owned());
    // The new files lack it: a placeholder, and another place is reserved instead.
    let two = after(previous.clone(), &text);
    assert!(two.proxies[1].is_removed && two.proxies[1].reserve_of.is_none());
    assert_eq!(two.proxies[1].name.as_str(), "added");
    assert_eq!(two.proxies[1].servers.len(), 1);
    assert_eq!(two.proxies.len(), one.proxies.len() + 1);
    assert_eq!(layout(&next(&two, &text)), layout(&two));
    // The new files have it.
    let own = [
        &*text,
        "backend added\n server y 127.0.0.1:2\n server x 127.0.0.1:1\n",
    ]
    .concat();
    let three = after(previous, &own);
    assert_eq!(place(&three, "added"), 1);
    let names: Vec<_> = three.proxies[1]
        .servers
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    assert_eq!(names, ["x", "y"]);
    assert_eq!(three.proxies.len(), one.proxies.len() + 1);
}
