//! `flt-otel status`, `instruments` and `scopes`: lines of a name, a colon and what there is to say.

use std::fmt::Write as _;
use std::sync::atomic::Ordering::Relaxed;

use config::model::Proxy;
use export::Pipeline;
use telemetry::Program;
use telemetry::account::Loss;
use telemetry::metrics::{Aggregation, Kind};

use super::otel::{Meant, errors, meant, on, share, state};
use super::{Asked, Reply};

/// A dump of each filter that is meant.
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
        let proxy = asked.subjects.running.config.proxies.get(config.proxy);
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
        let pipelines = asked
            .subjects
            .exports
            .as_ref()
            .map(|exports| exports.pipelines(number));
        for one in pipelines.into_iter().flatten() {
            pipeline(out, one)?;
        }
        Ok(())
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

fn pipeline(out: &mut String, pipeline: &Pipeline) -> std::fmt::Result {
    let (queue, health) = (&pipeline.queue, &pipeline.health);
    let account = &queue.account;
    let sampled = account.lost(Loss::SampledOut);
    // What was not to be kept is not lost.
    let causes = Loss::ALL.iter().filter(|why| **why != Loss::SampledOut);
    let lost: u64 = causes.clone().map(|why| account.lost(*why)).sum();
    let (started, exported, flying) = (account.started(), account.exported(), account.in_flight());
    // The counters are read one after the other, while others count.
    let waiting = started.saturating_sub(exported + sampled + lost + flying);
    writeln!(out, "  pipeline     : {}", health.name())?;
    writeln!(
        out,
        "    records    : {started} started, {exported} exported, {sampled} sampled out, {lost} lost, {waiting} waiting, {flying} in flight"
    )?;
    let causes = causes.map(|why| format!("{} {}", account.lost(*why), why.name()));
    let causes: Vec<String> = causes.collect();
    writeln!(out, "    lost       : {}", causes.join(", "))?;
    let ((records, bytes), limits) = (queue.depth(), queue.limits());
    let of = |max: usize| match max {
        usize::MAX => String::new(),
        max => format!(" of {max}"),
    };
    writeln!(
        out,
        "    queue      : {records}{} records, {bytes}{} bytes",
        of(limits.records_max),
        of(limits.bytes_max),
    )?;
    writeln!(
        out,
        "    requests   : {} taken, {} given up, {} attempts again",
        health.requests_taken(),
        health.requests_failed(),
        health.attempts_again(),
    )?;
    match health.since_taken() {
        Some(since) => writeln!(out, "    last taken : {} s ago", since.as_secs())?,
        None => writeln!(out, "    last taken : never")?,
    }
    match health.last_error().as_str() {
        "" => writeln!(out, "    last error : none"),
        error => writeln!(out, "    last error : {error}"),
    }
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
                "  {refused} values were negative, which nothing that only grows takes"
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
    let groups = match groups.is_empty() {
        true => String::new(),
        false => format!(", of group {}", groups.join(", ")),
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
