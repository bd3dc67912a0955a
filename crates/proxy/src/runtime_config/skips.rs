//! The parts of a request's way that have nothing to do.
//!
//! Most proxies have no rules, no filters and no captures. What that means for the phases of a
//! stream is determined when the configuration is loaded, so that a plain stream passes several
//! phases with one branch.

use config::model::{NamePolicy, Proxy};

use super::RuntimeConfig;
use crate::ids::ProxyId;
use crate::rules::RuleSet;

/// The parts that an HTTP stream skips: a bit for each. A stream has those of its frontend; once
/// its backend is chosen, those that both have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Skips(u8);

impl Skips {
    /// The frontend: from the head of the request to the choice of the backend.
    pub const FRONTEND_REQUEST: Skips = Skips(1);
    /// From the choice of the backend to the preparation of the request.
    pub const BACKEND_REQUEST: Skips = Skips(2);
    /// The fields that the proxy adds to a request.
    pub const REQUEST_FIELDS: Skips = Skips(4);
    /// The rules for a response of a server.
    pub const RESPONSE: Skips = Skips(8);

    /// Whether these parts are skipped.
    #[inline(always)]
    pub fn has(self, parts: Skips) -> bool {
        self.0 & parts.0 == parts.0
    }

    /// The parts that both skip.
    #[inline(always)]
    pub fn and(self, other: Skips) -> Skips {
        Skips(self.0 & other.0)
    }

    /// The parts that streams of a frontend skip, as far as it decides.
    pub(super) fn of_frontend(runtime_config: &RuntimeConfig, id: ProxyId) -> Skips {
        let proxy = runtime_config.proxy(id);
        let moments = runtime_config.log_plan(id).moments;
        let has_no_capture = proxy.capture_cookie.is_none();
        Skips::all(
            runtime_config,
            [
                (
                    Skips::FRONTEND_REQUEST,
                    has_no_request_rules(runtime_config, id)
                        && !moments.has(sample::LogOrigin::Request),
                ),
                (Skips::BACKEND_REQUEST, has_no_capture),
                (Skips::REQUEST_FIELDS, has_no_fields(runtime_config, proxy)),
                (
                    Skips::RESPONSE,
                    has_no_capture && has_no_response_rules(proxy),
                ),
            ],
        )
    }

    /// The parts that streams of a backend skip, as far as it decides.
    pub(super) fn of_backend(runtime_config: &RuntimeConfig, id: ProxyId) -> Skips {
        let proxy = runtime_config.proxy(id);
        let has_no_cookie = proxy.cookie.is_none();
        let response_passes = !proxy.options.checkcache && proxy.tcp_response_content.is_empty();
        Skips::all(
            runtime_config,
            [
                (Skips::FRONTEND_REQUEST, true),
                (
                    Skips::BACKEND_REQUEST,
                    has_no_request_rules(runtime_config, id)
                        && has_no_cookie
                        && !runtime_config.binds(id)
                        && proxy.stick_request.is_empty(),
                ),
                (Skips::REQUEST_FIELDS, has_no_fields(runtime_config, proxy)),
                (
                    Skips::RESPONSE,
                    has_no_cookie && response_passes && has_no_response_rules(proxy),
                ),
            ],
        )
    }

    /// The parts of which it is true that they have nothing to do.
    fn all(runtime_config: &RuntimeConfig, parts: [(Skips, bool); 4]) -> Skips {
        // Filters see every phase; stick tables count in several of them.
        if runtime_config.tracing.any || runtime_config.has_tables {
            return Skips::default();
        }
        let skipped = parts.iter().filter(|(_, is_empty)| *is_empty);
        skipped.fold(Skips::default(), |all, (part, _)| Skips(all.0 | part.0))
    }
}

/// Whether nothing of a proxy reads or changes a request, or waits for its body.
fn has_no_request_rules(runtime_config: &RuntimeConfig, id: ProxyId) -> bool {
    let proxy = runtime_config.proxy(id);
    proxy.tcp_request_content.is_empty()
        && RuleSet::Request.rules(proxy).is_empty()
        && RuleSet::Redirect.rules(proxy).is_empty()
        && proxy.options.http_restrict_req_hdr_names == NamePolicy::Preserve
        && proxy.stats.is_none()
        && !proxy.options.http_buffer_request
        && !runtime_config.sniffs_http(id)
        && !runtime_config.takes_early_data
}

fn has_no_response_rules(proxy: &Proxy) -> bool {
    let sets = [RuleSet::Response, RuleSet::AfterResponse];
    sets.into_iter().all(|set| set.rules(proxy).is_empty())
}

/// Whether a proxy adds no field to a request, and does not compress.
fn has_no_fields(runtime_config: &RuntimeConfig, proxy: &Proxy) -> bool {
    proxy.unique_id_header.is_none()
        && !adds_forwarding_headers(proxy)
        && !runtime_config.compresses
}

/// Whether a proxy adds the addresses of clients to requests (`option forwardfor`, `originalto`,
/// `forwarded`).
pub(crate) fn adds_forwarding_headers(proxy: &Proxy) -> bool {
    proxy.forwardfor.is_some() || proxy.originalto.is_some() || proxy.forwarded.is_some()
}
