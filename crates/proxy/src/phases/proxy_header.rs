//! The PROXY protocol header that a server is sent first (manual §5.2 send-proxy and its kin).
//!
//! What it says binds the connection to its content: another request may use it again only if its header is the same.

use config::model::SendProxy;
use net::Driver;
use net::proxy_protocol::{self, Tlv, kind};

use super::Cx;
use crate::facts::Eval;
use crate::ids::ServerId;
use crate::stream::Stream;

impl<D: Driver> Cx<'_, D> {
    /// The header for a stream's connection to a server; empty where none is sent.
    #[inline]
    pub(super) fn proxy_header(&mut self, stream: &mut Stream, server: ServerId) -> Box<[u8]> {
        let send = &self.servers.at(server).send_proxy;
        if !send.is_on() {
            return Box::default();
        }
        self.with_eval(stream, |eval, stream| header(eval, stream, send))
            .unwrap_or_default()
    }
}

fn header(eval: &Eval<'_>, stream: &Stream, send: &SendProxy) -> Box<[u8]> {
    let txn = Some(&stream.txn);
    let ends = Some((eval.session.src_of(txn), eval.session.dst_of(txn)));
    let mut out = Vec::new();
    if !send.v2 {
        proxy_protocol::write_v1(ends, &mut out);
        return out.into();
    }
    let mut values = Vec::with_capacity(send.tlvs.len() + 2);
    if send.unique_id
        && let Some(id) = eval.unique_id(stream)
    {
        values.push((kind::UNIQUE_ID, id.to_vec()));
    }
    if send.crc32c {
        // The writer computes the checksum that this one asks for.
        values.push((kind::CRC32C, vec![0; 4]));
    }
    for (kind, format) in &send.tlvs {
        let mut value = Vec::new();
        eval.render(stream, format, &mut value);
        values.push((*kind, value));
    }
    let list: Vec<Tlv<'_>> = values
        .iter()
        .map(|(kind, value)| Tlv { kind: *kind, value })
        .collect();
    if proxy_protocol::write_v2(ends, &list, &mut out).is_err() {
        // Too long a value: the server learns the addresses at least.
        out.clear();
        let _ = proxy_protocol::write_v2(ends, &[], &mut out);
    }
    out.into()
}
