//! What the trace store of a process is shown.

use export::clock::now_unix_ms as now_ms;
use spangate_collector::dashboard::{dry_run, sampling, store, store_for};
use traces::{Store, TraceQuery};

use super::*;

/// Traces that a store holds: identifier's last byte, kept, policy.
fn shown(store: &Store) -> Vec<(String, Option<bool>, Option<String>)> {
    let query = TraceQuery {
        limit: 200,
        ..TraceQuery::default()
    };
    let rows = store.list(&query, now_ms()).traces.into_iter();
    let mut shown: Vec<_> = rows
        .map(|row| (row.id[30..].to_owned(), row.kept, row.policy))
        .collect();
    shown.sort();
    shown
}

async fn take(collector: &Collector, body: Bytes) {
    let taken = collector.of_proxy().take(Signal::Traces, body).await;
    assert_eq!(taken, Ok(()));
}

fn store_of(collector: &Collector) -> Arc<Store> {
    let views = [("c".to_owned(), Arc::clone(&collector.view))];
    store(&views).expect("a store")
}

#[tokio::test]
async fn one_exporter_shows_what_is_kept_and_what_is_dropped() {
    // Several shards too, and through a connector.
    for (shards, exporters) in [(1, "[dashboard, nop]"), (3, "[dashboard]")] {
        let collector = start(&format!(
            "receivers: {{ nop: , proxy: }}\n\
             processors: {{ batch: {{ timeout: 1ms }}, tail_sampling: {{ num_shards: {shards}, decision_wait: 1s, {ERRORS} }} }}\n\
             connectors: {{ forward: }}\nexporters: {{ dashboard: , nop: }}\n\
             service: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [proxy], processors: [tail_sampling], exporters: [forward] }}, \
             traces/out: {{ receivers: [forward], processors: [batch], exporters: {exporters} }} }} }}",
        ));
        let store = store_of(&collector);
        take(&collector, request(10, 3)).await;
        let expected = ["0a", "0b", "0c"].map(|id| (id.to_owned(), None, None));
        assert_eq!(shown(&store), expected, "nothing is decided yet");
        let id = traces::trace_id("0707070707070707000000000000000a").unwrap();
        assert_eq!(store.trace(&id).unwrap().spans.len(), 2);
        until("the decision", || {
            shown(&store).iter().all(|(_, kept, _)| kept.is_some())
        })
        .await;
        let expected = [
            ("0a".to_owned(), Some(true), Some("e".to_owned())),
            ("0b".to_owned(), Some(false), None),
            ("0c".to_owned(), Some(false), None),
        ];
        assert_eq!(shown(&store), expected);
        until("the export", || traces(&collector).held() == 0).await;
        let held = store.held_now(now_ms());
        assert_eq!(
            (held.traces, held.spans),
            (3, 6),
            "what is kept comes twice, and is held once"
        );
        let balance = traces(&collector);
        assert_eq!(
            (balance.accepted, balance.exported, balance.dropped),
            (6, 2, 4)
        );
        let views = [("main".to_owned(), Arc::clone(&collector.view))];
        let told = serde_json::to_value(sampling(&views)).unwrap();
        let told = &told["collectors"][0];
        assert_eq!(
            (&told["name"], &told["spans"]["dropped"]),
            (&"main".into(), &4.into())
        );
        let sampler = &told["samplers"][0];
        assert_eq!(
            (&sampler["sampled"], &sampler["not_sampled"]),
            (&1.into(), &2.into())
        );
        let policy = &sampler["policies"][0];
        assert_eq!(
            (&policy["name"], &policy["sampled"], &policy["not_sampled"]),
            (&"e".into(), &1.into(), &2.into())
        );
        assert_eq!(
            sampler["yaml"],
            "- name: e\n  type: status_code\n  status_code:\n    status_codes: [ERROR]\n"
        );
        collector.end().await;
    }
}

#[tokio::test]
async fn without_unsampled_only_what_is_kept_is_shown() {
    let collector = start(&format!(
        "receivers: {{ proxy: }}\nprocessors: {{ tail_sampling: {{ decision_wait: 10ms, {ERRORS} }} }}\n\
         exporters: {{ dashboard: {{ unsampled: false }} }}\n\
         service: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [proxy], processors: [tail_sampling], exporters: [dashboard] }} }} }}"
    ));
    take(&collector, request(10, 20)).await;
    until("the decision", || traces(&collector).held() == 0).await;
    let kept = ["0a", "14"].map(|id| (id.to_owned(), Some(true), None));
    assert_eq!(shown(&store_of(&collector)), kept);
    collector.end().await;
}

#[tokio::test]
async fn without_a_sampler_everything_is_kept() {
    let yaml = format!(
        "receivers: {{ proxy: }}\nexporters: {{ dashboard: }}\n\
         service: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [proxy], exporters: [dashboard] }} }} }}"
    );
    let config = load(&yaml);
    let store = store_for([&config], None).expect("a store");
    let given = || Setup {
        traces: Some(Arc::clone(&store)),
        ..setup()
    };
    let collector =
        Collector::start(&config, given()).unwrap_or_else(|error| panic!("{}", error.0));
    take(&collector, request(1, 2)).await;
    until("the export", || traces(&collector).held() == 0).await;
    let kept = ["01", "02"].map(|id| (id.to_owned(), Some(true), None));
    assert_eq!(shown(&store), kept);
    collector.end().await;
    // A store that is given outlives its collector, as at a reload.
    let again = store_for([&config], Some(Arc::clone(&store))).expect("the same");
    assert!(Arc::ptr_eq(&store, &again));
    assert_eq!(shown(&again), kept);
    assert!(store_for([&load(&yaml.replace("dashboard", "nop"))], Some(store)).is_none());
}

#[tokio::test]
async fn other_policies_are_tried() {
    let collector = start(&format!(
        "receivers: {{ proxy: }}\nprocessors: {{ tail_sampling: {{ decision_wait: 100s, {ERRORS} }} }}\n\
         exporters: {{ dashboard: }}\n\
         service: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [proxy], processors: [tail_sampling], exporters: [dashboard] }} }} }}"
    ));
    take(&collector, request(10, 20)).await;
    let store = store_of(&collector);
    let text = "- { name: odd, type: ottl_condition, ottl_condition: { span: ['attributes[\"trace\"] == 11'] } }\n\
                - { name: none, type: probabilistic, probabilistic: { sampling_percentage: 0 } }";
    let answer = dry_run(&store, text, now_ms()).unwrap();
    assert_eq!(
        (answer.run.traces, answer.run.kept, answer.run.undecided),
        (20, 1, 20)
    );
    assert!(answer.run.sample[0].id.ends_with("0b"));
    assert!(
        answer.warnings[0]
            .message
            .contains("is 0: no trace is kept"),
        "{:?}",
        answer.warnings
    );
    assert_eq!(answer.warnings[0].line, 2);
    let answer = serde_json::to_value(answer).unwrap();
    assert_eq!(
        (&answer["kept"], &answer["policies"][0]["name"]),
        (&1.into(), &"odd".into())
    );
    let fault = dry_run(&store, "- { name: x, type: y }", now_ms()).unwrap_err();
    assert_eq!((fault.line, fault.column), (1, 20));
    // The same text as the sampler runs gives what it will decide.
    let views = [("c".to_owned(), Arc::clone(&collector.view))];
    let yaml = sampling(&views).collectors[0].samplers[0].yaml.clone();
    assert_eq!(dry_run(&store, &yaml, now_ms()).unwrap().run.kept, 2);
    let [balance, ..] = collector.end().await;
    assert_eq!((balance.exported, balance.dropped), (4, 36));
    assert_eq!(
        shown(&store)
            .iter()
            .filter(|(_, kept, _)| *kept == Some(true))
            .count(),
        2
    );
}

/// What the traces take is missing for others, and is given back.
#[tokio::test]
async fn the_store_takes_a_part_of_the_budget() {
    let config = load(&format!(
        "receivers: {{ proxy: }}\nprocessors: {{ memory_limiter: {{ check_interval: 1s, limit_mib: 40 }} }}\nexporters: {{ dashboard: }}\n\
         service: {{ {METERED}, pipelines: {{ traces: {{ receivers: [proxy], processors: [memory_limiter], exporters: [dashboard] }} }} }}"
    ));
    let setup = Setup {
        memory_used_bytes: || 0,
        ..setup()
    };
    let collector = Collector::start(&config, setup);
    let collector = collector.unwrap_or_else(|error| panic!("{}", error.0));
    let (store, budget) = (store_of(&collector), Arc::clone(&collector.view.budget));
    // A quarter of four fifths of 40 MiB.
    assert_eq!(store.held_now(now_ms()).bytes_max, 8 << 20);
    for number in 0..40 {
        take(&collector, request(number * 10_000, 10_000)).await;
        until("it is shown", || traces(&collector).held() == 0).await;
        let held = store.held_now(now_ms()).bytes;
        assert!(held <= 8 << 20, "{held}");
        until("it is charged", || budget.used_bytes() == held).await;
    }
    let held = store.held_now(now_ms());
    assert!(held.bytes > 4 << 20, "{held:?}");
    let page = metrics(&collector).await;
    for line in [
        format!("spangate_dashboard_held_bytes {}\n", held.bytes),
        format!("spangate_dashboard_limit_bytes {}\n", 8 << 20),
        format!("spangate_dashboard_traces {}\n", held.traces),
        format!("spangate_dashboard_spans {}\n", held.spans),
    ] {
        assert!(page.contains(&line), "{line}\n{page}");
    }
    collector.end().await;
    assert_eq!(budget.used_bytes(), 0);
}

#[tokio::test]
async fn a_store_of_two_collectors_keeps_the_larger_limits() {
    let configs = ["max_bytes: 20000000, max_age: 2h", "max_bytes: 10000000, max_age: 1h"].map(|limits| {
        load(&format!(
            "receivers: {{ proxy: }}\nexporters: {{ dashboard: {{ {limits} }} }}\n\
             service: {{ {NO_METRICS}, pipelines: {{ traces: {{ receivers: [proxy], exporters: [dashboard] }} }} }}"
        ))
    });
    let store = store_for(&configs, None).expect("a store");
    let mut collectors = Vec::new();
    for config in &configs {
        let setup = Setup {
            traces: Some(Arc::clone(&store)),
            ..setup()
        };
        let collector = Collector::start(config, setup);
        collectors.push(collector.unwrap_or_else(|error| panic!("{}", error.0)));
    }
    let held = store.held_now(now_ms());
    assert_eq!(
        (held.bytes_max, held.age_max_ms),
        (20_000_000, 2 * 3_600_000)
    );
    for collector in collectors {
        collector.end().await;
    }
}
