//! Where data came from: what a request said besides its body, for components that ask for it.
//!
//! A receiver keeps what some component of the configuration asks for, and nothing else: where
//! nobody asks, there is none. It goes along with a [`Batch`] until a component that makes batches
//! of its own loses it.
//!
//! [`Batch`]: super::data::Batch

mod bytes;

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;

use hyper::header::{HOST, HeaderMap, HeaderValue};

use super::auth::Identity;
use crate::config::Config;
use crate::config::components::shared::context::Context;
use crate::config::service::context::Asked;

/// Values of header fields that are kept of one request; one with more is refused.
pub const FIELDS_MAX: usize = 64;
/// Bytes of those values, and of the names they have.
pub const FIELDS_BYTES_MAX: usize = 16 << 10;

/// What is known of a request's client.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Origin {
    address: Option<IpAddr>,
    /// By their names in small letters; each has a value at least.
    fields: Vec<(Arc<str>, Vec<HeaderValue>)>,
    identity: Option<Identity>,
}

/// A request as a receiver sees it.
pub struct Came<'a> {
    /// Its fields.
    pub headers: &'a HeaderMap,
    /// `:authority`, where it has one.
    pub authority: Option<&'a str>,
    /// Who sent it; none over a Unix socket.
    pub address: Option<IpAddr>,
}

/// More fields are asked for than are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMuch;

/// What a receiver keeps of requests.
#[derive(Debug)]
pub struct Wanted {
    names: Vec<Arc<str>>,
    address: bool,
    /// What the authenticator found.
    pub identity: bool,
}

impl Wanted {
    /// What the components of a configuration ask for; none where they ask for nothing.
    #[must_use]
    pub fn by(config: &Config) -> Option<Wanted> {
        let asked = config.asked();
        (asked != Asked::default()).then(|| Wanted {
            names: asked.fields.into_iter().map(Arc::from).collect(),
            address: asked.address,
            identity: asked.auth,
        })
    }

    /// The same for a receiver that keeps header fields (`include_metadata`), or does not; none
    /// where nothing is left.
    #[must_use]
    pub fn of_receiver(&self, has_fields: bool) -> Option<Wanted> {
        let names = if has_fields {
            self.names.clone()
        } else {
            Vec::new()
        };
        let is_some = !names.is_empty() || self.address || self.identity;
        is_some.then_some(Wanted { names, ..*self })
    }

    /// What is wanted of a request; none where it has none of that.
    ///
    /// # Errors
    /// It is more than is kept.
    pub fn origin(
        &self,
        came: &Came<'_>,
        identity: Option<Identity>,
    ) -> Result<Option<Arc<Origin>>, TooMuch> {
        let mut origin = Origin {
            address: came.address.filter(|_| self.address),
            fields: Vec::new(),
            identity,
        };
        let (mut count, mut bytes) = (0, 0);
        for name in &self.names {
            let values = values(came, name);
            if values.is_empty() {
                continue;
            }
            count += values.len();
            bytes += name.len() + values.iter().map(HeaderValue::len).sum::<usize>();
            if count > FIELDS_MAX || bytes > FIELDS_BYTES_MAX {
                return Err(TooMuch);
            }
            origin.fields.push((Arc::clone(name), values));
        }
        Ok((origin != Origin::default()).then(|| Arc::new(origin)))
    }
}

/// Values of a field. They are copies: those of the request hold all that was read with it.
fn values(came: &Came<'_>, name: &str) -> Vec<HeaderValue> {
    let copy = |bytes: &[u8]| HeaderValue::from_bytes(bytes).ok();
    // HTTP/2 says it elsewhere.
    let is_host = name == HOST.as_str() && !came.headers.contains_key(HOST);
    if is_host || name == ":authority" {
        let authority = came.authority.and_then(|host| copy(host.as_bytes()));
        return authority.into_iter().collect();
    }
    let all = came.headers.get_all(name).iter();
    let one_more = FIELDS_MAX + 1;
    let all = all.filter_map(|value| copy(value.as_bytes()));
    all.take(one_more).collect()
}

impl Origin {
    /// One with these fields, by their names in small letters.
    #[cfg(test)]
    pub fn with_fields(fields: &[(&str, &str)]) -> Origin {
        let mut origin = Origin::default();
        for (name, value) in fields {
            let value = HeaderValue::from_str(value).expect("a value");
            match origin.fields.iter_mut().find(|(own, _)| **own == **name) {
                Some((_, values)) => values.push(value),
                None => origin.fields.push((Arc::from(*name), vec![value])),
            }
        }
        origin
    }

    /// One with this address.
    #[cfg(test)]
    pub fn with_address(address: IpAddr) -> Origin {
        Origin {
            address: Some(address),
            ..Origin::default()
        }
    }

    /// The client's address, where it is kept.
    #[must_use]
    pub fn address(&self) -> Option<IpAddr> {
        self.address
    }

    /// The values of a field, by its name in small letters.
    #[must_use]
    pub fn field(&self, name: &str) -> &[HeaderValue] {
        let found = self.fields.iter().find(|(own, _)| **own == *name);
        found.map_or(&[], |(_, values)| values)
    }

    /// Of all that is known, some fields; none where it has none of them.
    #[must_use]
    pub fn only(&self, names: &[Arc<str>]) -> Option<Origin> {
        let fields = names.iter().filter_map(|name| {
            let found = self.fields.iter().find(|(own, _)| own == name);
            found.cloned()
        });
        let fields: Vec<_> = fields.collect();
        (!fields.is_empty()).then(|| Origin {
            fields,
            ..Origin::default()
        })
    }

    /// What the authenticator found.
    #[must_use]
    pub fn identity(&self) -> Option<&Identity> {
        self.identity.as_ref()
    }

    /// Bytes that it takes, about.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let values = self.fields.iter().flat_map(|(_, values)| values);
        let values = values.map(|value| value.len() + size_of::<HeaderValue>());
        (size_of::<Origin>() + values.sum::<usize>()) as u64
    }
}

/// What is asked, as a text: values of one field with `;` in between. None where it is not known,
/// or was lost; the address is an empty text then, as it is in the Collector.
#[must_use]
pub fn text<'a>(origin: Option<&'a Origin>, context: &Context) -> Option<Cow<'a, str>> {
    match context {
        Context::Address => {
            let address = origin.and_then(|origin| origin.address);
            // An address of version 4 that came over a socket of version 6 is what it is.
            let text = address.map(|address| address.to_canonical().to_string());
            Some(text.unwrap_or_default().into())
        }
        Context::Auth(name) => origin?.identity()?.attribute(name).map(Cow::Borrowed),
        Context::Field(name) => match origin?.field(name) {
            [] => None,
            [one] => Some(String::from_utf8_lossy(one.as_bytes())),
            all => {
                let bytes: Vec<&[u8]> = all.iter().map(HeaderValue::as_bytes).collect();
                let joined = bytes.join(&b';');
                Some(String::from_utf8_lossy(&joined).into_owned().into())
            }
        },
    }
}

#[cfg(test)]
mod tests;
