//! The handshake with a SOCKS4 proxy on the way to a server (manual §5.2 socks4).

use net::Driver;
use net::socks4::{REPLY_BYTES, is_granted, request};
use sample::ConnError;

use super::Turn;
use super::incoming::Feed;
use crate::ids::ConnId;

impl<D: Driver> Turn<'_, D> {
    /// The connection to the SOCKS4 proxy is established: asks for a connection to the server.
    pub(super) fn ask_socks4_proxy(&mut self, link: ConnId) {
        let links = &mut self.cx.core.links;
        let socks4 = links.server(link).and_then(|server| server.socks4.as_ref());
        match socks4.and_then(|socks4| request(&socks4.to)) {
            Some(request) => links.send_clear(self.cx.io, link, &request),
            None => self.server_refused(link, ConnError::Socks4Send),
        }
    }

    /// The SOCKS4 proxy has answered: the path to the server is established, or failed.
    pub(super) fn read_socks4_reply(&mut self, link: ConnId, bytes: &[u8]) -> Feed {
        let Some(reply) = bytes.first_chunk::<REPLY_BYTES>() else {
            return Feed::More(0);
        };
        if !is_granted(reply) {
            self.server_refused(link, ConnError::Socks4Deny);
            return Feed::Gone;
        }
        let links = &mut self.cx.core.links;
        let socks4 = links
            .server_mut(link)
            .and_then(|server| server.socks4.take());
        if let (Some(socks4), Some(entry)) = (socks4, links.get_mut(link)) {
            entry.secure = socks4.secure;
        }
        self.path_established(link);
        self.after_proxy_header(link, bytes, REPLY_BYTES)
    }
}
