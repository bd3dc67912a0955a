//! Requests in protobuf: of Prometheus Remote-Write 1.0 (`prometheus.WriteRequest`) and 2.0
//! (`io.prometheus.write.v2.Request`).

use std::collections::HashMap;

use otlp::write::{bytes, double, key, message, uint, varint};

use super::series::{Exemplar, Key, Metadata, NativeSample, STALE, Series};
use crate::config::components::exporters::prometheus_remote_write::WriteVersion;
use crate::run::send::prometheus::native::Buckets;
use crate::run::send::prometheus::proto::{Layout, sint, zero_threshold};

/// A request, and how many series it has.
pub struct Encoded {
    pub body: Vec<u8>,
    pub count: usize,
}

/// A request with the first of these series: as many as fit into so many bytes, and one at least.
pub fn series(version: WriteVersion, all: &[(Key, Series)], bytes_max: usize) -> Encoded {
    match version {
        WriteVersion::One => first(all, bytes_max, |out, (key, series)| {
            message(out, 1, |out| one(out, key, series));
        }),
        WriteVersion::Two => second(all, bytes_max),
    }
}

/// A request of version 1 with the first of these descriptions of metrics.
pub fn metadata(all: &[std::sync::Arc<Metadata>], bytes_max: usize) -> Encoded {
    first(all, bytes_max, |out, metadata| {
        message(out, 3, |out| {
            uint(out, 1, metadata.kind);
            bytes(out, 2, metadata.name.as_bytes());
            bytes(out, 4, metadata.help.as_bytes());
            bytes(out, 5, metadata.unit.as_bytes());
        });
    })
}

fn first<T>(all: &[T], bytes_max: usize, write: impl Fn(&mut Vec<u8>, &T)) -> Encoded {
    let (mut body, mut count) = (Vec::new(), 0);
    for one in all {
        let before = body.len();
        write(&mut body, one);
        if count > 0 && body.len() > bytes_max {
            body.truncate(before);
            break;
        }
        count += 1;
    }
    Encoded { body, count }
}

/// The labels of a series with its name, ascending.
fn labels(key: &Key) -> Vec<(&str, &str)> {
    let name = [("__name__", &*key.name)];
    let own = key.own.as_ref();
    let own = own.map(|(name, value)| (*name, value.as_str()));
    let mut labels: Vec<_> = key.labels.iter().chain(name).chain(own).collect();
    labels.sort_unstable();
    labels
}

/// `prometheus.TimeSeries`
fn one(out: &mut Vec<u8>, key: &Key, series: &Series) {
    for (name, value) in labels(key) {
        label(out, name, value);
    }
    samples(out, 2, series);
    for exemplar in &series.exemplars {
        message(out, 3, |out| {
            for (name, value) in &exemplar.labels {
                label(out, name, value);
            }
            value_of(out, exemplar);
        });
    }
    for sample in in_order(&series.histograms) {
        message(out, 4, |out| native(out, sample));
    }
}

fn label(out: &mut Vec<u8>, name: &str, value: &str) {
    message(out, 1, |out| {
        bytes(out, 1, name.as_bytes());
        bytes(out, 2, value.as_bytes());
    });
}

fn samples(out: &mut Vec<u8>, field: u32, series: &Series) {
    let mut samples: Vec<_> = series.samples.iter().collect();
    samples.sort_by_key(|(time_ms, _)| *time_ms);
    for (time_ms, value) in samples {
        message(out, field, |out| {
            double(out, 1, *value);
            uint(out, 2, time_ms.cast_unsigned());
        });
    }
}

fn in_order(histograms: &[NativeSample]) -> Vec<&NativeSample> {
    let mut all: Vec<_> = histograms.iter().collect();
    all.sort_by_key(|sample| sample.time_ms);
    all
}

fn value_of(out: &mut Vec<u8>, exemplar: &Exemplar) {
    double(out, 2, exemplar.value);
    uint(out, 3, exemplar.time_ms.cast_unsigned());
}

/// `Histogram`, which both versions have.
fn native(out: &mut Vec<u8>, sample: &NativeSample) {
    let native = &sample.native;
    let (count, sum) = if sample.is_stale {
        (STALE, f64::from_bits(STALE))
    } else {
        (native.count, native.sum)
    };
    uint(out, 1, count);
    double(out, 3, sum);
    sint(out, 4, i64::from(native.scale));
    double(out, 5, zero_threshold(native));
    uint(out, 6, native.zero_count);
    side(out, 8, &native.negative);
    side(out, 11, &native.positive);
    uint(out, 15, sample.time_ms.cast_unsigned());
}

/// The buckets of one sign: the spans have this number, and the deltas the next.
fn side(out: &mut Vec<u8>, field: u32, buckets: &Buckets) {
    let layout = Layout::of(buckets);
    for (offset, length) in layout.spans {
        message(out, field, |out| {
            sint(out, 1, offset);
            uint(out, 2, length);
        });
    }
    if layout.deltas.is_empty() {
        return;
    }
    message(out, field + 1, |out| {
        for delta in layout.deltas {
            varint(out, ((delta << 1) ^ (delta >> 63)).cast_unsigned());
        }
    });
}

/// Texts of a request, each once.
#[derive(Default)]
struct Symbols<'a> {
    numbers: HashMap<&'a str, u64>,
    texts: Vec<&'a str>,
    bytes: usize,
}

impl<'a> Symbols<'a> {
    /// The number of a text; the empty one has 0.
    fn number(&mut self, text: &'a str) -> u64 {
        if text.is_empty() {
            return 0;
        }
        let next = self.texts.len() as u64 + 1;
        *self.numbers.entry(text).or_insert_with(|| {
            self.texts.push(text);
            self.bytes += text.len() + 3;
            next
        })
    }

    /// Forgets the texts that came after so many.
    fn shorten(&mut self, count: usize) {
        for text in self.texts.drain(count..) {
            self.numbers.remove(text);
            self.bytes -= text.len() + 3;
        }
    }
}

fn second(all: &[(Key, Series)], bytes_max: usize) -> Encoded {
    let mut symbols = Symbols::default();
    let (mut series, mut count) = (Vec::new(), 0);
    for (key, one) in all {
        let (before, texts) = (series.len(), symbols.texts.len());
        two(&mut series, key, one, &mut symbols);
        if count > 0 && series.len() + symbols.bytes > bytes_max {
            series.truncate(before);
            symbols.shorten(texts);
            break;
        }
        count += 1;
    }
    let mut body = Vec::with_capacity(series.len() + symbols.bytes + 2);
    bytes(&mut body, 4, b"");
    for text in &symbols.texts {
        bytes(&mut body, 4, text.as_bytes());
    }
    body.extend_from_slice(&series);
    Encoded { body, count }
}

/// `io.prometheus.write.v2.TimeSeries`
fn two<'a>(out: &mut Vec<u8>, of: &'a Key, series: &'a Series, symbols: &mut Symbols<'a>) {
    let labels = references(labels(of), symbols);
    message(out, 5, |out| {
        refer(out, &labels);
        samples(out, 2, series);
        for sample in in_order(&series.histograms) {
            message(out, 3, |out| native(out, sample));
        }
        for exemplar in &series.exemplars {
            let labels = exemplar.labels.iter();
            let labels = labels.map(|(name, value)| (name.as_str(), value.as_str()));
            let labels = references(labels, symbols);
            message(out, 4, |out| {
                refer(out, &labels);
                value_of(out, exemplar);
            });
        }
        if let Some(metadata) = &series.metadata {
            let help = symbols.number(&metadata.help);
            let unit = symbols.number(&metadata.unit);
            message(out, 5, |out| {
                uint(out, 1, metadata.kind);
                uint(out, 3, help);
                uint(out, 4, unit);
            });
        }
    });
}

fn references<'a>(
    labels: impl IntoIterator<Item = (&'a str, &'a str)>,
    symbols: &mut Symbols<'a>,
) -> Vec<u64> {
    let labels = labels.into_iter();
    let both = labels.flat_map(|(name, value)| [symbols.number(name), symbols.number(value)]);
    both.collect()
}

/// A packed field of numbers, the first of its message.
fn refer(out: &mut Vec<u8>, numbers: &[u64]) {
    key(out, 1, 2);
    let mut packed = Vec::new();
    numbers
        .iter()
        .for_each(|number| varint(&mut packed, *number));
    varint(out, packed.len() as u64);
    out.extend_from_slice(&packed);
}
