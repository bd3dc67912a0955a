//! Long and random sequences of configurations.

use super::{first, layout, next, port};
use spangate_config::model::{Config, Proxy};
use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::Arc;
use testing::Random;

#[test]
fn hundreds_of_configurations_do_not_grow() {
    let texts = [
        "global\n stats socket /tmp/x\ndefaults d\nfrontend f\n bind 127.0.0.1:81-83\n tcp-request session set-var(sess.a) src,map(virt@m)\nbackend a\n server s 127.0.0.1:1\n server t 127.0.0.1:1\n",
        "backend b\n server t 127.0.0.1:1\nfrontend f\n bind 127.0.0.1:82-84\n tcp-request session set-var(sess.b) src,map_beg(virt@m)\n",
        "global\n stats socket /tmp/x\ndefaults d\ndefaults e\nlisten f\n bind 127.0.0.1:84\n tcp-request session set-var(txn.b) src,map_sub(virt@m)\n server s 127.0.0.1:1\n",
    ];
    let mut config = first(texts[0]);
    let mut after_all = None;
    for round in 1..300 {
        config = next(&config, texts[round % 3]);
        if round % 3 == 0 {
            let size = (layout(&config), config.slots);
            // In the first round, everything appears for the first time.
            let known = after_all.get_or_insert_with(|| size.clone());
            assert_eq!(*known, size, "{round}");
            let set = config.patterns.find("virt@m").expect("a set");
            assert_eq!(set.ways(), 1);
        }
    }
}

/// What a random configuration consists of.
#[derive(Debug)]
struct Draft {
    text: String,
    /// Each frontend's default backend.
    targets: Vec<(String, String)>,
}

fn shuffled<'t>(random: &mut Random, all: &[&'t str]) -> Vec<&'t str> {
    let mut all = all.to_vec();
    for at in (1..all.len()).rev() {
        all.swap(at, random.below(at + 1));
    }
    all.truncate(random.below(all.len() + 1));
    all
}

fn draft(random: &mut Random) -> Draft {
    let names = shuffled(random, &["a", "b", "c", "d", "e", "g"]);
    let proxies: Vec<(&str, &str)> = names
        .into_iter()
        .map(|name| (name, random.pick(&["frontend", "backend", "listen"])))
        .collect();
    let backends = proxies.iter().filter(|(_, kind)| *kind != "frontend");
    let backends: Vec<&str> = backends.map(|(name, _)| *name).collect();
    let mut draft = Draft {
        text: String::new(),
        targets: Vec::new(),
    };
    if random.chance(50) {
        draft.text += "global\n stats socket /tmp/x\ndefaults d\n";
    }
    let text = &mut draft.text;
    for (name, kind) in &proxies {
        let _ = writeln!(text, "{kind} {name}");
        if *kind != "backend" {
            for port in shuffled(random, &["81", "82", "83", "84"]) {
                let _ = writeln!(text, " bind 127.0.0.1:{port}");
            }
            if !backends.is_empty() {
                let target = random.pick(&backends);
                let _ = writeln!(text, " default_backend {target}");
                draft.targets.push(((*name).to_owned(), target.to_owned()));
            }
        }
        if *kind != "frontend" {
            for server in shuffled(random, &["s", "t", "u", "v"]) {
                let id = if random.chance(20) { " id 3" } else { "" };
                // At most one server of a backend has this id.
                let id = if server == "s" { id } else { "" };
                let _ = writeln!(text, " server {server} 127.0.0.1:1{id}");
            }
        }
    }
    draft
}

fn key(proxy: &Proxy) -> (String, bool, bool) {
    (proxy.name.to_string(), proxy.is_frontend, proxy.is_backend)
}

/// The same objects have the same places in two configurations.
fn agree(old: &Config, new: &Config) {
    assert!(old.proxies.len() <= new.proxies.len());
    for (place, proxy) in old.proxies.iter().enumerate() {
        let named = !proxy.name.is_empty();
        let mut all = new.proxies.iter().filter(|_| named);
        let Some(same) = all.position(|it| key(it) == key(proxy)) else {
            continue;
        };
        assert_eq!(same, place, "{}", proxy.name);
        let same = &new.proxies[place];
        assert!(proxy.servers.len() <= same.servers.len());
        for (one, other) in proxy.servers.iter().zip(&same.servers) {
            assert_eq!(one.name, other.name);
        }
        assert!(proxy.binds.len() <= same.binds.len());
        for (one, other) in proxy.binds.iter().zip(&same.binds) {
            assert_eq!(port(one), port(other));
        }
    }
}

/// A configuration is what its file says.
fn is_of(config: &Config, draft: &Draft) {
    let live = config.proxies.iter().filter(|proxy| !proxy.is_removed);
    let live: Vec<&Proxy> = live.collect();
    let ids: HashSet<u32> = live.iter().map(|proxy| proxy.id).collect();
    assert_eq!(ids.len(), live.len(), "ids of proxies");
    for proxy in live.iter().filter(|proxy| proxy.reserve_of.is_none()) {
        assert!(draft.text.contains(&format!("end {}\n", proxy.name)) || proxy.is_frontend);
        let ids: HashSet<u32> = proxy.live_servers().map(|(_, it)| it.id).collect();
        assert_eq!(ids.len(), proxy.live_servers().count(), "ids of servers");
        assert!(!ids.contains(&0));
        let ids: HashSet<u32> = proxy.live_binds().map(|(_, it)| it.id).collect();
        assert_eq!(ids.len(), proxy.live_binds().count(), "ids of bind lines");
    }
    let sections = draft.text.lines().filter(|line| !line.starts_with(' '));
    let sections = sections.filter(|line| !matches!(*line, "global" | "defaults d"));
    let written = live.iter().filter(|proxy| proxy.reserve_of.is_none());
    assert_eq!(written.count(), sections.count());
    let lines = |start: &str| {
        draft
            .text
            .lines()
            .filter(|line| line.starts_with(start))
            .count()
    };
    let servers = live.iter().map(|proxy| proxy.live_servers().count());
    assert_eq!(servers.sum::<usize>(), lines(" server"));
    let binds = live.iter().map(|proxy| proxy.live_binds().count());
    assert_eq!(binds.sum::<usize>(), lines(" bind"));
    for (name, target) in &draft.targets {
        let frontend = live.iter().find(|proxy| proxy.name == *name);
        let place = frontend.and_then(|proxy| proxy.default_backend);
        let backend = &config.proxies[place.expect("a backend")];
        assert!(backend.name == *target && backend.is_backend && !backend.is_removed);
        assert!(backend.is_named);
    }
}

#[test]
fn random_sequences_keep_places() {
    for seed in 0..20 {
        let mut random = Random::new(seed);
        let mut draft = self::draft(&mut random);
        let mut config: Arc<Config> = first(&draft.text);
        for _ in 0..30 {
            draft = self::draft(&mut random);
            let new = next(&config, &draft.text);
            agree(&config, &new);
            is_of(&new, &draft);
            assert_eq!(layout(&next(&new, &draft.text)), layout(&new));
            config = new;
        }
        // 6 names of 3 kinds, and one set of reserved places.
        assert!(config.proxies.len() <= 18 + 64);
    }
}
