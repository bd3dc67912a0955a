//! `flt-otel status`, `instruments` and `scopes`: lines of a name, a colon and a value.

use std::fmt::Write as _;
use std::sync::atomic::Ordering::Relaxed;

use config::model::Proxy;
use telemetry::Program;
use telemetry::metrics::{Aggregation, Kind};

use super::otel::{Meant, errors, meant, on, share, state};
use super::{Asked, Reply};

/// A dump of each selected filter.
fn dump(asked: &Asked<'_>, write: impl Fn(&mut String, Meant<'_>) -> std::fmt::Result) -> Reply {
    let (filters, _) = match meant(asked, 0) {
        Ok(meant) => meant,
        Err(refused) => return refused,
    };
    let mut text = String::new();
    for filter in filters {
        // Writing to memory does not fail.
        let _ = write(&mut text, filter);
    }
    Reply::Dump(text)
}

pub(super) fn status(asked: &Asked<'_>) -> Reply {
    dump(asked, |out, meant| {
        let (number, config, filter) = meant;
        let proxy = asked
            .subjects
            .runtime_config
            .config
            .proxies
            .get(config.proxy);
        let title = proxy.map_or_else(String::new, title);
        writeln!(out, "filter '{}' of {title} : {}", config.id, state(filter))?;
        if !config.file.is_empty() {
            writeln!(
                out,
                "  files        : {}, {}, instrumentation '{}'",
                config.file, config.settings_file, config.instrumentation
            )?;
        }
        let program = &config.program;
        writeln!(
            out,
            "  program      : {} scopes, {} groups, {} spans, {} contexts, {} instruments, {} policies",
            program.scopes.len(),
            program.groups.len(),
            program.spans.len(),
            program.contexts.len(),
            program.instruments.len(),
            program.policies.len(),
        )?;
        let switches = &filter.switches;
        writeln!(
            out,
            "  options      : {}, {}, logging {}, noflush {}, require-context {}",
            share(filter),
            errors(filter),
            switches.logging().name(),
            on(switches.noflush.load(Relaxed)),
            on(program.require_context),
        )?;
        let counters = &filter.counters;
        writeln!(
            out,
            "  streams      : {} attached, {} passed by rate, {} passed while disabled, {} stopped",
            counters.attached.load(Relaxed),
            counters.passed_by_rate.load(Relaxed),
            counters.passed_while_disabled.load(Relaxed),
            counters.stopped.load(Relaxed),
        )?;
        writeln!(
            out,
            "  errors       : {} hard, {} soft, {} lines suppressed",
            counters.hard_errors.load(Relaxed),
            counters.soft_errors.load(Relaxed),
            counters.lines_suppressed.load(Relaxed),
        )?;
        match &asked.subjects.exports {
            Some(exports) => exports.describe(number, out),
            None => Ok(()),
        }
    })
}

fn title(proxy: &Proxy) -> String {
    let kind = match (proxy.is_frontend, proxy.is_backend) {
        (true, true) => "listen",
        (true, false) => "frontend",
        _ => "backend",
    };
    format!("{kind} '{}'", proxy.name)
}

pub(super) fn instruments(asked: &Asked<'_>) -> Reply {
    dump(asked, |out, (_, config, filter)| {
        let program = &config.program;
        writeln!(
            out,
            "filter '{}' : {} instruments",
            config.id,
            program.instruments.len()
        )?;
        for (number, instrument) in program.instruments.iter().enumerate() {
            let updates = program.scopes.iter().flat_map(|scope| &scope.updates);
            let updates = updates.filter(|update| update.instrument as usize == number);
            let kind = match instrument.kind {
                Kind::Counter => "cnt_int",
                Kind::UpDownCounter => "udcnt_int",
                Kind::Histogram => "hist_int",
                Kind::Gauge => "gauge_int",
            };
            let aggregation = match instrument.aggregation {
                Aggregation::Default => "default",
                Aggregation::Drop => "drop",
                Aggregation::Sum => "sum",
                Aggregation::LastValue => "last_value",
                Aggregation::ExplicitHistogram(_) => "histogram",
                Aggregation::ExponentialHistogram { .. } => "exp_histogram",
            };
            writeln!(
                out,
                "  {kind} '{}' : aggregation {aggregation}, unit '{}', {} updates, '{}'",
                instrument.name,
                instrument.unit,
                updates.count(),
                instrument.description,
            )?;
        }
        let refused = filter.export.metrics.iter().map(|shared| shared.rejected());
        match refused.sum::<u64>() {
            0 => Ok(()),
            refused => writeln!(
                out,
                "  {refused} negative values were refused, because these instruments only grow"
            ),
        }
    })
}

pub(super) fn scopes(asked: &Asked<'_>) -> Reply {
    dump(asked, |out, (_, config, _)| {
        let program = &config.program;
        writeln!(
            out,
            "filter '{}' : {} scopes",
            config.id,
            program.scopes.len()
        )?;
        for number in 0..program.scopes.len() {
            scope(out, program, number)?;
        }
        Ok(())
    })
}

fn scope(out: &mut String, program: &Program, number: usize) -> std::fmt::Result {
    let scope = &program.scopes[number];
    let is = |place: &&u32| **place as usize == number;
    let event = match scope.event {
        Some(event) if program.scopes_of(event).iter().any(|place| is(&place)) => event.name(),
        Some(_) => "not used at its event",
        None => "no event",
    };
    let condition = scope
        .condition
        .as_ref()
        .map_or("", |_| ", with a condition");
    let groups = program.groups.iter();
    let groups = groups.filter(|group| group.scopes.iter().any(|place| is(&place)));
    let groups: Vec<&str> = groups.map(|group| &*group.name).collect();
    let groups = if groups.is_empty() {
        String::new()
    } else {
        format!(", of group {}", groups.join(", "))
    };
    let idle = scope
        .idle_ms
        .map_or_else(String::new, |ms| format!(" every {ms} ms"));
    writeln!(
        out,
        "  {} : {event}{idle}{condition}{groups}; {} extracts, {} spans, {} updates, {} log records",
        scope.name,
        scope.extracts.len(),
        scope.spans.len(),
        scope.updates.len(),
        scope.logs.len(),
    )
}
