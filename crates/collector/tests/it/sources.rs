//! Files, merges, expansion.

use spangate_collector::config::components::exporters::otlp_grpc::OtlpGrpcExporter;
use spangate_collector::config::components::processors::batch::Batch;
use spangate_collector::config::components::receivers::otlp::OtlpReceiver;
use spangate_collector::config::shared::address::Listen;
use spangate_collector::config::{Config, Options};

use crate::{errors, good, load_files, with_processors};

const BASE: &str = "
receivers:
  otlp:
    protocols:
      grpc:
        endpoint: 0.0.0.0:4317
      http:
processors:
  batch:
    timeout: 1s
    send_batch_size: 100
exporters:
  otlp:
    endpoint: one:4317
    headers: { a: b }
service:
  pipelines:
    traces: { receivers: [otlp], processors: [batch], exporters: [otlp] }
";

fn load(files: &[&str], variables: &[(&str, &str)]) -> (Config, Vec<String>) {
    let config = load_files(files, variables, &Options::default());
    let config = config.unwrap_or_else(|errors| panic!("{errors:#?}"));
    let warnings = config.warnings.iter().map(ToString::to_string).collect();
    (config, warnings)
}

fn batch(config: &Config) -> (u64, u32) {
    let batch: &Batch = config.processors[0].settings.get().expect("a batch");
    (batch.timeout_ns / 1_000_000, batch.send_size)
}

fn otlp(config: &Config) -> &OtlpGrpcExporter {
    let exporter = config.exporters[0].settings.get();
    exporter.expect("an exporter")
}

#[test]
fn later_files_win_and_maps_merge() {
    let over = "
processors:
  batch: { timeout: 5s }
exporters:
  otlp: { endpoint: two:4317 }
  debug:
service:
  pipelines:
    traces: { exporters: [otlp, debug] }
";
    let (config, warnings) = load(&[BASE, over], &[]);
    assert_eq!(batch(&config), (5000, 100));
    assert_eq!(otlp(&config).client.target(), "two:4317");
    assert_eq!(
        otlp(&config).client.otlp.headers.0,
        [("a".to_owned(), "b".to_owned())]
    );
    assert_eq!(config.pipelines[0].exporters.len(), 2);
    assert_eq!(config.exporters[1].place, "b.yaml:6");
    assert_eq!(warnings, [""; 0]);
}

#[test]
fn nulls_are_defaults_and_an_empty_overlay_resets() {
    let (config, warnings) = load(&[BASE, "processors:\n  batch:\n"], &[]);
    assert_eq!(batch(&config), (200, 8192));
    let warning = "b.yaml:2:3: 'batch' is empty here and replaces the options of a.yaml:9: leave the key out to keep them";
    assert_eq!(warnings, [warning]);
}

#[test]
fn an_overlay_may_define_what_the_base_names() {
    let base = BASE.replace("exporters: [otlp]", "exporters: [otlp, nop]");
    let error = "a.yaml:18:73: service::pipelines::traces: the exporter 'nop' is not defined under 'exporters'";
    assert_eq!(errors(&base), [error]);
    load(&[&base, "exporters: { nop: }"], &[]);
}

#[test]
fn keys_with_colons_are_maps_within_maps() {
    let sources = ["a.yaml", "yaml:processors::batch::timeout: 2s"];
    let outside = spangate_collector::config::source::Outside {
        variable: &|_| None,
        read_file: &|_| Ok(BASE.into()),
    };
    let config = spangate_collector::config::load(&sources, &Options::default(), outside);
    assert_eq!(batch(&config.expect("it is right")), (2000, 100));
}

#[test]
fn what_a_reference_stands_for_is_typed_anew() {
    let cases = [
        // Written, the variable's value, the result.
        ("${env:X}", "10", 10),
        ("${X}", "10", 10),
        ("\"${env:X}\"", "1_000", 1000),
        ("${env:Y:-30}", "", 30),
        ("\"${env:Y:-30}\"", "", 30),
        ("${Y:-30}", "", 30),
        ("${env:${NAME}}", "7", 7),
        ("${env:Y:-${env:X}}", "8", 8),
        ("${yaml:12}", "", 12),
        ("${env:Z}", "", 0),
        ("0x20", "", 32),
        ("100_000", "", 100_000),
    ];
    for (written, value, expected) in cases {
        let text = with_processors(
            "batch",
            &format!("  batch: {{ send_batch_size: {} }}", quoted(written)),
        );
        let (config, _) = load(&[&text], &[("X", value), ("NAME", "X")]);
        assert_eq!(batch(&config).1, expected, "{written}");
    }
}

/// A `}` ends a flow map's plain text.
fn quoted(text: &str) -> String {
    if text.starts_with('"') || !text.contains('$') {
        text.to_owned()
    } else {
        format!("'{text}'")
    }
}

#[test]
fn within_a_text_it_stays_text() {
    let text = BASE
        .replace("endpoint: one:4317", "endpoint: ${env:HOST}:${PORT}")
        .replace(
            "{ a: b }",
            "{ number: '${PORT}', dollar: a$$b, escaped: '$${HOST}', both: '$$${HOST}' }",
        );
    let (config, warnings) = load(&[&text], &[("HOST", "h"), ("PORT", "1234")]);
    assert_eq!(otlp(&config).client.target(), "h:1234");
    let headers = &otlp(&config).client.otlp.headers.0;
    let headers: Vec<(&str, &str)> = headers
        .iter()
        .map(|(k, v)| (k.as_str(), v.as_str()))
        .collect();
    let expected = [
        ("number", "1234"),
        ("dollar", "a$b"),
        ("escaped", "${HOST}"),
        ("both", "$h"),
    ];
    assert_eq!(headers, expected);
    assert_eq!(warnings, [""; 0]);
}

#[test]
fn a_text_of_several_references_stays_text() {
    for (written, target) in [
        ("${env:HOST}:${env:PORT}", "10.0.0.1:4317"),
        ("${env:NUMBER}:${env:PORT}", "10:4317"),
        ("${env:NONE:-[::1]}:${env:PORT}", "[::1]:4317"),
        ("${env:NONE:-${env:HOST}:${env:PORT}}", "10.0.0.1:4317"),
    ] {
        let text = BASE.replace("one:4317", &format!("'{written}'"));
        let variables = [("HOST", "10.0.0.1"), ("NUMBER", "10"), ("PORT", "4317")];
        let (config, _) = load(&[&text], &variables);
        assert_eq!(otlp(&config).client.target(), target, "{written}");
    }
}

#[test]
fn an_unset_variable_is_nothing_and_warned_about() {
    let text = BASE.replace("timeout: 1s", "timeout: ${env:NONE}");
    let (config, warnings) = load(&[&text], &[]);
    assert_eq!(batch(&config), (0, 100));
    assert_eq!(
        warnings,
        ["a.yaml:10:14: the variable 'NONE' is not set: it stands for nothing"]
    );
}

#[test]
fn files_and_variables_may_hold_maps_and_lists() {
    let text = BASE
        .replace(
            "  batch:\n    timeout: 1s\n    send_batch_size: 100",
            "  batch: ${file:b.yaml}",
        )
        .replace("exporters: [otlp]", "exporters: \"${LIST}\"");
    let included = "# included\ntimeout: 3s\nsend_batch_size: ${env:SIZE}\n";
    let variables = [("LIST", "[otlp]"), ("SIZE", "9")];
    let (config, warnings) = load(&[&text, included], &variables);
    assert_eq!(batch(&config), (3000, 9));
    assert_eq!(warnings, [""; 0]);
    // Errors stand where the file has them.
    let found = load_files(
        &[&text, "# included\ntimout: 3s\n"],
        &variables,
        &Options::default(),
    );
    let error = "b.yaml:2:1: processors::batch::timout: unknown key (did you mean 'timeout'?)";
    assert_eq!(found.unwrap_err(), [error]);
}

#[test]
fn references_that_cannot_be_followed() {
    let cases = [
        (
            "${http://h}",
            "'${http://h}': 'http' is no source of values: env, file and yaml are (a '$' alone is written '$$')",
        ),
        (
            "${1}",
            "'1' is no name of a variable: letters, digits and '_' are (a '$' alone is written '$$')",
        ),
        ("${file:none}", "cannot read 'none': it is not there"),
        (
            "${env:LOOP}",
            "'${env:LOOP}' is still to be expanded after 100 expansions: does it name itself?",
        ),
    ];
    for (written, error) in cases {
        let text = BASE.replace("one:4317", &format!("'{written}'"));
        let found = load_files(&[&text], &[("LOOP", "${env:LOOP}")], &Options::default());
        assert_eq!(
            found.unwrap_err()[0],
            format!("a.yaml:14:15: {error}"),
            "{written}"
        );
    }
}

#[test]
fn expansions_are_bounded() {
    let lines = "x".repeat(2000);
    let text = BASE.replace("one:4317", &"${env:A}".repeat(5000));
    let found = load_files(&[&text], &[("A", &lines)], &Options::default());
    assert_eq!(
        found.unwrap_err()[0],
        "a.yaml:14:15: expansions make more than 8388608 bytes"
    );
    // Aliases of aliases, written out.
    let mut bomb = String::from("a0: &a0 [1, 2, 3, 4, 5, 6, 7, 8, 9]\n");
    for level in 1..9 {
        let below = level - 1;
        let items = format!("*a{below}, ").repeat(9);
        bomb.push_str(&format!("a{level}: &a{level} [{items}]\n"));
    }
    assert_eq!(
        errors(&bomb),
        ["a.yaml:1:1: more than 200000 values, aliases written out"]
    );
}

#[test]
fn anchors_and_merges() {
    let text = with_processors(
        "batch",
        "  batch/base: &base { timeout: 7s, send_batch_size: 5 }\n  batch:\n    <<: *base\n    send_batch_size: 6\n",
    );
    let (config, _) = load(&[&text], &[]);
    assert_eq!(batch(&config), (7000, 6));
}

#[test]
fn several_documents_and_other_yaml() {
    let text = format!("---\n{}\n---\nkind: ConfigMap\n", BASE.trim());
    let (_, warnings) = good(&text);
    let warning = "a.yaml:19:1: another document begins here: only the first one counts";
    assert_eq!(warnings, [warning]);
    let cases = [
        ("a: 1\na: 2\n", "a.yaml:2:1: the key 'a' is there twice"),
        (
            "- a\n",
            "a.yaml:1:1: a configuration is a map of receivers, processors, exporters and service",
        ),
        ("", "a.yaml:1:1: service: is missing: nothing would run"),
        (
            "apiVersion: v1\nkind: ConfigMap\ndata: { relay: '' }\n",
            "a.yaml:1:1: this is a resource of Kubernetes ('ConfigMap'): give the configuration that is in it",
        ),
        (
            "service:\n\t- a\n",
            "a.yaml:2:2: tabs disallowed within this context (block indentation)",
        ),
        (
            "recievers:\nservice:\n",
            "a.yaml:1:1: recievers: unknown key (did you mean 'receivers'?)",
        ),
    ];
    for (text, error) in cases {
        assert_eq!(errors(text)[0], error, "{text}");
    }
    // Carriage returns and tabs after values are as good as blanks.
    good(&BASE.replace('\n', "\r\n"));
}

#[test]
fn a_whole_receiver_of_text_forms() {
    let (config, _) = load(&[BASE], &[]);
    let otlp: &OtlpReceiver = config.receivers[0].settings.get().expect("a receiver");
    let listen = &otlp.grpc.as_ref().expect("gRPC").listen;
    let Listen::Tcp { host, port, .. } = listen else {
        panic!("{listen:?}");
    };
    assert_eq!((host.as_str(), *port), ("0.0.0.0", 4317));
}
