//! The filter `opentelemetry`.

use super::LogTarget;

/// A `filter opentelemetry` line and the content of its file.
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
    /// The compiled scopes.
    pub program: telemetry::Program,
    /// The file of exporters, samplers and processors.
    pub settings_file: String,
    /// The content of that file.
    pub settings: telemetry::settings::Settings,
    /// The percentage of streams that are traced.
    pub rate_percent: f64,
    /// `option disabled`: a command can enable it later.
    pub disabled: bool,
    /// An error ends the filter's work for the stream.
    pub hard_errors: bool,
    /// Warnings are not logged.
    pub dontlog_normal: bool,
    /// Buffered records are dropped when the process ends.
    pub noflush: bool,
    /// `option tracing`: the propagation formats of contexts.
    pub formats: Vec<telemetry::propagation::Format>,
    /// The targets of its messages.
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
    /// The filter, by its index in [`super::Proxy::otel`].
    pub filter: usize,
    /// The group, by its index in the program.
    pub group: usize,
}
