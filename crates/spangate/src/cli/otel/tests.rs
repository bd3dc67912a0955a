use super::super::Subjects;
use super::super::testing::{ask, subjects};
use super::*;
use config::model::Config;
use std::sync::Arc;

/// Filters `a`, `b` and `b`, without exporters.
fn filters() -> Arc<Subjects> {
    let named = |id: &str| OtelFilter {
        id: id.to_owned(),
        ..OtelFilter::default()
    };
    subjects(Config {
        otel: ["a", "b", "b"].map(named).into(),
        ..Config::default()
    })
}

/// The answer to `flt-otel …`, without the line that ends it.
fn answer(command: &str, subjects: &Arc<Subjects>, level: Level) -> String {
    let mut answer = ask(subjects, level, &format!("{command}\n"));
    assert_eq!(answer.pop(), Some('\n'));
    answer
}

#[test]
fn commands_and_their_answers() {
    let known = filters();
    let all = |text: &str| {
        let lines = ["a", "b", "b"].map(|id| format!("filter '{id}' : {text}\n"));
        format!("[info]: {}", lines.concat())
    };
    let a = |text: &str| format!("[info]: filter 'a' : {text}\n");
    let refused = |text: &str| format!("[err]: {text}.\n");
    let number = |got: &str| refused(&format!("expected a number from 0.0 to 100.0, got '{got}'"));
    let cases = [
        ("disable", all("disabled")),
        ("enable @a", a("enabled")),
        ("enable", all("enabled")),
        ("hard-errors @a", a("hard errors")),
        ("soft-errors", all("soft errors")),
        ("reset-errors @a", a("errors count from 0")),
        ("flush @a", a("flushed")),
        ("rate", all("rate 100.00 %")),
        ("rate @a 12.5", a("rate 12.50 %")),
        ("rate @a", a("rate 12.50 %")),
        ("rate 0", all("rate 0.00 %")),
        ("rate 100.1", number("100.1")),
        ("rate -1", number("-1")),
        ("rate NaN", number("NaN")),
        ("rate x", number("x")),
        ("logging", all("logging off")),
        ("logging on", all("logging on")),
        ("logging @a dontlog-normal", a("logging dontlog-normal")),
        (
            "logging loud",
            refused("expected 'off', 'on' or 'dontlog-normal', got 'loud'"),
        ),
        ("noflush", all("noflush off")),
        ("noflush @a on", a("noflush on")),
        ("noflush yes", refused("expected 'on' or 'off', got 'yes'")),
        ("enable @", refused("'@' expects the id of a filter")),
        (
            "enable @c",
            refused("no filter 'opentelemetry' has the id 'c'"),
        ),
        ("enable a", refused("unexpected argument 'a'")),
        ("rate 1 2", refused("unexpected argument '2'")),
        ("rate @a 1 @b", refused("unexpected argument '@b'")),
        ("status @a x", refused("unexpected argument 'x'")),
    ];
    for (command, answered) in cases {
        let got = answer(&format!("flt-otel {command}"), &known, Level::Admin);
        assert_eq!(got, answered, "{command}");
    }
    let filters = known.runtime_config.filters();
    assert_eq!(filters[0].switches.rate.load(Relaxed), 0);
    assert!(filters[0].switches.noflush.load(Relaxed));
}

#[test]
fn a_change_needs_the_rights_to_it() {
    for level in [Level::User, Level::Operator] {
        let known = filters();
        let ask = |command: &str| answer(&format!("flt-otel {command}"), &known, level);
        for command in [
            "enable",
            "disable",
            "hard-errors",
            "soft-errors",
            "reset-errors",
            "flush",
            "rate 5",
            "logging on",
            "noflush @a on",
        ] {
            assert_eq!(ask(command), "[err]: Permission denied\n", "{command}");
        }
        for command in ["rate", "logging", "noflush"] {
            assert!(ask(command).starts_with("[info]: filter 'a'"), "{command}");
        }
        for command in ["status", "instruments @b", "scopes"] {
            assert!(ask(command).starts_with("filter '"), "{command}");
        }
        let help = answer("help", &known, level);
        assert!(help.contains("flt-otel status") && !help.contains("flt-otel flush"));
    }
    let none = subjects(Config::default());
    let got = answer("flt-otel status", &none, Level::Admin);
    assert_eq!(got, "[err]: there is no filter 'opentelemetry'.\n");
}
