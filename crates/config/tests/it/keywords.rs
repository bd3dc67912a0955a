//! Every name that HAProxy 3.5 knows has an entry in the keyword table.

use spangate_config::keywords::{Group, groups};

/// The table's part for a group of the list.
fn title(group: &str) -> String {
    match group {
        "proxy" => "Sections `defaults`, `frontend`, `listen` and `backend`".into(),
        "option" | "timeout" => format!("`{group}`"),
        "bind" => "Options of a `bind` line".into(),
        "server" => "Options of `server`, `default-server` and `server-template` lines".into(),
        _ if group.contains("http-") && group != "http-errors"
            || group.contains("tcp-")
            || group == "quic-initial" =>
        {
            format!("Actions of `{group}`")
        }
        _ => format!("Section `{group}`"),
    }
}

fn has(group: &Group, name: &str) -> bool {
    let name = name.trim_end_matches(['*']).trim_end_matches("(*)");
    // `track-sc0` is the action `track-sc` with a number.
    let name = if name.starts_with("track-sc") {
        "track-sc"
    } else {
        name
    };
    group
        .rows
        .iter()
        .any(|row| row.name.trim_end_matches('*') == name)
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
            .is_some_and(|known| has(known, name));
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
        let mut names: Vec<&str> = group.rows.iter().map(|row| row.name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count, "{} has a name twice", group.title);
        for row in &group.rows {
            assert!(
                row.doc.ends_with('.') && row.doc.len() > 3,
                "{} has no line",
                row.name
            );
        }
    }
}
