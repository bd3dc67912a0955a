//! The configurations that lives run with, and what a check must know of each.

use std::sync::Arc;

use config::build::Settings;
use config::build::otel::files::bounded;
use config::build::previous::Previous;
use config::condition::BuildInfo;
use config::environment::Environment;
use config::load::{LoadOptions, load_with};
use config::model::{Config, HttpAction, HttpReuse, Mode};
use config::reader::Input;
use http::h2::Limits;
use spangate_proxy::{RuntimeConfig, Shared, Tls};

use super::held::Bounds;
use super::{filters, wire};

/// A configuration, loaded.
#[derive(Debug)]
pub struct Setup {
    pub name: &'static str,
    pub runtime_config: Arc<RuntimeConfig>,
    /// What it was loaded from.
    pub text: String,
    /// Each life has its own filters.
    pub is_traced: bool,
    pub is_tcp: bool,
    pub reuse: HttpReuse,
    /// Requests are logged before their answers are whole.
    pub logs_early: bool,
    /// Lines of the log begin with the request's path.
    pub logs_paths: bool,
    /// Requests whose path ends with `/1` are refused with 403.
    pub denies: bool,
    /// Requests go out again after failures, at most so often.
    pub sent_again_max: u32,
    /// A client's end aborts its request.
    pub aborts: bool,
    pub accepts_proxy: bool,
    /// The place of the proxy that has the servers.
    pub backend: usize,
    pub sends_proxy: bool,
    /// Both sides speak TLS.
    pub tls: bool,
    /// Clients speak HTTP/2.
    pub h2_clients: bool,
    /// Servers do.
    pub h2_servers: bool,
    /// Most clients speak HTTP/3.
    pub h3_clients: bool,
    /// Servers do.
    pub h3_servers: bool,
    /// They take early data.
    pub takes_early_data: bool,
    /// By server; 0 is unlimited.
    pub maxconn: Vec<u32>,
    /// `maxconn` of the frontend.
    pub clients_max: Option<u32>,
    pub keep_alive_ms: u64,
    pub bufsize: usize,
}

impl Setup {
    /// Some connections have several requests at a time.
    pub fn has_muxes(&self) -> bool {
        self.h2_clients || self.h2_servers || self.is_quic()
    }

    /// Some connections are those of QUIC.
    pub fn is_quic(&self) -> bool {
        self.h3_clients || self.h3_servers
    }

    /// How much may be held for a peer.
    pub fn bounds(&self) -> Bounds {
        let window = Limits::default().connection_window_bytes as usize;
        Bounds {
            bufsize: self.bufsize,
            client_window: window,
            server_window: window,
            tls: self.tls,
        }
    }
}

const DEFAULTS: &str = "
global
    tune.bufsize 2048
    tune.maxrewrite 512
defaults
    mode http
    no option abortonclose
    timeout client 10s
    timeout server 11s
    timeout connect 2s
    timeout http-request 5s
    timeout http-keep-alive 3s
    timeout queue 400s
    timeout tunnel 12s
    timeout client-fin 9s
    timeout server-fin 8s
    log stdout format raw local0
    log-format \"%HP %ST %tsc %B\"
";

/// Before the defaults, where there is QUIC: its secrets are those of each run.
const QUIC_GLOBAL: &str = "
global
    expose-experimental-directives
    cluster-secret sim
";

const ONE: &str = "
listen sim
    bind 127.0.0.1:80
    server one 127.0.0.1:81
";

const TWO: &str = "
    server one 127.0.0.1:81
    server two 127.0.0.1:82
";

/// By name: the lines of the only proxy's section after its defaults.
const TEXTS: &[(&str, &str)] = &[
    ("keep-alive", "no option abortonclose\n "),
    ("server-close", "option http-server-close"),
    ("close", "no option abortonclose\n option httpclose"),
    ("never", "http-reuse never"),
    ("aggressive", "http-reuse aggressive"),
    ("always", "no option abortonclose\n http-reuse always"),
    ("maxconn 1", "http-reuse always\n default-server maxconn 1"),
    (
        "maxconn 2 leastconn",
        "balance leastconn\n default-server maxconn 2",
    ),
    ("frontend maxconn", "maxconn 2"),
    (
        "two servers",
        "balance roundrobin\n option redispatch 1\n retries 3\n\ttwo",
    ),
    (
        "two full servers",
        "balance random\n default-server maxconn 1\n retries 2\n option redispatch\n\ttwo",
    ),
    (
        "cookies",
        "cookie S insert indirect nocache maxidle 10s\n default-server maxconn 1 cookie a\n retries 2\n option redispatch\n\ttwo",
    ),
    (
        "sent again",
        "retry-on all-retryable-errors 404\n retries 2\n option redispatch 1\n default-server maxconn 2\n\ttwo",
    ),
    ("buffer", "option http-buffer-request"),
    (
        "compression that nobody asks for",
        "compression algo gzip\n compression offload",
    ),
    (
        "bandwidth",
        "filter bwlim-in up default-limit 4m default-period 1s\n filter bwlim-out down default-limit 4m default-period 1s min-size 100\n http-request set-bandwidth-limit up\n http-request set-bandwidth-limit down",
    ),
    ("accept-proxy", "\taccept-proxy"),
    (
        "send-proxy",
        "default-server send-proxy\n http-reuse always",
    ),
    (
        "both proxies",
        "http-reuse always\n default-server send-proxy\n\taccept-proxy",
    ),
    (
        "maxconn 1, clients half-close",
        "no option abortonclose\n default-server maxconn 1",
    ),
    (
        "minconn",
        "http-reuse always\n fullconn 3\n default-server maxconn 3 minconn 1",
    ),
    (
        "hash of full servers",
        "balance hash path\n hash-type map-based wt6 avalanche\n default-server maxconn 1\n\ttwo",
    ),
    ("logasap", "option logasap"),
    (
        "pool",
        "http-reuse always\n default-server pool-max-conn 1 max-reuse 2",
    ),
    ("deny", "http-request deny if { path_end /1 }"),
    (
        "pauses and rewrites",
        "http-request pause 70 if { rand(2) eq 0 }\n http-request replace-path ^/(.*) /r/\\1 if FALSE\n http-request set-header x-rule %[path]\n http-response pause rand(2),mul(90)\n http-after-response set-header x-rule %[status]",
    ),
    (
        "queues by class",
        "http-reuse always\n default-server maxconn 1\n http-request set-priority-class rand(3)\n http-request set-priority-offset rand(500)",
    ),
    (
        "tcp to http",
        "mode tcp\ndefault_backend app\nbackend app\nmode http\n http-reuse always",
    ),
    (
        "inspect",
        "tcp-request inspect-delay 2s\n tcp-request content accept if { req.len ge 0 }",
    ),
    (
        "frontend and backend",
        "option http-server-close\ndefault_backend app\nbackend app\nhttp-reuse always\n default-server maxconn 2",
    ),
    (
        "tcp inspect",
        "mode tcp\n tcp-request inspect-delay 2s\n tcp-request content accept if { req.len ge 3 }",
    ),
    (
        "a filter",
        "no option abortonclose\n filter opentelemetry id all config otel.cfg\n http-request otel-group all asked if { rand(2) eq 0 }\n http-response otel-group all answered\n http-after-response otel-group all asked",
    ),
    (
        "a filter, retries",
        "filter opentelemetry id all config otel.cfg\n http-request pause 70 if { rand(2) eq 0 }\n http-request otel-group all asked\n http-response otel-group all answered\n retry-on all-retryable-errors\n retries 2\n option redispatch 1\n default-server maxconn 1\n\ttwo",
    ),
    (
        "filters of both sides",
        "filter opentelemetry id front config otel.cfg\n http-request otel-group front asked\ndefault_backend app\nbackend app\n http-reuse always\n filter opentelemetry id back config otel.cfg\n http-response otel-group back answered\n default-server maxconn 2",
    ),
    (
        "tracing",
        "option tracing errors slower 50ms retries\n http-request deny if { path_end /1 }\n retries 2\n option redispatch 1\n default-server maxconn 1\n\ttwo",
    ),
    (
        "tracing and a filter",
        "option tracing sample 50\ndefault_backend app\nbackend app\n filter opentelemetry id inner config otel.cfg\n http-reuse always\n retry-on all-retryable-errors\n retries 2",
    ),
    (
        "tcp to http, traced",
        "mode tcp\n filter opentelemetry id raw config otel.cfg\ndefault_backend app\nbackend app\nmode http\n filter opentelemetry id inner config otel.cfg\n http-reuse always",
    ),
    (
        "tcp, traced",
        "mode tcp\n filter opentelemetry id raw config otel.cfg\n tcp-request content otel-group raw asked",
    ),
    ("tls", "http-reuse always\ttls"),
    (
        "tls, close",
        "no option abortonclose\n option httpclose\ttls",
    ),
    (
        "tls, two servers",
        "balance roundrobin\n option redispatch 1\n retries 3\n default-server maxconn 1\ttls\ttwo",
    ),
    ("tls, buffer", "option http-buffer-request\ttls"),
    ("tcp over tls", "mode tcp\ttls"),
    ("h2 clients", "http-reuse always\th2 clients"),
    (
        "h2 clients, deny",
        "http-request deny if { path_end /1 }\th2 clients",
    ),
    (
        "h2 clients, two servers",
        "balance roundrobin\n option redispatch 1\n retries 3\n default-server maxconn 1\th2 clients\ttwo",
    ),
    (
        "h2 clients, buffer",
        "option http-buffer-request\th2 clients\ttls",
    ),
    (
        "h2 clients, pauses",
        "http-request pause 70 if { rand(2) eq 0 }\n http-response pause rand(2),mul(90)\th2 clients",
    ),
    ("h2 servers", "http-reuse always\th2 servers"),
    (
        "h2 servers, safe",
        "no option abortonclose\th2 servers\ttls",
    ),
    ("h2 both", "http-reuse always\th2 clients\th2 servers"),
    (
        "h2 both, tls",
        "http-reuse always\n retries 2\n default-server maxconn 3\th2 clients\th2 servers\ttls",
    ),
    ("tcp", "mode tcp"),
    ("tcp maxconn", "mode tcp\n default-server maxconn 1"),
    (
        "tcp proxies",
        "mode tcp\n default-server send-proxy\n\taccept-proxy",
    ),
];

/// The same of configurations with QUIC.
const QUIC_TEXTS: &[(&str, &str)] = &[
    (
        "h3 clients",
        "no option abortonclose\n http-reuse always\th3 clients",
    ),
    ("h3 clients, aborts", "http-reuse safe\th3 clients"),
    (
        "h3 clients, deny",
        "http-request deny if { path_end /1 }\th3 clients",
    ),
    (
        "h3 clients, two servers",
        "balance roundrobin\n option redispatch 1\n retries 3\n default-server maxconn 1\th3 clients\ttwo",
    ),
    (
        "h3 clients, buffer",
        "option http-buffer-request\th3 clients",
    ),
    (
        "h3 clients, pauses",
        "http-request pause 70 if { rand(2) eq 0 }\n http-response pause rand(2),mul(90)\th3 clients",
    ),
    (
        "h3 and h2 clients, h2 servers",
        "http-reuse always\th3 clients\th2 clients\th2 servers",
    ),
    ("h3 servers", "http-reuse always\th3 servers"),
    ("h3 servers, safe", "no option abortonclose\th3 servers"),
    (
        "h3 servers, h2 clients",
        "http-reuse always\th3 servers\th2 clients",
    ),
    ("h3 both", "http-reuse always\th3 clients\th3 servers"),
    (
        "h3 both, two servers",
        "balance roundrobin\n option redispatch 1\n retries 3\n default-server maxconn 3\th3 clients\th3 servers\ttwo",
    ),
    (
        "h3 both, sent again",
        "retry-on all-retryable-errors 404\n retries 2\n option redispatch 1\th3 clients\th3 servers\ttwo",
    ),
    ("h3 clients, maxconn", "maxconn 2\th3 clients"),
    (
        "h3 clients, retry",
        "quic-initial dgram-drop if { rand(8) eq 0 }\n quic-initial send-retry if { rand(2) eq 0 }\th3 clients",
    ),
    (
        "h3 both, bandwidth",
        "filter bwlim-in up default-limit 4m default-period 1s\n filter bwlim-out down default-limit 4m default-period 1s min-size 100\n http-request set-bandwidth-limit up\n http-request set-bandwidth-limit down\th3 clients\th3 servers",
    ),
    (
        "h3 both, a filter",
        "filter opentelemetry id all config otel.cfg\n http-request pause 70 if { rand(2) eq 0 }\n http-request otel-group all asked\n http-response otel-group all answered\n retry-on all-retryable-errors\n retries 2\n option redispatch 1\n default-server maxconn 1\th3 clients\th3 servers\ttwo",
    ),
    (
        "h3 both, cookies",
        "cookie S insert indirect nocache maxidle 10s\n default-server maxconn 1 cookie a\n retries 2\n option redispatch\th3 clients\th3 servers\ttwo",
    ),
    (
        "h3 servers, pool",
        "http-reuse always\n default-server pool-max-conn 1 max-reuse 2\th3 servers",
    ),
    ("h3 servers, never", "http-reuse never\th3 servers"),
    ("h3 servers, early", "http-reuse never\th3 servers\tearly"),
    (
        "h3 both, early",
        "retries 2\n option redispatch 1\th3 clients\th3 servers\tearly\ttwo",
    ),
    (
        "h3 both, compression",
        "compression algo gzip\n compression offload\th3 clients\th3 servers",
    ),
];

/// Server connections for which a process with few descriptors has room.
const FEW_SERVER_CONNS: u32 = 2;

/// All configurations without QUIC.
pub fn all() -> Vec<Setup> {
    setups(TEXTS)
}

/// Those with QUIC. The seeds of the others depend on their number.
pub fn with_quic() -> Vec<Setup> {
    setups(QUIC_TEXTS)
}

fn setups(texts: &[(&'static str, &str)]) -> Vec<Setup> {
    // Every other one has few descriptors.
    let conns_max = |place: usize| place.is_multiple_of(2).then_some(FEW_SERVER_CONNS);
    texts
        .iter()
        .enumerate()
        .map(|(place, (name, lines))| setup(name, lines, conns_max(place)))
        .collect()
}

fn setup(name: &'static str, lines: &str, server_conns_max: Option<u32>) -> Setup {
    let mut section = ONE.to_string();
    let mut lines = lines.to_string();
    if let Some(rest) = lines.strip_suffix("\ttwo") {
        section = section.replace("    server one 127.0.0.1:81\n", TWO);
        lines = rest.to_string();
    }
    if let Some(rest) = lines.strip_suffix("\taccept-proxy") {
        section = section.replace(":80", ":80 accept-proxy");
        lines = rest.to_string();
    }
    let tls = lines.strip_suffix("\ttls").map(str::to_owned);
    let is_tls = tls.is_some();
    if let Some(rest) = tls {
        let certificate = wire::certificate().display();
        section = section.replace(":80", &format!(":80 ssl crt {certificate}"));
        for port in ["127.0.0.1:81", "127.0.0.1:82"] {
            section = section.replace(port, &format!("{port} ssl verify none no-ssl-reuse"));
        }
        lines = rest;
    }
    let mut has = |suffix: &str| {
        let rest = lines.strip_suffix(suffix).map(str::to_owned);
        rest.map(|rest| lines = rest).is_some()
    };
    let takes_early_data = has("\tearly");
    let (h2_servers, h2_clients) = (has("\th2 servers"), has("\th2 clients"));
    let (h3_servers, h3_clients) = (has("\th3 servers"), has("\th3 clients"));
    if h3_clients {
        let certificate = wire::certificate().display();
        let line = format!("    bind quic4@127.0.0.1:443 ssl crt {certificate} alpn h3\n");
        section = section.replace("    server one", &format!("{line}    server one"));
    }
    if h3_servers {
        for port in ["127.0.0.1:81", "127.0.0.1:82"] {
            let sessions = if takes_early_data {
                "allow-0rtt"
            } else {
                "no-ssl-reuse"
            };
            let line = format!("quic4@{port} ssl verify none {sessions}");
            section = section.replace(port, &line);
        }
    }
    if h2_clients {
        section = section.replace(":80", ":80 proto h2");
    }
    if h2_servers {
        for port in ["127.0.0.1:81", "127.0.0.1:82"] {
            section = section.replace(port, &format!("{port} proto h2"));
        }
    }
    let section = section.replace("    server one", &format!("{lines}\n    server one"));
    let section = if section.contains("backend app") {
        section.replace("listen sim", "frontend sim")
    } else {
        section
    };
    let text = if h3_clients || h3_servers {
        format!("{QUIC_GLOBAL}{DEFAULTS}{section}")
    } else {
        format!("{DEFAULTS}{section}")
    };
    let mut runtime_config = load_running(&text);
    runtime_config.process.server_conns_max = server_conns_max;
    let runtime_config = Arc::new(runtime_config);
    let (proxy, back) = (
        &runtime_config.config.proxies[0],
        runtime_config.config.proxies.last(),
    );
    let back = back.unwrap_or(proxy);
    let backend = runtime_config.config.proxies.len() - 1;
    Setup {
        name,
        is_traced: !runtime_config.config.otel.is_empty(),
        text,
        is_tcp: back.mode == Mode::Tcp,
        reuse: back.http_reuse,
        logs_early: proxy.options.logasap,
        logs_paths: proxy.mode == Mode::Http,
        denies: proxy
            .http_request
            .iter()
            .any(|rule| matches!(rule.action, HttpAction::Deny(_))),
        sent_again_max: if back.retry_on.keeps_requests() {
            back.retries
        } else {
            0
        },
        aborts: proxy.aborts_on_close(),
        backend,
        accepts_proxy: proxy.binds[0].accept_proxy,
        sends_proxy: back.servers[0].send_proxy.is_on(),
        maxconn: back.servers.iter().map(|server| server.maxconn).collect(),
        clients_max: proxy.maxconn,
        keep_alive_ms: 3000,
        tls: is_tls,
        h2_clients,
        h2_servers,
        h3_clients,
        h3_servers,
        takes_early_data,
        bufsize: runtime_config.config.global.tune.bufsize_bytes,
        runtime_config,
    }
}

/// Loads a configuration to be shared.
pub fn runtime_config(text: &str) -> Arc<RuntimeConfig> {
    Arc::new(load_running(text))
}

/// Loads a configuration.
pub fn load_running(text: &str) -> RuntimeConfig {
    let (config, tls) = load(text, None);
    spangate_proxy::prepare(config, tls, spangate_proxy::Process::default())
}

/// Loads a configuration that follows another one in a running process.
pub fn load_after(text: &str, before: &Arc<RuntimeConfig>, shared: &Shared) -> RuntimeConfig {
    let previous = Arc::new(before.previous(shared));
    let (config, tls) = load(text, Some(previous));
    spangate_proxy::prepare_after(before, config, tls, net::Now::default())
}

fn load(text: &str, previous: Option<Arc<Previous>>) -> (Config, Tls) {
    let input = Input {
        name: "sim.cfg".into(),
        text: text.as_bytes().to_vec(),
    };
    let build = BuildInfo::default();
    let options = LoadOptions {
        build: &build,
        settings: Settings {
            previous,
            ..Settings::default()
        },
        zero_warning: false,
    };
    let read_file = |name: &str| filters::file(name).or_else(|_| bounded(name));
    match load_with(&[input], options, &mut Environment::new(), &read_file) {
        Ok((config, _)) => {
            let (tls, findings) = Tls::load(
                &config,
                std::time::Duration::from_secs(1_800_000_000),
                tls::Passphrases::new(&mut |_| Err(String::new())),
            );
            assert!(!findings.iter().any(|found| found.is_fatal), "{findings:?}");
            (config, tls)
        }
        Err(diagnostics) => panic!("{text}\n{diagnostics:?}"),
    }
}
