//! Compression of messages (`compression`, manual §4.2): which are compressed, and what becomes of
//! their heads. Their payload is compressed in [`super::filters`].

use config::model::{Coding, Compressed, Compression};
use http::h1::Framing;
use http::{FieldId, Head, Method, Name, Version};
use net::Driver;

use super::Cx;
use crate::runtime_config::RuntimeConfig;
use crate::stream::Stream;

/// The lowest and the highest weight of an item of `Accept-Encoding` (RFC 9110 §12.4.2), in
/// thousandths.
const NEVER: u32 = 0;
const ALWAYS: u32 = 1000;

/// What the backend and the frontend of a stream say of compression. Each setting is that of the
/// backend, unless it has none.
#[derive(Clone, Copy)]
struct Rules<'a>([Option<&'a Compression>; 2]);

impl<'a> Rules<'a> {
    fn of(runtime_config: &'a RuntimeConfig, stream: &Stream) -> Rules<'a> {
        let proxies = [stream.backend, stream.frontend];
        Rules(proxies.map(|proxy| runtime_config.proxy(proxy).compression.as_deref()))
    }

    fn each(self) -> impl Iterator<Item = &'a Compression> {
        self.0.into_iter().flatten()
    }

    /// The codings of responses.
    fn codings(self) -> &'a [Coding] {
        let mut codings = self.each().map(|rules| &*rules.codings);
        codings.find(|codings| !codings.is_empty()).unwrap_or(&[])
    }

    fn request_coding(self) -> Option<Coding> {
        self.each().find_map(|rules| rules.request_coding)
    }

    fn offload(self) -> bool {
        self.each().any(|rules| rules.offload)
    }

    /// Whether requests, or responses, may be compressed: this one is long enough, it is of a
    /// configured type, and no one has encoded it.
    fn allow(
        self,
        which: impl Fn(&'a Compression) -> &'a Compressed,
        head: &Head,
        framing: Framing,
    ) -> bool {
        let each = || self.each().map(&which);
        let min_bytes = each().map(|which| which.min_bytes).find(|least| *least > 0);
        let types = each().map(|which| &*which.types);
        let types = types.into_iter().find(|types| !types.is_empty());
        let is_long = match framing {
            Framing::Length(length) => length > 0 && length >= min_bytes.unwrap_or(0),
            Framing::Chunked => true,
            // The recipient could not tell an end from a failure.
            Framing::None | Framing::UntilClose => false,
        };
        let is_of_type = types.is_none_or(|types| {
            let mut given = head.find(b"content-type");
            given
                .next()
                .is_some_and(|(_, value)| types.iter().any(|each| begins(value, each)))
        });
        each().any(|which| which.is_on)
            && each().any(|which| !which.is_left_out)
            && is_long
            && is_of_type
            && head.version() != Version::Http10
            && head.find(b"content-encoding").next().is_none()
    }
}

impl<D: Driver> Cx<'_, D> {
    /// Compresses the request where that is configured, and chooses how its response may be
    /// compressed. Called when the fields of the request are final.
    #[cold]
    pub(super) fn choose_codings(&mut self, stream: &mut Stream) {
        let rules = Rules::of(self.runtime_config, stream);
        let may = !stream.is_old && stream.txn.method != Method::Head;
        if may {
            self.begin_request_compression(stream, rules);
        }
        let responses = || rules.each().map(|rules| &rules.responses);
        let is_on = responses().any(|which| which.is_on);
        if is_on && responses().any(|which| !which.is_left_out) && !is_old_browser(stream) {
            let coding = coding(rules.codings(), &stream.request);
            stream.coding = coding.filter(|_| may);
            if coding.is_some() && rules.offload() {
                stream.request.remove_all(b"accept-encoding");
            }
        }
    }

    /// Decides whether the request is compressed, and changes its head.
    fn begin_request_compression(&mut self, stream: &mut Stream, rules: Rules<'_>) {
        let framing = stream.txn.request_body.framing;
        // A body that has come already is empty.
        let is_empty = stream.up.done;
        let may = !is_empty
            && !stream.wants_tunnel
            && rules.allow(|rules| &rules.requests, &stream.request, framing);
        let coding = rules
            .request_coding()
            .filter(|coding| may && *coding != Coding::Identity);
        let compressor = coding.and_then(|coding| self.core.compressors.take(coding));
        let (Some(coding), Some(compressor)) = (coding, compressor) else {
            return;
        };
        stream.up.filters_mut().compressor = Some(Box::new(compressor));
        stream.txn.request_body.framing = Framing::Chunked;
        let head = &mut stream.request;
        head.set_framing(Framing::Chunked);
        head.append(b"content-encoding", coding.name().as_bytes());
    }

    /// Decides whether the response is compressed, before its head is sent. Returns how its payload
    /// is framed.
    #[cold]
    pub(super) fn begin_compression(&mut self, stream: &mut Stream, framing: Framing) -> Framing {
        let Some(coding) = stream.coding else {
            return framing;
        };
        let rules = Rules::of(self.runtime_config, stream);
        let head = &stream.response;
        let may = !stream.wants_tunnel
            && (200..=203).contains(&head.status())
            && rules.allow(|rules| &rules.responses, head, framing)
            && may_transform(head);
        if !may {
            return framing;
        }
        if coding != Coding::Identity {
            let Some(compressor) = self.core.compressors.take(coding) else {
                return framing;
            };
            stream.down.filters_mut().compressor = Some(Box::new(compressor));
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
}

/// The accepted coding with the highest weight; among equals, the one that the client names first,
/// as in HAProxy. `*` stands for the last configured coding that the client does not name.
/// `identity` is always accepted and only changes the framing to chunks, as in HAProxy.
fn coding(codings: &[Coding], request: &Head) -> Option<Coding> {
    let is = |coding: Coding, name: &[u8]| name.eq_ignore_ascii_case(coding.name().as_bytes());
    let is_named = |coding: Coding| accepted(request).any(|item| is(coding, item.name));
    let mut best = None;
    for item in accepted(request) {
        let mut codings = codings.iter().rev();
        let coding = codings.find(|coding| match item.name {
            b"*" => !is_named(**coding),
            name => is(**coding, name),
        });
        if let Some(coding) = coding
            && item.weight > best.map_or(NEVER, |(_, most)| most)
        {
            best = Some((*coding, item.weight));
        }
    }
    let identity = codings.contains(&Coding::Identity);
    best.map(|(coding, _)| coding)
        .or(identity.then_some(Coding::Identity))
}

/// An item of `Accept-Encoding` (RFC 9110 §12.5.3).
struct Accepted<'a> {
    name: &'a [u8],
    /// In thousandths.
    weight: u32,
}

/// The items of `Accept-Encoding`, in order.
fn accepted(request: &Head) -> impl Iterator<Item = Accepted<'_>> {
    let values = request.find(b"accept-encoding").map(|(_, value)| value);
    let items = values.flat_map(|value| value.split(|byte| *byte == b','));
    items.map(|item| {
        let mut parts = item.split(|byte| *byte == b';').map(<[u8]>::trim_ascii);
        Accepted {
            name: parts.next().unwrap_or_default(),
            weight: parts.find_map(quality).unwrap_or(ALWAYS),
        }
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

/// Whether the payload of a response may be replaced: there is no `no-transform`, the entity tag is
/// valid, and the message is not `multipart`, whose parts may come one by one.
fn may_transform(head: &Head) -> bool {
    let mut controls = head.get_all(Name::CacheControl);
    let keeps = controls.any(|(_, value)| has_item(value, b"no-transform"));
    let mut types = head.find(b"content-type");
    let is_multipart = types
        .next()
        .is_some_and(|(_, value)| begins(value, b"multipart"));
    !keeps && !is_multipart && has_sound_etag(head)
}

/// Whether a value begins with this text, in any case.
fn begins(value: &[u8], with: &[u8]) -> bool {
    let start = value.get(..with.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(with))
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
