//! What a cluster tells of pods becomes attributes of resources.

mod watch;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as V;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use serde_json::{Value as Json, json};
use tokio::time::advance;

use super::object::Object;
use super::*;
use crate::config::processor;
use crate::run::process::tests::{kv, text, traces};

fn settings(options: &str) -> Settings {
    let processor = processor(&format!("k8s_attributes: {{ {options} }}"));
    let settings: &Settings = processor.get().expect("the processor");
    settings.clone()
}

/// A processor and its cluster, which is told by the test.
struct Told {
    processor: K8sAttributes,
    cluster: Arc<Cluster>,
}

impl Told {
    fn new(options: &str) -> Told {
        let settings = settings(options);
        let grace = Duration::from_nanos(settings.delete_grace_ns);
        let cluster = Arc::new(Cluster::new(Rules::new(&settings).unwrap(), grace));
        let watching = Arc::new(Watching {
            cluster: Arc::clone(&cluster),
            _tasks: JoinSet::new(),
        });
        let next = crate::run::consume::FanOut::of(Vec::new());
        Told {
            processor: K8sAttributes::new(&settings, "k8s_attributes", Some(watching), next),
            cluster,
        }
    }

    fn put(&self, kind: Kind, object: Json) {
        let object: Object = serde_json::from_value(object).unwrap();
        self.cluster.put(kind, object).unwrap();
    }

    fn remove(&self, kind: Kind, object: Json) {
        let object: Object = serde_json::from_value(object).unwrap();
        self.cluster.remove(kind, &object);
    }

    /// The attributes that a resource has afterwards, each as `name=value`, in the order of the
    /// names.
    fn of(&self, address: &str, resource: &[(&str, &str)]) -> Vec<String> {
        become_of(&self.processor, address, resource)
    }
}

fn become_of(processor: &K8sAttributes, address: &str, resource: &[(&str, &str)]) -> Vec<String> {
    let number = |value: &str| match value.parse() {
        Ok(number) => V::IntValue(number),
        Err(_) => text(value),
    };
    let attributes = resource.iter().map(|(key, value)| kv(key, number(value)));
    let request = traces(attributes.collect(), vec![Span::default()]).encode_to_vec();
    let origin = address.parse().ok().map(Origin::with_address);
    let edited = processor.edit(&request, origin.as_ref()).unwrap();
    let bytes = edited.bytes.unwrap_or(request);
    let request = ExportTraceServiceRequest::decode(&bytes[..]).unwrap();
    let resource = request.resource_spans[0].resource.clone().unwrap();
    let shown = |value: V| match value {
        V::StringValue(text) => text,
        V::IntValue(number) => number.to_string(),
        V::ArrayValue(list) => format!("{:?}", list.values[0].value.as_ref().unwrap()),
        other => panic!("{other:?}"),
    };
    let attributes = resource.attributes.into_iter().map(|attribute| {
        let value = attribute.value.unwrap().value.unwrap();
        format!("{}={}", attribute.key, shown(value))
    });
    let mut attributes: Vec<String> = attributes.collect();
    attributes.sort();
    attributes
}

const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// A pod of a replica set, of two containers.
fn pod() -> Json {
    json!({
        "metadata": {
            "name": "shop-7d9c8b6f5d-x2x4z", "namespace": "prod", "uid": "pod-1",
            "creationTimestamp": "2026-11-29T10:00:00Z",
            "labels": {"app": "shop", "tier": "front", "app.kubernetes.io/version": "v7"},
            "annotations": {"team": "red", "resource.opentelemetry.io/owner": "ann"},
            "ownerReferences": [{"kind": "ReplicaSet", "name": "shop-7d9c8b6f5d", "uid": "rs-1", "controller": true}],
        },
        "spec": {
            "nodeName": "node-a", "hostname": "shop-host",
            "containers": [
                {"name": "web", "image": "registry:5000/shop/web:1.2"},
                {"name": "side", "image": format!("side@{DIGEST}")},
            ],
        },
        "status": {
            "podIP": "10.0.0.1", "startTime": "2026-11-29T10:00:01Z",
            "containerStatuses": [
                {"name": "web", "containerID": "containerd://c-web", "imageID": format!("registry:5000/shop/web@{DIGEST}"), "restartCount": 2},
                {"name": "side", "containerID": "containerd://c-side", "imageID": "", "restartCount": 0},
            ],
        },
    })
}

fn replica_set() -> Json {
    json!({"metadata": {
        "name": "shop-7d9c8b6f5d", "namespace": "prod", "uid": "rs-1",
        "ownerReferences": [{"kind": "Deployment", "name": "shop", "uid": "dep-1", "controller": true}],
    }})
}

#[test]
fn a_resource_gets_what_its_pod_tells_unless_it_has_it() {
    let told = Told::new("");
    told.put(Kind::Pod, pod());
    let own = [
        "k8s.namespace.name=prod",
        "k8s.node.name=node-a",
        "k8s.pod.name=shop-7d9c8b6f5d-x2x4z",
        "k8s.pod.start_time=2026-11-29T10:00:00Z",
        "k8s.pod.uid=pod-1",
    ];
    assert_eq!(told.of("10.0.0.1", &[]), own);
    // The replica set may come after its pods.
    told.put(Kind::ReplicaSet, replica_set());
    let mut all = vec!["k8s.deployment.name=shop"];
    all.extend(own);
    assert_eq!(told.of("::ffff:10.0.0.1", &[]), all);
    let found = |attributes: &[(&str, &str)]| {
        let found = told.of("10.9.9.9", attributes);
        found.contains(&"k8s.pod.uid=pod-1".to_owned())
    };
    assert!(found(&[("k8s.pod.ip", "10.0.0.1")]));
    assert!(found(&[("ip", "10.0.0.1")]));
    assert!(!found(&[]));
    let by_name = told.of("", &[("host.name", "10.0.0.1")]);
    assert_eq!(by_name.len(), 7, "{by_name:?}");
    assert_eq!(told.of("", &[("host.name", "shop")]), ["host.name=shop"]);
    let kept = told.of(
        "10.0.0.1",
        &[("k8s.pod.name", "mine"), ("k8s.node.name", "")],
    );
    assert!(kept.contains(&"k8s.pod.name=mine".to_owned()));
    assert!(kept.contains(&"k8s.node.name=node-a".to_owned()));
    assert_eq!(told.cluster.counts.misses.load(Relaxed), 2);
}

#[test]
fn a_container_is_found_by_its_name_or_its_id_or_is_the_only_one() {
    let told = Told::new(
        "extract: { metadata: [k8s.container.name, container.id, container.image.name, container.image.tag, \
         container.image.repo_digests, service.instance.id, service.version] }",
    );
    told.put(Kind::Pod, pod());
    let version = "service.version=v7";
    assert_eq!(told.of("10.0.0.1", &[]), [version]);
    let digest =
        format!("container.image.repo_digests=StringValue(\"registry:5000/shop/web@{DIGEST}\")");
    let web = [
        "container.id=c-web",
        "container.image.name=registry:5000/shop/web",
        &digest,
        "container.image.tag=1.2",
        "k8s.container.name=web",
        "service.instance.id=prod.shop-7d9c8b6f5d-x2x4z.web",
        version,
    ];
    assert_eq!(told.of("10.0.0.1", &[("k8s.container.name", "web")]), web);
    assert_eq!(told.of("10.0.0.1", &[("container.id", "c-web")]), web);
    let other_run = [
        ("k8s.container.name", "web"),
        ("k8s.container.restart_count", "1"),
    ];
    let other_run = told.of("10.0.0.1", &other_run);
    assert!(!other_run.contains(&"container.id=c-web".to_owned()));
    let unknown = told.of("10.0.0.1", &[("container.id", "c-other")]);
    assert_eq!(unknown, ["container.id=c-other", version]);

    let mut single = pod();
    single["spec"]["containers"]
        .as_array_mut()
        .unwrap()
        .remove(0);
    single["status"]["containerStatuses"]
        .as_array_mut()
        .unwrap()
        .remove(0);
    single["metadata"]["labels"] = Json::Null;
    told.put(Kind::Pod, single);
    let side = told.of("10.0.0.1", &[]);
    assert!(
        side.contains(&"container.image.tag=latest".to_owned()),
        "{side:?}"
    );
    assert!(
        side.contains(&format!("service.version={DIGEST}")),
        "{side:?}"
    );
}

#[test]
fn every_attribute_of_the_metadata_is_set_where_it_is_asked_for() {
    let told = Told::new(
        "extract: { metadata: [k8s.cluster.uid, k8s.cronjob.name, k8s.cronjob.uid, k8s.daemonset.name, \
         k8s.daemonset.uid, k8s.deployment.name, k8s.deployment.uid, k8s.job.name, k8s.job.uid, k8s.node.uid, \
         k8s.pod.hostname, k8s.pod.ip, k8s.replicaset.name, k8s.replicaset.uid, k8s.statefulset.name, \
         k8s.statefulset.uid, service.name, service.namespace] }",
    );
    told.put(Kind::Pod, pod());
    told.put(Kind::ReplicaSet, replica_set());
    told.put(
        Kind::Node,
        json!({"metadata": {"name": "node-a", "uid": "node-1"}}),
    );
    told.put(
        Kind::Namespace,
        json!({"metadata": {"name": "kube-system", "uid": "cluster-1"}}),
    );
    assert_eq!(
        told.of("10.0.0.1", &[]),
        [
            "k8s.cluster.uid=cluster-1",
            "k8s.deployment.name=shop",
            "k8s.deployment.uid=dep-1",
            "k8s.node.uid=node-1",
            "k8s.pod.hostname=shop-host",
            "k8s.pod.ip=10.0.0.1",
            "k8s.replicaset.name=shop-7d9c8b6f5d",
            "k8s.replicaset.uid=rs-1",
            "service.name=shop",
            "service.namespace=prod",
        ]
    );
    told.put(Kind::Job, json!({"metadata": {
        "name": "night-28", "uid": "job-1",
        "ownerReferences": [{"kind": "CronJob", "name": "night", "uid": "cron-1", "controller": true}],
    }}));
    let owned = |kind: &str, name: &str, uid: &str| {
        json!({
            "metadata": {"name": "x", "uid": format!("pod-{uid}"),
                "ownerReferences": [{"kind": kind, "name": name, "uid": uid}]},
            "status": {"podIP": "10.0.0.2", "startTime": "2026-11-29T11:00:00Z"},
        })
    };
    let owners = [
        (
            "Job",
            "night-28",
            "job-1",
            "k8s.cronjob.name=night k8s.cronjob.uid=cron-1 k8s.job.name=night-28 k8s.job.uid=job-1 service.name=night",
        ),
        (
            "DaemonSet",
            "agent",
            "ds-1",
            "k8s.daemonset.name=agent k8s.daemonset.uid=ds-1 service.name=agent",
        ),
        (
            "StatefulSet",
            "db",
            "sts-1",
            "k8s.statefulset.name=db k8s.statefulset.uid=sts-1 service.name=db",
        ),
        ("Node", "n", "n-1", "service.name=x"),
    ];
    for (kind, name, uid, wanted) in owners {
        told.put(Kind::Pod, owned(kind, name, uid));
        let mut found = told.of("10.0.0.2", &[]);
        let is_owner = |text: &String| {
            !text.ends_with('=') && !text.contains("cluster") && !text.contains("pod.ip")
        };
        found.retain(is_owner);
        assert_eq!(found.join(" "), wanted);
    }
    let mut labelled = pod();
    labelled["metadata"]["labels"] =
        json!({"app.kubernetes.io/name": "n", "app.kubernetes.io/instance": "i"});
    told.put(Kind::Pod, labelled);
    assert!(
        told.of("10.0.0.1", &[])
            .contains(&"service.name=i".to_owned())
    );
}

#[test]
fn labels_and_annotations_become_attributes() {
    let told = Told::new(
        "extract: { metadata: [k8s.pod.uid], otel_annotations: true, \
         labels: [ { key: app }, { tag_name: l, key: tier }, { key_regex: 'ti.*' }, { tag_name: 'x.$$1', key_regex: 'a(.)p' }, \
           { key: zone, from: node }, { key: env, from: namespace }, { key: d, from: deployment } ], \
         annotations: [ { key: team }, { tag_name: crew, key: team }, { key_regex: 'te.*' }, { tag_name: 'y.$$1', key_regex: 't(.*)' }, \
           { key: note, from: namespace }, { key: s, from: statefulset }, { key: a, from: daemonset }, { key: j, from: job } ] }",
    );
    told.put(Kind::Pod, pod());
    told.put(Kind::ReplicaSet, replica_set());
    told.put(
        Kind::Node,
        json!({"metadata": {"name": "node-a", "uid": "n", "labels": {"zone": "b"}}}),
    );
    told.put(Kind::Namespace, json!({"metadata": {"name": "prod", "uid": "p", "labels": {"env": "live"}, "annotations": {"note": "hi"}}}));
    told.put(
        Kind::Deployment,
        json!({"metadata": {"name": "shop", "uid": "dep-1", "labels": {"d": "1"}}}),
    );
    for (kind, key) in [
        (Kind::StatefulSet, "s"),
        (Kind::DaemonSet, "a"),
        (Kind::Job, "j"),
    ] {
        told.put(
            kind,
            json!({"metadata": {"name": key, "uid": key, "annotations": {key: "of it"}}}),
        );
    }
    assert_eq!(
        told.of("10.0.0.1", &[]),
        [
            "crew=red",
            "k8s.deployment.label.d=1",
            "k8s.namespace.annotations.note=hi",
            "k8s.namespace.labels.env=live",
            "k8s.node.labels.zone=b",
            "k8s.pod.annotations.team=red",
            "k8s.pod.labels.app=shop",
            "k8s.pod.labels.tier=front",
            "k8s.pod.uid=pod-1",
            "l=front",
            "owner=ann",
            "x.p=shop",
            "y.eam=red",
        ]
    );
    // A resource may name what it belongs to where its pod is not known.
    let named = [
        ("k8s.statefulset.uid", "s"),
        ("k8s.daemonset.uid", "a"),
        ("k8s.job.uid", "j"),
        ("k8s.namespace.name", "prod"),
    ];
    let found = told.of("", &named);
    for wanted in [
        "k8s.statefulset.annotation.s=of it",
        "k8s.daemonset.annotation.a=of it",
        "k8s.job.annotation.j=of it",
        "k8s.namespace.labels.env=live",
    ] {
        assert!(found.contains(&wanted.to_owned()), "{wanted}: {found:?}");
    }
}

#[test]
fn a_deployments_name_may_be_that_of_its_replica_set_without_the_hash() {
    let told = Told::new(
        "extract: { metadata: [k8s.deployment.name], deployment_name_from_replicaset: true }",
    );
    assert!(!Kind::ReplicaSet.is_needed(&told.cluster.rules));
    told.put(Kind::Pod, pod());
    assert_eq!(told.of("10.0.0.1", &[]), ["k8s.deployment.name=shop"]);
    assert_eq!(rules::without_hash("shop-abc"), None);
    assert_eq!(rules::without_time("night-x"), None);
}

#[test]
fn a_pod_is_found_by_the_first_association_whose_sources_are_all_there() {
    let told = Told::new(
        "extract: { metadata: [k8s.pod.uid, k8s.pod.hostname] }, pod_association: [ \
           { sources: [ { from: resource_attribute, name: k8s.pod.name }, { from: resource_attribute, name: k8s.namespace.name } ] }, \
           { sources: [ { from: resource_attribute, name: container.id } ] }, \
           { sources: [ { from: resource_attribute, name: k8s.pod.hostname } ] }, \
           { sources: [ { from: connection } ] } ]",
    );
    told.put(Kind::Pod, pod());
    let found = |address: &str, resource: &[(&str, &str)]| {
        let found = told.of(address, resource);
        found.contains(&"k8s.pod.uid=pod-1".to_owned())
    };
    let name = ("k8s.pod.name", "shop-7d9c8b6f5d-x2x4z");
    assert!(found("", &[name, ("k8s.namespace.name", "prod")]));
    assert!(!found("10.0.0.1", &[name, ("k8s.namespace.name", "test")]));
    assert!(
        found("10.0.0.1", &[name]),
        "one source is missing: the next association"
    );
    assert!(!found("10.0.0.2", &[name]));
    assert!(found("", &[("k8s.pod.hostname", "shop-host")]));
    assert!(
        !found("", &[("k8s.pod.ip", "10.0.0.1")]),
        "not an association"
    );

    let told = Told::new(
        "extract: { metadata: [container.id, k8s.pod.uid] }, \
         pod_association: [ { sources: [ { from: resource_attribute, name: container.id } ] } ]",
    );
    told.put(Kind::Pod, pod());
    assert_eq!(
        told.of("", &[("container.id", "c-side")]),
        ["container.id=c-side", "k8s.pod.uid=pod-1"]
    );
    // In the network of its node its address is not its own.
    let told = Told::new("extract: { metadata: [k8s.pod.uid] }");
    let mut of_host = pod();
    of_host["spec"]["hostNetwork"] = Json::Bool(true);
    told.put(Kind::Pod, of_host);
    assert_eq!(told.of("10.0.0.1", &[]), [""; 0]);
}

#[test]
fn some_pods_are_not_known() {
    let told = Told::new(
        "extract: { metadata: [k8s.pod.uid] }, exclude: { pods: [ { name: '^shop-' } ] }",
    );
    told.put(Kind::Pod, pod());
    assert_eq!(told.of("10.0.0.1", &[]), [""; 0]);
    let mut other = pod();
    other["metadata"]["name"] = json!("the-shop-1");
    other["status"]["podIP"] = json!("10.0.0.2");
    told.put(Kind::Pod, other);
    assert_eq!(told.of("10.0.0.2", &[]), ["k8s.pod.uid=pod-1"]);
    let told = Told::new("extract: { metadata: [k8s.pod.uid] }");
    told.put(Kind::Pod, pod());
    assert_eq!(told.of("10.0.0.1", &[]), ["k8s.pod.uid=pod-1"]);
    let mut ignored = pod();
    ignored["metadata"]["annotations"] = json!({"opentelemetry.io/k8s-processor/ignore": " True "});
    told.put(Kind::Pod, ignored);
    assert_eq!(told.of("10.0.0.1", &[]), [""; 0]);
    let mut jaeger = pod();
    jaeger["metadata"]["name"] = json!("my-jaeger-agent-1");
    told.put(Kind::Pod, jaeger);
    assert_eq!(told.of("10.0.0.1", &[]), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_gone_is_known_for_a_while() {
    let told = Told::new("extract: { metadata: [k8s.pod.uid] }, pod_delete_grace_period: 30s");
    told.put(Kind::Pod, pod());
    let known = || told.of("10.0.0.1", &[]);
    told.remove(Kind::Pod, pod());
    advance(Duration::from_secs(29)).await;
    told.cluster.expire();
    assert_eq!(known(), ["k8s.pod.uid=pod-1"]);
    advance(Duration::from_secs(1)).await;
    told.cluster.expire();
    assert_eq!(known(), [""; 0]);
    assert_eq!(told.cluster.pods_len(), 0);

    // Its address may be that of another one by then; an older one that is told late is no such.
    told.put(Kind::Pod, pod());
    told.remove(Kind::Pod, pod());
    let mut next = pod();
    next["metadata"]["uid"] = json!("pod-2");
    next["status"]["startTime"] = json!("2026-11-29T10:00:02Z");
    told.put(Kind::Pod, next.clone());
    told.put(Kind::Pod, pod());
    told.remove(Kind::Pod, pod());
    assert_eq!(known(), ["k8s.pod.uid=pod-2"]);
    advance(Duration::from_secs(30)).await;
    told.cluster.expire();
    assert_eq!(known(), ["k8s.pod.uid=pod-2"]);

    // What no longer tells it is forgotten, too.
    next["status"]["podIP"] = json!("10.0.0.3");
    told.put(Kind::Pod, next);
    assert_eq!(told.of("10.0.0.3", &[]), ["k8s.pod.uid=pod-2"]);
    advance(Duration::from_secs(30)).await;
    told.cluster.expire();
    assert_eq!(known(), [""; 0]);
    assert_eq!(told.cluster.pods_len(), 3);
}

#[test]
fn only_the_address_is_set_in_passthrough_mode() {
    let settings = settings("passthrough: true");
    assert!(settings.passthrough);
    let next = crate::run::consume::FanOut::of(Vec::new());
    let processor = K8sAttributes::new(&settings, "k8s_attributes", None, next);
    let of = |address: &str, resource: &[(&str, &str)]| become_of(&processor, address, resource);
    assert_eq!(of("10.0.0.1", &[]), ["k8s.pod.ip=10.0.0.1"]);
    assert_eq!(of("", &[]), [""; 0]);
    assert_eq!(
        of("10.0.0.1", &[("k8s.pod.ip", "10.0.0.9")]),
        ["k8s.pod.ip=10.0.0.9"]
    );
}
