//! Facts of the process: `show info` and the metrics of the process.

use stats::process::{Fact, Facts};

use super::View;
use crate::ids::ProxyId;
use crate::shared::{FrontCount, Pace, RateLimit};

/// Facts of features that do not exist here; HAProxy shows 0 where a feature is unused.
const ABSENT: [Fact; 11] = [
    Fact::Maxpipes,
    Fact::PipesUsed,
    Fact::PipesFree,
    Fact::CompressBpsIn,
    Fact::CompressBpsOut,
    Fact::CompressBpsRateLim,
    Fact::UnstoppableJobs,
    Fact::ActivePeers,
    Fact::ConnectedPeers,
    Fact::BusyPolling,
    Fact::FailedResolutions,
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
        facts.set(Fact::CumRecvLogs, shared.received_logs());
        let listeners = self.runtime_config.listener_count() as u32;
        facts.set(Fact::Listeners, listeners);
        facts.set(Fact::Jobs, shared.clients() + listeners);
        facts.set(Fact::Stopping, u32::from(shared.is_stopping()));
        facts.set(Fact::DroppedLogs, shared.dropped_logs());
        let frontends = (0..self.runtime_config.config.proxies.len()).map(ProxyId::at);
        let bytes_out = frontends.map(|frontend| {
            let sums = shared.front_sums(frontend);
            sums.get(FrontCount::BytesToClients)
        });
        facts.set(Fact::TotalBytesOut, bytes_out.sum::<u64>());
        let build = concat!("spangate-", env!("CARGO_PKG_VERSION"));
        facts.set(Fact::BuildInfo, build);
        facts.set(Fact::Panics, shared.panics());
        facts
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
