//! The filter `opentelemetry`.

use super::LogTarget;

/// A `filter opentelemetry` line, and what its file says.
#[derive(Debug)]
pub struct OtelFilter {
    /// `id`
    pub id: String,
    /// `config`
    pub file: String,
    /// The name of its `otel-instrumentation`.
    pub instrumentation: String,
    /// Its proxy, by the index in [`super::Config::proxies`].
    pub proxy: usize,
    /// What its scopes do.
    pub program: telemetry::Program,
    /// The file of exporters, samplers and processors.
    pub settings_file: String,
    /// What that file says.
    pub settings: telemetry::settings::Settings,
    /// The share of streams that are traced.
    pub rate_percent: f64,
    /// `option disabled`: it can be enabled later.
    pub disabled: bool,
    /// A fault ends the filter's work for the stream.
    pub hard_errors: bool,
    /// Warnings are not logged.
    pub dontlog_normal: bool,
    /// What is buffered when the process ends is dropped.
    pub noflush: bool,
    /// `option tracing`: the fields that contexts come and go in.
    pub formats: Vec<telemetry::propagation::Format>,
    /// Where its messages go.
    pub log: Vec<LogTarget>,
}

impl Default for OtelFilter {
    fn default() -> Self {
        OtelFilter {
            id: String::new(),
            file: String::new(),
            instrumentation: String::new(),
            proxy: 0,
            program: telemetry::Program::default(),
            settings_file: String::new(),
            settings: telemetry::settings::Settings::default(),
            rate_percent: 100.0,
            disabled: false,
            hard_errors: false,
            dontlog_normal: false,
            noflush: false,
            formats: Vec::new(),
            log: Vec::new(),
        }
    }
}

/// The group that an `otel-group` rule runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OtelGroup {
    /// The filter, by its place in [`super::Proxy::otel`].
    pub filter: usize,
    /// The group, by its place in the program.
    pub group: usize,
}
