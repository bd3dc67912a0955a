//! Options of `redaction`, from a file of settings to the attributes of a span.

use opentelemetry_proto::tonic::common::v1::any_value::Value;
use serde_json::{Value as Json, json};

use super::processors::{attribute, resource, span, text};
use super::samplers::into_file;
use super::*;

/// The attributes of a span, as JSON by key.
async fn made(options: &str) -> Json {
    let (collector, file) = into_file(&format!("redaction: {{ {options} }}"), "redaction");
    let attributes = vec![
        attribute("card", text("no 4111")),
        attribute("mail", text("me@a.b 4111")),
        attribute("n", Value::IntValue(4111)),
        attribute("token", text("t")),
    ];
    let request = ExportTraceServiceRequest {
        resource_spans: vec![resource(&[], ("", ""), vec![span("s", 1, attributes)])],
    };
    let body = request.encode_to_vec().into();
    let taken = collector.of_proxy().take(Signal::Traces, body).await;
    taken.expect("it is taken");
    let [traces, ..] = collector.end().await;
    assert_eq!((traces.accepted, traces.exported), (1, 1));
    let spans = file.spans();
    let attributes = spans[0]["attributes"].as_array().into_iter().flatten();
    let pairs = attributes.map(|one| {
        let value = one["value"].as_object().expect("a value");
        let value = value.values().next().cloned().unwrap_or_default();
        (one["key"].as_str().unwrap_or_default().to_owned(), value)
    });
    Json::Object(pairs.collect())
}

#[tokio::test(start_paused = true)]
async fn redaction_removes_and_masks_what_its_options_say() {
    const ALL: &str = "allow_all_keys: true";
    const FOUR: &str = "blocked_values: ['4[0-9]{3}']";
    let key = "k".repeat(32);
    for (options, expected) in [
        (String::new(), json!({})),
        (
            ALL.into(),
            json!({ "card": "no 4111", "mail": "me@a.b 4111", "n": "4111", "token": "t" }),
        ),
        ("allowed_keys: [n]".into(), json!({ "n": "4111" })),
        (
            format!("ignored_keys: [card], {FOUR}"),
            json!({ "card": "no 4111" }),
        ),
        (
            format!("ignored_key_patterns: ['^ca', 'n$'], {FOUR}"),
            json!({ "card": "no 4111", "n": "4111", "token": "t" }),
        ),
        (
            format!("{ALL}, {FOUR}"),
            json!({ "card": "no ****", "mail": "me@a.b ****", "n": "4111", "token": "t" }),
        ),
        (
            format!("{ALL}, {FOUR}, redact_all_types: true"),
            json!({ "card": "no ****", "mail": "me@a.b ****", "n": "****", "token": "t" }),
        ),
        (
            format!("{ALL}, {FOUR}, allowed_values: ['^me@']"),
            json!({ "card": "no ****", "mail": "me@a.b 4111", "n": "4111", "token": "t" }),
        ),
        (
            "allowed_keys: [card, token], blocked_key_patterns: [tok]".into(),
            json!({ "card": "no 4111", "token": "****" }),
        ),
        (
            format!("allowed_keys: [card], {FOUR}, hash_function: MD5"),
            json!({ "card": "no 64f07f012a35c83d7c556ba0b69ef64e" }),
        ),
        (
            format!("allowed_keys: [card], {FOUR}, hash_function: hmac-sha256, hmac_key: {key}"),
            json!({ "card": "no ea3235590fd31aaeccaf7b0cadfb2130cb3f10c5a7608142917711b0f116a728" }),
        ),
        (
            format!("allowed_keys: [card], {FOUR}, summary: info"),
            json!({ "card": "no ****", "redaction.masked.count": "1", "redaction.redacted.count": "3" }),
        ),
        (
            format!("allowed_keys: [card], {FOUR}, summary: debug"),
            json!({
                "card": "no ****",
                "redaction.masked.keys": "card",
                "redaction.masked.count": "1",
                "redaction.redacted.keys": "mail,n,token",
                "redaction.redacted.count": "3",
            }),
        ),
        (
            format!("allowed_keys: [card], {FOUR}, url_sanitizer: {{ enabled: false }}"),
            json!({ "card": "no ****" }),
        ),
    ] {
        assert_eq!(made(&options).await, expected, "{options}");
    }
}
