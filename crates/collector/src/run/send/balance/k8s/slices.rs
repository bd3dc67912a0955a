//! `EndpointSlice`s of a service, as lists and events tell of them (`discovery.k8s.io/v1`).

use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;
use std::net::IpAddr;

use bytes::{Bytes, BytesMut};
use serde::de::{self, Deserialize, Deserializer, SeqAccess, Visitor};

/// Bytes of an event: what the store of a cluster takes of one object is less.
const EVENT_BYTES_MAX: usize = 2 << 20;
/// Slices of a service.
const SLICES_MAX: usize = 1024;
/// Endpoints of a slice, as the API has it.
const ENDPOINTS_MAX: usize = 1000;
/// Addresses of an endpoint, as the API has it.
const ADDRESSES_MAX: usize = 100;
/// Hosts of all slices together.
const HOSTS_MAX: usize = 16 << 10;
/// Bytes of a name, as the API has it, and of a host (RFC 1035 section 2.3.4).
const NAME_BYTES_MAX: usize = 253;

/// The slices that there are.
#[derive(Debug, Default)]
pub struct Slices {
    /// Whether hosts are names and not addresses.
    by_hostname: bool,
    /// What was seen last.
    version: Option<String>,
    /// The hosts of each slice, by its name.
    hosts: HashMap<String, Vec<String>>,
    /// What was wrong with an endpoint of what came last.
    lacking: Option<&'static str>,
}

/// Why an event cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// What came before it is gone (410): all is to be listed again.
    Expired,
    /// It says what cannot be, or cannot be read.
    Wrong(String),
}

/// What a list is, of what matters here.
#[derive(serde::Deserialize)]
struct List {
    metadata: Metadata,
    #[serde(deserialize_with = "at_most::<_, _, SLICES_MAX>")]
    items: Vec<Object>,
}

#[derive(serde::Deserialize)]
struct Event {
    #[serde(rename = "type")]
    kind: String,
    object: Object,
}

/// A slice, or the status that an error is.
#[derive(serde::Deserialize)]
struct Object {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default, deserialize_with = "at_most::<_, _, ENDPOINTS_MAX>")]
    endpoints: Vec<Endpoint>,
    code: Option<u16>,
    message: Option<String>,
}

#[derive(Default, serde::Deserialize)]
struct Metadata {
    name: Option<String>,
    #[serde(rename = "resourceVersion")]
    version: Option<String>,
}

#[derive(serde::Deserialize)]
struct Endpoint {
    #[serde(default, deserialize_with = "at_most::<_, _, ADDRESSES_MAX>")]
    addresses: Vec<String>,
    conditions: Option<Conditions>,
    hostname: Option<String>,
}

#[derive(serde::Deserialize)]
struct Conditions {
    ready: Option<bool>,
}

impl Slices {
    /// None yet.
    #[must_use]
    pub fn new(by_hostname: bool) -> Slices {
        Slices {
            by_hostname,
            ..Slices::default()
        }
    }

    /// What was seen last, to go on from.
    #[must_use]
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// All hosts that are ready; one may be there twice.
    pub fn hosts(&self) -> impl Iterator<Item = &str> {
        self.hosts.values().flatten().map(String::as_str)
    }

    /// What was wrong with an endpoint of what came last, which was left out.
    #[must_use]
    pub fn lacking(&self) -> Option<&'static str> {
        self.lacking
    }

    /// Takes a list in the place of all that there is. What cannot be read leaves that.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub fn list(&mut self, body: &[u8]) -> Result<(), Fault> {
        let list: List = serde_json::from_slice(body).map_err(wrong)?;
        let mut all = Slices::new(self.by_hostname);
        for slice in list.items {
            all.put(slice)?;
        }
        let seen = version(list.metadata.version)?;
        // What is no list at all must not be one of nothing.
        let missing = || Fault::Wrong("a list without a version".to_owned());
        all.version = Some(seen.ok_or_else(missing)?);
        *self = all;
        Ok(())
    }

    /// Takes a line of a watch; tells whether a slice has changed.
    ///
    /// # Errors
    /// Why it cannot be followed.
    pub fn event(&mut self, line: &[u8]) -> Result<bool, Fault> {
        let event: Event = serde_json::from_slice(line).map_err(wrong)?;
        let mut object = event.object;
        let seen = version(object.metadata.version.take())?;
        self.lacking = None;
        let has_changed = match event.kind.as_str() {
            "ADDED" | "MODIFIED" => self.put(object).map(|()| true)?,
            "DELETED" => {
                let name = object.metadata.name.unwrap_or_default();
                self.hosts.remove(&name).is_some()
            }
            "BOOKMARK" => false,
            "ERROR" if object.code == Some(410) => return Err(Fault::Expired),
            "ERROR" => {
                let said = object.message.unwrap_or_default();
                let code = object.code.unwrap_or_default();
                return Err(Fault::Wrong(format!("status {code}: {said}")));
            }
            // There may be more in a later version.
            _ => return Ok(false),
        };
        self.version = seen.or(self.version.take());
        Ok(has_changed)
    }

    /// A slice that is new, or other than before.
    fn put(&mut self, slice: Object) -> Result<(), Fault> {
        let name = slice.metadata.name.unwrap_or_default();
        if name.is_empty() || name.len() > NAME_BYTES_MAX {
            return Err(Fault::Wrong("a slice without a name".to_owned()));
        }
        let mut hosts = Vec::new();
        // Where nothing is said of it, an endpoint is ready.
        let is_ready = |endpoint: &Endpoint| {
            let conditions = endpoint.conditions.as_ref();
            conditions.and_then(|conditions| conditions.ready) != Some(false)
        };
        for endpoint in slice.endpoints.into_iter().filter(is_ready) {
            let own = if self.by_hostname {
                vec![endpoint.hostname.unwrap_or_default()]
            } else {
                endpoint.addresses
            };
            for host in own {
                match is_host(&host) {
                    true => hosts.push(host),
                    false if self.by_hostname => {
                        self.lacking = Some("an endpoint has no hostname");
                    }
                    false => self.lacking = Some("the address of an endpoint is none"),
                }
            }
        }
        self.hosts.remove(&name);
        let count: usize = self.hosts.values().map(Vec::len).sum();
        if self.hosts.len() >= SLICES_MAX || count + hosts.len() > HOSTS_MAX {
            let why = format!("more than {SLICES_MAX} slices, or {HOSTS_MAX} addresses");
            return Err(Fault::Wrong(why));
        }
        self.hosts.insert(name, hosts);
        Ok(())
    }
}

/// What is passed on in a URL as it came.
fn version(text: Option<String>) -> Result<Option<String>, Fault> {
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if text.len() <= NAME_BYTES_MAX && text.bytes().all(is_plain) {
        Ok(Some(text))
    } else {
        Err(Fault::Wrong("a version that is none".to_owned()))
    }
}

/// Whether it is an address, or a name of letters, digits, hyphens and dots.
fn is_host(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
    let is_name = !text.is_empty() && text.len() <= NAME_BYTES_MAX && text.bytes().all(is_plain);
    is_name || text.parse::<IpAddr>().is_ok()
}

fn wrong(error: serde_json::Error) -> Fault {
    Fault::Wrong(format!("an answer that cannot be read: {error}"))
}

/// A list of so many; nothing (`null`) is an empty one.
fn at_most<'de, D, T, const MAX: usize>(source: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    struct AtMost<T, const MAX: usize>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for AtMost<T, MAX> {
        type Value = Vec<T>;

        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(out, "a list of {MAX} at most")
        }

        fn visit_unit<E: de::Error>(self) -> Result<Vec<T>, E> {
            Ok(Vec::new())
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<T>, A::Error> {
            let mut all = Vec::new();
            while let Some(item) = items.next_element()? {
                if all.len() == MAX {
                    return Err(de::Error::invalid_length(MAX + 1, &self));
                }
                all.push(item);
            }
            Ok(all)
        }
    }
    source.deserialize_any(AtMost::<T, MAX>(PhantomData))
}

/// The lines of a stream, which comes in pieces.
#[derive(Debug, Default)]
pub struct Lines {
    rest: BytesMut,
    /// Bytes of the rest that have no end of a line.
    seen: usize,
}

impl Lines {
    /// The next piece. To be called when there is no line left.
    pub fn push(&mut self, piece: &[u8]) {
        self.rest.extend_from_slice(piece);
    }

    /// The next line that is whole, and not empty.
    ///
    /// # Errors
    /// It is too long.
    pub fn line(&mut self) -> Result<Option<Bytes>, Fault> {
        loop {
            let end = self.rest[self.seen..]
                .iter()
                .position(|byte| *byte == b'\n');
            let Some(end) = end else {
                self.seen = self.rest.len();
                break;
            };
            let line = self.rest.split_to(self.seen + end + 1).freeze();
            self.seen = 0;
            let line = line.slice(..line.len() - 1);
            if line.len() > EVENT_BYTES_MAX {
                return Err(too_long());
            }
            if !line.trim_ascii().is_empty() {
                return Ok(Some(line));
            }
        }
        if self.rest.len() > EVENT_BYTES_MAX {
            Err(too_long())
        } else {
            Ok(None)
        }
    }
}

fn too_long() -> Fault {
    Fault::Wrong(format!("an event of more than {EVENT_BYTES_MAX} bytes"))
}
