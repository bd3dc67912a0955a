//! The proxy alone (without the cargo feature `export`): replacements for the exporters and the
//! collector.
//!
//! Filters record and encode as usual. Their queues have no capacity, so every record is dropped
//! and counted.

use std::process::ExitCode;

fn absent(what: &str) -> String {
    format!("{what} : this program was built without them (cargo feature 'export')")
}

/// `spangate collect`.
pub(crate) mod collect {
    pub(crate) use super::refuse as run;
}

/// `spangate tracegen`.
pub(crate) mod tracegen {
    pub(crate) use super::refuse as run;
}

pub(crate) fn refuse(_: impl Iterator<Item = std::ffi::OsString>) -> ExitCode {
    crate::alert(&format!("{}.", absent("exporters and the collector")));
    ExitCode::FAILURE
}

/// Sections `collector`, all of which are refused.
pub(crate) mod collectors {
    use config::diagnostic::Diagnostics;
    use config::environment::Environment;
    use config::model::Config;

    use crate::sys::Signals;

    /// A collector's configuration: no value of it exists.
    pub(crate) enum Read {}

    /// A running collector: no value of it exists.
    pub(crate) type Watched = std::convert::Infallible;

    pub(crate) fn read(config: &Config, _: &Environment, out: &mut Diagnostics) -> Vec<Read> {
        for section in &config.collectors {
            out.alert(
                &section.span,
                format!("{}.", super::absent("sections 'collector'")),
            );
        }
        if let Some(section) = &config.dashboard {
            let what = super::absent("sections 'dashboard'");
            out.alert(&section.span, format!("{what}."));
        }
        Vec::new()
    }

    pub(crate) fn panics(one: &Watched) -> u64 {
        match *one {}
    }

    pub(crate) fn describe(one: &Watched, _: &mut String) -> std::fmt::Result {
        match *one {}
    }

    pub(crate) struct Collectors;

    impl Collectors {
        pub fn start(_: &Config, _: Vec<Read>, _: fn()) -> Result<Collectors, String> {
            Ok(Collectors)
        }

        pub fn doors(&self) {}

        pub fn views(&self) -> Vec<Watched> {
            Vec::new()
        }

        pub fn stop_listening(&self) {}

        pub fn end(self, _: &Signals, _: bool) {}
    }
}

/// The dashboard, which is refused.
pub(crate) mod pages {
    use std::sync::Arc;

    use config::diagnostic::Diagnostics;
    use config::model::Config;
    use config::reader::Input;

    use proxy::Current;

    use crate::cli::CurrentSubjects;
    use crate::sockets::Sockets;

    #[derive(Debug)]
    pub(crate) struct Sources;

    impl Sources {
        pub fn of(_: Option<&Config>, _: Vec<Input>, _: &Diagnostics) -> Sources {
            Sources
        }
    }

    pub(crate) struct Pages;

    /// A running dashboard: no value of it exists.
    pub(crate) enum Served {}

    impl Pages {
        pub fn open(_: &Config, _: &mut Sockets) -> Result<Pages, String> {
            Ok(Pages)
        }

        pub fn start(
            self,
            _: &Arc<CurrentSubjects>,
            _: &Arc<Current>,
            _: Sources,
        ) -> Result<Option<Served>, String> {
            Ok(None)
        }
    }

    impl Served {
        pub fn show(&self, _: Sources) {}
    }
}

/// Exporters that accept nothing.
pub(crate) mod exports {
    use std::fmt;
    use std::sync::Arc;
    use std::time::Duration;

    use config::model::{Config, OtelFilter};
    use proxy::{FilterExport, RuntimeConfig};
    use telemetry::account::{Account, Signal};
    use telemetry::queue::{Queue, QueueLimits};
    use telemetry::sampler::Sampler;

    use crate::pace::pace;

    /// Time budget for the workers to hand over their records.
    pub(crate) const FLUSH_NOW_BUDGET: Duration = Duration::from_secs(5);

    pub(crate) struct Exports(());

    impl Exports {
        pub fn start(config: &Config, (): (), _: u64) -> Result<Option<Exports>, String> {
            if config.otel.is_empty() && config.global.stats_otlp.is_none() {
                return Ok(None);
            }
            crate::warning(&format!(
                "{} ; the records of filters and of 'stats otlp' are dropped.",
                super::absent("exporters")
            ));
            Ok(Some(Exports(())))
        }

        pub fn connect(&mut self, runtime_config: &mut RuntimeConfig) {
            let exports: Vec<FilterExport> =
                runtime_config.config.otel.iter().map(export).collect();
            for (filter, export) in exports.into_iter().enumerate() {
                runtime_config.export_filter(filter, export);
            }
        }

        pub fn watch(&self, _: &Arc<proxy::Current>) {}

        pub fn drop_at_end(&self, _: usize, _: bool) {}

        pub fn flush(&self, _: &[usize]) -> bool {
            true
        }

        pub fn describe(&self, _: usize, _: &mut String) -> fmt::Result {
            Ok(())
        }

        pub fn finish(&self) {}
    }

    fn export(filter: &OtelFilter) -> FilterExport {
        let settings = &filter.settings;
        let queue = |signal| {
            let no_room = QueueLimits {
                records_max: 0,
                bytes_max: 0,
            };
            Arc::new(Queue::new(
                signal,
                no_room,
                Arc::<Account>::default(),
                || {},
            ))
        };
        let (traces, logs) = (settings.traces.as_ref(), settings.logs.as_ref());
        let (batch_records, delay_ms) = pace(settings);
        FilterExport {
            sampler: traces.map_or(Sampler::AlwaysOff, |traces| (&traces.sampler).into()),
            spans: traces.iter().map(|_| queue(Signal::Traces)).collect(),
            logs: logs.iter().map(|_| queue(Signal::Logs)).collect(),
            severity_min: logs.map_or(u8::MAX, |logs| logs.min_severity),
            batch_records,
            delay_ms,
            ..FilterExport::default()
        }
    }
}
