//! The resources whose spans were counted, each with its series.

use std::collections::{BTreeMap, HashMap};

use otlp::scan::Attributes;
use otlp::write;

use super::durations::Durations;
use crate::config::components::connectors::span_metrics::SpanMetrics as Settings;
use crate::run::connect::series::{Count, Room, SERIES_BYTES_MAX, Shape, Table, entry};

/// `Resource.attributes`
const ATTRIBUTES: u32 = 1;
const OF_RESOURCE: u32 = ATTRIBUTES << 3 | 2;

/// The metrics of one resource.
pub struct Resource {
    /// Its attributes, as they are written.
    attributes: Vec<u8>,
    /// Bytes of these, and of what tells it from others.
    held_bytes: usize,
    pub calls: Table<Count>,
    pub durations: Option<Table<Durations>>,
    pub events: Table<Count>,
    /// The time of its last span, in nanoseconds of the UNIX epoch.
    seen_ns: u64,
    /// Its place in the order of use.
    used: u64,
}

/// See the module. No more than the settings say are known; those that had to go are handed on once
/// more.
pub struct Resources {
    max: usize,
    keys: Vec<String>,
    durations: Option<Durations>,
    known: HashMap<Vec<u8>, Resource>,
    /// Keys of the known ones, the one that was used longest ago first.
    by_use: BTreeMap<u64, Vec<u8>>,
    uses: u64,
    evicted: Vec<Resource>,
}

impl Resources {
    /// None yet.
    pub fn new(settings: &Settings) -> Resources {
        let histogram = settings.histogram.as_ref();
        Resources {
            max: settings.resources_max.max(1),
            keys: settings.resource_keys.clone(),
            durations: histogram.map(|histogram| Durations::new(&histogram.buckets)),
            known: HashMap::new(),
            by_use: BTreeMap::new(),
            uses: 0,
            evicted: Vec::new(),
        }
    }

    /// The resource of this message; a new one may take the place of another.
    pub fn get(&mut self, message: &[u8], room: &mut Room, now_ns: u64) -> &mut Resource {
        let key = self.key(message);
        self.uses += 1;
        let used = self.uses;
        let mut attributes = Vec::new();
        match self.known.get(&key) {
            Some(known) => drop(self.by_use.remove(&known.used)),
            None => {
                for (key, value) in Attributes::new(message, OF_RESOURCE) {
                    entry(&mut attributes, ATTRIBUTES, key, value);
                }
                let keys_bytes = 2 * key.len();
                if !self.make_room(attributes.len() + keys_bytes, room) {
                    attributes.clear();
                }
                room.bytes += attributes.len() + keys_bytes;
            }
        }
        self.by_use.insert(used, key.clone());
        let durations = &self.durations;
        let held_bytes = attributes.len() + 2 * key.len();
        let resource = self.known.entry(key).or_insert_with(|| Resource {
            attributes,
            held_bytes,
            calls: Table::new(Count::default()),
            durations: durations.clone().map(Table::new),
            events: Table::new(Count::default()),
            seen_ns: now_ns,
            used,
        });
        (resource.seen_ns, resource.used) = (now_ns, used);
        resource
    }

    /// What tells resources apart: attributes in the order of their keys.
    fn key(&self, message: &[u8]) -> Vec<u8> {
        let all = Attributes::new(message, OF_RESOURCE);
        let is_key = |key: &[u8]| self.keys.iter().any(|own| own.as_bytes() == key);
        let mut pairs: Vec<_> = all
            .filter(|(key, _)| self.keys.is_empty() || is_key(key))
            .collect();
        pairs.sort_unstable();
        let mut out = Vec::new();
        for (key, value) in pairs {
            entry(&mut out, ATTRIBUTES, key, value);
        }
        out
    }

    /// Makes a place for one more with so many bytes; false if there is no room for them.
    fn make_room(&mut self, bytes: usize, room: &mut Room) -> bool {
        while self.known.len() >= self.max {
            let Some(mut resource) = self.pop_oldest() else {
                break;
            };
            if self.evicted.len() < self.max {
                self.evicted.push(resource);
            } else {
                resource.clear(room);
            }
        }
        while room.bytes + bytes > SERIES_BYTES_MAX {
            let Some(mut resource) = self.pop_oldest() else {
                return false;
            };
            resource.clear(room);
        }
        true
    }

    /// Takes the resource that was used longest ago.
    fn pop_oldest(&mut self) -> Option<Resource> {
        let (_, key) = self.by_use.pop_first()?;
        self.known.remove(&key)
    }

    /// Looks at each, those that had to go too.
    pub fn each(&mut self, mut look: impl FnMut(&mut Resource)) {
        self.known.values_mut().for_each(&mut look);
        self.evicted.iter_mut().for_each(look);
    }

    /// Forgets those that had to go.
    pub fn forget_evicted(&mut self, room: &mut Room) {
        for mut resource in self.evicted.drain(..) {
            resource.clear(room);
        }
    }

    /// Forgets all.
    pub fn clear(&mut self, room: &mut Room) {
        self.expire(u64::MAX, room);
    }

    /// Forgets those without a span since then.
    pub fn expire(&mut self, before_ns: u64, room: &mut Room) {
        let by_use = &mut self.by_use;
        self.known.retain(|_, resource| {
            let stays = resource.seen_ns > before_ns;
            if !stays {
                by_use.remove(&resource.used);
                resource.clear(room);
            }
            stays
        });
    }
}

impl Resource {
    fn clear(&mut self, room: &mut Room) {
        room.bytes -= std::mem::take(&mut self.held_bytes);
        self.expire(u64::MAX, room);
    }

    /// Forgets series without a span since then.
    pub fn expire(&mut self, before_ns: u64, room: &mut Room) {
        self.calls.expire(before_ns, room);
        if let Some(durations) = &mut self.durations {
            durations.expire(before_ns, room);
        }
        self.events.expire(before_ns, room);
    }

    /// Appends a `ResourceMetrics` if there are any. How many data points it has.
    pub fn write(&mut self, scope: &str, shapes: &[Shape<'_>; 3], out: &mut Vec<u8>) -> u64 {
        let [calls, duration, events] = shapes;
        let start = out.len();
        let mut points = 0;
        write::message(out, 1, |out| {
            write::bytes(out, 1, &self.attributes);
            write::message(out, 2, |out| {
                write::message(out, 1, |out| write::bytes(out, 1, scope.as_bytes()));
                points += self.calls.write(calls, out);
                if let Some(durations) = &mut self.durations {
                    points += durations.write(duration, out);
                }
                points += self.events.write(events, out);
            });
        });
        if points == 0 {
            out.truncate(start);
        }
        points
    }
}
