//! `EndpointSlice`s of a service, as lists and events tell of them (`discovery.k8s.io/v1`).

use std::collections::HashMap;
use std::net::IpAddr;

use crate::run::k8s::{
    Change, Event, Fault, NAME_BYTES_MAX, at_most, version, version_of_list, wrong,
};

/// Slices of a service.
const SLICES_MAX: usize = 1024;
/// Endpoints of a slice, as the API has it.
const ENDPOINTS_MAX: usize = 1000;
/// Addresses of an endpoint, as the API has it.
const ADDRESSES_MAX: usize = 100;
/// Hosts of all slices together.
const HOSTS_MAX: usize = 16 << 10;

/// The slices that there are.
#[derive(Debug, Default)]
pub struct Slices {
    /// Whether hosts are names and not addresses.
    by_hostname: bool,
    /// The version that was seen last.
    version: Option<String>,
    /// The hosts of each slice, by its name.
    hosts: HashMap<String, Vec<String>>,
    /// What was wrong with an endpoint of what came last.
    lacking: Option<&'static str>,
}

/// What a list is, of what matters here.
#[derive(serde::Deserialize)]
struct List {
    metadata: Metadata,
    #[serde(deserialize_with = "at_most::<_, _, SLICES_MAX>")]
    items: Vec<Object>,
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

    /// The version that was seen last, from which a watch goes on.
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
        all.version = Some(version_of_list(list.metadata.version)?);
        *self = all;
        Ok(())
    }

    /// Takes a line of a watch; tells whether a slice has changed.
    ///
    /// # Errors
    /// Why it cannot be followed.
    pub fn event(&mut self, line: &[u8]) -> Result<bool, Fault> {
        let mut event: Event<Object> = serde_json::from_slice(line).map_err(wrong)?;
        let seen = version(event.object.metadata.version.take())?;
        self.lacking = None;
        let status = &event.object;
        let has_changed = match event.change(status.code, status.message.as_deref())? {
            Change::Put => self.put(event.object).map(|()| true)?,
            Change::Deleted => {
                let name = event.object.metadata.name.unwrap_or_default();
                self.hosts.remove(&name).is_some()
            }
            Change::Bookmark => false,
            Change::Unknown => return Ok(false),
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

/// Whether it is an address, or a name of letters, digits, hyphens and dots.
fn is_host(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-.".contains(&byte);
    let is_name = !text.is_empty() && text.len() <= NAME_BYTES_MAX && text.bytes().all(is_plain);
    is_name || text.parse::<IpAddr>().is_ok()
}
