//! Changes of header names: names with other characters than letters, digits and hyphens (`option
//! http-restrict-req-hdr-names`), and the name of the server (`http-send-name-header`).

use config::model::{NamePolicy, Proxy};
use http::Head;
use net::Driver;

use super::{Cause, Cx};
use crate::ids::{ProxyId, ServerId};
use crate::shared::ServerTables;
use crate::stream::Stream;

impl<D: Driver> Cx<'_, D> {
    /// Applies the proxy's setting for request headers whose names have other characters. Returns
    /// whether the request continues.
    #[inline]
    pub(super) fn restrict_names(&mut self, stream: &mut Stream, proxy: ProxyId) -> bool {
        let options = &self.runtime_config.proxy(proxy).options;
        let policy = options.http_restrict_req_hdr_names;
        policy == NamePolicy::Preserve || self.enforce_names(stream, policy)
    }

    fn enforce_names(&mut self, stream: &mut Stream, policy: NamePolicy) -> bool {
        while let Some(field) = odd_name(&stream.request) {
            if policy == NamePolicy::Reject {
                self.with_eval(stream, crate::persistence::request_cookies);
                stream.request_processed(self.now());
                self.fail(stream, Cause::BadNames);
                return false;
            }
            stream.request.remove(field);
        }
        true
    }
}

fn odd_name(request: &Head) -> Option<http::FieldId> {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-';
    request
        .fields()
        .find(|(_, _, name, _)| !name.iter().all(is_plain))
        .map(|(field, ..)| field)
}

/// Adds the name of the chosen server to a request.
pub(crate) fn tell_server_name(proxy: &Proxy, servers: &ServerTables, stream: &mut Stream) {
    if let Some(header) = &proxy.send_name_header
        && let Some(server) = stream.txn.server
    {
        stream.request.remove_all(header.as_bytes());
        let server = ServerId::at(stream.backend, server as usize);
        let name = servers.at(server).name.as_bytes();
        stream.request.append(header.as_bytes(), name);
    }
}
