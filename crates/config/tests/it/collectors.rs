//! Sections `collector`, and references to them.

use crate::common;

use common::{accepted, report, under_caret};
use spangate_config::model::CollectorSection;
use std::time::Duration;

const PROXY: &str = "defaults\n  mode http\n  timeout client 1s\nfrontend f\n  bind :80\n";

#[test]
fn sections_are_read() {
    let text = format!(
        "collector main
  config a.yaml
  config /etc/b.yaml
  strict
  drop-part exporter:jaeger
  drop-part zpages
  feature-gates +a,-b
  threads 4
  root-wait 500ms
collector other
  config c.yaml
{PROXY}  option tracing endpoint collector://other
global
  default-path origin /srv
"
    );
    let config = accepted(&text);
    let [main, other] = &config.collectors[..] else {
        panic!("{:?}", config.collectors);
    };
    let CollectorSection {
        name,
        files,
        strict,
        drop_parts,
        feature_gates,
        threads,
        root_wait,
        ..
    } = main;
    let files: Vec<(&str, u32)> = files.iter().map(|(f, span)| (&**f, span.line)).collect();
    assert_eq!(files, [("/srv/a.yaml", 2), ("/etc/b.yaml", 3)]);
    assert_eq!((&**name, strict, threads), ("main", &true, &4));
    assert_eq!(drop_parts, &["exporter:jaeger", "zpages"]);
    assert_eq!(feature_gates, &["+a,-b"]);
    assert_eq!(root_wait, &Duration::from_millis(500));
    assert_eq!(
        (&*other.name, other.strict, other.threads),
        ("other", false, 1)
    );
    assert_eq!(other.root_wait, Duration::from_secs(2));
    let named: Vec<&str> = config.otel[0]
        .settings
        .collectors()
        .map(|(_, one)| &*one.name)
        .collect();
    assert_eq!(named, ["other"]);
}

#[test]
fn faults_have_their_places() {
    let with = |line: &str| format!("collector main\n  config a\n  {line}\n{PROXY}");
    let cases = [
        (
            "collector\n  config a\n".to_owned(),
            "missing name for collector section.",
            None,
        ),
        (
            "collector a!b\n  config a\n".to_owned(),
            "character '!' is not permitted in 'collector' name 'a!b'.",
            Some("a!b"),
        ),
        (
            "collector a b\n  config a\n".to_owned(),
            "'collector' cannot handle unexpected argument 'b'.",
            Some("b"),
        ),
        (
            "collector a\n".to_owned(),
            "collector 'a' has no 'config'.",
            Some("collector"),
        ),
        (
            "collector a\n  config a\ncollector a\n  config a\n".to_owned(),
            "collector section 'a' has the same name as another one declared at t.cfg:1.",
            Some("a"),
        ),
        (
            with("config"),
            "'config' expects a file name as argument.",
            None,
        ),
        (
            with("config a b"),
            "'config' cannot handle unexpected argument 'b'.",
            Some("b"),
        ),
        (
            with("confg a"),
            "unknown keyword 'confg' in 'collector' section; did you mean 'config' maybe ?",
            Some("confg"),
        ),
        (
            with("strict on"),
            "'strict' cannot handle unexpected argument 'on'.",
            Some("on"),
        ),
        (
            with("threads 0"),
            "'threads' expects a number from 1 to 256, got '0'.",
            Some("0"),
        ),
        (
            with("threads"),
            "'threads' expects a number as argument.",
            None,
        ),
        (
            with("root-wait soon"),
            "unexpected character 's' in 'root-wait'.",
            Some("soon"),
        ),
        (
            with("drop-part"),
            "'drop-part' expects the id of a component as argument.",
            None,
        ),
        (
            with("feature-gates"),
            "'feature-gates' expects a list of gates as argument.",
            None,
        ),
        (
            format!(
                "{}  option tracing endpoint collector://man\n",
                with("strict")
            ),
            "there is no section 'collector man'; did you mean 'main' maybe ?.",
            Some("collector://man"),
        ),
        (
            format!(
                "global\n  setenv OTEL_EXPORTER_OTLP_ENDPOINT collector://x\n{PROXY}  option tracing\n"
            ),
            "there is no section 'collector x'.",
            Some("tracing"),
        ),
    ];
    for (text, message, word) in cases {
        let shown = report(&text);
        assert_eq!(shown.matches(message).count(), 1, "{text}: {shown}");
        if let Some(word) = word {
            assert_eq!(
                under_caret(&shown, message).as_deref(),
                Some(word),
                "{shown}"
            );
        }
    }
}
