//! `show info`: facts of the process, as lines, typed lines or JSON (management guide §9.2, §9.3).

use std::fmt::Write as _;

use stats::tags::{Nature, Origin, Scope};

use super::{Asked, Command, Level, Reply, command};
use crate::collectors::panics;

pub(super) const COMMANDS: &[Command] = &[command(
    "show info",
    "[desc|json|typed|float]*",
    Level::User,
    "facts of the process",
    show,
)];

/// What a field holds.
enum Fact {
    Text(String),
    Number(u32),
    Large(u64),
    Float(f64),
}

/// One line of `show info`.
struct Field {
    /// Its place in HAProxy's list, which never changes.
    place: u32,
    name: &'static str,
    tags: (Origin, Nature, Scope),
    about: &'static str,
    /// None where it was not configured.
    read: fn(&Asked<'_>) -> Option<Fact>,
}

const fn field(
    place: u32,
    name: &'static str,
    tags: (Origin, Nature, Scope),
    about: &'static str,
    read: fn(&Asked<'_>) -> Option<Fact>,
) -> Field {
    Field {
        place,
        name,
        tags,
        about,
        read,
    }
}

const PRODUCT: (Origin, Nature, Scope) = (Origin::Product, Nature::Output, Scope::Service);
const SETTING: (Origin, Nature, Scope) = (Origin::Config, Nature::Gauge, Scope::Service);
const LABEL: (Origin, Nature, Scope) = (Origin::Config, Nature::Output, Scope::Service);
const LIMIT: (Origin, Nature, Scope) = (Origin::Config, Nature::Limit, Scope::Process);
const AGE: (Origin, Nature, Scope) = (Origin::Metric, Nature::Duration, Scope::Process);
const COUNT: (Origin, Nature, Scope) = (Origin::Metric, Nature::Gauge, Scope::Process);

const TOTAL: (Origin, Nature, Scope) = (Origin::Metric, Nature::Counter, Scope::Process);
const PEAK: (Origin, Nature, Scope) = (Origin::Metric, Nature::Max, Scope::Process);
const RATE: (Origin, Nature, Scope) = (Origin::Metric, Nature::Rate, Scope::Process);

/// In HAProxy's order; from 1000 on, fields that only this program has. What is not measured is left out.
const FIELDS: &[Field] = &[
    field(0, "Name", PRODUCT, "Name of the product", |_| {
        text("HAProxy")
    }),
    field(
        1,
        "Version",
        PRODUCT,
        "Version of the configuration language",
        |_| text(&crate::build::info().version),
    ),
    field(3, "Nbthread", SETTING, "Worker threads", |asked| {
        Some(Fact::Number(asked.subjects.running.process.nbthread))
    }),
    field(4, "Nbproc", SETTING, "Worker processes, always 1", |_| {
        Some(Fact::Number(1))
    }),
    field(
        5,
        "Process_num",
        (Origin::Key, Nature::Gauge, Scope::Process),
        "Number of this worker process, always 1",
        |_| Some(Fact::Number(1)),
    ),
    field(
        6,
        "Pid",
        (Origin::Status, Nature::Gauge, Scope::Process),
        "The process' number in the system",
        |asked| Some(Fact::Number(asked.subjects.running.process.pid)),
    ),
    field(
        7,
        "Uptime",
        AGE,
        "Time since the start, in words",
        |asked| {
            let seconds = uptime_seconds(asked);
            let (days, hours) = (seconds / 86_400, seconds / 3_600 % 24);
            let (minutes, seconds) = (seconds / 60 % 60, seconds % 60);
            Some(Fact::Text(format!(
                "{days}d {hours}h{minutes:02}m{seconds:02}s"
            )))
        },
    ),
    field(8, "Uptime_sec", AGE, "Seconds since the start", |asked| {
        Some(seconds(asked, uptime_ns(asked)))
    }),
    field(13, "Ulimit-n", LIMIT, "Most descriptors at once", |asked| {
        Some(Fact::Number(asked.subjects.descriptors as u32))
    }),
    field(
        15,
        "Maxconn",
        LIMIT,
        "Most client connections at once",
        maxconn,
    ),
    field(
        16,
        "Hard_maxconn",
        LIMIT,
        "Most client connections at once, as started",
        maxconn,
    ),
    field(17, "CurrConns", COUNT, "Client connections now", |asked| {
        Some(Fact::Number(asked.subjects.shared.clients()))
    }),
    field(
        18,
        "CumConns",
        TOTAL,
        "Client connections since the start",
        |asked| Some(Fact::Number(activity(asked).connections as u32)),
    ),
    field(19, "CumReq", TOTAL, "Requests since the start", |asked| {
        Some(Fact::Number(activity(asked).requests as u32))
    }),
    field(
        26,
        "ConnRate",
        RATE,
        "Client connections of the last second",
        |asked| Some(Fact::Number(activity(asked).connection_rate)),
    ),
    field(
        27,
        "ConnRateLimit",
        LIMIT,
        "Most client connections a second (maxconnrate)",
        |asked| {
            Some(Fact::Number(
                asked
                    .subjects
                    .running
                    .config
                    .global
                    .maxconnrate
                    .unwrap_or(0),
            ))
        },
    ),
    field(
        28,
        "MaxConnRate",
        PEAK,
        "Most client connections within a second",
        |asked| Some(Fact::Number(activity(asked).connection_rate_max)),
    ),
    field(
        29,
        "SessRate",
        RATE,
        "Sessions of the last second",
        |asked| Some(Fact::Number(activity(asked).session_rate)),
    ),
    field(
        30,
        "SessRateLimit",
        LIMIT,
        "Most sessions a second (maxsessrate)",
        |asked| {
            Some(Fact::Number(
                asked
                    .subjects
                    .running
                    .config
                    .global
                    .maxsessrate
                    .unwrap_or(0),
            ))
        },
    ),
    field(
        31,
        "MaxSessRate",
        RATE,
        "Most sessions within a second",
        |asked| Some(Fact::Number(activity(asked).session_rate_max)),
    ),
    field(50, "node", LABEL, "Name of the node", |asked| {
        let configured = asked.subjects.running.config.global.node.as_deref();
        text(configured.unwrap_or(&asked.subjects.running.process.hostname))
    }),
    field(
        51,
        "Description",
        LABEL,
        "What the process is for",
        |asked| {
            let description = asked.subjects.running.config.global.description.as_ref();
            description.map(|text| Fact::Text(text.to_string()))
        },
    ),
    field(
        58,
        "DroppedLogs",
        COUNT,
        "Log messages that were lost",
        |asked| Some(Fact::Number(asked.subjects.dropped_logs.count() as u32)),
    ),
    field(66, "Build info", PRODUCT, "Version of this program", |_| {
        text(concat!("spangate-", env!("CARGO_PKG_VERSION")))
    }),
    field(
        70,
        "Start_time_sec",
        AGE,
        "When the process started, in seconds since the epoch",
        |asked| {
            let started_ns = asked.subjects.running.process.started.wall_ns;
            Some(seconds(asked, started_ns))
        },
    ),
    field(
        1000,
        "Panics",
        TOTAL,
        "Internal errors, each of which ended what it happened on",
        |asked| {
            let of_collectors: u64 = asked.subjects.collectors.iter().map(panics).sum();
            Some(Fact::Large(asked.subjects.shared.panics() + of_collectors))
        },
    ),
];

fn text(text: &str) -> Option<Fact> {
    Some(Fact::Text(text.to_owned()))
}

fn maxconn(asked: &Asked<'_>) -> Option<Fact> {
    let maxconn = asked.subjects.running.config.global.maxconn;
    Some(Fact::Number(maxconn.unwrap_or(0)))
}

fn activity(asked: &Asked<'_>) -> proxy::Activity {
    asked.subjects.shared.activity(net::sys::now().ms())
}

fn uptime_ns(asked: &Asked<'_>) -> u64 {
    net::sys::now().mono_ns - asked.subjects.running.process.started.mono_ns
}

fn uptime_seconds(asked: &Asked<'_>) -> u32 {
    (uptime_ns(asked) / 1_000_000_000) as u32
}

/// Whole seconds; with `float` their fractions too.
fn seconds(asked: &Asked<'_>, ns: u64) -> Fact {
    match asked.rest.contains(&"float") {
        true => Fact::Float(ns as f64 / 1e9),
        false => Fact::Number((ns / 1_000_000_000) as u32),
    }
}

/// `show info [typed|json] [desc]`; other words change nothing, as in HAProxy.
fn show(asked: &Asked<'_>) -> Reply {
    let wants = |word| asked.rest.contains(&word);
    let facts = FIELDS
        .iter()
        .filter_map(|field| Some((field, (field.read)(asked)?)));
    let dump = match wants("json") {
        true => json(facts),
        false => lines(facts, wants("typed"), wants("desc")),
    };
    // Writing to memory does not fail.
    Reply::Dump(dump.unwrap_or_default())
}

fn lines(
    facts: impl Iterator<Item = (&'static Field, Fact)>,
    typed: bool,
    described: bool,
) -> Result<String, std::fmt::Error> {
    let mut out = String::new();
    for (field, fact) in facts {
        match typed {
            true => write!(
                out,
                "{}.{}.1:{}{}{}V:{}:",
                field.place,
                field.name,
                field.tags.0.letter(),
                field.tags.1.letter(),
                field.tags.2.letter(),
                fact.kind(),
            )?,
            false => write!(out, "{}: ", field.name)?,
        }
        match &fact {
            Fact::Text(text) => out.push_str(text),
            Fact::Number(number) => write!(out, "{number}")?,
            Fact::Large(number) => write!(out, "{number}")?,
            Fact::Float(number) => write!(out, "{number:.6}")?,
        }
        if described {
            write!(out, ":\"{}\"", field.about)?;
        }
        out.push('\n');
    }
    Ok(out)
}

fn json(facts: impl Iterator<Item = (&'static Field, Fact)>) -> Result<String, std::fmt::Error> {
    let mut out = String::from("[");
    for (field, fact) in facts {
        if out.len() > 1 {
            out.push(',');
        }
        let value = match &fact {
            Fact::Text(text) => serde_json::Value::from(text.as_str()),
            Fact::Number(number) => serde_json::Value::from(*number),
            Fact::Large(number) => serde_json::Value::from(*number),
            Fact::Float(number) => serde_json::Value::from(*number),
        };
        write!(
            out,
            "{{\"field\":{{\"pos\":{},\"name\":\"{}\"}},\"processNum\":1,\
             \"tags\":{{\"origin\":\"{}\",\"nature\":\"{}\",\"scope\":\"{}\"}},\
             \"value\":{{\"type\":\"{}\",\"value\":{value}}}}}",
            field.place,
            field.name,
            field.tags.0.word(),
            field.tags.1.word(),
            field.tags.2.word(),
            fact.kind(),
        )?;
    }
    out.push_str("]\n");
    Ok(out)
}

impl Fact {
    fn kind(&self) -> &'static str {
        match self {
            Fact::Text(_) => "str",
            Fact::Number(_) => "u32",
            Fact::Large(_) => "u64",
            Fact::Float(_) => "flt",
        }
    }
}
