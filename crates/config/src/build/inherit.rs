//! Inheritance from `defaults` sections (manual §4). A `defaults` is built once. The sections that
//! start from it share its rules; everything else is copied. HAProxy evaluates those rules in the
//! using section, so each must be valid in every section that uses it.

use super::http_rules::MissingCapture;
use super::line::{Fault, Line};
use super::proxy::ProxyBuild;
use super::server::Preset;
use super::{Shared, health, logging, mail, otel, tls};
use crate::model::{Proxy, ServerOptions};
use crate::tree::Section;
use std::collections::HashMap;

/// A `defaults` section, built.
pub struct Template {
    proxy: Proxy,
    default_server: ServerOptions,
    default_tls: Option<tls::server::ServerWords>,
    named_defaults: HashMap<String, Preset>,
    logging: logging::Pending,
    checks: health::Pending,
    email_alert: mail::Pending,
    tracing: Option<otel::tracing::Tracing>,
    filters: Vec<otel::Declared>,
    missing_backend: Option<Box<Fault>>,
    missing_captures: Vec<MissingCapture>,
    /// The compiler's number for the section.
    stand_in: u32,
    rules: Rules,
}

impl Template {
    /// The result of a `defaults` section; `stand_in` is its number in the compiler.
    pub fn new(build: ProxyBuild<'_, '_>, stand_in: u32) -> Template {
        Template {
            rules: Rules::of(&build.proxy),
            proxy: build.proxy,
            default_server: build.default_server,
            default_tls: build.default_tls,
            named_defaults: build.named_defaults,
            logging: build.logging,
            checks: build.checks,
            email_alert: build.email_alert,
            tracing: build.tracing,
            filters: build.filters,
            missing_backend: build.missing_backend,
            missing_captures: build.missing_captures,
            stand_in,
        }
    }

    /// Records that a section starts from it, and refuses the section if that is not allowed.
    /// `defaults` is the section of this template.
    pub fn used_by(&mut self, section: &Section, defaults: &Section, shared: &mut Shared<'_>) {
        self.rules.used_by(section, defaults, shared);
    }

    /// Reports faults that do not depend on the using section, after all sections were built.
    pub fn finish(self, shared: &mut Shared<'_>) {
        // Rules of backends use the capture slots of the frontend from which a request came.
        if self.rules.user != Some(Kind::Backend) {
            let missing = self.missing_captures.into_iter();
            for fault in missing.filter_map(|missing| missing.fault(&self.proxy)) {
                shared.settle(Err(fault.into()));
            }
        }
    }
}

impl ProxyBuild<'_, '_> {
    /// Copies the settings that a `defaults` provides for a section of this kind.
    pub fn start_from(&mut self, template: &Template) {
        let compiler = &mut self.shared.compiler;
        compiler.inherit_needs(template.stand_in, self.number);
        self.default_server = template.default_server.clone();
        self.default_tls = template.default_tls.clone();
        self.named_defaults.clone_from(&template.named_defaults);
        self.filters.clone_from(&template.filters);
        self.logging = template.logging.for_section(self.proxy.is_frontend);
        self.checks = template.checks.for_section();
        self.email_alert.clone_from(&template.email_alert);
        let Proxy {
            // Specific to a section, or not allowed in `defaults`.
            name: _,
            reserve_of: _,
            table: _,
            bandwidth_limits: _,
            stick_request: _,
            stick_response: _,
            is_frontend: _,
            is_backend: _,
            id: _,
            state_file_name: _,
            description: _,
            guid: _,
            origin: _,
            unpublished: _,
            is_removed: _,
            is_named: _,
            binds: _,
            servers: _,
            use_backend: _,
            use_server: _,
            persist_rules: _,
            monitor_fail: _,
            force_be_switch: _,
            capture_cookie: _,
            redirects: _,
            otel: _,
            check: _,
            email_alert: _,
            // Compiled at the end of each section.
            log_format: _,
            log_format_sd: _,
            error_log_format: _,
            unique_id_format: _,
            disabled,
            mode,
            state_from,
            maxconn,
            session_srv_conns_max,
            rate_limit_sessions,
            backlog,
            default_backend,
            default_backend_place,
            monitor_uri,
            monitor_uri_place,
            balance,
            hash_type,
            default_server_lines,
            hash_affinity,
            hash_balance_factor,
            http_reuse,
            retries,
            retry_on,
            retry_budget,
            cookie,
            dynamic_cookie_key,
            rdp_cookie,
            send_name_header,
            max_keep_alive_queue,
            fullconn,
            source,
            timeout,
            options,
            connection_mode,
            forwardfor,
            originalto,
            forwarded,
            log,
            log_steps,
            log_tag,
            unique_id_header,
            error_pages,
            compression,
            stats,
            http_request,
            http_response,
            http_after_response,
            quic_initial,
            tcp_request_connection,
            tcp_request_session,
            tcp_request_content,
            tcp_response_content,
            tcp_request_inspect_delay,
            tcp_response_inspect_delay,
            capture_request,
            capture_response,
        } = &template.proxy;
        let proxy = &mut self.proxy;
        proxy.disabled = *disabled;
        proxy.mode = *mode;
        proxy.timeout = *timeout;
        proxy.options = *options;
        proxy.connection_mode = *connection_mode;
        proxy.forwardfor.clone_from(forwardfor);
        proxy.originalto.clone_from(originalto);
        proxy.log.clone_from(log);
        proxy.log_tag.clone_from(log_tag);
        proxy.error_pages.clone_from(error_pages);
        proxy.compression.clone_from(compression);
        proxy.stats.clone_from(stats);
        self.stats_inherited = stats.is_some();
        proxy.http_request.clone_from(http_request);
        proxy.http_response.clone_from(http_response);
        proxy.http_after_response.clone_from(http_after_response);
        proxy.tcp_request_content.clone_from(tcp_request_content);
        proxy.tcp_request_inspect_delay = *tcp_request_inspect_delay;
        proxy.tcp_response_inspect_delay = *tcp_response_inspect_delay;
        if proxy.is_frontend {
            proxy.maxconn = *maxconn;
            proxy.session_srv_conns_max = *session_srv_conns_max;
            proxy.rate_limit_sessions = *rate_limit_sessions;
            proxy.backlog = *backlog;
            proxy.default_backend = *default_backend;
            proxy.default_backend_place = *default_backend_place;
            proxy.monitor_uri.clone_from(monitor_uri);
            proxy.monitor_uri_place = *monitor_uri_place;
            proxy.log_steps.clone_from(log_steps);
            proxy.unique_id_header.clone_from(unique_id_header);
            proxy.quic_initial.clone_from(quic_initial);
            proxy
                .tcp_request_connection
                .clone_from(tcp_request_connection);
            proxy.tcp_request_session.clone_from(tcp_request_session);
            proxy.capture_request.clone_from(capture_request);
            proxy.capture_response.clone_from(capture_response);
            self.missing_backend.clone_from(&template.missing_backend);
            self.tracing.clone_from(&template.tracing);
        }
        if proxy.is_backend {
            proxy.state_from = *state_from;
            proxy.balance.clone_from(balance);
            proxy.hash_type = *hash_type;
            proxy.default_server_lines.clone_from(default_server_lines);
            proxy.hash_affinity = *hash_affinity;
            proxy.hash_balance_factor = *hash_balance_factor;
            proxy.http_reuse = *http_reuse;
            proxy.retries = *retries;
            proxy.retry_on.clone_from(retry_on);
            proxy.retry_budget = *retry_budget;
            proxy.cookie.clone_from(cookie);
            proxy.dynamic_cookie_key.clone_from(dynamic_cookie_key);
            proxy.rdp_cookie.clone_from(rdp_cookie);
            proxy.send_name_header.clone_from(send_name_header);
            proxy.max_keep_alive_queue = *max_keep_alive_queue;
            proxy.fullconn = *fullconn;
            proxy.source.clone_from(source);
            proxy.forwarded.clone_from(forwarded);
            proxy.tcp_response_content.clone_from(tcp_response_content);
        }
        self.inherited_rules = [
            http_request.len(),
            http_response.len(),
            http_after_response.len(),
        ];
    }
}

/// The rules of a `defaults` section, and the kind of its users.
#[derive(Clone, Copy, Debug, Default)]
struct Rules {
    any: bool,
    captures: bool,
    /// `tcp-request connection` or `session`.
    early: bool,
    /// `tcp-response content`
    answers: bool,
    user: Option<Kind>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Defaults,
    Frontend,
    Backend,
    Listen,
}

impl Rules {
    /// The rules of a `defaults` that was just built.
    fn of(defaults: &Proxy) -> Rules {
        let early =
            !defaults.tcp_request_connection.is_empty() || !defaults.tcp_request_session.is_empty();
        let answers = !defaults.tcp_response_content.is_empty();
        let others = !defaults.http_request.is_empty()
            || !defaults.http_response.is_empty()
            || !defaults.http_after_response.is_empty()
            || !defaults.tcp_request_content.is_empty();
        Rules {
            any: early || answers || others,
            captures: !defaults.capture_request.is_empty() || !defaults.capture_response.is_empty(),
            early,
            answers,
            user: None,
        }
    }

    /// Records that a section starts from these rules, and refuses it if that is not allowed.
    /// `defaults` is the section of the rules.
    fn used_by(&mut self, section: &Section, defaults: &Section, shared: &mut Shared<'_>) {
        if !self.any {
            return;
        }
        let kind = match section.kind() {
            "defaults" => Kind::Defaults,
            "frontend" => Kind::Frontend,
            "backend" => Kind::Backend,
            _ => Kind::Listen,
        };
        let other = matches!(self.user, Some(user) if user != kind);
        let what = match kind {
            Kind::Defaults | Kind::Listen | Kind::Backend if self.captures => {
                "backend or defaults sections cannot inherit from a defaults section defining captures"
            }
            Kind::Defaults => {
                "a defaults section cannot inherit from a defaults section defining TCP/HTTP rules"
            }
            Kind::Listen => {
                "a listen section cannot inherit from a defaults section defining TCP/HTTP rules"
            }
            _ if other => {
                "frontends and backends cannot inherit from the same defaults section if it defines TCP/HTTP rules"
            }
            Kind::Backend if self.early => {
                "a backend section cannot inherit from a defaults section defining 'tcp-request connection' or 'tcp-request session' rules"
            }
            Kind::Frontend if self.answers => {
                "a frontend section cannot inherit from a defaults section defining 'tcp-response content' rules"
            }
            _ => {
                self.user = Some(kind);
                return;
            }
        };
        let message = match kind {
            Kind::Listen => format!("{what}."),
            _ => {
                let place = defaults.header.span().place();
                format!("{what} (defaults section at {place}).")
            }
        };
        shared.settle(Err(Line::new(&section.header).fault(0, message)));
    }
}
