//! `show info`: facts of the process, as lines, typed lines or JSON (management guide §9.2, §9.3).

use std::fmt::Write as _;

use super::{Asked, Command, Level, Reply, command};
use crate::collectors::panics;

pub(super) const COMMANDS: &[Command] = &[command(
    "show info",
    "[desc|json|typed]*",
    Level::User,
    "facts of the process",
    show,
)];

/// What a field holds.
enum Fact {
    Text(String),
    Number(u32),
    Large(u64),
}

/// Where a value comes from, by its letter in typed lines.
#[derive(Clone, Copy)]
enum Origin {
    Metric,
    Status,
    Key,
    Config,
    Product,
}

/// How a value behaves over time.
#[derive(Clone, Copy)]
enum Nature {
    Gauge,
    Duration,
    Limit,
    Output,
    Counter,
    Rate,
}

/// What a value speaks of.
#[derive(Clone, Copy)]
enum Scope {
    Process,
    Service,
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
        Some(Fact::Number(uptime_seconds(asked)))
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
            Some(Fact::Number((started_ns / 1_000_000_000) as u32))
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

fn uptime_seconds(asked: &Asked<'_>) -> u32 {
    let passed_ns = net::sys::now().mono_ns - asked.subjects.running.process.started.mono_ns;
    (passed_ns / 1_000_000_000) as u32
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
                field.tags.0.named().0,
                field.tags.1.named().0,
                field.tags.2.named().0,
                fact.kind(),
            )?,
            false => write!(out, "{}: ", field.name)?,
        }
        match &fact {
            Fact::Text(text) => out.push_str(text),
            Fact::Number(number) => write!(out, "{number}")?,
            Fact::Large(number) => write!(out, "{number}")?,
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
        };
        write!(
            out,
            "{{\"field\":{{\"pos\":{},\"name\":\"{}\"}},\"processNum\":1,\
             \"tags\":{{\"origin\":\"{}\",\"nature\":\"{}\",\"scope\":\"{}\"}},\
             \"value\":{{\"type\":\"{}\",\"value\":{value}}}}}",
            field.place,
            field.name,
            field.tags.0.named().1,
            field.tags.1.named().1,
            field.tags.2.named().1,
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
        }
    }
}

impl Origin {
    /// Its letter in typed lines, its word in JSON.
    fn named(self) -> (char, &'static str) {
        match self {
            Origin::Metric => ('M', "Metric"),
            Origin::Status => ('S', "Status"),
            Origin::Key => ('K', "Key"),
            Origin::Config => ('C', "Config"),
            Origin::Product => ('P', "Product"),
        }
    }
}

impl Nature {
    fn named(self) -> (char, &'static str) {
        match self {
            Nature::Gauge => ('G', "Gauge"),
            Nature::Duration => ('D', "Duration"),
            Nature::Limit => ('L', "Limit"),
            Nature::Output => ('O', "Output"),
            Nature::Counter => ('C', "Counter"),
            Nature::Rate => ('R', "Rate"),
        }
    }
}

impl Scope {
    fn named(self) -> (char, &'static str) {
        match self {
            Scope::Process => ('P', "Process"),
            Scope::Service => ('S', "Service"),
        }
    }
}
