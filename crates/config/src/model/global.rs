//! The whole configuration, and section `global` (manual §3).

use super::{Bind, ChecksTune, H2Tune, LogProfile, LogTarget, Mailers, Proxy, QuicTune, TlsGlobal};
use std::path::PathBuf;
use std::time::Duration;
use syntax::octets::Octets;

/// Everything that a running process needs.
#[derive(Debug, Default)]
pub struct Config {
    /// Section `global`.
    pub global: Global,
    /// Frontends, backends and listens in the order of the files. A `listen` is both. In a process
    /// that has read its configuration again, previous ones keep their places
    /// ([`crate::build::previous`]), and some may be [`Proxy::is_removed`].
    pub proxies: Vec<Proxy>,
    /// The named `defaults` sections.
    pub defaults: Vec<NamedDefaults>,
    /// Sections `log-profile`.
    pub log_profiles: Vec<LogProfile>,
    /// The number of variables of each scope.
    pub slots: sample::SlotCounts,
    /// The pattern sets of ACLs, maps and actions. They can be edited at run time.
    pub patterns: sample::References,
    /// Facts that expressions read and that are collected only for them.
    pub needs: sample::Needs,
    /// The names of variables.
    pub var_names: sample::vars::VarNames,
    /// The contexts that expressions read, by their slots in [`sample::ContextFacts`].
    pub contexts: Vec<String>,
    /// The files that contain rules, for [`sample::RulePlace`].
    pub files: Vec<String>,
    /// Filters `opentelemetry` of all proxies.
    pub otel: Vec<super::OtelFilter>,
    /// Sections `mailers`.
    pub mailers: Vec<Mailers>,
    /// Sections `resolvers`, and the one that is made from the system's configuration.
    pub resolvers: Vec<super::Resolvers>,
    /// Sections `peers`.
    pub peers: Vec<super::Peers>,
    /// Sections `log-forward`.
    pub log_forwards: Vec<super::LogForward>,
    /// Sections `ring`, after the ring that every process has.
    pub rings: Vec<super::Ring>,
    /// Stick tables, in the order of HAProxy's listings.
    pub tables: Vec<std::sync::Arc<tables::Table>>,
    /// Sections `collector`.
    pub collectors: Vec<super::CollectorSection>,
    /// Section `dashboard`.
    pub dashboard: Option<super::DashboardSection>,
}

/// A Linux capability that `setcap` names (manual §3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// Foreign source addresses (`usesrc`), binding to interfaces.
    NetRaw,
    /// The same, and packet marks.
    NetAdmin,
    /// Ports below 1024.
    NetBindService,
    /// Other network namespaces.
    SysAdmin,
}

/// Section `global` (manual §3).
#[derive(Debug, Default)]
pub struct Global {
    /// The lines that set defaults of servers, in words.
    pub server_lines: Vec<Vec<Octets>>,
    /// `dns-accept-family`
    pub dns_families: super::Families,
    /// Worker threads; None: the number of cores.
    pub nbthread: Option<u16>,
    /// Most connections of the whole process.
    pub maxconn: Option<u32>,
    /// Most memory of all compressors, in MiB.
    pub maxzlibmem_mib: Option<u32>,
    /// Most connections per second of the whole process.
    pub maxconnrate: Option<u32>,
    /// Most sessions per second of the whole process.
    pub maxsessrate: Option<u32>,
    /// `jwt.decrypt_alg_list`, `jwt.decrypt_enc_list`
    pub token_algorithms: sample::TokenAlgorithms,
    /// The targets of `log global`.
    pub log: Vec<LogTarget>,
    /// The program's name in syslog headers.
    pub log_tag: Option<Octets>,
    /// The host name in syslog headers; empty means the system's.
    pub log_send_hostname: Option<Octets>,
    /// Longest time of a soft stop.
    pub hard_stop_after: Option<Duration>,
    /// Time between the signal of a soft stop and the closing of the listeners.
    pub grace: Option<Duration>,
    /// The file for the process number.
    pub pidfile: Option<PathBuf>,
    /// This machine's name in statistics.
    pub node: Option<String>,
    /// Free text.
    pub description: Option<Octets>,
    /// Detach from the terminal.
    pub daemon: bool,
    /// `anonkey`: the key of dumps with hidden names; 0 for none.
    pub anon_key: u32,
    /// Settings of the master for its workers.
    pub master: MasterTune,
    /// Like `-dW`.
    pub zero_warning: bool,
    /// `insecure-fork-wanted`: the process may start others.
    pub allows_forks: bool,
    /// `insecure-setuid-wanted`: programs that the process starts may gain privileges.
    pub allows_setuid: bool,
    /// User to run as.
    pub uid: Option<u32>,
    /// Group to run as.
    pub gid: Option<u32>,
    /// `setcap`: the capabilities that the process keeps without root rights.
    pub capabilities: Vec<Capability>,
    /// `server-state-base`: the base directory of server state files.
    pub server_state_base: Option<PathBuf>,
    /// `server-state-file`
    pub server_state_file: Option<PathBuf>,
    /// The directory for `chroot`.
    pub chroot: Option<PathBuf>,
    /// File descriptors to request.
    pub ulimit_n: Option<u64>,
    /// `no strict-limits`: the process starts with lower limits than it asks for.
    pub tolerates_low_limits: bool,
    /// Upper limit of the requested file descriptors.
    pub fd_hard_limit: Option<u64>,
    /// Listeners of the runtime interface.
    pub stats_sockets: Vec<Bind>,
    /// A connection of the runtime interface closes after this much inactivity.
    pub stats_timeout: Option<Duration>,
    /// `stats-file`: the initial values of counters.
    pub stats_file: Option<PathBuf>,
    /// Most connections of the runtime interface.
    pub stats_maxconn: Option<u32>,
    /// `stats otlp`: the target of the metrics of statistics.
    pub stats_otlp: Option<Box<telemetry::settings::Settings>>,
    /// Variables of scope `proc` that are set at the start, in order.
    pub set_var: Vec<sample::Assignment>,
    /// Memory limits of variables.
    pub var_limits: sample::vars::VarLimits,
    /// `h1-case-adjust`: the spelling of header names when sent, by names in lower case.
    pub h1_case: std::collections::HashMap<Box<[u8]>, Box<[u8]>>,
    /// The statuses that stick tables count as errors and failures.
    pub counted_statuses: super::CountedStatuses,
    /// `tune.*`.
    pub tune: Tune,
    /// Health checks.
    pub checks: ChecksTune,
    /// HTTP/2.
    pub h2: H2Tune,
    /// QUIC.
    pub quic: QuicTune,
    /// TLS.
    pub tls: TlsGlobal,
}

/// Settings of the master of `-W` for its workers (manual §3.1 `master-worker`,
/// `mworker-max-reloads`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MasterTune {
    /// `no-exit-on-failure`: the other workers continue if one dies.
    pub stays_on_failure: bool,
    /// Most reloads that an old worker may survive.
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

/// The `tune.*` keywords with an effect.
#[derive(Debug)]
pub struct Tune {
    /// Level of compression, 1 to 9 (`tune.comp.maxlevel`).
    pub comp_level: u32,
    /// Most bytes of a message head, including the space of [`Tune::maxrewrite_bytes`].
    pub bufsize_bytes: usize,
    /// Space that is reserved for added headers.
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
    /// Kernel receive buffer of listeners' UDP sockets.
    pub rcvbuf_frontend_bytes: Option<usize>,
    /// Kernel receive buffer of UDP sockets to servers.
    pub rcvbuf_backend_bytes: Option<usize>,
    /// Kernel send buffer of client connections.
    pub sndbuf_client_bytes: Option<usize>,
    /// Kernel send buffer of server connections.
    pub sndbuf_server_bytes: Option<usize>,
    /// Kernel send buffer of listeners' UDP sockets.
    pub sndbuf_frontend_bytes: Option<usize>,
    /// Kernel send buffer of UDP sockets to servers.
    pub sndbuf_backend_bytes: Option<usize>,
    /// Largest payload of a command of the runtime interface.
    pub cli_payload_bytes: usize,
    /// Workers use each other's idle connections to servers.
    pub idle_pool_shared: bool,
    /// Most connections accepted at a time; None is unlimited.
    pub maxaccept: Option<u32>,
    /// Number of `track-sc` counters of a connection or stream.
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
            rcvbuf_frontend_bytes: None,
            rcvbuf_backend_bytes: None,
            sndbuf_client_bytes: None,
            sndbuf_server_bytes: None,
            sndbuf_frontend_bytes: None,
            sndbuf_backend_bytes: None,
            cli_payload_bytes: 128 << 10,
            idle_pool_shared: true,
            maxaccept: None,
            stick_counters: crate::build::tables::STICK_COUNTERS,
        }
    }
}

/// A named `defaults` section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedDefaults {
    /// Its name.
    pub name: String,
    /// The mode that it sets; None if it sets none.
    pub mode: Option<super::Mode>,
}
