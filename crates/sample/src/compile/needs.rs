//! Facts that the engine collects only if an expression of the configuration reads them.

use std::collections::HashSet;

use crate::fetch::Fetch;

/// See the module. The engine collects a fact only if its field is set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Bodies of requests: the part that arrived with the head is kept for `req.body`.
    pub request_body: bool,
    /// The local address of server connections (`bc_src`, `%bi`).
    pub server_source: bool,
    /// The address of the server's end of reused connections (`bc_dst`, `%si`).
    pub server_destination: bool,
    /// The address that clients connected to (`dst`, `%fi`).
    pub client_destination: bool,
    /// The random values of TLS sessions, and their master secrets.
    pub tls_secrets: bool,
    /// Proxies whose expressions read HTTP requests.
    http: HashSet<u32>,
    /// Expressions outside of proxies read HTTP requests.
    http_anywhere: bool,
}

impl Needs {
    /// Whether an address of server connections is read.
    #[must_use]
    #[inline]
    pub fn server_addresses(&self) -> bool {
        self.server_source | self.server_destination
    }

    /// Whether an expression of this proxy reads HTTP requests. In mode TCP, the engine then parses
    /// the connection's bytes as a request.
    #[must_use]
    pub fn http_request(&self, proxy: u32) -> bool {
        self.http_anywhere || self.http.contains(&proxy)
    }

    pub(crate) fn note(&mut self, fetch: &Fetch, proxy: Option<u32>) {
        self.server_source |= matches!(fetch.name, "bc_src" | "bc_src_port");
        self.server_destination |= matches!(fetch.name, "bc_dst" | "bc_dst_port");
        let name = fetch.name.strip_prefix("fc_").unwrap_or(fetch.name);
        self.client_destination |= matches!(name, "dst" | "dst_port" | "dst_is_local");
        let tls = ["ssl_fc_", "ssl_bc_"].iter();
        let mut tls = tls.filter_map(|prefix| fetch.name.strip_prefix(prefix));
        let secrets = ["client_random", "server_random", "session_key"];
        self.tls_secrets |= tls.any(|name| secrets.contains(&name));
        self.request_body |= fetch.name.starts_with("req.body");
        if !fetch.source.needs.starts_with("HTTP request") {
            return;
        }
        match proxy {
            Some(proxy) => {
                self.http.insert(proxy);
            }
            None => self.http_anywhere = true,
        }
    }

    /// Adds the expressions of `from` to those of `to`.
    pub(crate) fn inherit(&mut self, from: u32, to: u32) {
        if self.http.contains(&from) {
            self.http.insert(to);
        }
    }

    pub(crate) fn note_alias(&mut self, name: &str) {
        self.server_source |= matches!(name, "bi" | "bp");
        self.server_destination |= matches!(name, "si" | "sp");
        self.client_destination |= matches!(name, "fi" | "fp");
    }
}

#[cfg(test)]
mod tests {
    use crate::Place;
    use crate::testing::compiler;

    #[test]
    fn what_is_read_is_noted() {
        let mut compiler = compiler();
        let _ = compiler.expr(&["src"], Place::ALL);
        assert_eq!(compiler.needs(), super::Needs::default());
        let _ = compiler.expr(&["req.body_param(a),lower"], Place::ALL);
        let _ = compiler.log_format("%bi %[res.hdr(a)]", Place::BE_HTTP_RESPONSE);
        assert!(!compiler.needs().client_destination);
        assert!(!compiler.needs().server_destination);
        let _ = compiler.log_format("%si", Place::BE_HTTP_RESPONSE);
        assert!(compiler.needs().server_destination);
        let _ = compiler.expr(&["ssl_fc_exporter_secret"], Place::ALL);
        assert!(!compiler.needs().tls_secrets);
        let _ = compiler.expr(&["ssl_bc_server_random,hex"], Place::ALL);
        assert!(compiler.needs().tls_secrets);
        let _ = compiler.expr(&["fc_dst_port"], Place::ALL);
        let needs = compiler.needs();
        assert!(needs.client_destination);
        assert!(needs.request_body && needs.server_source);
        assert_eq!(
            (needs.http_request(0), needs.http_request(1)),
            (true, false)
        );
        compiler.enter_proxy(Some(1));
        let _ = compiler.expr(&["path"], Place::ALL);
        assert!(compiler.needs().http_request(1));
    }
}
