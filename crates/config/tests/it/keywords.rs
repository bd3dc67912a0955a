//! Every name of HAProxy 3.5 has an entry in the keyword table.

use crate::common;

use spangate_config::keywords::{Group, Places, State, groups};

/// The part of the table for a group of the list.
fn title(group: &str) -> String {
    match group {
        "proxy" => "Sections `defaults`, `frontend`, `listen` and `backend`".into(),
        "option" | "timeout" => format!("`{group}`"),
        "bind" => "Options of a `bind` line".into(),
        "server" => "Options of `server`, `default-server` and `server-template` lines".into(),
        _ if rule_set(group).is_some() => "Actions of rules".into(),
        _ => format!("Section `{group}`"),
    }
}

/// The rule set with this name.
fn rule_set(group: &str) -> Option<Places> {
    let named = Places::NAMES.iter().find(|(_, name)| *name == group);
    named
        .map(|(place, _)| *place)
        .filter(|_| !matches!(group, "frontend" | "backend" | "defaults"))
}

fn has(group: &Group, name: &str, set: Option<Places>) -> bool {
    let name = name.trim_end_matches(['*']).trim_end_matches("(*)");
    // `track-sc0` is the action `track-sc` with a number.
    let name = if name.starts_with("track-sc") {
        "track-sc"
    } else {
        name
    };
    let mut rows = group.rows.iter();
    rows.any(|row| {
        row.name.trim_end_matches('*') == name && set.is_none_or(|set| row.places.intersects(set))
    })
}

#[test]
fn every_name_of_haproxy_has_an_entry() {
    let groups = groups();
    let list = include_str!("data/haproxy-keywords.txt");
    let mut missing = Vec::new();
    let mut count = 0;
    for line in list.lines().filter(|line| !line.starts_with('#')) {
        let (group, name) = line.split_once('\t').expect("a tab");
        count += 1;
        let found = groups
            .iter()
            .find(|known| known.title == title(group))
            .is_some_and(|known| has(known, name, rule_set(group)));
        if !found {
            missing.push(line);
        }
    }
    assert!(count > 1000, "the list is whole: {count}");
    assert!(missing.is_empty(), "without an entry: {missing:#?}");
}

#[test]
fn no_name_stands_twice_and_each_has_its_line() {
    for group in groups() {
        for (index, row) in group.rows.iter().enumerate() {
            let twice = group.rows[..index].iter().find(|other| {
                let meet = other.places.intersects(row.places) || !group.by_place;
                other.name == row.name && meet
            });
            assert!(twice.is_none(), "{} has '{}' twice", group.title, row.name);
        }
        for row in &group.rows {
            assert!(
                row.doc.ends_with('.') && row.doc.len() > 3,
                "{} has no line",
                row.name
            );
        }
    }
}

/// If an argument of a keyword is refused as not implemented, the keyword's row says so.
#[test]
fn missing_arguments_are_named() {
    let backend = "Sections `defaults`, `frontend`, `listen` and `backend`";
    let server = "Options of `server`, `default-server` and `server-template` lines";
    let cases = [
        (backend, "bind", "frontend x\n bind vsock@1:443\n"),
        (backend, "filter", "frontend x\n filter spoe\n"),
        (backend, "mode", "frontend x\n mode haterm\n"),
        (backend, "mode", "backend x\n mode spop\n"),
        (backend, "mode", "listen x\n mode log\n"),
        (backend, "server", "backend x\n server s vsock@1:2\n"),
        (
            server,
            "proto",
            "backend x\n server s 127.0.0.1:1 proto fcgi\n",
        ),
        (
            "Options of a `bind` line",
            "proto",
            "frontend x\n bind :80 proto fcgi\n",
        ),
    ];
    let groups = groups();
    for (title, name, text) in cases {
        let shown = common::report(text);
        assert!(
            shown.contains("is known but not implemented yet by this version"),
            "{text}{shown}"
        );
        let group = groups.iter().find(|group| group.title == title);
        let row = group.and_then(|group| group.rows.iter().find(|row| row.name == name));
        let is_partly = row.is_some_and(|row| matches!(row.state, State::Partly(..)));
        assert!(is_partly, "{title}: {name}");
    }
}

/// The `filter` line accepts exactly the filters of the table.
#[test]
fn every_filter_is_known() {
    let groups = groups();
    let filters = groups.iter().find(|group| group.title == "`filter`");
    for row in &filters.expect("a table").rows {
        let shown = common::report(&format!("frontend x\n filter {}\n", row.name));
        let wanted = match row.state {
            State::NotYet => format!("keyword 'filter {}' is known but not", row.name),
            State::Removed(message) => message.to_owned(),
            // Each needs more words.
            _ => format!("'{}'", row.name),
        };
        let is_whole = matches!(row.name, "comp-req" | "comp-res" | "compression" | "trace");
        let is_refused = shown.contains("[ALERT]") && shown.contains(&wanted);
        assert_eq!(is_refused, !is_whole, "{shown}");
    }
    let shown = common::report("frontend x\n filter compresion\n");
    assert!(shown.contains("unknown filter 'compresion'; did you mean 'compression' maybe ?"));
}
