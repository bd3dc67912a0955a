//! Kafka in a configuration.

const TEXT: &str = "
receivers: { kafka: { traces: { topics: [spans] } } }
exporters: { kafka: { traces: { topic: kept } } }
service:
  telemetry: { metrics: { level: none } }
  pipelines: { traces: { receivers: [kafka], exporters: [kafka] } }
";

#[cfg(not(feature = "kafka"))]
#[test]
fn a_build_without_a_client_says_what_to_build() {
    let errors = super::errors(TEXT);
    assert_eq!(errors.len(), 2, "{errors:?}");
    for (error, at) in errors.iter().zip(["2:14: receivers", "3:14: exporters"]) {
        assert!(error.contains(at), "{error}");
        assert!(
            error.contains("build with the cargo feature 'kafka'"),
            "{error}"
        );
    }
}

#[cfg(feature = "kafka")]
#[test]
fn a_build_with_a_client_takes_it() {
    let (config, warnings) = super::good(TEXT);
    assert!(warnings.is_empty(), "{warnings:?}");
    assert!(config.is_read_again(&config.pipelines[0]));
}

#[cfg(all(feature = "kafka", not(feature = "kafka-tls")))]
#[test]
fn a_client_without_tls_says_what_to_build() {
    let with_tls = TEXT.replace("topics: [spans] }", "topics: [spans] }, tls: {}");
    let errors = super::errors(&with_tls);
    assert!(errors[0].contains("'kafka-tls'"), "{errors:?}");
}
