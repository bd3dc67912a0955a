//! What is written of an origin beside data that outlive the process. Numbers are little-endian.
//!
//! | bytes | what |
//! |---|---|
//! | 1 and as many | length of the address (0, 4 or 16), and the address |
//! | 2 | number of fields |
//! | 2 and as many, 2 | of each field: length of the name, the name, number of values |
//! | 2 and as many | of each value: its length, and the value |
//!
//! What an authenticator found is not written: there may be passwords in it.

use std::net::IpAddr;
use std::sync::Arc;

use hyper::header::HeaderValue;

use super::{FIELDS_BYTES_MAX, FIELDS_MAX, Origin};
use crate::run::prefixed::{number, put, take};

impl Origin {
    /// As it is written.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        match self.address {
            None => out.push(0),
            Some(IpAddr::V4(address)) => put(&mut out, 1, &address.octets()),
            Some(IpAddr::V6(address)) => put(&mut out, 1, &address.octets()),
        }
        // Fewer and shorter than what two bytes hold: see the bounds.
        out.extend((self.fields.len() as u16).to_le_bytes());
        for (name, values) in &self.fields {
            put(&mut out, 2, name.as_bytes());
            out.extend((values.len() as u16).to_le_bytes());
            values
                .iter()
                .for_each(|value| put(&mut out, 2, value.as_bytes()));
        }
        out
    }

    /// What was written; none where it is no such thing.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Origin> {
        let mut rest = bytes;
        let address = match *take(&mut rest, 1)? {
            [] => None,
            [a, b, c, d] => Some(IpAddr::from([a, b, c, d])),
            ref long => Some(IpAddr::from(<[u8; 16]>::try_from(long).ok()?)),
        };
        let (mut fields, mut left) = (Vec::new(), FIELDS_MAX);
        for _ in 0..number(&mut rest, 2)? {
            let name = std::str::from_utf8(take(&mut rest, 2)?).ok()?;
            let count = number(&mut rest, 2)?;
            left = left.checked_sub(count)?;
            let mut value = || HeaderValue::from_bytes(take(&mut rest, 2)?).ok();
            let values = (0..count).map(|_| value()).collect::<Option<Vec<_>>>()?;
            if values.is_empty() {
                return None;
            }
            fields.push((Arc::from(name), values));
        }
        let is_whole = rest.is_empty() && bytes.len() <= FIELDS_BYTES_MAX + FIELDS_MAX * 6 + 32;
        is_whole.then_some(Origin {
            address,
            fields,
            identity: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let mut origin = Origin::with_fields(&[("a", "1"), ("b", ""), ("a", "2")]);
        for address in [None, Some("10.0.0.1"), Some("::1")] {
            origin.address = address.map(|address| address.parse().unwrap());
            let bytes = origin.encode();
            assert_eq!(Origin::decode(&bytes), Some(origin.clone()));
            for cut in 0..bytes.len() {
                assert_eq!(Origin::decode(&bytes[..cut]), None);
            }
            assert_eq!(Origin::decode(&[&bytes[..], b"x"].concat()), None);
        }
        let many = vec![("a", ""); FIELDS_MAX + 1];
        assert_eq!(Origin::decode(&Origin::with_fields(&many).encode()), None);
        // The largest that a receiver keeps.
        let long = "v".repeat(FIELDS_BYTES_MAX - FIELDS_MAX);
        let names: Vec<String> = (0..FIELDS_MAX)
            .map(|n| format!("{}", char::from(n as u8 + 32)))
            .collect();
        let mut fields: Vec<(&str, &str)> = names.iter().map(|name| (&**name, "")).collect();
        fields[0].1 = &long;
        let largest = Origin::with_fields(&fields);
        assert_eq!(Origin::decode(&largest.encode()), Some(largest));
    }
}
