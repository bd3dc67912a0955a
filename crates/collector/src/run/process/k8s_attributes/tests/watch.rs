//! An API server of the test's making tells of pods.

use std::collections::HashMap;

use tokio::time::Instant;

use super::*;
use crate::run::account::Account;
use crate::run::consume::FanOut;
use crate::run::k8s::server::{Asked, PATIENCE, Server};
use crate::run::process::tests::log_of;

fn list(version: u32, next: &str, items: &[Json]) -> String {
    json!({"metadata": {"resourceVersion": version.to_string(), "continue": next}, "items": items})
        .to_string()
}

fn event(kind: &str, version: u32, mut object: Json) -> String {
    object["metadata"]["resourceVersion"] = json!(version.to_string());
    json!({"type": kind, "object": object}).to_string() + "\n"
}

async fn until(mut is_so: impl FnMut() -> bool, what: &str) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        sleep(Duration::from_millis(2)).await;
    }
}

/// Answers the first list of each kind, and returns the watches by their paths.
async fn listed(server: &mut Server, lists: &[(&str, &str)]) -> HashMap<String, Asked> {
    let mut watches = HashMap::new();
    while watches.len() < lists.len() {
        let asked = server.asked().await;
        let path = asked.target.split('?').next().unwrap().to_owned();
        if asked.target.contains("watch=true") {
            watches.insert(path, asked);
            continue;
        }
        let (_, body) = lists.iter().find(|(own, _)| *own == path).expect(&path);
        asked.answer(200, body);
    }
    watches
}

fn started(server: &Server, settings: &Settings, log: &Log) -> K8sAttributes {
    let watching = Watching::start(settings, "k8s_attributes", &server.pod, log).unwrap();
    let next = FanOut::of(Vec::new());
    K8sAttributes::new(settings, "k8s_attributes", Some(Arc::new(watching)), next)
}

#[tokio::test]
async fn pods_are_listed_in_pages_and_watched() {
    let mut server = Server::start().await;
    let settings = settings(
        "extract: { metadata: [k8s.pod.uid, k8s.deployment.name] }, filter: { node: 'node-a', namespace: prod, \
           fields: [ { key: status.phase, value: Failed, op: not-equals }, { key: x, value: y } ], \
           labels: [ { key: app, value: shop }, { key: b, value: c, op: not-equals }, { key: d, op: exists }, { key: e, op: does-not-exist } ] }",
    );
    let (log, lines) = log_of();
    let processor = started(&server, &settings, &log);
    let of = |address: &str| become_of(&processor, address, &[]);
    let mut others = pod();
    others["metadata"]["uid"] = json!("pod-2");
    others["status"]["podIP"] = json!("10.0.0.2");

    // An unanswered watch stays open.
    let (mut pages, mut pod_watch, mut held) = (0, None, Vec::new());
    while pod_watch.is_none() {
        let asked = server.asked().await;
        if asked
            .target
            .starts_with("/apis/apps/v1/namespaces/prod/replicasets?")
        {
            if asked.target.contains("watch=true") {
                held.push(asked);
            } else {
                asked.answer(200, &list(5, "", &[replica_set()]));
            }
            continue;
        }
        let base = "/api/v1/namespaces/prod/pods?labelSelector=app%3Dshop%2Cb%21%3Dc%2Cd%2C%21e\
                    &fieldSelector=status.phase%21%3DFailed%2Cx%3Dy%2Cspec.nodeName%3Dnode-a&timeoutSeconds=300";
        let rest = asked
            .target
            .strip_prefix(base)
            .unwrap_or_else(|| panic!("{}", asked.target));
        match (pages, rest) {
            (0, "&limit=250") => asked.answer(200, &list(7, "two", &[pod()])),
            (1, "&limit=250&continue=two") => {
                assert_eq!(of("10.0.0.1")[0], "k8s.deployment.name=shop");
                asked.answer(200, &list(7, "", &[others.clone()]));
            }
            (2, "&watch=true&allowWatchBookmarks=true&resourceVersion=7") => {
                pod_watch = Some(asked)
            }
            other => panic!("{other:?}"),
        }
        pages += 1;
    }
    assert_eq!(of("10.0.0.2")[1], "k8s.pod.uid=pod-2");
    let watch = pod_watch.unwrap();
    watch.begin();
    let mut third = pod();
    third["metadata"]["uid"] = json!("pod-3");
    third["status"]["podIP"] = json!("10.0.0.3");
    let line = event("ADDED", 8, third);
    let (half, rest) = line.split_at(50);
    watch.piece(half);
    watch.piece(rest);
    until(|| of("10.0.0.3").len() == 2, "an event").await;
    watch.piece(&event("BOOKMARK", 20, json!({"metadata": {}})));
    watch.piece(
        &json!({"type": "ERROR", "object": {"kind": "Status", "status": "Failure", "code": 410}})
            .to_string(),
    );
    watch.piece("\n");
    // All is listed again: what is not there is gone, though it is known for a while.
    let asked = server.asked().await;
    assert!(
        asked.target.ends_with("timeoutSeconds=300&limit=250"),
        "{}",
        asked.target
    );
    asked.answer(200, &list(30, "", &[pod()]));
    drop(asked);
    let asked = server.asked().await;
    assert!(
        asked.target.ends_with("&resourceVersion=30"),
        "{}",
        asked.target
    );
    let watching = processor.watching.as_ref().unwrap();
    let counts = &watching.cluster.counts.events[Kind::Pod as usize];
    let counts = counts.each_ref().map(|count| count.load(Relaxed));
    assert_eq!(counts, [3, 1, 2], "added, updated, deleted");
    assert_eq!(of("10.0.0.2").len(), 2);
    assert!(lines.lock().unwrap().is_empty());

    let mut sheet = Sheet::new(crate::config::service::telemetry::MetricsLevel::Detailed);
    let name = PartName {
        pipeline: "traces".to_owned(),
        id: "k8s_attributes".to_owned(),
    };
    watching.describe(&name, &mut sheet);
    let page = sheet.prometheus(crate::config::service::telemetry::Naming::default());
    for line in [
        "otelcol_otelsvc_k8s_pod_added{processor=\"k8s_attributes\"} 3",
        "otelcol_otelsvc_k8s_replicaset_added{processor=\"k8s_attributes\"} 1",
        "otelcol_otelsvc_k8s_pod_table_size{processor=\"k8s_attributes\"} 9",
    ] {
        assert!(page.contains(line), "{line}: {page}");
    }
}

#[tokio::test]
async fn data_are_refused_until_the_pods_are_known_where_the_settings_say_so() {
    let mut server = Server::start().await;
    let (log, lines) = log_of();
    let waiting = settings("wait_for_metadata: true, wait_for_metadata_timeout: 1ms");
    let processor = started(&server, &waiting, &log);
    let account = Arc::<Account>::default();
    let batch = || Batch {
        signal: crate::config::Signal::Traces,
        bytes: bytes::Bytes::new(),
        records: 1,
        receipt: account.accept(1),
        origin: None,
    };
    let given_back = processor.consume(batch()).unwrap_err();
    assert!(
        matches!(given_back.refusal, Refusal::Busy(_)),
        "{:?}",
        given_back.refusal
    );
    given_back.batch.receipt.refuse();
    until(|| !lines.lock().unwrap().is_empty(), "an error").await;
    assert!(lines.lock().unwrap()[0].contains("are not known after 1ms"));
    // An answer that is none leaves it so.
    let asked = server.asked().await;
    asked.answer(403, "{\"message\":\"pods is forbidden\"}");
    drop(asked);
    until(|| lines.lock().unwrap().len() > 1, "a warning").await;
    assert!(
        lines.lock().unwrap()[1].contains("status 403"),
        "{:?}",
        lines.lock().unwrap()
    );
    assert!(processor.open().is_err());
    let lists = [
        ("/api/v1/pods", &*list(1, "", &[])),
        ("/apis/apps/v1/replicasets", &*list(1, "", &[])),
    ];
    let _watches = listed(&mut server, &lists).await;
    until(|| processor.open().is_ok(), "known").await;
    assert!(processor.consume(batch()).is_ok());

    let server = Server::start().await;
    let processor = started(&server, &settings(""), &log);
    assert!(processor.open().is_ok(), "nobody waits by default");
}

#[tokio::test]
async fn what_is_watched_is_what_is_asked_for() {
    let paths = |options: &str| {
        let settings = settings(options);
        let rules = Rules::new(&settings).unwrap();
        let needed = Kind::ALL.into_iter().filter(|kind| kind.is_needed(&rules));
        let questions = needed.map(|kind| kind.question(&settings.filter, &rules));
        let shown = questions.map(|question| {
            let path = question.path.rsplit_once('/').unwrap().1.to_owned();
            path + &question.selectors.join("&")
        });
        shown.collect::<Vec<_>>().join(" ")
    };
    assert_eq!(paths(""), "pods replicasets");
    assert_eq!(paths("extract: { metadata: [k8s.pod.name] }"), "pods");
    assert_eq!(
        paths(
            "filter: { node: n }, extract: { metadata: [k8s.cluster.uid, k8s.node.uid, k8s.cronjob.uid] }"
        ),
        "podsfieldSelector=spec.nodeName%3Dn namespacesfieldSelector=metadata.name%3Dkube-system \
         nodesfieldSelector=metadata.name%3Dn jobs"
    );
    let variable = std::env::vars().find(|(_, value)| !value.is_empty());
    let (name, value) = variable.expect("a variable");
    let settings = settings(&format!("filter: {{ node_from_env_var: {name} }}"));
    assert_eq!(settings.filter.node, Some(value));
    // Nobody but the service account is asked for.
    let outside = Surroundings {
        host: None,
        ..Surroundings::own()
    };
    let started = Watching::start(&super::settings(""), "k", &outside, &log_of().0);
    let why = started.err().unwrap();
    assert!(why.contains("KUBERNETES_SERVICE_HOST"), "{why}");
}
