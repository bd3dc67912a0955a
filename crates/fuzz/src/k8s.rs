//! What a cluster's API server says of the endpoints of a service.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use collector::config::components::processors::k8s_attributes::{
    Extract, Filter, From, K8sAttributes, Key, METADATA, Source,
};
use collector::run::Log;
use collector::run::k8s::{Fault, Lines, Objects};
use collector::run::process::k8s_attributes::{Cluster, Kind, Rules, Watched};
use collector::run::send::K8sSlices;

/// A stream of events in pieces of some size, and the same as a list: whatever it is, hosts are
/// hosts, and the version can stand in a URL.
pub fn k8s_events(data: &[u8]) {
    let Some((size, data)) = data.split_first() else {
        return;
    };
    for by_hostname in [false, true] {
        let mut slices = K8sSlices::new(by_hostname);
        let _ = slices.list(data);
        let _ = follow(&mut slices, data, usize::from(*size) + 1);
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
        let mut texts = slices.hosts().chain(slices.version());
        assert!(texts.all(|text| text.len() <= 253 && text.bytes().all(is_plain)));
    }
}

/// The same of pods and of what they belong to, with attributes made of all that they tell.
pub fn k8s_pods(data: &[u8]) {
    let Some((size, data)) = data.split_first() else {
        return;
    };
    let rules = Rules::new(&settings()).expect("rules");
    let cluster = Arc::new(Cluster::new(rules, Duration::ZERO));
    cluster.missing.store(Kind::ALL.len(), Relaxed);
    for kind in Kind::ALL {
        let (own, log) = (Arc::downgrade(&cluster), Log::new(|_, _| {}));
        let mut objects = Watched::new(kind, own, String::new(), log);
        for is_first in [true, false] {
            let _ = objects.page(data, is_first);
        }
        let mut lines = Lines::default();
        'all: for piece in data.chunks(usize::from(*size) + 1) {
            lines.push(piece);
            while let Ok(Some(line)) = lines.line() {
                if objects.event(&line).is_err() {
                    break 'all;
                }
            }
        }
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        assert!(
            objects
                .version()
                .is_none_or(|text| text.bytes().all(is_plain))
        );
    }
    cluster.expire();
}

fn settings() -> K8sAttributes {
    let extract = |from, regex: &str| Extract {
        tag: "x.$1".to_owned(),
        key: Key::Matches(regex.to_owned()),
        from,
    };
    K8sAttributes {
        passthrough: false,
        metadata: METADATA.iter().map(|&name| name.to_owned()).collect(),
        labels: vec![extract(From::Pod, "(.*)"), extract(From::Node, ".*")],
        annotations: vec![extract(From::Pod, "a(.*)"), extract(From::Namespace, "(.)")],
        otel_annotations: true,
        deployment_name_from_replicaset: false,
        filter: Filter::default(),
        associations: vec![
            vec![Source::Attribute("container.id".to_owned())],
            vec![Source::Connection],
        ],
        excluded: vec!["^x".to_owned()],
        wait_for_metadata: false,
        wait_ns: 0,
        delete_grace_ns: 0,
    }
}

fn follow(slices: &mut K8sSlices, data: &[u8], size: usize) -> Result<(), Fault> {
    let mut lines = Lines::default();
    for piece in data.chunks(size) {
        lines.push(piece);
        while let Some(line) = lines.line()? {
            assert!(!line.contains(&b'\n'));
            slices.event(&line)?;
        }
    }
    Ok(())
}
