//! Options of `resourcedetection`, from a file of settings to a file of records.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::processors::take;
use super::samplers::into_file;

/// The attributes of the resources that a detector leaves, by `service.name`.
async fn detected(options: &str) -> Vec<BTreeMap<String, String>> {
    let (collector, file) = into_file(
        &format!("resourcedetection: {{ {options} }}"),
        "resourcedetection",
    );
    take(&collector).await.expect("they are taken");
    collector.end().await;
    let lines = std::fs::read_to_string(&file.0).unwrap_or_default();
    let line: Json = serde_json::from_str(&lines).expect("a line");
    let resources = line["resourceSpans"].as_array().expect("resources").iter();
    resources
        .map(|one| {
            let attributes = one["resource"]["attributes"].as_array();
            let attributes = attributes.into_iter().flatten();
            attributes
                .map(|one| {
                    let key = one["key"].as_str().expect("a key").to_owned();
                    (key, one["value"].to_string())
                })
                .collect()
        })
        .collect()
}

/// Attributes of the system, and whether they are there where nothing is written.
const OF_SYSTEM: [(&str, bool); 17] = [
    ("host.name", true),
    ("os.type", true),
    ("host.arch", false),
    ("host.id", false),
    ("host.ip", false),
    ("host.mac", false),
    ("host.interface", false),
    ("os.name", false),
    ("os.version", false),
    ("os.build.id", false),
    ("os.description", false),
    ("host.cpu.vendor.id", false),
    ("host.cpu.family", false),
    ("host.cpu.model.id", false),
    ("host.cpu.model.name", false),
    ("host.cpu.stepping", false),
    ("host.cpu.cache.l2.size", false),
];

/// Whether this machine tells so.
fn is_known(name: &str) -> bool {
    let has = |file: &str, text: &str| {
        let found = std::fs::read_to_string(file).unwrap_or_default();
        found.lines().any(|line| line.starts_with(text))
    };
    match name {
        "host.id" => has("/etc/machine-id", ""),
        "os.name" => has("/etc/os-release", "NAME="),
        "os.version" => has("/etc/os-release", "VERSION_ID="),
        "os.description" => has("/etc/os-release", "PRETTY_NAME="),
        "host.cpu.vendor.id" => has("/proc/cpuinfo", "vendor_id"),
        "host.cpu.family" => has("/proc/cpuinfo", "cpu family"),
        "host.cpu.model.id" => has("/proc/cpuinfo", "model\t"),
        "host.cpu.model.name" => has("/proc/cpuinfo", "model name"),
        "host.cpu.stepping" => has("/proc/cpuinfo", "stepping"),
        "host.cpu.cache.l2.size" => has("/proc/cpuinfo", "cache size"),
        _ => true,
    }
}

#[tokio::test(start_paused = true)]
async fn the_system_tells_what_is_asked_for() {
    let asked = |wanted: &dyn Fn(&str, bool) -> bool| {
        let attributes = OF_SYSTEM.iter().map(|(name, at_first)| {
            format!("{name}: {{ enabled: {} }}, ", wanted(name, *at_first))
        });
        let attributes: String = attributes.collect();
        format!("detectors: [system], system: {{ resource_attributes: {{ {attributes} }} }}")
    };
    let of_none = async |options: &str| detected(options).await.pop().expect("a resource");
    let first: Vec<_> = of_none("detectors: [system]").await.into_keys().collect();
    assert_eq!(first, ["host.name", "os.type"]);
    // Names of hosts that are asked for over the network are not known, and nothing is told without
    // one.
    let nobody = "detectors: [system], system: { hostname_sources: [cname] }";
    assert!(of_none(nobody).await.is_empty());
    // The others, and none of those.
    let others: Vec<_> = of_none(&asked(&|_, at_first| !at_first))
        .await
        .into_keys()
        .collect();
    let known = OF_SYSTEM
        .iter()
        .filter(|(name, at_first)| !at_first && is_known(name));
    let mut known: Vec<_> = known.map(|(name, _)| *name).collect();
    known.sort_unstable();
    assert_eq!(others, known);
}

#[tokio::test(start_paused = true)]
async fn what_is_detected_replaces_what_was_there_or_does_not() {
    let variable = "OTEL_RESOURCE_ATTRIBUTES";
    if std::env::var_os(variable).is_none() {
        // The variables of a process are set at its start.
        let name =
            "serve::options::detection::what_is_detected_replaces_what_was_there_or_does_not";
        let own = std::env::current_exe().expect("a program");
        let run = std::process::Command::new(own)
            .args(["--exact", name])
            .env(variable, "zone=env,more=env,os.type=env")
            .output()
            .expect("it runs");
        let told = String::from_utf8_lossy(&run.stdout);
        assert!(run.status.success() && told.contains("1 passed"), "{told}");
        return;
    }
    let env = r#"{"stringValue":"env"}"#;
    let zone = async |options: &str| detected(options).await[0]["zone"].clone();
    assert_eq!(zone("").await, env);
    assert_eq!(zone("override: false").await, r#"{"stringValue":"a"}"#);
    let keys = async |options: &str| -> Vec<String> {
        detected(options)
            .await
            .pop()
            .expect("a resource")
            .into_keys()
            .collect()
    };
    assert_eq!(keys("").await, ["more", "os.type", "zone"]);
    assert_eq!(keys("attributes: [zone]").await, ["zone"]);
    assert_eq!(
        keys("env: { attributes: { included: ['*o*e'] } }").await,
        ["more", "os.type", "zone"]
    );
    assert_eq!(
        keys("env: { attributes: { included: [z*] } }").await,
        ["zone"]
    );
    assert_eq!(
        keys("env: { attributes: { excluded: [z*, os.*] } }").await,
        ["more"]
    );
    // The first detector that knows an attribute counts.
    let of = async |options: &str| detected(options).await[2]["os.type"].clone();
    assert_eq!(of("detectors: [env, system]").await, env);
    assert_ne!(of("detectors: [system, env]").await, env);
}
