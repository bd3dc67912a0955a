//! The PROXY protocol header that a server is sent first (manual §5.2 send-proxy and its kin).
//!
//! What it says binds the connection to its content: another request may use it again only if its header is the same.

use config::model::SendProxy;
use net::Driver;
use net::proxy_protocol::{self, Tlv, kind};

use crate::engine::{Core, Cx};
use crate::stream::Stream;

impl Core {
    /// The header for a stream's connection to a server of its backend; empty where none is sent.
    pub fn proxy_header<D: Driver>(
        &self,
        cx: &Cx<'_, D>,
        stream: &Stream,
        server: usize,
    ) -> Box<[u8]> {
        let line = &cx.running.proxy(stream.backend).servers[server];
        let mut out = Vec::new();
        match &line.send_proxy {
            SendProxy {
                v1: false,
                v2: false,
                ..
            } => {}
            SendProxy { v2: false, .. } => {
                if let Some(session) = self.session(stream) {
                    let txn = Some(&stream.txn);
                    let ends = (session.src_of(txn), session.dst_of(txn));
                    proxy_protocol::write_v1(Some(ends), &mut out);
                }
            }
            SendProxy {
                unique_id,
                crc32c,
                authority: _,
                tlvs,
                ..
            } => {
                let mut values = Vec::with_capacity(tlvs.len() + 2);
                if *unique_id && let Some(id) = self.unique_id(cx, stream) {
                    values.push((kind::UNIQUE_ID, id.to_vec()));
                }
                if *crc32c {
                    // The writer computes the checksum that this one asks for.
                    values.push((kind::CRC32C, vec![0; 4]));
                }
                for (kind, format) in tlvs {
                    let mut value = Vec::new();
                    self.render(cx, stream, format, &mut value);
                    values.push((*kind, value));
                }
                self.write_v2(stream, &values, &mut out);
            }
        }
        out.into()
    }

    fn write_v2(&self, stream: &Stream, values: &[(u8, Vec<u8>)], out: &mut Vec<u8>) {
        let Some(session) = self.session(stream) else {
            return;
        };
        let txn = Some(&stream.txn);
        let ends = Some((session.src_of(txn), session.dst_of(txn)));
        let list: Vec<Tlv<'_>> = values
            .iter()
            .map(|(kind, value)| Tlv { kind: *kind, value })
            .collect();
        if proxy_protocol::write_v2(ends, &list, out).is_err() {
            // Too long a value: the server learns the addresses at least.
            out.clear();
            let _ = proxy_protocol::write_v2(ends, &[], out);
        }
    }
}
