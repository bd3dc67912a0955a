//! The parts of a request's way that have nothing to do.
//!
//! Most proxies have no rules, no filters and no captures. What that means for the phases of a
//! stream is determined when the configuration is loaded, so that a plain stream passes several
//! phases with one branch.

use config::model::{NamePolicy, Proxy};

use super::RuntimeConfig;
use crate::ids::ProxyId;

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
        && proxy.http_request.is_empty()
        && proxy.redirects.is_empty()
        && proxy.options.http_restrict_req_hdr_names == NamePolicy::Preserve
        && proxy.stats.is_none()
        && !proxy.options.http_buffer_request
        && !runtime_config.sniffs_http(id)
        && !runtime_config.takes_early_data
}

fn has_no_response_rules(proxy: &Proxy) -> bool {
    proxy.http_response.is_empty() && proxy.http_after_response.is_empty()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime_config::for_tests::{from_text, proxy_named};

    /// The parts that streams of frontend `f` with backend `b` skip, if these lines are added to
    /// the frontend, to the backend, or before both.
    fn skips(frontend: &str, backend: &str, before: &str) -> Skips {
        let text = format!(
            "{before}\ndefaults\n mode http\n timeout client 1s\n timeout server 1s\n timeout connect 1s\n\
             frontend f\n bind :80\n default_backend b\n {frontend}\nbackend b\n server s 127.0.0.1:81\n {backend}\n"
        );
        let runtime_config = from_text(&text);
        let [f, b] = ["f", "b"].map(|name| proxy_named(&runtime_config, name));
        let frontend = runtime_config.frontend_skips(f);
        frontend.and(runtime_config.backend_skips(b))
    }

    #[test]
    fn a_part_with_something_to_do_is_not_skipped() {
        let all = Skips(15);
        assert_eq!(skips("", "", ""), all);
        let without = |part: Skips| Skips(all.0 & !part.0);
        for (frontend, backend, part) in [
            ("http-request deny", "", Skips::FRONTEND_REQUEST),
            ("tcp-request content accept", "", Skips::FRONTEND_REQUEST),
            ("redirect location /", "", Skips::FRONTEND_REQUEST),
            ("option http-buffer-request", "", Skips::FRONTEND_REQUEST),
            ("stats enable", "", Skips::FRONTEND_REQUEST),
            ("", "http-request deny", Skips::BACKEND_REQUEST),
            ("", "tcp-request content accept", Skips::BACKEND_REQUEST),
            ("", "stats enable", Skips::BACKEND_REQUEST),
            ("", "use-server s if TRUE", Skips::BACKEND_REQUEST),
            (
                "unique-id-format %ID\\n unique-id-header x-id",
                "",
                Skips::REQUEST_FIELDS,
            ),
            ("option forwardfor", "", Skips::REQUEST_FIELDS),
            ("", "option forwardfor", Skips::REQUEST_FIELDS),
            ("", "compression algo gzip", Skips::REQUEST_FIELDS),
            ("http-response deny", "", Skips::RESPONSE),
            ("", "http-response deny", Skips::RESPONSE),
            ("", "http-after-response del-header x", Skips::RESPONSE),
            ("", "tcp-response content accept", Skips::RESPONSE),
            ("", "option checkcache", Skips::RESPONSE),
            (
                "",
                "cookie c insert",
                Skips(Skips::BACKEND_REQUEST.0 | Skips::RESPONSE.0),
            ),
            (
                "capture cookie c len 9",
                "",
                Skips(Skips::BACKEND_REQUEST.0 | Skips::RESPONSE.0),
            ),
        ] {
            let (frontend, backend) = (frontend.replace("\\n", "\n"), backend.replace("\\n", "\n"));
            let found = skips(&frontend, &backend, "");
            assert_eq!(found, without(part), "{frontend} / {backend}");
        }
        let table = "backend t\n stick-table type ip size 1k\n";
        assert_eq!(skips("", "", table), Skips::default(), "stick tables count");
    }
}
