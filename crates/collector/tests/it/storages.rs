//! `storage`: what keeps what waits.

use tail::settings::GroupByTrace;

use super::{errors, good};

/// Pipelines through these processors, with these extensions of which some run.
fn text(processors: &str, defined: &str, running: &str, more: &str) -> String {
    format!(
        "receivers: {{ otlp: {{ protocols: {{ grpc: }} }} }}
exporters: {{ nop: }}
processors: {{ {processors} }}
extensions: {{ {defined} }}
service:
  extensions: [{running}]
  pipelines:
    traces: {{ receivers: [otlp], processors: [one], exporters: [nop] }}
{more}"
    )
    .replace(
        "[one]",
        &format!("[{}]", processors.split(':').next().unwrap_or_default()),
    )
}

const ALWAYS: &str = "policies: [ { name: a, type: always_sample } ]";
const STORAGE: &str = "file_storage: { directory: /tmp/q }";

#[test]
fn a_storage_is_one_that_runs() {
    let sampler = |storage: &str| format!("tail_sampling: {{ storage: {storage}, {ALWAYS} }}");
    for (processors, defined, running, told) in [
        (
            sampler("file_storage"),
            "",
            "",
            "tail_sampling::storage: 'file_storage' is no extension that is defined and built in",
        ),
        (
            sampler("file_storage"),
            STORAGE,
            "",
            "tail_sampling::storage: 'file_storage' is not in service::extensions",
        ),
        (
            sampler("health_check"),
            "health_check:",
            "health_check",
            "tail_sampling::storage: 'health_check' is no storage",
        ),
        (
            sampler("'/x'"),
            STORAGE,
            "file_storage",
            "tail_sampling::storage: '/x' is no id: a type must stand first",
        ),
        (
            "groupbytrace: { storage: file_storage/a }".to_owned(),
            STORAGE,
            "file_storage",
            "groupbytrace::storage: 'file_storage/a' is no extension that is defined and built in",
        ),
        (
            "groupbytrace: { store_on_disk: true }".to_owned(),
            "file_storage: { directory: /tmp/q }, file_storage/b: { directory: /tmp/b }",
            "file_storage, file_storage/b",
            "groupbytrace::store_on_disk: there is more than one 'file_storage': name one with 'storage'",
        ),
    ] {
        let found = errors(&text(&processors, defined, running, ""));
        assert!(found.len() == 1 && found[0].ends_with(told), "{found:#?}");
    }
}

#[test]
fn what_a_receiver_takes_is_kept_in_one_place() {
    let processors = format!(
        "tail_sampling: {{ storage: file_storage, {ALWAYS} }}, groupbytrace: {{ storage: file_storage/b }}"
    );
    let defined =
        format!("{STORAGE}, file_storage/b: {{ directory: /tmp/b }} }}\nconnectors: {{ forward:");
    let other = |receiver: &str| {
        format!(
            "    traces/c: {{ receivers: [otlp], exporters: [forward] }}
    traces/b: {{ receivers: [{receiver}], processors: [groupbytrace], exporters: [nop] }}"
        )
    };
    let running = "file_storage, file_storage/b";
    let found = errors(&text(&processors, &defined, running, &other("forward")));
    let told = "service::pipelines::traces: what the receiver 'otlp' takes would be kept in 'file_storage' and 'file_storage/b': name one 'storage' in all its pipelines";
    assert!(found.len() == 1 && found[0].ends_with(told), "{found:#?}");
    let same = processors.replace("file_storage/b", "file_storage");
    let (_, warnings) = good(&text(&same, &defined, running, &other("forward")));
    assert_eq!(warnings, [""; 0]);
}

#[test]
fn store_on_disk_is_the_only_storage() {
    let (config, warnings) = good(&text(
        "groupbytrace: { store_on_disk: true }",
        "health_check:, file_storage/q: { directory: /tmp/q }",
        "health_check, file_storage/q",
        "",
    ));
    assert_eq!(warnings, [""; 0]);
    let [group] = &config.processors[..] else {
        panic!("{config:?}");
    };
    let group: &GroupByTrace = group.settings.get().expect("a groupbytrace");
    assert_eq!(group.storage.as_deref(), Some("file_storage/q"));
}

/// Nothing keeps what an authenticator found: where that is asked for, there is no storage.
#[test]
fn what_an_authenticator_found_needs_no_storage() {
    let queued = |queue: &str, header: &str| {
        format!(
            "receivers: {{ otlp: {{ protocols: {{ grpc: {{ include_metadata: true }} }} }} }}
exporters: {{ otlphttp: {{ endpoint: 'http://a:1', auth: {{ authenticator: headers_setter }}, sending_queue: {{ {queue} }} }} }}
extensions: {{ {STORAGE}, headers_setter: {{ headers: [ {{ key: a, {header} }} ] }} }}
service:
  extensions: [file_storage, headers_setter]
  pipelines: {{ traces: {{ receivers: [otlp], exporters: [otlphttp] }} }}"
        )
    };
    let stored = "storage: file_storage";
    good(&queued("", "from_attribute: username"));
    good(&queued(stored, "from_context: a"));
    let told = errors(&queued(stored, "from_attribute: username"));
    let why = "exporters::otlphttp: auth: 'headers_setter' asks for what an authenticator found, which a queue with 'storage' does not keep";
    assert!(told.len() == 1 && told[0].contains(why), "{told:?}");

    let sampled = |from: &str| {
        let processors = format!(
            "attributes: {{ actions: [ {{ key: a, action: insert, from_context: {from} }} ] }}, tail_sampling: {{ storage: file_storage, {ALWAYS} }}"
        );
        text(&processors, STORAGE, "file_storage", "")
            .replace("[attributes]", "[attributes, tail_sampling]")
    };
    good(&sampled("metadata.a"));
    good(&sampled("client.address"));
    let told = errors(&sampled("auth.username"));
    let why = "service::pipelines::traces: what the receiver 'otlp' takes is kept in 'file_storage', which does not keep what an authenticator found, and components ask for";
    assert!(told.len() == 1 && told[0].contains(why), "{told:?}");
}
