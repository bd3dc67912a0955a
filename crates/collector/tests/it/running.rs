//! What is taken does start.

use spangate_collector::run::process::memory::resident_bytes;
use spangate_collector::run::{Collector, Log, Setup};

use super::good;

#[test]
fn processors_run_in_pipelines_of_all_signals() {
    let text = r#"
receivers: { nop: }
exporters: { nop: }
processors:
  resource: { attributes: [ { key: zone, value: b, action: upsert } ] }
  attributes:
    include: { match_type: regexp, services: ['^shop-\d+$'] }
    actions:
      - { key: url, pattern: '^(?P<scheme>\w+)://', action: extract }
      - { pattern: '^secret\.', action: delete }
  probabilistic_sampler: { sampling_percentage: 10, mode: equalizing }
  tail_sampling:
    policies:
      - { name: a, type: string_attribute, string_attribute: { key: k, values: ['^\d+$', '/{id}'], enabled_regex_matching: true } }
      - { name: b, type: ottl_condition, ottl_condition: { span: ['IsMatch(name, "^\\w+$")'] } }
service:
  telemetry: { metrics: { level: none } }
  pipelines:
    traces: { receivers: [nop], processors: [resource, attributes, probabilistic_sampler, tail_sampling], exporters: [nop] }
    metrics: { receivers: [nop], processors: [resource, attributes], exporters: [nop] }
    logs: { receivers: [nop], processors: [resource, attributes, probabilistic_sampler], exporters: [nop] }
"#;
    let (config, warnings) = good(text);
    assert_eq!(config.pipelines.len(), 3, "{warnings:?}");
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().unwrap();
    runtime.block_on(async {
        let setup = Setup {
            log: Log::new(|_, line| panic!("{line}")),
            seed: 1,
            record_policy: false,
            memory_used_bytes: resident_bytes,
            traces: None,
        };
        let collector = Collector::start(&config, setup).unwrap();
        let balances = collector.end().await;
        assert!(balances.iter().all(|balance| balance.held() == 0));
    });
}
