//! Compression of responses (`compression`, manual §4.2): when a response is compressed, and how
//! its payload is sent.

use config::model::{Coding, Compression};
use http::h1::Framing;
use http::{FieldId, Head, Method, Name, Version};
use net::Driver;

use super::Cx;
use crate::stream::Stream;

/// The lowest and the highest weight of an item of `Accept-Encoding` (RFC 9110 §12.4.2), in
/// thousandths.
const NEVER: u32 = 0;
const ALWAYS: u32 = 1000;

impl<D: Driver> Cx<'_, D> {
    /// Chooses how the response may be compressed. Called when the request's `Accept-Encoding` is
    /// final.
    #[cold]
    pub(super) fn choose_coding(&mut self, stream: &mut Stream) {
        let of = |proxy| self.runtime_config.proxy(proxy).compression.as_deref();
        let Some(rules) = of(stream.backend).or_else(|| of(stream.frontend)) else {
            return;
        };
        let may = !stream.is_old && stream.txn.method != Method::Head && !is_old_browser(stream);
        stream.coding = may.then(|| coding(rules, &stream.request)).flatten();
        if rules.offload {
            stream.request.remove_all(b"accept-encoding");
        }
    }

    /// Decides whether the response is compressed, before its head is sent. Returns how its payload
    /// is framed.
    #[cold]
    pub(super) fn begin_compression(&mut self, stream: &mut Stream, framing: Framing) -> Framing {
        let Some(coding) = stream.coding else {
            return framing;
        };
        let of = |proxy| self.runtime_config.proxy(proxy).compression.as_deref();
        let rules = of(stream.backend).or_else(|| of(stream.frontend));
        let may = rules.is_some_and(|rules| {
            !stream.wants_tunnel && may_compress(rules, &stream.response, framing)
        });
        if !may {
            return framing;
        }
        if coding != Coding::Identity {
            let Some(compressor) = self.core.compressors.take(coding) else {
                return framing;
            };
            stream.compressor = Some(Box::new(compressor));
        }
        stream.txn.compressed = Some(coding.name());
        let head = &mut stream.response;
        head.set_framing(Framing::Chunked);
        weaken_etag(head);
        vary(head);
        if coding != Coding::Identity {
            head.append(b"content-encoding", coding.name().as_bytes());
        }
        Framing::Chunked
    }

    /// Compresses payload of a response and sends it. Returns how many bytes were used.
    #[cold]
    #[inline(never)]
    pub(super) fn compress_down(&mut self, stream: &mut Stream, bytes: &[u8]) -> usize {
        // Sends earlier compressed bytes first, so that at most one delivery waits.
        if !self.send_compressed(stream) {
            return 0;
        }
        if let Some(compressor) = &mut stream.compressor {
            compressor.write(bytes);
        }
        self.send_compressed(stream);
        bytes.len()
    }

    /// Sends the compressed bytes. Whether all of them were taken.
    #[cold]
    pub(super) fn send_compressed(&mut self, stream: &mut Stream) -> bool {
        let (Some(compressor), Some(client)) = (&mut stream.compressor, stream.client) else {
            return true;
        };
        let waiting = compressor.waiting();
        if waiting.is_empty() {
            return true;
        }
        let wrote = self.core.links.send_data(self.io, client, waiting);
        let is_all = wrote.taken == waiting.len();
        compressor.has_left(wrote.taken);
        stream.txn.bytes_out += wrote.wire as u64;
        self.after_download(stream, wrote);
        is_all
    }

    /// The response's payload is completely received: ends the compressed data. Whether all of it
    /// was taken.
    #[cold]
    pub(super) fn finish_compression(&mut self, stream: &mut Stream) -> bool {
        if let Some(compressor) = &mut stream.compressor {
            compressor.finish();
        }
        self.send_compressed(stream)
    }

    /// A stream has ended: releases its compressor.
    #[cold]
    pub(super) fn end_compression(&mut self, stream: &mut Stream) {
        if let Some(compressor) = stream.compressor.take() {
            self.tell_compression(stream, compressor.totals());
            self.core.compressors.put(*compressor);
        }
    }
}

/// The accepted coding with the highest weight; among equals, the one that the configuration names
/// first. `identity` is always accepted and only changes the framing to chunks, as in HAProxy.
fn coding(rules: &Compression, request: &Head) -> Option<Coding> {
    let accepted = || request.find(b"accept-encoding").map(|(_, value)| value);
    let weight = |coding: &Coding| {
        let name = coding.name().as_bytes();
        weight_of(accepted(), name).or_else(|| weight_of(accepted(), b"*"))
    };
    let mut best = None;
    for coding in &rules.codings {
        let weight = weight(coding).unwrap_or(NEVER);
        if weight > best.map_or(NEVER, |(_, most)| most) {
            best = Some((*coding, weight));
        }
    }
    let identity = rules.codings.contains(&Coding::Identity);
    best.map(|(coding, _)| coding)
        .or(identity.then_some(Coding::Identity))
}

/// The weight of a name in a list, in thousandths; none where the list does not have it.
fn weight_of<'a>(values: impl Iterator<Item = &'a [u8]>, name: &[u8]) -> Option<u32> {
    let mut items = values.flat_map(|value| value.split(|byte| *byte == b','));
    items.find_map(|item| {
        let mut parts = item.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        let is_meant = parts.next()?.eq_ignore_ascii_case(name);
        is_meant.then(|| parts.find_map(quality).unwrap_or(ALWAYS))
    })
}

/// `q=0.5`, in thousandths (RFC 9110 §12.4.2).
fn quality(part: &[u8]) -> Option<u32> {
    let value = part.strip_prefix(b"q=").or(part.strip_prefix(b"Q="))?;
    let digit = |at: usize| match value.get(at) {
        Some(digit @ b'0'..=b'9') => u32::from(digit - b'0'),
        _ => 0,
    };
    let thousandths = 1000 * digit(0) + 100 * digit(2) + 10 * digit(3) + digit(4);
    Some(thousandths.min(ALWAYS))
}

/// Old browsers for which HAProxy does not compress: `Mozilla/4`, except Internet Explorer 6 with
/// its service pack and later versions.
fn is_old_browser(stream: &Stream) -> bool {
    let agent = stream.request.find(b"user-agent").next();
    let Some((_, agent)) = agent.filter(|(_, agent)| agent.starts_with(b"Mozilla/4")) else {
        return false;
    };
    let find = |what: &[u8]| agent.windows(what.len()).position(|window| window == what);
    let is_explorer = find(b"MSIE ").and_then(|at| agent.get(at + 5));
    match is_explorer {
        Some(version) if *version == b'6' => find(b"SV1").is_none(),
        Some(version) => *version < b'6',
        None => true,
    }
}

/// Whether a response may be compressed.
fn may_compress(rules: &Compression, head: &Head, framing: Framing) -> bool {
    let is_long = match framing {
        Framing::Length(length) => length > 0 && length >= rules.min_bytes,
        Framing::Chunked | Framing::UntilClose => true,
        Framing::None => false,
    };
    let mut controls = head.get_all(Name::CacheControl);
    let keeps = controls.any(|(_, value)| has_item(value, b"no-transform"));
    is_long
        && head.version() != Version::Http10
        && (200..=203).contains(&head.status())
        && head.find(b"content-encoding").next().is_none()
        && !keeps
        && is_of_type(rules, head)
        && has_sound_etag(head)
}

fn is_of_type(rules: &Compression, head: &Head) -> bool {
    let begins = |value: &[u8], with: &[u8]| {
        let start = value.get(..with.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(with))
    };
    match head.find(b"content-type").next() {
        None => rules.types.is_empty(),
        Some((_, value)) if begins(value, b"multipart") => false,
        Some((_, value)) => {
            rules.types.is_empty() || rules.types.iter().any(|each| begins(value, each))
        }
    }
}

/// Whether there is at most one `ETag`, and it can be made weak (RFC 9110 §8.8.3).
fn has_sound_etag(head: &Head) -> bool {
    let mut tags = head.find(b"etag");
    match (tags.next(), tags.next()) {
        (None, _) => true,
        (Some((_, tag)), None) => {
            let opaque = tag.strip_prefix(b"W/").unwrap_or(tag);
            opaque.len() >= 2 && opaque.starts_with(b"\"") && opaque.ends_with(b"\"")
        }
        (Some(_), Some(_)) => false,
    }
}

/// Makes the `ETag` weak, because compression changes the bytes and not their meaning.
fn weaken_etag(head: &mut Head) {
    let strong = head.find(b"etag").next();
    let strong = strong.filter(|(_, tag)| tag.starts_with(b"\""));
    if let Some((field, weak)) = strong.map(|(field, tag)| (field, [b"W/", tag].concat())) {
        head.set_value(field, &weak);
    }
}

/// Adds `Vary: Accept-Encoding` for caches (RFC 9110 §12.5.5).
fn vary(head: &mut Head) {
    let last: Option<(FieldId, Vec<u8>)> = {
        let mut fields = head.find(b"vary").peekable();
        let mut last = None;
        while let Some((field, value)) = fields.next() {
            if has_item(value, b"accept-encoding") {
                return;
            }
            if fields.peek().is_none() {
                let comma: &[u8] = if value.is_empty() { b"" } else { b"," };
                last = Some((field, [value, comma, b"Accept-Encoding"].concat()));
            }
        }
        last
    };
    match last {
        Some((field, value)) => head.set_value(field, &value),
        None => head.append(b"vary", b"Accept-Encoding"),
    }
}

/// Whether a comma-separated list has an item.
fn has_item(list: &[u8], item: &[u8]) -> bool {
    let mut items = list.split(|byte| *byte == b',');
    items.any(|each| each.trim_ascii().eq_ignore_ascii_case(item))
}
