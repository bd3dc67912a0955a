//! `GET /api/now`: the process, its frontends, and its backends with their servers.

use net::Now;
use proxy::statistics::{Cursor, Selection, View};
use proxy::{RuntimeConfig, Shared};
use serde_json::{Map, Value, json};
use stats::latency::{BOUNDS_MS, Latency, PARTS};
use stats::process::Fact;
use stats::{Column, Kind, Row};

use crate::percentile::percentile;

/// Counters that all kinds of rows have, by their names in the answer.
const COUNTERS: &[(&str, Column)] = &[
    ("sessions_total", Column::Stot),
    ("requests_total", Column::ReqTot),
    ("bytes_in", Column::Bin),
    ("bytes_out", Column::Bout),
];

/// Gauges.
const GAUGES: &[(&str, Column)] = &[
    ("sessions", Column::Scur),
    ("sessions_max", Column::Slim),
    ("session_rate", Column::Rate),
    ("request_rate", Column::ReqRate),
    ("queue", Column::Qcur),
    ("queue_max", Column::Qmax),
    ("weight", Column::Weight),
    ("configured_weight", Column::Uweight),
    ("active", Column::Act),
    ("backup", Column::Bck),
    ("since_change_s", Column::Lastchg),
    ("downtime_s", Column::Downtime),
    ("average_ms", Column::Ttime),
    ("average_response_ms", Column::Rtime),
    ("connections_idle", Column::SrvIcur),
];

/// Counters of errors, by class.
const ERRORS: &[(&str, Column)] = &[
    ("4xx", Column::Hrsp4xx),
    ("5xx", Column::Hrsp5xx),
    ("request", Column::Ereq),
    ("connect", Column::Econ),
    ("response", Column::Eresp),
    ("denied_requests", Column::Dreq),
    ("denied_responses", Column::Dresp),
    ("retries", Column::Wretr),
    ("redispatches", Column::Wredis),
    ("client_aborts", Column::CliAbrt),
    ("server_aborts", Column::SrvAbrt),
    ("internal", Column::Eint),
];

/// The fields of a health check.
const CHECK: &[(&str, Column)] = &[
    ("status", Column::CheckStatus),
    ("code", Column::CheckCode),
    ("duration_ms", Column::CheckDuration),
    ("meaning", Column::CheckDesc),
    ("found", Column::LastChk),
    ("rise", Column::CheckRise),
    ("fall", Column::CheckFall),
    ("health", Column::CheckHealth),
    ("failures", Column::Chkfail),
];

const TEXTS: &[(&str, Column)] = &[
    ("status", Column::Status),
    ("mode", Column::Mode),
    ("address", Column::Addr),
    ("algorithm", Column::Algo),
    ("tracked", Column::Tracked),
    ("agent_status", Column::AgentStatus),
    ("agent_found", Column::LastAgt),
];

/// The answer.
pub fn now(
    runtime_config: &RuntimeConfig,
    shared: &Shared,
    version: &str,
    now: Now,
) -> Map<String, Value> {
    let servers = shared.server_tables();
    let view = View {
        runtime_config,
        shared,
        servers: &servers,
        now,
        legends: true,
    };
    let (mut frontends, mut backends) = (Vec::new(), Vec::new());
    let mut waiting = Vec::new();
    let (mut cursor, selection) = (Cursor::default(), Selection::default());
    while let Some((proxy, row)) = cursor.next(&view, &selection) {
        let mut shown = of_row(&row);
        match row.kind {
            Kind::Frontend => {
                let binds = runtime_config.config.proxies[proxy].live_binds();
                let origins: Vec<&str> = binds.map(|(_, bind)| bind.origin.as_str()).collect();
                shown.insert("binds".to_owned(), origins.into());
                frontends.push(Value::Object(shown));
            }
            Kind::Server => waiting.push(Value::Object(shown)),
            Kind::Backend => {
                let servers = std::mem::take(&mut waiting);
                shown.insert("servers".to_owned(), servers.into());
                backends.push(Value::Object(shown));
            }
            Kind::Listener => {}
        }
    }
    let mut all = Map::new();
    all.insert("process".to_owned(), process(&view, version));
    all.insert("bounds_ms".to_owned(), json!(BOUNDS_MS));
    all.insert("frontends".to_owned(), frontends.into());
    all.insert("backends".to_owned(), backends.into());
    all
}

fn process(view: &View<'_>, version: &str) -> Value {
    let facts = view.process();
    let number = |fact| facts.get(fact).map_or(Value::Null, value);
    json!({
        "version": version,
        "pid": number(Fact::Pid),
        "node": number(Fact::Node),
        "workers": number(Fact::Nbthread),
        "uptime_s": number(Fact::UptimeSec),
        "connections": number(Fact::CurrConns),
        "connections_max": number(Fact::Maxconn),
        "connections_total": number(Fact::CumConns),
        "connection_rate": number(Fact::ConnRate),
        "session_rate": number(Fact::SessRate),
        "requests_total": number(Fact::CumReq),
        "stopping": number(Fact::Stopping),
        "dropped_logs": number(Fact::DroppedLogs),
        "panics": number(Fact::Panics),
        "now_ms": view.now.wall_ns / 1_000_000,
    })
}

fn of_row(row: &Row<'_>) -> Map<String, Value> {
    let mut shown = Map::new();
    let name = match row.kind {
        Kind::Server | Kind::Listener => Column::Svname,
        Kind::Frontend | Kind::Backend => Column::Pxname,
    };
    shown.insert("name".to_owned(), row.text(name).into());
    for list in [TEXTS, GAUGES, COUNTERS] {
        take(row, list, &mut shown);
    }
    let mut errors = Map::new();
    take(row, ERRORS, &mut errors);
    shown.insert("errors".to_owned(), errors.into());
    if row.get(Column::CheckStatus).is_some() {
        let mut check = Map::new();
        take(row, CHECK, &mut check);
        shown.insert("check".to_owned(), check.into());
    }
    shown.insert("latency".to_owned(), latency(row.latency.as_deref()));
    shown
}

fn take(row: &Row<'_>, list: &[(&str, Column)], into: &mut Map<String, Value>) {
    for (name, column) in list {
        if let Some(found) = row.get(*column) {
            into.insert((*name).to_owned(), value(found));
        }
    }
}

fn value(value: &stats::Value<'_>) -> Value {
    match value {
        stats::Value::Text(text) => text.as_ref().into(),
        stats::Value::U32(number) => (*number).into(),
        stats::Value::S32(number) => (*number).into(),
        stats::Value::U64(number) => (*number).into(),
        stats::Value::Float(number) => (*number).into(),
    }
}

/// Percentiles of the total time since the start, and the buckets. Differences of the buckets give
/// the percentiles of any period.
fn latency(latency: Option<&Latency>) -> Value {
    let Some(latency) = latency else {
        return Value::Null;
    };
    let total = &latency.parts[PARTS - 1];
    json!({
        "p50": percentile(total, 0.5),
        "p90": percentile(total, 0.9),
        "p99": percentile(total, 0.99),
        "counts": total.counts,
        "sum_ms": total.sum_ms,
    })
}
