//! The table of all facts about the process: names, numbers, types and metrics are HAProxy's
//! (management guide §9.3, `show info`).

use std::fmt::Write as _;

use crate::json;
use crate::metric::Form;
use crate::row::Value;
use crate::tags::Nature::{Average, Counter, Duration, Gauge, Limit, Max, Output, Rate};
use crate::tags::Origin::{Config, Key, Metric, Product, Status};
use crate::tags::Scope::{Process, Service};
use crate::tags::Tags;

/// A field of `show info`.
#[derive(Clone, Copy, Debug)]
pub struct FactField {
    /// Its number in HAProxy's list, which never changes; from 1000 on, fields that only this
    /// program has.
    pub place: u32,
    /// Its name in `show info`.
    pub name: &'static str,
    /// The properties of its value.
    pub tags: Tags,
    /// Its name in Prometheus after `haproxy_process_`; empty if it is not exported.
    pub metric: &'static str,
    /// One line of description.
    pub about: &'static str,
}

const fn fact(
    place: u32,
    name: &'static str,
    tags: Tags,
    metric: &'static str,
    about: &'static str,
) -> FactField {
    FactField {
        place,
        name,
        tags,
        metric,
        about,
    }
}

macro_rules! facts {
    ($($fact:ident: $field:expr;)*) => {
        /// A fact, by its index in [`FACTS`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[allow(missing_docs)]
        pub enum Fact { $($fact),* }

        /// All facts, by [`Fact`].
        pub const FACTS: &[FactField] = &[$($field),*];

        impl Fact {
            /// All facts in order.
            pub const ALL: &[Fact] = &[$(Fact::$fact),*];
        }
    };
}

const PRODUCT: Tags = (Product, Output, Service);
const SETTING: Tags = (Config, Gauge, Service);
const LABEL: Tags = (Config, Output, Service);
const LIMIT: Tags = (Config, Limit, Process);
const TIME: Tags = (Metric, Duration, Process);
const GAUGE: Tags = (Metric, Gauge, Process);
const TOTAL: Tags = (Metric, Counter, Process);
const PEAK: Tags = (Metric, Max, Process);
const RATE: Tags = (Metric, Rate, Process);

#[rustfmt::skip]
facts! {
    Name: fact(0, "Name", PRODUCT, "", "Name of the product");
    Version: fact(1, "Version", PRODUCT, "", "Version of the configuration language");
    ReleaseDate: fact(2, "Release_date", PRODUCT, "", "Date of this version");
    Nbthread: fact(3, "Nbthread", SETTING, "nbthread", "Worker threads");
    Nbproc: fact(4, "Nbproc", SETTING, "nbproc", "Worker processes, always 1");
    ProcessNum: fact(5, "Process_num", (Key, Gauge, Process), "relative_process_id", "Number of this worker process, always 1");
    Pid: fact(6, "Pid", (Status, Gauge, Process), "", "The process' number in the system");
    Uptime: fact(7, "Uptime", TIME, "", "Time since the start, in words");
    UptimeSec: fact(8, "Uptime_sec", TIME, "uptime_seconds", "Seconds since the start");
    MemmaxMb: fact(9, "Memmax_MB", LIMIT, "", "Most memory of the process in MiB (-m), 0 for any amount");
    PoolAllocMb: fact(10, "PoolAlloc_MB", GAUGE, "", "Memory in pools in MiB; there are none, memory comes from the system");
    PoolUsedMb: fact(11, "PoolUsed_MB", GAUGE, "", "Memory of pools that is in use in MiB; there are none");
    PoolFailed: fact(12, "PoolFailed", TOTAL, "pool_failures_total", "Failed allocations from pools; there are none");
    UlimitN: fact(13, "Ulimit-n", LIMIT, "max_fds", "Most descriptors at once");
    Maxsock: fact(14, "Maxsock", LIMIT, "max_sockets", "Most sockets at once");
    Maxconn: fact(15, "Maxconn", LIMIT, "max_connections", "Most client connections at once");
    HardMaxconn: fact(16, "Hard_maxconn", LIMIT, "hard_max_connections", "Most client connections at once, as started");
    CurrConns: fact(17, "CurrConns", GAUGE, "current_connections", "Client connections now");
    CumConns: fact(18, "CumConns", TOTAL, "connections_total", "Client connections since the start");
    CumReq: fact(19, "CumReq", TOTAL, "requests_total", "Requests since the start");
    MaxSslConns: fact(20, "MaxSslConns", PEAK, "max_ssl_connections", "Most TLS connections at once, 0 for any number");
    CurrSslConns: fact(21, "CurrSslConns", GAUGE, "current_ssl_connections", "TLS connections with clients and servers now");
    CumSslConns: fact(22, "CumSslConns", TOTAL, "ssl_connections_total", "TLS connections with clients and servers since the start");
    Maxpipes: fact(23, "Maxpipes", LIMIT, "max_pipes", "Most pipes; none are used");
    PipesUsed: fact(24, "PipesUsed", GAUGE, "pipes_used_total", "Pipes in use");
    PipesFree: fact(25, "PipesFree", GAUGE, "pipes_free_total", "Pipes that wait to be used");
    ConnRate: fact(26, "ConnRate", RATE, "current_connection_rate", "Client connections of the last second");
    ConnRateLimit: fact(27, "ConnRateLimit", LIMIT, "limit_connection_rate", "Most client connections a second (maxconnrate)");
    MaxConnRate: fact(28, "MaxConnRate", PEAK, "max_connection_rate", "Most client connections within a second");
    SessRate: fact(29, "SessRate", RATE, "current_session_rate", "Sessions of the last second");
    SessRateLimit: fact(30, "SessRateLimit", LIMIT, "limit_session_rate", "Most sessions a second (maxsessrate)");
    MaxSessRate: fact(31, "MaxSessRate", RATE, "max_session_rate", "Most sessions within a second");
    SslRate: fact(32, "SslRate", RATE, "current_ssl_rate", "TLS connections of clients of the last second");
    SslRateLimit: fact(33, "SslRateLimit", LIMIT, "limit_ssl_rate", "Most TLS connections of clients a second, 0 for any number");
    MaxSslRate: fact(34, "MaxSslRate", PEAK, "max_ssl_rate", "Most TLS connections of clients within a second");
    SslFrontendKeyRate: fact(35, "SslFrontendKeyRate", GAUGE, "current_frontend_ssl_key_rate", "Full TLS handshakes with clients of the last second");
    SslFrontendMaxKeyRate: fact(36, "SslFrontendMaxKeyRate", PEAK, "max_frontend_ssl_key_rate", "Most full TLS handshakes with clients within a second");
    SslFrontendSessionReusePct: fact(37, "SslFrontendSessionReuse_pct", GAUGE, "frontend_ssl_reuse", "Share of TLS connections of clients that resumed a session, in per cent of the last second");
    SslBackendKeyRate: fact(38, "SslBackendKeyRate", RATE, "current_backend_ssl_key_rate", "Full TLS handshakes with servers of the last second");
    SslBackendMaxKeyRate: fact(39, "SslBackendMaxKeyRate", PEAK, "max_backend_ssl_key_rate", "Most full TLS handshakes with servers within a second");
    SslCacheLookups: fact(40, "SslCacheLookups", TOTAL, "ssl_cache_lookups_total", "Sessions that clients asked to resume without a ticket");
    SslCacheMisses: fact(41, "SslCacheMisses", TOTAL, "ssl_cache_misses_total", "Those of them that were not in the cache");
    CompressBpsIn: fact(42, "CompressBpsIn", RATE, "http_comp_bytes_in_total", "Bytes given to compression in the last second");
    CompressBpsOut: fact(43, "CompressBpsOut", RATE, "http_comp_bytes_out_total", "Bytes that compression gave in the last second");
    CompressBpsRateLim: fact(44, "CompressBpsRateLim", LIMIT, "limit_http_comp", "Most bytes that compression gives a second, 0 for any number");
    Tasks: fact(47, "Tasks", GAUGE, "current_tasks", "Connections and streams that the workers have");
    RunQueue: fact(48, "Run_queue", GAUGE, "current_run_queue", "Events that the workers process in their current rounds");
    IdlePct: fact(49, "Idle_pct", (Metric, Average, Process), "idle_time_percent", "Share of time in which the workers used no processor, in per cent of the last second");
    Node: fact(50, "node", LABEL, "node", "Name of the node");
    Description: fact(51, "description", LABEL, "description", "What the process is for");
    Stopping: fact(52, "Stopping", GAUGE, "stopping", "Whether the process ends once its connections have");
    Jobs: fact(53, "Jobs", GAUGE, "jobs", "Client connections and addresses that are listened on");
    UnstoppableJobs: fact(54, "Unstoppable Jobs", GAUGE, "unstoppable_jobs", "Those that no stop ends");
    Listeners: fact(55, "Listeners", GAUGE, "listeners", "Addresses that are listened on");
    ActivePeers: fact(56, "ActivePeers", GAUGE, "active_peers", "Connections with peers that stand");
    ConnectedPeers: fact(57, "ConnectedPeers", GAUGE, "connected_peers", "Connections with peers that are greeted");
    DroppedLogs: fact(58, "DroppedLogs", GAUGE, "dropped_logs_total", "Log messages that were lost");
    BusyPolling: fact(59, "BusyPolling", GAUGE, "busy_polling_enabled", "Whether workers ask for events without a pause");
    FailedResolutions: fact(60, "FailedResolutions", GAUGE, "failed_resolutions", "Names that resolvers did not find");
    TotalBytesOut: fact(61, "TotalBytesOut", GAUGE, "bytes_out_total", "Bytes that clients were sent");
    TotalSplicedBytesOut: fact(62, "TotalSplicedBytesOut", GAUGE, "spliced_bytes_out_total", "Those of them that the kernel moved through pipes; none are used");
    BytesOutRate: fact(63, "BytesOutRate", RATE, "bytes_out_rate", "Bytes a second that clients were sent since the last reading, at least a second before");
    DebugCommandsIssued: fact(64, "DebugCommandsIssued", GAUGE, "", "Commands 'debug dev' that were used");
    CumRecvLogs: fact(65, "CumRecvLogs", TOTAL, "recv_logs_total", "Log messages that were received");
    BuildInfo: fact(66, "Build info", PRODUCT, "build_info", "Version of this program");
    MemmaxBytes: fact(67, "Memmax_bytes", LIMIT, "max_memory_bytes", "Most memory of the process in bytes (-m), 0 for any amount");
    PoolAllocBytes: fact(68, "PoolAlloc_bytes", GAUGE, "pool_allocated_bytes", "Memory in pools in bytes; there are none, memory comes from the system");
    PoolUsedBytes: fact(69, "PoolUsed_bytes", GAUGE, "pool_used_bytes", "Memory of pools that is in use in bytes; there are none");
    StartTimeSec: fact(70, "Start_time_sec", TIME, "start_time_seconds", "When the process started, in seconds since the epoch");
    Tainted: fact(71, "Tainted", (Status, Gauge, Process), "", "Bits of what may cause unexpected behaviour: 0x4 for commands of the expert mode, 0x8 for those of the experimental mode, 0x20 for internal errors");
    TotalWarnings: fact(72, "TotalWarnings", TOTAL, "total_warnings", "Warnings of the start");
    MaxconnReached: fact(73, "MaxconnReached", TOTAL, "", "Client connections that took the last place of Maxconn");
    BootTimeMs: fact(74, "BootTime_ms", TIME, "", "Milliseconds from the start until the process served");
    NicedTasks: fact(75, "Niced_tasks", GAUGE, "", "Tasks with a priority; there are none");
    CurrStreams: fact(76, "CurrStreams", GAUGE, "", "Streams now");
    CumStreams: fact(77, "CumStreams", GAUGE, "", "Streams since the start");
    BlockedTrafficWarnings: fact(78, "BlockedTrafficWarnings", GAUGE, "", "Warnings of blocked workers; nothing warns of them");
    PatternsAdded: fact(79, "PatternsAdded", GAUGE, "patterns_added_total", "Entries of maps and ACLs that were added since the start");
    PatternsFreed: fact(80, "PatternsFreed", GAUGE, "patterns_freed_total", "Entries of maps and ACLs that were removed since the start");
    NbThreadGroups: fact(81, "NbThreadGroups", SETTING, "nb_thread_groups", "Groups of worker threads, always 1");
    Panics: fact(1000, "Panics", TOTAL, "internal_errors_total", "Internal errors, each of which ended what it happened on");
}

impl Fact {
    /// Its entry of the table.
    #[must_use]
    pub const fn field(self) -> &'static FactField {
        &FACTS[self as usize]
    }

    /// The name of its metric; None if it is not exported.
    #[must_use]
    pub fn metric(self) -> Option<String> {
        let metric = self.field().metric;
        (!metric.is_empty()).then(|| format!("haproxy_process_{metric}"))
    }

    /// The type of its metric. Some gauges of `show info` only grow; they are counters for
    /// Prometheus.
    #[must_use]
    pub fn form(self) -> Form {
        if self.field().metric.ends_with("_total") {
            Form::Counter
        } else {
            Form::Gauge
        }
    }

    /// The label with the value of a fact that is a text; the metric's value is then 1.
    #[must_use]
    pub const fn label(self) -> Option<&'static str> {
        match self {
            Fact::Node => Some("node"),
            Fact::Description => Some("desc"),
            Fact::BuildInfo => Some("version"),
            _ => None,
        }
    }
}

/// The facts of a process at a time.
#[derive(Clone, Debug)]
pub struct Facts {
    values: [Option<Value<'static>>; FACTS.len()],
}

impl Default for Facts {
    fn default() -> Self {
        Facts {
            values: [const { None }; FACTS.len()],
        }
    }
}

impl Facts {
    /// Sets a fact. Numbers that HAProxy prints with a fraction are [`Value::Float`].
    pub fn set(&mut self, fact: Fact, value: impl Into<Value<'static>>) {
        self.values[fact as usize] = Some(value.into());
    }

    /// The value of a fact; None if it does not exist here.
    #[must_use]
    pub fn get(&self, fact: Fact) -> Option<&Value<'static>> {
        self.values[fact as usize].as_ref()
    }

    /// All facts with a value, in the order of the table.
    pub fn filled(&self) -> impl Iterator<Item = (Fact, &Value<'static>)> {
        let pairs = Fact::ALL.iter().zip(&self.values);
        pairs.filter_map(|(fact, value)| Some((*fact, value.as_ref()?)))
    }

    /// The same without fractions, for `show info` without `float` and for the exporter.
    #[must_use]
    pub fn whole(mut self) -> Facts {
        for value in self.values.iter_mut().flatten() {
            if let Value::Float(number) = value {
                // Fractions are truncated, as in HAProxy; the conversion saturates.
                *value = Value::U32(*number as u32);
            }
        }
        self
    }

    /// One line per fact: `show info`, with `typed` and `desc`.
    #[must_use]
    pub fn lines(&self, typed: bool, described: bool) -> String {
        let mut out = String::new();
        for (fact, value) in self.filled() {
            let field = fact.field();
            let (origin, nature, scope) = field.tags;
            // Writing to memory does not fail.
            let _ = if typed {
                write!(
                    out,
                    "{}.{}.1:{}{}{}V:{}:",
                    field.place,
                    field.name,
                    origin.letter(),
                    nature.letter(),
                    scope.letter(),
                    value.kind(),
                )
            } else {
                write!(out, "{}: ", field.name)
            };
            let _ = write!(out, "{value}");
            if described {
                let _ = write!(out, ":\"{}\"", field.about);
            }
            out.push('\n');
        }
        out
    }

    /// An array of objects: `show info json`.
    #[must_use]
    pub fn json(&self) -> String {
        let mut out = String::from("[");
        for (fact, value) in self.filled() {
            if out.len() > 1 {
                out.push(',');
            }
            out.push('{');
            let field = fact.field();
            json::field(
                field.place as usize,
                field.name,
                field.tags,
                value,
                &mut out,
            );
        }
        out.push_str("]\n");
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_only_grow_and_names_are_unlike() {
        for pair in FACTS.windows(2) {
            assert!(pair[0].place < pair[1].place, "{}", pair[1].name);
        }
        for (place, field) in FACTS.iter().enumerate() {
            let before = &FACTS[..place];
            assert!(before.iter().all(|other| other.name != field.name));
            let is_new = |other: &FactField| other.metric != field.metric;
            assert!(field.metric.is_empty() || before.iter().all(is_new));
        }
    }

    #[test]
    fn a_fraction_is_shown_where_it_is_asked_for() {
        let mut facts = Facts::default();
        facts.set(Fact::SslFrontendSessionReusePct, 95.238_f64);
        facts.set(Fact::CurrSslConns, 3_u32);
        assert_eq!(
            facts.lines(false, false),
            "CurrSslConns: 3\nSslFrontendSessionReuse_pct: 95.238000\n"
        );
        assert_eq!(
            facts.whole().lines(true, false),
            "21.CurrSslConns.1:MGPV:u32:3\n37.SslFrontendSessionReuse_pct.1:MGPV:u32:95\n"
        );
    }
}
