//! Facts of the process: `show info` and the metrics of the process.

use config::model::Mode;
use sample::pattern::Reference;
use stats::process::{Fact, Facts};

use super::View;
use crate::ids::ProxyId;
use crate::shared::{ByteReading, Bytes, Count, FrontCount, Pace, RateLimit};

/// Facts of features that do not exist here; HAProxy shows 0 where a feature is unused.
const ABSENT: [Fact; 14] = [
    Fact::PoolAllocMb,
    Fact::PoolUsedMb,
    Fact::PoolFailed,
    Fact::Maxpipes,
    Fact::PipesUsed,
    Fact::PipesFree,
    Fact::CompressBpsRateLim,
    Fact::UnstoppableJobs,
    Fact::ActivePeers,
    Fact::ConnectedPeers,
    Fact::BusyPolling,
    Fact::FailedResolutions,
    Fact::NicedTasks,
    Fact::BlockedTrafficWarnings,
];

/// The same for numbers of 64 bits.
const ABSENT_WIDE: [Fact; 3] = [
    Fact::TotalSplicedBytesOut,
    Fact::PoolAllocBytes,
    Fact::PoolUsedBytes,
];

impl View<'_> {
    /// The facts of the process that are known here. The program adds those that only it knows.
    #[must_use]
    pub fn process(&self) -> Facts {
        let (config, shared) = (&self.runtime_config.config.global, self.shared);
        let process = &self.runtime_config.process;
        let now_ms = self.now.ms();
        let activity = shared.activity(now_ms);
        let uptime_ns = self.now.mono_ns.saturating_sub(process.started.mono_ns);
        let seconds = |ns: u64| ns as f64 / 1e9;
        let limit = |rate| shared.rate_limit(rate).unwrap_or(0);
        let mut facts = Facts::default();
        facts.set(Fact::Name, "HAProxy");
        facts.set(Fact::Nbthread, process.nbthread);
        facts.set(Fact::Nbproc, 1_u32);
        facts.set(Fact::ProcessNum, 1_u32);
        facts.set(Fact::Pid, process.pid);
        facts.set(Fact::Uptime, in_words(uptime_ns / 1_000_000_000));
        facts.set(Fact::UptimeSec, seconds(uptime_ns));
        facts.set(Fact::StartTimeSec, seconds(process.started.wall_ns));
        facts.set(Fact::MemmaxMb, (process.memory_max_bytes >> 20) as u32);
        facts.set(Fact::MemmaxBytes, process.memory_max_bytes);
        facts.set(Fact::UlimitN, process.descriptors as u32);
        facts.set(Fact::Maxsock, process.descriptors as u32);
        facts.set(Fact::Maxconn, shared.maxconn());
        facts.set(Fact::HardMaxconn, config.maxconn.unwrap_or(0));
        facts.set(Fact::CurrConns, shared.clients());
        facts.set(Fact::CumConns, activity.connections);
        facts.set(Fact::CumReq, activity.requests);
        self.limits_and_rates(&mut facts, now_ms);
        facts.set(Fact::MaxConnRate, activity.connection_rate_max);
        facts.set(Fact::ConnRateLimit, limit(RateLimit::Connections));
        facts.set(Fact::MaxSessRate, activity.session_rate_max);
        facts.set(Fact::SessRateLimit, limit(RateLimit::Sessions));
        let node = config.node.as_deref().unwrap_or(&process.hostname);
        facts.set(Fact::Node, node.to_owned());
        if let Some(description) = &config.description {
            facts.set(Fact::Description, description.to_string());
        }
        for fact in ABSENT {
            facts.set(fact, 0_u32);
        }
        for fact in ABSENT_WIDE {
            facts.set(fact, 0_u64);
        }
        facts.set(Fact::CumRecvLogs, shared.received_logs());
        let listeners = self.runtime_config.listener_count() as u32;
        facts.set(Fact::Listeners, listeners);
        facts.set(Fact::Jobs, shared.clients() + listeners);
        facts.set(Fact::Stopping, u32::from(shared.is_stopping()));
        facts.set(Fact::DroppedLogs, shared.dropped_logs());
        self.bytes(&mut facts);
        self.work(&mut facts);
        self.operation(&mut facts);
        let build = concat!("spangate-", env!("CARGO_PKG_VERSION"));
        facts.set(Fact::BuildInfo, build);
        facts.set(Fact::Panics, shared.panics());
        facts
    }

    /// Bytes that frontends sent and compressed, and their rates.
    fn bytes(&self, facts: &mut Facts) {
        let shared = self.shared;
        let (mut sent, mut compressed, mut made) = (0, 0, 0);
        for frontend in (0..self.runtime_config.config.proxies.len()).map(ProxyId::at) {
            let sums = shared.front_sums(frontend);
            sent += sums.get(FrontCount::BytesToClients);
            compressed += sums.get(FrontCount::CompressedIn);
            made += sums.get(FrontCount::CompressedOut);
        }
        facts.set(Fact::TotalBytesOut, sent);
        let rate = |what, total| {
            let reading = ByteReading {
                started_ns: self.runtime_config.process.started.mono_ns,
                now_ns: self.now.mono_ns,
                total,
            };
            shared.byte_rate(what, reading)
        };
        let narrow = |rate: u64| u32::try_from(rate).unwrap_or(u32::MAX);
        facts.set(Fact::BytesOutRate, rate(Bytes::Sent, sent));
        facts.set(
            Fact::CompressBpsIn,
            narrow(rate(Bytes::Compressed, compressed)),
        );
        facts.set(
            Fact::CompressBpsOut,
            narrow(rate(Bytes::AfterCompression, made)),
        );
    }

    /// What the workers have to do.
    fn work(&self, facts: &mut Facts) {
        let shared = self.shared;
        let streams = shared.streams_now(&self.runtime_config.config);
        let proxies = (0..self.runtime_config.config.proxies.len()).map(ProxyId::at);
        let servers = proxies.clone().flat_map(|proxy| self.servers.of(proxy));
        let connections = servers.map(|(server, _)| shared.count(Count::Connections(server)));
        let connections = shared.clients() + connections.sum::<u32>();
        facts.set(Fact::Tasks, connections + streams as u32);
        let waiting = shared.activities().iter().map(|own| own.waiting());
        facts.set(Fact::RunQueue, waiting.sum::<u32>());
        facts.set(Fact::IdlePct, shared.idle_percent(self.now));
        facts.set(Fact::CurrStreams, streams);
        let total = proxies.map(|proxy| match self.runtime_config.proxy(proxy).mode {
            Mode::Http => shared.event_total(Pace::Requests(proxy)),
            Mode::Tcp | Mode::Log => shared.event_total(Pace::Sessions(proxy)),
        });
        facts.set(Fact::CumStreams, total.sum::<u64>());
    }

    /// The start, and what operators did.
    fn operation(&self, facts: &mut Facts) {
        let shared = self.shared;
        let boot = shared.boot();
        facts.set(Fact::BootTimeMs, boot.ms);
        facts.set(Fact::TotalWarnings, boot.warnings);
        facts.set(Fact::MaxconnReached, shared.maxconn_reached());
        facts.set(Fact::DebugCommandsIssued, shared.debug_commands());
        let tainted = match shared.taints() {
            0 => "0".to_owned(),
            bits => format!("{bits:#x}"),
        };
        facts.set(Fact::Tainted, tainted);
        let patterns = &self.runtime_config.config.patterns;
        let sum = |of: fn(&Reference) -> u64| patterns.iter().map(|one| of(one)).sum::<u64>();
        facts.set(Fact::PatternsAdded, sum(Reference::added));
        facts.set(Fact::PatternsFreed, sum(Reference::removed));
        facts.set(Fact::NbThreadGroups, 1_u32);
    }

    fn limits_and_rates(&self, facts: &mut Facts, now_ms: u64) {
        let shared = self.shared;
        let rate = |pace| shared.exact_rate(pace, now_ms);
        let (handshakes, keys) = (rate(Pace::TlsClients), rate(Pace::TlsClientKeys));
        facts.set(Fact::ConnRate, rate(Pace::ProcessConnections));
        facts.set(Fact::SessRate, rate(Pace::ProcessSessions));
        facts.set(Fact::SslRate, handshakes);
        let limit = shared.rate_limit(RateLimit::TlsSessions).unwrap_or(0);
        facts.set(Fact::SslRateLimit, limit);
        facts.set(Fact::MaxSslRate, shared.peak_rate(Pace::TlsClients));
        facts.set(Fact::SslFrontendKeyRate, keys);
        facts.set(
            Fact::SslFrontendMaxKeyRate,
            shared.peak_rate(Pace::TlsClientKeys),
        );
        let reused = if keys < handshakes {
            100.0 * (1.0 - keys / handshakes)
        } else {
            0.0
        };
        facts.set(Fact::SslFrontendSessionReusePct, reused);
        facts.set(Fact::SslBackendKeyRate, rate(Pace::TlsServerKeys));
        facts.set(
            Fact::SslBackendMaxKeyRate,
            shared.peak_rate(Pace::TlsServerKeys),
        );
        let connections = shared.tls_connections();
        facts.set(Fact::MaxSslConns, connections.max());
        facts.set(Fact::CurrSslConns, connections.now());
        facts.set(Fact::CumSslConns, connections.total());
        let cache = self.runtime_config.tls().session_cache();
        facts.set(Fact::SslCacheLookups, cache.lookups());
        facts.set(Fact::SslCacheMisses, cache.misses());
    }
}

/// `1d 2h03m04s`
fn in_words(seconds: u64) -> String {
    let (days, hours) = (seconds / 86_400, seconds / 3_600 % 24);
    let (minutes, seconds) = (seconds / 60 % 60, seconds % 60);
    format!("{days}d {hours}h{minutes:02}m{seconds:02}s")
}
