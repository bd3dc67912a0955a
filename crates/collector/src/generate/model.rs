//! Spans that are made once and copied: what differs from copy to copy is written over.

use otlp::write;
use telemetry::Ids;

use super::shape::Shape;

/// A span of a model trace.
#[derive(Debug)]
pub(super) struct Model {
    /// A field of `ScopeSpans`, with its key and length.
    bytes: Vec<u8>,
    /// Where in it the trace's identifier is, and behind it the span's.
    ids_at: usize,
    has_parent: bool,
    /// Where the two times are, and what is added to the beginning of the trace.
    times_at: usize,
    times_ns: (u64, u64),
    /// Where two digits of its path are.
    path_at: Option<usize>,
    /// Where the number of its thread is, of one byte.
    thread_at: Option<usize>,
    /// Where values are that no other span has.
    unique_at: Vec<usize>,
    /// The service that it is of.
    pub service: u32,
}

/// What one copy has for itself.
pub(super) struct Stamp {
    pub trace_id: [u8; 16],
    pub span_id: u64,
    pub parent_id: u64,
    pub begin_ns: u64,
}

/// From a trace's identifier to its span's, and from there to the parent's: the bytes, and a key
/// and a length.
const SPAN_ID_AFTER: usize = 16 + 2;
const PARENT_AFTER: usize = 8 + 2;
/// Bytes of a value that no other span has, in hexadecimal digits.
const UNIQUE_BYTES: usize = 32;
const KINDS: [u64; 3] = [2, 3, 1];
const METHODS: [&str; 4] = ["GET", "POST", "PUT", "DELETE"];
const ROUTES: u64 = 20;
const THREADS: u64 = 64;
/// One span in so many is of a customer that pays.
const GOLD_ONE_IN: u64 = 300;
/// Values of an attribute that means nothing.
const VALUES: u64 = 16;

impl Model {
    /// Appends a copy.
    #[inline]
    pub fn copy(&self, stamp: &Stamp, random: &mut Ids, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        let span = &mut out[start..];
        let ids = &mut span[self.ids_at..];
        ids[..16].copy_from_slice(&stamp.trace_id);
        ids[SPAN_ID_AFTER..][..8].copy_from_slice(&stamp.span_id.max(1).to_be_bytes());
        if self.has_parent {
            let parent = &mut ids[SPAN_ID_AFTER + PARENT_AFTER..][..8];
            parent.copy_from_slice(&stamp.parent_id.max(1).to_be_bytes());
        }
        let times = &mut span[self.times_at..];
        let (start_ns, end_ns) = self.times_ns;
        times[..8].copy_from_slice(&(stamp.begin_ns + start_ns).to_le_bytes());
        times[9..17].copy_from_slice(&(stamp.begin_ns + end_ns).to_le_bytes());
        let mut draw = random.next_u64();
        if let Some(at) = self.path_at {
            let number = (draw % 100) as u8;
            span[at] = b'0' + number / 10;
            span[at + 1] = b'0' + number % 10;
        }
        if let Some(at) = self.thread_at {
            span[at] = (draw >> 8) as u8 % THREADS as u8;
        }
        for at in &self.unique_at {
            for piece in span[*at..*at + UNIQUE_BYTES].chunks_exact_mut(16) {
                draw = random.next_u64();
                for (place, digit) in piece.iter_mut().enumerate() {
                    *digit = b"0123456789abcdef"[(draw >> (4 * place)) as usize & 15];
                }
            }
        }
    }
}

/// Makes the spans of a model trace.
pub(super) struct Maker<'a> {
    pub shape: &'a Shape,
    pub random: &'a mut Ids,
}

impl Maker<'_> {
    fn percent(&mut self) -> f64 {
        percent(self.random)
    }

    fn below(&mut self, bound: u64) -> u64 {
        (self.random.next_u64() >> 20) % bound
    }

    pub fn trace(&mut self) -> Vec<Model> {
        let failed = self.percent() < self.shape.errors_percent;
        let lasts_ms = if self.percent() < self.shape.slow_percent {
            self.shape.slow_ms + 1 + self.below(1000)
        } else {
            let (percent, random) = (self.percent(), self.random.next_u64());
            self.shape.latency.draw_ms(percent, random)
        };
        let services = u64::from(self.shape.services.max(1));
        let first = self.below(services);
        let spans = self.shape.spans.max(1);
        let span = |number: u32| {
            // Each is within the one before it.
            let inset_ns = lasts_ms * 1_000_000 / u64::from(2 * spans + 1) * u64::from(number);
            let times_ns = (inset_ns, lasts_ms * 1_000_000 - inset_ns);
            // Two spans a service: one that is asked, and one that asks the next.
            let service = ((first + u64::from(number) / 2) % services) as u32;
            self.span(number, service, times_ns, failed && number + 1 == spans)
        };
        (0..spans).map(span).collect()
    }

    fn span(&mut self, number: u32, service: u32, times_ns: (u64, u64), failed: bool) -> Model {
        let has_parent = number > 0;
        let mut span = Vec::with_capacity(512);
        write::bytes(&mut span, 1, &[1; 16]);
        write::bytes(&mut span, 2, &[1; 8]);
        if has_parent {
            write::bytes(&mut span, 4, &[1; 8]);
        }
        let route = self.below(ROUTES);
        let method = METHODS[route as usize % METHODS.len()];
        let name = format!("{method} /api/v1/resource-{route}");
        write::bytes(&mut span, 5, name.as_bytes());
        write::uint(&mut span, 6, KINDS[number as usize % KINDS.len()]);
        let times_at = span.len() + 1;
        write::fixed64(&mut span, 7, 1);
        write::fixed64(&mut span, 8, 1);
        let (mut path_at, mut thread_at, mut unique_at) = (None, None, Vec::new());
        for place in 0..self.shape.attributes {
            match place {
                0 => write::text_value(&mut span, 9, "http.request.method", method),
                1 => {
                    let path = format!("/api/v1/resource-{route}/00");
                    write::text_value(&mut span, 9, "url.path", &path);
                    path_at = Some(span.len() - 2);
                }
                2 => {
                    let route = format!("/api/v1/resource-{route}/:id");
                    write::text_value(&mut span, 9, "http.route", &route);
                }
                3 => {
                    let status = if failed { 500 } else { 200 };
                    int(&mut span, 9, "http.response.status_code", status);
                }
                4 => {
                    let address = format!("service-{service}.cluster");
                    write::text_value(&mut span, 9, "server.address", &address);
                }
                5 => int(&mut span, 9, "server.port", 8080),
                6 => {
                    let agent = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101";
                    write::text_value(&mut span, 9, "user_agent.original", agent);
                }
                7 => write::text_value(&mut span, 9, "network.protocol.version", "1.1"),
                8 => {
                    let is_gold = self.below(GOLD_ONE_IN) == 0;
                    let tier = if is_gold { "gold" } else { "bronze" };
                    write::text_value(&mut span, 9, "customer.tier", tier);
                }
                9 => {
                    int(&mut span, 9, "thread.id", 1);
                    thread_at = Some(span.len() - 1);
                }
                more => self.meaningless(&mut span, more),
            }
        }
        for place in 0..self.shape.unique_attributes {
            let value = "0".repeat(UNIQUE_BYTES);
            write::text_value(&mut span, 9, &format!("unique.{place}"), &value);
            unique_at.push(span.len() - UNIQUE_BYTES);
        }
        if failed {
            write::message(&mut span, 15, |out| {
                write::bytes(out, 2, b"it failed");
                write::uint(out, 3, 2);
            });
        }
        write::fixed32(&mut span, 16, 0x101);
        let mut bytes = Vec::with_capacity(span.len() + 4);
        write::bytes(&mut bytes, 2, &span);
        let framed = bytes.len() - span.len();
        Model {
            bytes,
            // Behind the key and the length of the first field.
            ids_at: framed + 2,
            has_parent,
            times_at: framed + times_at,
            times_ns,
            path_at: path_at.map(|at| framed + at),
            thread_at: thread_at.map(|at| framed + at),
            unique_at: unique_at.iter().map(|at| framed + at).collect(),
            service,
        }
    }

    fn meaningless(&mut self, span: &mut Vec<u8>, place: u32) {
        let bytes = self.shape.attribute_bytes as usize;
        let mut value = format!("value-{}-{place}", self.below(VALUES));
        while value.len() < bytes {
            value.push('x');
        }
        value.truncate(bytes.max(1));
        write::text_value(span, 9, &format!("attribute.{place}"), &value);
    }
}

/// A number from 0 to 100.
pub(super) fn percent(random: &mut Ids) -> f64 {
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64 * 100.0
}

/// A `KeyValue` with a whole number.
fn int(out: &mut Vec<u8>, field: u32, key: &str, value: u64) {
    write::key_value(out, field, key.as_bytes(), |out| write::uint(out, 3, value));
}
