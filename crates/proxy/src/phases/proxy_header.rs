//! The PROXY protocol header at the start of a server connection (manual §5.2 send-proxy and
//! related options).
//!
//! The header binds the connection to its content: another request may reuse it only with the same
//! header.

use config::model::SendProxy;
use net::Driver;
use net::proxy_protocol::{self, SslClient, Tlv, kind};
use sample::TlsFacts;

use super::Cx;
use crate::evaluation::Eval;
use crate::ids::ServerId;
use crate::stream::Stream;

/// The TLV about the client's TLS (`proxy-protocol.txt` §2.2.5).
fn ssl(tls: Option<&TlsFacts>, send: &SendProxy) -> Vec<u8> {
    let Some(tls) = tls else {
        return proxy_protocol::ssl_value(SslClient::default(), &[]);
    };
    let peer = tls.peer_certificate();
    let own = tls.own.as_deref();
    let common_name = peer.filter(|_| send.cert_cn).and_then(sample::common_name);
    let key = own.filter(|_| send.cert_key);
    let key = key.and_then(sample::certificate_key);
    let signature = own.filter(|_| send.cert_sig);
    let signature = signature.and_then(sample::certificate_signature);
    let cipher = tls.cipher_name().filter(|_| send.ssl_cipher);
    let list = [
        (kind::SSL_VERSION, tls.version_name().map(str::as_bytes)),
        (kind::SSL_CN, common_name.as_deref()),
        (kind::SSL_KEY_ALG, key.as_deref().map(str::as_bytes)),
        (kind::SSL_SIG_ALG, signature.map(str::as_bytes)),
        (kind::SSL_CIPHER, cipher.map(str::as_bytes)),
    ];
    let list: Vec<Tlv<'_>> = list
        .into_iter()
        .filter_map(|(kind, value)| {
            Some(Tlv {
                kind,
                value: value?,
            })
        })
        .collect();
    let client = SslClient {
        is_tls: true,
        has_certificate: peer.is_some() && !tls.resumed,
        has_certificate_in_session: peer.is_some(),
        verify: if peer.is_some() {
            u32::from(tls.verify)
        } else {
            0
        },
    };
    proxy_protocol::ssl_value(client, &list)
}

impl<D: Driver> Cx<'_, D> {
    /// The header for a stream's connection to a server; empty where none is configured.
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
    // In HAProxy's order.
    let mut values = Vec::with_capacity(send.tlvs.len() + 5);
    for (kind, format) in &send.tlvs {
        let mut value = Vec::new();
        eval.render(stream, format, &mut value);
        values.push((*kind, value));
    }
    if send.crc32c {
        // A placeholder; the writer computes the checksum.
        values.push((kind::CRC32C, vec![0; 4]));
    }
    let tls = eval.session.tls.as_deref();
    if let Some(tls) = tls.filter(|tls| !tls.alpn.is_empty()) {
        values.push((kind::ALPN, tls.alpn.to_vec()));
    }
    if send.authority {
        let came = eval.session.tlv(kind::AUTHORITY, 0).map(|(value, _)| value);
        let asked = || tls.and_then(|tls| tls.sni.as_deref());
        let authority = came.or_else(asked);
        values.extend(authority.map(|name| (kind::AUTHORITY, name.to_vec())));
    }
    let ssl = send.ssl.then(|| (kind::SSL, ssl(tls, send)));
    if send.unique_id
        && let Some(id) = eval.unique_id(stream)
    {
        values.push((kind::UNIQUE_ID, id.to_vec()));
    }
    values.extend(ssl);
    let list: Vec<Tlv<'_>> = values
        .iter()
        .map(|(kind, value)| Tlv { kind: *kind, value })
        .collect();
    if proxy_protocol::write_v2(ends, &list, &mut out).is_err() {
        // A value is too long: send the addresses only.
        out.clear();
        let _ = proxy_protocol::write_v2(ends, &[], &mut out);
    }
    out.into()
}
