//! Checks that need the whole configuration: missing parts, incompatible modes, settings without
//! effect. The texts and the conditions are HAProxy's, because `-dW` makes each warning fatal.

use super::{EXPERIMENTAL, Shared};
use crate::diagnostic::Severity;
use crate::keywords::options::{KEYWORDS, Setter};
use crate::keywords::{Places, State};
use crate::model::{
    BackendTarget, Bind, BindAddress, Config, LogSink, Mode, Proxy, ServerAddress, TcpAction,
};
use std::collections::HashMap;

/// Checks a configuration. If parts of it could not be built, only faults that do not depend on
/// them are reported.
pub fn whole(config: &Config, shared: &mut Shared<'_>) {
    ids(config, shared);
    log_targets(config, shared);
    let asked = shared.compiler.asked_contexts();
    let unknown = super::otel::check::unknown_contexts(config, asked);
    let unknown: Vec<String> = unknown.map(str::to_owned).collect();
    for name in unknown {
        let message =
            format!("otel.context({name}) : no filter 'opentelemetry' extracts such a context.");
        shared.diagnostics.add(Severity::Warning, None, message);
    }
    if shared.diagnostics.alerts() > 0 {
        return;
    }
    for (index, proxy) in config
        .proxies
        .iter()
        .enumerate()
        .filter(|(_, proxy)| !proxy.disabled && !proxy.is_removed && proxy.reserve_of.is_none())
    {
        backends(config, proxy, index, shared);
        frontend(proxy, shared);
        persistence(proxy, shared);
        stats_page(proxy, shared);
        match proxy.mode {
            Mode::Tcp => {
                timeouts(proxy, shared);
                if may_upgrade(config, proxy) {
                    upgrade(proxy, index, shared)
                } else {
                    http_only(proxy, index, shared)
                }
            }
            Mode::Http => timeouts(proxy, shared),
            Mode::Log if proxy.is_frontend => {
                let message = format!("{} : {}", title(proxy), log_frontend(proxy.is_backend));
                shared.diagnostics.add(Severity::Alert, None, message);
            }
            Mode::Log => log_backend(proxy, shared),
        }
    }
}

/// Log targets that are backends of another mode.
fn log_targets(config: &Config, shared: &mut Shared<'_>) {
    let proxies = config.proxies.iter().flat_map(|proxy| &proxy.log);
    let mut named: Vec<usize> = proxies
        .chain(&config.global.log)
        .chain(config.otel.iter().flat_map(|filter| &filter.log))
        .chain(config.log_forwards.iter().flat_map(|forward| &forward.log))
        .filter_map(|target| match target.to {
            LogSink::Backend(backend) => Some(backend),
            LogSink::Udp(_) | LogSink::Tcp { .. } | LogSink::Fd(_) | LogSink::Ring(_) => None,
        })
        .collect();
    named.sort_unstable();
    named.dedup();
    for backend in named {
        let proxy = &config.proxies[backend];
        if proxy.mode != Mode::Log {
            let name = &proxy.name;
            let message = format!("a log directive uses incompatible log backend '{name}'.");
            shared.diagnostics.add(Severity::Alert, None, message);
        }
    }
}

/// The message for `mode log` in a frontend or a `listen`.
pub fn log_frontend(is_listen: bool) -> String {
    if is_listen {
        super::not_yet("mode log of a listen")
    } else {
        "mode syslog is only applicable on proxies with backend capability.".to_owned()
    }
}

/// Settings that are incompatible with `mode log`.
fn log_backend(proxy: &Proxy, shared: &mut Shared<'_>) {
    let title = title(proxy);
    let rules = [
        (
            "tcp-request",
            proxy.tcp_request_connection.len()
                + proxy.tcp_request_session.len()
                + proxy.tcp_request_content.len(),
        ),
        ("tcp-response", proxy.tcp_response_content.len()),
    ];
    for (name, _) in rules.into_iter().filter(|(_, count)| *count > 0) {
        warn(
            shared,
            format!("Cannot use {name} rules with 'mode log' in {title}. They will be ignored."),
        );
    }
    let following = proxy.live_servers().skip(1);
    let mut pairs = proxy.live_servers().zip(following);
    let mixed = pairs.find(|((_, one), (_, next))| one.takes_datagrams != next.takes_datagrams);
    if let Some((_, (_, server))) = mixed {
        let message = format!(
            "log backend '{}': failed to initialize: cannot mix server types within a log backend, '{}' srv's network type differs from previous server.",
            proxy.name, server.name
        );
        shared.diagnostics.add(Severity::Alert, None, message);
    }
    if !proxy.balance.facts().works_in_logs {
        let message = format!(
            "in {title}: \"balance\" only supports 'roundrobin', 'random', 'sticky' and 'log-hash'."
        );
        shared.diagnostics.add(Severity::Alert, None, message);
    }
}

fn has_servers(proxy: &Proxy) -> bool {
    proxy.live_servers().next().is_some()
}

fn title(proxy: &Proxy) -> String {
    let kind = match (proxy.is_frontend, proxy.is_backend) {
        (true, false) => "frontend",
        (false, true) => "backend",
        _ => "proxy",
    };
    format!("{kind} '{}'", proxy.name)
}

fn warn(shared: &mut Shared<'_>, message: String) {
    shared.diagnostics.add(Severity::Warning, None, message);
}

fn backends(config: &Config, proxy: &Proxy, index: usize, shared: &mut Shared<'_>) {
    let default = proxy
        .default_backend
        .filter(|&target| target != index)
        .map(|target| (target, "as its default backend"));
    let rules = proxy
        .use_backend
        .iter()
        .filter_map(|rule| match rule.target {
            BackendTarget::Static(target) => Some((target, "in a 'use_backend' rule")),
            BackendTarget::Dynamic(_) => None,
        });
    for (target, how) in default.into_iter().chain(rules) {
        let backend = &config.proxies[target];
        // A TCP stream that reaches an HTTP backend continues as HTTP.
        let fits =
            backend.mode == proxy.mode || (proxy.mode, backend.mode) == (Mode::Tcp, Mode::Http);
        if proxy.is_frontend && !fits {
            let message = format!(
                "{} {} ({}) tries to use incompatible {} {} ({}) {how} (see 'mode').",
                mode(proxy.mode),
                title(proxy),
                proxy.origin,
                mode(backend.mode),
                title(backend),
                backend.origin
            );
            shared.diagnostics.add(Severity::Alert, None, message);
        }
    }
    let elsewhere = proxy.default_backend.is_some_and(|target| target != index);
    if elsewhere && proxy.is_backend && has_servers(proxy) {
        let name = &proxy.name;
        warn(
            shared,
            format!(
                "In proxy '{name}', the 'default_backend' rule always has precedence over the servers, which will never be used."
            ),
        );
    }
}

fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Tcp => "tcp",
        Mode::Http => "http",
        Mode::Log => "syslog",
    }
}

fn timeouts(proxy: &Proxy, shared: &mut Shared<'_>) {
    let timeout = &proxy.timeout;
    let client = proxy.is_frontend && timeout.client.is_none();
    let no_server =
        timeout.server.is_none() && (proxy.mode == Mode::Http || timeout.tunnel.is_none());
    let server = proxy.is_backend && has_servers(proxy) && (timeout.connect.is_none() || no_server);
    if client || server {
        let message = format!("missing timeouts for {}.", title(proxy));
        let diagnostics = shared.diagnostics.add(Severity::Warning, None, message);
        diagnostics
            .help(" | While not properly invalid, you will certainly encounter various problems");
        diagnostics
            .help(" | with such a configuration. To fix this, please ensure that all following");
        diagnostics.help(" | timeouts are set to a non-zero value: 'client', 'connect', 'server'.");
    }
}

fn frontend(proxy: &Proxy, shared: &mut Shared<'_>) {
    http3_on_tcp(proxy, shared);
    if proxy.is_frontend && proxy.live_binds().next().is_none() {
        warn(
            shared,
            format!(
                "{} has no 'bind' directive. Please declare it as a backend if this was intended.",
                title(proxy)
            ),
        );
    }
    if proxy.is_frontend && proxy.log.is_empty() && proxy.log_format.is_some() {
        warn(
            shared,
            format!(
                "log format ignored for {} since it has no log address.",
                title(proxy)
            ),
        );
    }
}

/// HTTP/3 is negotiated on TCP with an experimental protocol only (manual §5.1 `alpn`).
fn http3_on_tcp(proxy: &Proxy, shared: &mut Shared<'_>) {
    if proxy.mode != Mode::Http || shared.is_allowed(EXPERIMENTAL) {
        return;
    }
    let mut last = "";
    let on_tcp = |bind: &Bind| !matches!(bind.address, BindAddress::Quic(_));
    for (_, bind) in proxy.live_binds().filter(|(_, bind)| on_tcp(bind)) {
        let alpn = bind.tls.as_ref().and_then(|tls| tls.options.alpn.as_ref());
        let has_h3 = alpn.is_some_and(|names| names.iter().any(|name| name.starts_with(b"h3")));
        // The addresses of one line are reported once.
        let is_first = std::mem::replace(&mut last, &bind.origin) != bind.origin;
        if has_h3 && bind.proto.is_none() && is_first {
            let message = format!(
                "HTTP/3 on TCP listed via ALPN on frontend '{}' at [{}] relies on the experimental QMux protocol, must be allowed via a \
                 global 'expose-experimental-directives'.",
                proxy.name, bind.origin
            );
            shared.diagnostics.add(Severity::Alert, None, message);
        }
    }
}

/// Combinations that a statistics page does not allow.
fn stats_page(proxy: &Proxy, shared: &mut Shared<'_>) {
    let Some(page) = &proxy.stats else { return };
    let has_accounts = !page.users.is_empty() || page.realm.is_some();
    if has_accounts && !page.http_request.is_empty() {
        let message = format!(
            "proxy '{}': stats 'auth'/'realm' and 'http-request' can't be used at the same time.",
            proxy.name
        );
        shared.diagnostics.add(Severity::Alert, None, message);
    }
}

/// Persistence settings that do not work in this mode.
fn persistence(proxy: &Proxy, shared: &mut Shared<'_>) {
    let title = title(proxy);
    let is_tcp = proxy.mode == Mode::Tcp;
    if proxy.cookie.is_some() && is_tcp {
        let message = format!("cookie will be ignored for {title} (needs 'mode http').");
        warn(shared, message);
    }
    for (_, server) in proxy.live_servers() {
        if server.redir.is_some() && is_tcp {
            let message =
                format!("{title} : server cannot have cookie or redirect prefix in non-HTTP mode.");
            shared.diagnostics.add(Severity::Alert, None, message);
        }
        if server.cookie.is_some() && is_tcp {
            let message = format!(
                "{title} : ignoring cookie for server '{}' as HTTP mode is disabled.",
                server.name
            );
            warn(shared, message);
        }
        if proxy.rdp_cookie.is_some() && matches!(server.address, ServerAddress::PortOffset { .. })
        {
            let message = format!(
                "{title} : RDP cookie persistence will not work for server '{}' because it lacks an explicit port number.",
                server.name
            );
            warn(shared, message);
        }
    }
}

/// Whether streams of a TCP proxy may become HTTP: by a rule, or by their backend.
fn may_upgrade(config: &Config, proxy: &Proxy) -> bool {
    let is_http = |backend: usize| config.proxies[backend].mode == Mode::Http;
    let mut rules = proxy.tcp_request_content.iter();
    rules.any(|rule| matches!(rule.action, TcpAction::SwitchMode(_)))
        || proxy.default_backend.is_some_and(is_http)
        || proxy.use_backend.iter().any(|rule| match rule.target {
            BackendTarget::Static(backend) => is_http(backend),
            BackendTarget::Dynamic(_) => true,
        })
}

/// Warns of streams that become HTTP but have only the TCP servers of their own proxy.
fn upgrade(proxy: &Proxy, index: usize, shared: &mut Shared<'_>) {
    let elsewhere = proxy
        .default_backend
        .is_some_and(|backend| backend != index);
    if !elsewhere && proxy.use_backend.is_empty() && has_servers(proxy) {
        let kind = if proxy.is_frontend {
            "proxy"
        } else {
            "backend"
        };
        let message = format!(
            "Proxy '{}' : 'switch-mode http' configured for a tcp {kind} with no backend. Incoming connections upgraded to HTTP cannot be routed to TCP servers.",
            proxy.name
        );
        warn(shared, message);
    }
}

/// Settings in a TCP proxy that work only in mode HTTP.
fn http_only(proxy: &Proxy, index: usize, shared: &mut Shared<'_>) {
    let title = title(proxy);
    if proxy.balance.facts().needs_http && proxy.is_backend {
        warn(
            shared,
            format!(
                "Layer 7 hash not possible for {title} (needs 'mode http'). Falling back to round robin."
            ),
        );
    }
    if proxy.stats.is_some() {
        warn(
            shared,
            format!("'stats' statement ignored for {title} as it requires HTTP mode."),
        );
    }
    if proxy.monitor_uri.is_some() {
        warn(
            shared,
            format!("'monitor-uri' statement ignored for {title} as it requires HTTP mode."),
        );
    }
    // As in HAProxy, there is no warning for settings from `defaults`.
    let [requests, responses, answers] = shared.inherited_rules[index];
    let rules = [
        ("http-request", proxy.http_request.len() - requests),
        ("http-response", proxy.http_response.len() - responses),
        (
            "http-after-response",
            proxy.http_after_response.len() - answers,
        ),
        ("redirect", proxy.redirects.len()),
    ];
    for (name, _) in rules.into_iter().filter(|(_, count)| *count > 0) {
        warn(
            shared,
            format!("'{name}' rules ignored for {title} as they require HTTP mode."),
        );
    }
    let headers = [
        ("forwarded", proxy.forwarded.is_some()),
        ("forwardfor", proxy.forwardfor.is_some()),
        ("originalto", proxy.originalto.is_some()),
    ];
    for (name, _) in headers.into_iter().filter(|(_, is_set)| *is_set) {
        without_http(name, &title, shared);
    }
    let mut options = proxy.options;
    let frontend = if proxy.is_frontend {
        Places::FRONTEND
    } else {
        Places::NONE
    };
    let capability = if proxy.is_backend {
        frontend.or(Places::BACKEND)
    } else {
        frontend
    };
    for keyword in KEYWORDS {
        if let State::Supported(Setter::HttpSwitch(field)) = keyword.state
            && keyword.places.intersects(capability)
            && *field(&mut options)
        {
            without_http(keyword.name, &title, shared);
        }
    }
}

fn without_http(option: &str, title: &str, shared: &mut Shared<'_>) {
    warn(
        shared,
        format!("'option {option}' ignored for {title} as it requires HTTP mode."),
    );
}

/// Ids that two proxies share.
fn ids(config: &Config, shared: &mut Shared<'_>) {
    let mut known: HashMap<u32, &Proxy> = HashMap::new();
    let live = config.proxies.iter().filter(|proxy| !proxy.is_removed);
    for proxy in live {
        let first = *known.entry(proxy.id).or_insert(proxy);
        if !std::ptr::eq(first, proxy) {
            let message = format!(
                "{} reuses same custom id as {} (declared at {}).",
                title(proxy),
                title(first),
                first.origin
            );
            shared.diagnostics.add(Severity::Alert, None, message);
        }
    }
}
