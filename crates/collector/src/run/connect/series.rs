//! The series of metrics that a connector gathers: values by their attributes, as many as there is
//! room for.

use std::collections::HashMap;

use otlp::scan::{Attributes, Span};
use otlp::write;

/// `AGGREGATION_TEMPORALITY_DELTA`, `AGGREGATION_TEMPORALITY_CUMULATIVE`
const DELTA: u64 = 1;
const CUMULATIVE: u64 = 2;
/// The attribute of what is counted together for lack of room.
const OVERFLOW: &str = "otel.metric.overflow";
/// `KeyValueList.values`: attributes are kept as such a list.
pub const ENTRY: u32 = 1;

/// A span that is an example of a data point.
#[derive(Clone, Debug)]
pub struct Exemplar {
    trace_id: [u8; 16],
    span_id: [u8; 8],
    value: f64,
}

/// Content of a series.
pub trait Value: Clone {
    /// `Metric.data`, the field of its points' attributes, and that of their exemplars.
    fn fields(&self) -> (u32, u32, u32);

    /// Appends the value of a point.
    fn write(&self, out: &mut Vec<u8>);

    /// Bytes that it takes at most, besides its own size.
    fn bytes_max(&self) -> usize {
        0
    }

    /// Whether the data are a sum, which is monotonic.
    fn is_sum(&self) -> bool {
        false
    }
}

/// A count.
#[derive(Clone, Debug, Default)]
pub struct Count(u64);

impl Count {
    /// Counts.
    pub fn get(&self) -> u64 {
        self.0
    }

    /// Counts `times` more, as far as a data point can tell.
    pub fn add(&mut self, times: u64) {
        self.0 = self.0.saturating_add(times).min(i64::MAX.cast_unsigned());
    }
}

impl Value for Count {
    fn fields(&self) -> (u32, u32, u32) {
        (7, 7, 5)
    }

    fn write(&self, out: &mut Vec<u8>) {
        write::fixed64(out, 6, self.0);
    }

    fn is_sum(&self) -> bool {
        true
    }
}

/// A series.
#[derive(Debug)]
pub struct Series<V> {
    pub value: V,
    exemplars: Vec<Exemplar>,
    /// The time of its first and of its last span, in nanoseconds of the UNIX epoch.
    begun_ns: u64,
    seen_ns: u64,
}

/// The series of one metric and resource, by their attributes as a `KeyValueList`.
#[derive(Debug)]
pub struct Table<V> {
    series: HashMap<Vec<u8>, Series<V>>,
    empty: V,
}

/// What all series of a connector may take.
#[derive(Debug, Default)]
pub struct Room {
    /// Series that there are.
    pub series: usize,
    /// Bytes of their attributes and buckets, and of the attributes of resources.
    pub bytes: usize,
    /// Exemplars that were added since the last request.
    pub exemplars: usize,
}

/// Series of a connector.
const SERIES_MAX: usize = 200_000;
/// Bytes of series and of attributes of resources that a connector holds.
pub const SERIES_BYTES_MAX: usize = 256 << 20;
/// Exemplars of a connector between two requests.
const EXEMPLARS_MAX: usize = 1 << 20;

/// How the metrics of a table are written.
pub struct Shape<'a> {
    pub name: &'a str,
    pub unit: &'a str,
    pub is_delta: bool,
    /// The end of the request before.
    pub last_ns: u64,
    pub now_ns: u64,
}

impl<V: Value> Table<V> {
    /// Without series; a new one holds this.
    pub fn new(empty: V) -> Table<V> {
        Table {
            series: HashMap::new(),
            empty,
        }
    }

    /// The series with these attributes, or the one of what has no room: the table has `series_max`
    /// at most (0: no bound), and all tables what `room` leaves. It is always there.
    pub fn series(
        &mut self,
        attributes: &[u8],
        series_max: usize,
        room: &mut Room,
        now_ns: u64,
    ) -> Option<&mut Series<V>> {
        if self.series.contains_key(attributes) {
            return self.seen(attributes, now_ns);
        }
        let has_place = series_max == 0 || self.series.len() < series_max;
        let value_bytes = self.empty.bytes_max();
        let bytes = room.bytes + attributes.len() + value_bytes;
        let has_room = room.series < SERIES_MAX && bytes <= SERIES_BYTES_MAX;
        let key = if has_place && has_room {
            attributes.to_owned()
        } else {
            overflow()
        };
        if !self.series.contains_key(&key) {
            room.series += 1;
            room.bytes += key.len() + value_bytes;
            let series = Series {
                value: self.empty.clone(),
                exemplars: Vec::new(),
                begun_ns: now_ns,
                seen_ns: now_ns,
            };
            self.series.insert(key.clone(), series);
        }
        self.seen(&key, now_ns)
    }

    fn seen(&mut self, key: &[u8], now_ns: u64) -> Option<&mut Series<V>> {
        let series = self.series.get_mut(key)?;
        series.seen_ns = now_ns;
        Some(series)
    }

    /// Forgets series without a span since then.
    pub fn expire(&mut self, before_ns: u64, room: &mut Room) {
        let value_bytes = self.empty.bytes_max();
        self.series.retain(|key, series| {
            let stays = series.seen_ns > before_ns;
            if !stays {
                room.series -= 1;
                room.bytes -= key.len() + value_bytes;
            }
            stays
        });
    }

    /// Appends a `Metric` of a `ScopeMetrics`, and forgets the exemplars. How many points it has.
    pub fn write(&mut self, shape: &Shape<'_>, out: &mut Vec<u8>) -> u64 {
        if self.series.is_empty() {
            return 0;
        }
        let (data, attributes, exemplars) = self.empty.fields();
        write::message(out, 2, |out| {
            write::bytes(out, 1, shape.name.as_bytes());
            if !shape.unit.is_empty() {
                write::bytes(out, 3, shape.unit.as_bytes());
            }
            write::message(out, data, |out| {
                for (key, series) in &mut self.series {
                    let begun_ns = if shape.is_delta {
                        shape.last_ns
                    } else {
                        series.begun_ns
                    };
                    write::message(out, 1, |out| {
                        write::fixed64(out, 2, begun_ns.min(shape.now_ns));
                        write::fixed64(out, 3, shape.now_ns);
                        series.value.write(out);
                        for exemplar in series.exemplars.drain(..) {
                            write::message(out, exemplars, |out| exemplar.write(shape.now_ns, out));
                        }
                        for (name, value) in Attributes::of_map(key) {
                            entry(out, attributes, name, value);
                        }
                    });
                }
                write::uint(out, 2, if shape.is_delta { DELTA } else { CUMULATIVE });
                if self.empty.is_sum() {
                    write::uint(out, 3, 1);
                }
            });
        });
        self.series.len() as u64
    }
}

impl<V> Series<V> {
    /// Adds an exemplar, if the point has fewer than `max`.
    pub fn example(&mut self, max: usize, room: &mut Room, exemplar: impl FnOnce() -> Exemplar) {
        if self.exemplars.len() < max && room.exemplars < EXEMPLARS_MAX {
            room.exemplars += 1;
            self.exemplars.push(exemplar());
        }
    }
}

impl Exemplar {
    /// A span, with this value.
    pub fn new(span: &Span<'_>, value: f64) -> Exemplar {
        Exemplar {
            trace_id: span.trace_id,
            span_id: span.span_id.try_into().unwrap_or_default(),
            value,
        }
    }

    fn write(&self, now_ns: u64, out: &mut Vec<u8>) {
        write::fixed64(out, 2, now_ns);
        write::double(out, 3, self.value);
        write::bytes(out, 4, &self.span_id);
        write::bytes(out, 5, &self.trace_id);
    }
}

/// Appends a `KeyValue` whose value is an encoded `AnyValue`.
pub fn entry(out: &mut Vec<u8>, field: u32, key: &[u8], value: &[u8]) {
    write::key_value(out, field, key, |out| out.extend_from_slice(value));
}

fn overflow() -> Vec<u8> {
    let mut key = Vec::new();
    write::key_value(&mut key, ENTRY, OVERFLOW.as_bytes(), |out| {
        write::uint(out, 2, 1);
    });
    key
}
