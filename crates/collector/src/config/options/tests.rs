use super::value::duration_ns;
use super::{Kind, Table, all, check};
use crate::config::components::{Role, known};
use crate::config::diagnostic::{At, Notes};
use crate::config::service;
use crate::config::source::{Key, Node, Value, typing};

#[test]
fn durations_are_written_as_in_go() {
    let second = 1_000_000_000;
    let cases = [
        ("0", Some(0)),
        ("5s", Some(5 * second)),
        ("+5s", Some(5 * second)),
        ("300ms", Some(300_000_000)),
        ("1h2m3s", Some(3723 * second)),
        ("1.5h", Some(5400 * second)),
        (".5s", Some(second / 2)),
        ("5.s", Some(5 * second)),
        ("10us", Some(10_000)),
        ("10µs", Some(10_000)),
        ("7ns", Some(7)),
        ("2562047h", Some(2_562_047 * 3600 * second)),
        ("2562048h", None),
        ("-1s", None),
        ("", None),
        ("5", None),
        ("s", None),
        (".s", None),
        ("5 s", None),
        ("1d", None),
        ("1.2.3s", None),
        ("99999999999999999999s", None),
    ];
    for (text, nanoseconds) in cases {
        let node = Node::new(At::default(), Value::Text(text.to_owned()));
        assert_eq!(duration_ns(&node).ok(), nanoseconds, "{text}");
    }
    let node = Node::new(At::default(), Value::Int(30));
    assert_eq!(duration_ns(&node), Ok(30));
}

/// Notes what is wrong with the defaults of a table, and of the tables within it.
fn defaults(table: Table, path: &str, notes: &Notes) {
    for opt in all(table) {
        let path = format!("{path}::{}", opt.name);
        let default = match opt.kind {
            Kind::Flag | Kind::Int(..) | Kind::Number(..) => typing::plain(opt.default),
            _ => Value::Text(opt.default.to_owned()),
        };
        let key = Key {
            at: At::default(),
            text: opt.name.to_owned(),
        };
        let map = Value::Map(vec![(key, Node::new(At::default(), default))]);
        match opt.kind {
            Kind::Section(table)
            | Kind::Maybe(table)
            | Kind::Sections(table)
            | Kind::TextsOrSections(table) => {
                assert_eq!(opt.default, "", "{path}");
                defaults(table, &path, notes);
            }
            Kind::Flag | Kind::Int(..) | Kind::Number(..) => {
                assert_ne!(opt.default, "", "{path}");
                check(
                    &Node::new(At::default(), map),
                    table,
                    &path,
                    At::default(),
                    notes,
                );
            }
            _ if !opt.default.is_empty() => {
                check(
                    &Node::new(At::default(), map),
                    table,
                    &path,
                    At::default(),
                    notes,
                );
            }
            _ => {}
        }
    }
}

#[test]
fn defaults_are_values_of_their_options() {
    let notes = Notes::default();
    for role in Role::ALL {
        for entry in role.entries() {
            defaults(entry.options, entry.names[0].text, &notes);
        }
    }
    defaults(service::TABLE, "service", &notes);
    defaults(service::pipelines::TABLE, "pipeline", &notes);
    let found: Vec<String> = notes
        .into_diagnostics()
        .iter()
        .map(ToString::to_string)
        .collect();
    // Options that must be there are missing, as only the default is.
    let told = |one: &&String| !one.contains("is missing") && !one.contains("deprecated");
    let wrong: Vec<&String> = found.iter().filter(told).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn kinds_have_one_entry_each() {
    for role in Role::ALL {
        let names = role.entries().iter().flat_map(|entry| entry.names);
        let mut names: Vec<&str> = names.map(|name| name.text).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count, "{role}");
        for name in names {
            assert!(!known::is_known(role, name), "{role} {name} is built in");
        }
    }
}
