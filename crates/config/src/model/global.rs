//! The whole configuration, and section `global` (manual §3).

use super::{Bind, ChecksTune, H2Tune, LogProfile, LogTarget, Mailers, Proxy, TlsGlobal};
use std::path::PathBuf;
use std::time::Duration;
use syntax::octets::Octets;

/// Everything one run of the process needs.
#[derive(Debug, Default)]
pub struct Config {
    /// Section `global`.
    pub global: Global,
    /// Frontends, backends and listens in the order of the files. A `listen` is both.
    pub proxies: Vec<Proxy>,
    /// The sections `defaults` that have a name.
    pub defaults: Vec<NamedDefaults>,
    /// Sections `log-profile`.
    pub log_profiles: Vec<LogProfile>,
    /// How many variables of each scope the expressions name.
    pub slots: sample::SlotCounts,
    /// The pattern sets that ACLs, maps and actions name. They can be edited while traffic runs.
    pub patterns: sample::References,
    /// What they read that is not at hand otherwise.
    pub needs: sample::Needs,
    /// The names of variables.
    pub var_names: sample::vars::VarNames,
    /// The contexts that expressions ask for, by their slots in [`sample::ContextFacts`].
    pub contexts: Vec<String>,
    /// The files that rules stand in: what [`sample::RulePlace`] counts.
    pub files: Vec<String>,
    /// Filters `opentelemetry` of all proxies.
    pub otel: Vec<super::OtelFilter>,
    /// Sections `mailers`.
    pub mailers: Vec<Mailers>,
    /// Stick tables, in the order of HAProxy's listings.
    pub tables: Vec<std::sync::Arc<tables::Table>>,
    /// Sections `collector`.
    pub collectors: Vec<super::CollectorSection>,
    /// Section `dashboard`.
    pub dashboard: Option<super::DashboardSection>,
}

/// A capability of Linux that `setcap` names (manual §3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// Foreign source addresses of connections (`usesrc`), interfaces of sockets.
    NetRaw,
    /// The same, and marks of packets.
    NetAdmin,
    /// Ports below 1024.
    NetBindService,
    /// Other network namespaces.
    SysAdmin,
}

/// Section `global` (manual §3).
#[derive(Debug, Default)]
pub struct Global {
    /// The lines that say what servers start from, in words.
    pub server_lines: Vec<Vec<Octets>>,
    /// Worker threads; the number of cores where none.
    pub nbthread: Option<u16>,
    /// Connections of the whole process.
    pub maxconn: Option<u32>,
    /// Memory of all compressors, MiB.
    pub maxzlibmem_mib: Option<u32>,
    /// Connections a second of the whole process.
    pub maxconnrate: Option<u32>,
    /// Sessions a second of the whole process.
    pub maxsessrate: Option<u32>,
    /// `jwt.decrypt_alg_list`, `jwt.decrypt_enc_list`
    pub token_algorithms: sample::TokenAlgorithms,
    /// What `log global` stands for.
    pub log: Vec<LogTarget>,
    /// The program's name in syslog headers.
    pub log_tag: Option<Octets>,
    /// The host name in syslog headers; empty means the system's.
    pub log_send_hostname: Option<Octets>,
    /// Longest time of a soft stop.
    pub hard_stop_after: Option<Duration>,
    /// Between a soft stop's signal and the closing of the listeners.
    pub grace: Option<Duration>,
    /// File that gets the process's number.
    pub pidfile: Option<PathBuf>,
    /// This machine's name in statistics.
    pub node: Option<String>,
    /// Free text.
    pub description: Option<Octets>,
    /// Detach from the terminal.
    pub daemon: bool,
    /// `anonkey`: the key of dumps that hide names; 0 for none.
    pub anon_key: u32,
    /// What a master does with its workers.
    pub master: MasterTune,
    /// As `-dW`.
    pub zero_warning: bool,
    /// User to run as.
    pub uid: Option<u32>,
    /// Group to run as.
    pub gid: Option<u32>,
    /// `setcap`: what the process may still do when it is not root.
    pub capabilities: Vec<Capability>,
    /// `server-state-base`: where names of files of server states are relative to.
    pub server_state_base: Option<PathBuf>,
    /// `server-state-file`
    pub server_state_file: Option<PathBuf>,
    /// Directory to confine the process to.
    pub chroot: Option<PathBuf>,
    /// File descriptors to ask for.
    pub ulimit_n: Option<u64>,
    /// Upper bound of the file descriptors to ask for.
    pub fd_hard_limit: Option<u64>,
    /// Listeners of the runtime interface.
    pub stats_sockets: Vec<Bind>,
    /// Inactivity after which a connection of the runtime interface is closed.
    pub stats_timeout: Option<Duration>,
    /// `stats-file`: counters to start with.
    pub stats_file: Option<PathBuf>,
    /// Connections of the runtime interface.
    pub stats_maxconn: Option<u32>,
    /// `stats otlp`: where the metrics of statistics go.
    pub stats_otlp: Option<Box<telemetry::settings::Settings>>,
    /// Variables of scope `proc` to set at start, in order.
    pub set_var: Vec<sample::Assignment>,
    /// What variables may take.
    pub var_limits: sample::vars::VarLimits,
    /// `h1-case-adjust`: by names in lower case, what they are sent as.
    pub h1_case: std::collections::HashMap<Box<[u8]>, Box<[u8]>>,
    /// What stick tables count as errors and failures.
    pub counted_statuses: super::CountedStatuses,
    /// `tune.*`.
    pub tune: Tune,
    /// Health checks.
    pub checks: ChecksTune,
    /// HTTP/2.
    pub h2: H2Tune,
    /// TLS.
    pub tls: TlsGlobal,
}

/// What the master of `-W` does with its workers (manual §3.1 `master-worker`, `mworker-max-reloads`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MasterTune {
    /// `no-exit-on-failure`: the other workers go on when one dies.
    pub stays_on_failure: bool,
    /// Reloads that an old worker may survive.
    pub reloads_max: u32,
}

impl Default for MasterTune {
    fn default() -> Self {
        MasterTune {
            stays_on_failure: false,
            reloads_max: 50,
        }
    }
}

/// The `tune.*` keywords that mean something here.
#[derive(Debug)]
pub struct Tune {
    /// Level of compression, 1 to 9 (`tune.comp.maxlevel`).
    pub comp_level: u32,
    /// Largest head, with the space of [`Tune::maxrewrite_bytes`].
    pub bufsize_bytes: usize,
    /// Space kept for added headers.
    pub maxrewrite_bytes: usize,
    /// Most headers in a message.
    pub http_maxhdr: usize,
    /// Longest captured cookie, name and value.
    pub http_cookielen_bytes: usize,
    /// Longest request line in a log.
    pub http_logurilen_bytes: usize,
    /// Kernel receive buffer of client connections.
    pub rcvbuf_client_bytes: Option<usize>,
    /// Kernel receive buffer of server connections.
    pub rcvbuf_server_bytes: Option<usize>,
    /// Kernel send buffer of client connections.
    pub sndbuf_client_bytes: Option<usize>,
    /// Kernel send buffer of server connections.
    pub sndbuf_server_bytes: Option<usize>,
    /// Largest payload of a command of the runtime interface.
    pub cli_payload_bytes: usize,
    /// Workers use each other's idle connections to servers.
    pub idle_pool_shared: bool,
    /// Connections accepted at once; none is unlimited.
    pub maxaccept: Option<u32>,
    /// Counters of `track-sc` that a connection or stream has.
    pub stick_counters: u16,
}

impl Default for Tune {
    fn default() -> Self {
        Tune {
            bufsize_bytes: 16384,
            comp_level: 1,
            maxrewrite_bytes: 1024,
            http_maxhdr: 101,
            http_cookielen_bytes: 63,
            http_logurilen_bytes: 1023,
            rcvbuf_client_bytes: None,
            rcvbuf_server_bytes: None,
            sndbuf_client_bytes: None,
            sndbuf_server_bytes: None,
            cli_payload_bytes: 128 << 10,
            idle_pool_shared: true,
            maxaccept: None,
            stick_counters: crate::build::tables::STICK_COUNTERS,
        }
    }
}

/// A section `defaults` that has a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedDefaults {
    /// Its name.
    pub name: String,
    /// The mode that it writes; none where it writes none.
    pub mode: Option<super::Mode>,
}
