//! A service whose endpoints come and go, told by an API server over TLS.

mod slices;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::*;
use crate::config::components::exporters::load_balancing::{LoadBalancingExporter, Resolver};
use crate::config::exporter;
use crate::run::k8s::server::{Asked, PATIENCE, Server};
use crate::run::send::Backends as _;
use crate::run::send::balance::{start_in, tests};

fn service(namespace: Option<&str>, return_hostnames: bool) -> K8s {
    let namespace = namespace.map_or(String::new(), |namespace| format!(".{namespace}"));
    let exporter = exporter(&format!(
        "loadbalancing: {{ protocol: {{ otlp: }}, resolver: {{ k8s: {{ service: sampler{namespace}, \
         ports: [4316], timeout: 61s, return_hostnames: {return_hostnames} }} }} }}"
    ));
    let exporter: &LoadBalancingExporter = exporter.get().expect("a balancer");
    match &exporter.resolver {
        Resolver::K8s(service) => service.clone(),
        other => panic!("{other:?}"),
    }
}

fn started(pod: &Pod, settings: K8s) -> Result<Arc<Balancer>, String> {
    let mut exporter = tests::settings(&[], 100);
    exporter.resolver = Resolver::K8s(settings);
    start_in(pod, "lb", &exporter, &tests::common())
}

/// A slice of endpoints, each an address and what is said of it.
fn slice(name: &str, version: u32, endpoints: &[(&str, &str)]) -> String {
    let endpoint =
        |(address, more): &(&str, &str)| format!("{{\"addresses\":[\"{address}\"]{more}}}");
    let endpoints: Vec<String> = endpoints.iter().map(endpoint).collect();
    let endpoints = endpoints.join(",");
    format!(
        "{{\"metadata\":{{\"name\":\"{name}\",\"resourceVersion\":\"{version}\"}},\"addressType\":\"IPv4\",\"endpoints\":[{endpoints}]}}"
    )
}

fn list(version: u32, slices: &[String]) -> String {
    let slices = slices.join(",");
    format!(
        "{{\"kind\":\"EndpointSliceList\",\"metadata\":{{\"resourceVersion\":\"{version}\"}},\"items\":[{slices}]}}"
    )
}

fn event(kind: &str, object: &str) -> String {
    format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n")
}

const READY: &str = ",\"conditions\":{\"ready\":true}";
const NOT_READY: &str = ",\"conditions\":{\"ready\":false,\"serving\":true,\"terminating\":true}";

async fn backends(balancer: &Balancer, wanted: &[&str]) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let view = balancer.view().into_iter();
        let endpoints: Vec<String> = view.map(|backend| backend.endpoint).collect();
        if endpoints == wanted {
            return;
        }
        assert!(Instant::now() < deadline, "{endpoints:?}, not {wanted:?}");
        sleep(Duration::from_millis(5)).await;
    }
}

/// A list, answered, and the watch that follows.
async fn listed(server: &mut Server, version: u32, slices: &[String]) -> Asked {
    let asked = server.asked().await;
    assert!(!asked.target.contains("watch"), "{}", asked.target);
    asked.answer(200, &list(version, slices));
    drop(asked);
    let asked = server.asked().await;
    assert!(asked.target.contains("&watch=true"), "{}", asked.target);
    asked
}

#[tokio::test]
async fn ready_endpoints_come_and_go() {
    let mut server = Server::start().await;
    let balancer = started(&server.pod, service(Some("far"), false)).unwrap();
    assert_eq!(balancer.resolver(), "k8s");
    let asked = server.asked().await;
    assert_eq!(
        asked.target,
        "/apis/discovery.k8s.io/v1/namespaces/far/endpointslices?labelSelector=kubernetes.io%2Fservice-name%3Dsampler&timeoutSeconds=61&resourceVersion=0"
    );
    assert_eq!(asked.token, "Bearer one");
    let first = slice(
        "a",
        9,
        &[
            ("10.0.0.1", READY),
            ("10.0.0.2", ""),
            ("10.0.0.3", NOT_READY),
        ],
    );
    asked.answer(200, &list(10, &[first]));
    drop(asked);
    let watch = server.asked().await;
    assert!(
        watch
            .target
            .ends_with("&timeoutSeconds=61&watch=true&allowWatchBookmarks=true&resourceVersion=10"),
        "{}",
        watch.target
    );
    backends(&balancer, &["10.0.0.1:4316", "10.0.0.2:4316"]).await;
    watch.begin();
    // An event may come in pieces, and several in one.
    let more = event("ADDED", &slice("b", 11, &[("10.0.0.4", READY)]));
    let (half, rest) = more.split_at(30);
    watch.piece(half);
    watch.piece(rest);
    backends(
        &balancer,
        &["10.0.0.1:4316", "10.0.0.2:4316", "10.0.0.4:4316"],
    )
    .await;
    let others = slice("a", 12, &[("10.0.0.1", NOT_READY), ("10.0.0.3", READY)]);
    let gone = slice("b", 13, &[("10.0.0.4", READY)]);
    watch.piece(&(event("MODIFIED", &others) + &event("DELETED", &gone)));
    backends(&balancer, &["10.0.0.3:4316"]).await;
    assert_eq!(balancer.counts.updates.load(Relaxed), 3);
    assert_eq!(balancer.counts.failed.load(Relaxed), 0);
    balancer.end(Instant::now()).await;
}

#[tokio::test]
async fn a_watch_goes_on_from_what_was_seen_and_what_is_too_old_is_listed_again() {
    let mut server = Server::start().await;
    let balancer = started(&server.pod, service(None, false)).unwrap();
    let watch = listed(&mut server, 10, &[slice("a", 9, &[("10.0.0.1", READY)])]).await;
    assert!(
        watch.target.contains("/namespaces/own/"),
        "{}",
        watch.target
    );
    watch.begin();
    watch.piece(&event(
        "BOOKMARK",
        "{\"metadata\":{\"resourceVersion\":\"50\"}}",
    ));
    watch.end();
    // The token is another by now.
    server.write("token", "two");
    let watch = server.asked().await;
    assert!(
        watch.target.ends_with("&resourceVersion=50"),
        "{}",
        watch.target
    );
    assert_eq!(watch.token, "Bearer two");
    // A stream that breaks off within an event tells nothing by it.
    watch.begin();
    let event_of = |address, version| event("ADDED", &slice("b", version, &[(address, READY)]));
    watch.piece(&(event_of("10.0.0.2", 51) + &event_of("10.0.0.3", 52)[..40]));
    backends(&balancer, &["10.0.0.1:4316", "10.0.0.2:4316"]).await;
    drop(watch);
    let watch = server.asked().await;
    assert!(
        watch.target.ends_with("&resourceVersion=51"),
        "{}",
        watch.target
    );
    watch.begin();
    watch.piece(&event(
        "ERROR",
        "{\"kind\":\"Status\",\"metadata\":{},\"code\":410,\"reason\":\"Expired\"}",
    ));
    // Now the newest is asked for, and what it lacks is gone.
    let asked = server.asked().await;
    assert!(
        !asked.target.contains("resourceVersion"),
        "{}",
        asked.target
    );
    asked.answer(200, &list(60, &[slice("b", 55, &[("10.0.0.5", READY)])]));
    drop(asked);
    backends(&balancer, &["10.0.0.5:4316"]).await;
    // The same as a status.
    server.asked().await.answer(410, "{}");
    let asked = server.asked().await;
    assert!(!asked.target.contains("watch") && !asked.target.contains("resourceVersion"));
    assert_eq!(balancer.counts.failed.load(Relaxed), 0);
    balancer.end(Instant::now()).await;
}

#[tokio::test]
async fn backends_stay_while_the_server_cannot_be_asked() {
    let mut server = Server::start().await;
    let balancer = started(&server.pod, service(None, false)).unwrap();
    let own = ["10.0.0.1:4316"];
    let watch = listed(&mut server, 10, &[slice("a", 9, &[("10.0.0.1", READY)])]).await;
    backends(&balancer, &own).await;
    // Events that are none, and one without an end.
    watch.begin();
    watch.piece("{]\n");
    let watch = listed(&mut server, 11, &[slice("a", 9, &[("10.0.0.1", READY)])]).await;
    assert_eq!(balancer.counts.failed.load(Relaxed), 1);
    watch.begin();
    for _ in 0..33 {
        watch.piece(&"x".repeat(64 << 10));
    }
    // Lists that are none.
    let said = "{\"kind\":\"Status\",\"message\":\"endpointslices is forbidden\",\"code\":403}";
    for (status, body) in [
        (403, said),
        (200, "[]"),
        (200, "{\"items\":[{}]}"),
        (500, ""),
    ] {
        let asked = server.asked().await;
        assert!(
            asked.target.ends_with("&resourceVersion=11"),
            "{}",
            asked.target
        );
        asked.answer(status, body);
    }
    // A server that is behind what we have seen.
    server
        .asked()
        .await
        .answer(504, "{\"message\":\"Too large resource version\"}");
    let asked = server.asked().await;
    assert!(
        !asked.target.contains("resourceVersion"),
        "{}",
        asked.target
    );
    assert_eq!(balancer.counts.failed.load(Relaxed), 6);
    backends(&balancer, &own).await;
    asked.answer(200, &list(12, &[]));
    drop(asked);
    // None at all is an answer, too.
    backends(&balancer, &[]).await;
    balancer.end(Instant::now()).await;
}

#[tokio::test]
async fn backends_may_have_the_names_of_their_pods() {
    let mut server = Server::start().await;
    let mut settings = service(None, true);
    settings.ports = vec![1, 2];
    let balancer = started(&server.pod, settings).unwrap();
    let named = ",\"hostname\":\"sampler-0\"";
    let _watch = listed(
        &mut server,
        10,
        &[slice("a", 9, &[("10.0.0.1", named), ("10.0.0.2", "")])],
    )
    .await;
    backends(
        &balancer,
        &["sampler-0.sampler.own:1", "sampler-0.sampler.own:2"],
    )
    .await;
    // The one without a name is told.
    assert_eq!(balancer.counts.failed.load(Relaxed), 1);
    balancer.end(Instant::now()).await;
}

#[tokio::test]
async fn who_is_not_the_clusters_server_is_told_nothing() {
    let (mut server, other) = (Server::start().await, Server::start().await);
    std::fs::copy(
        other.pod.account.join("ca.crt"),
        server.pod.account.join("ca.crt"),
    )
    .unwrap();
    let balancer = started(&server.pod, service(None, false)).unwrap();
    let deadline = Instant::now() + PATIENCE;
    while balancer.counts.failed.load(Relaxed) == 0 {
        assert!(Instant::now() < deadline);
        tokio::task::yield_now().await;
    }
    // The authority is read again.
    drop(other);
    std::fs::remove_file(server.pod.account.join("ca.crt")).unwrap();
    assert!(started(&server.pod, service(None, false)).is_err());
    assert!(
        tokio::time::timeout(Duration::ZERO, server.asked())
            .await
            .is_err()
    );
    balancer.end(Instant::now()).await;
}

#[tokio::test]
async fn what_a_pod_lacks_is_told_at_the_start() {
    let server = Server::start().await;
    let fault = |pod: &Pod| started(pod, service(None, false)).err().unwrap_or_default();
    let outside = Pod {
        host: None,
        ..server.pod.clone()
    };
    assert!(fault(&outside).contains("KUBERNETES_SERVICE_HOST"));
    server.write("namespace", "../x");
    assert!(fault(&server.pod).contains("no name of a namespace"));
    server.write("namespace", "own");
    server.write("token", "a\nb");
    assert!(fault(&server.pod).contains("token: no token"));
    std::fs::remove_file(server.pod.account.join("token")).unwrap();
    assert!(fault(&server.pod).contains("token: "));
}
