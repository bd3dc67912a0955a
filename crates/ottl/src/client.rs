//! Client metadata of the data: the paths under `otelcol.client`.

use super::value::{self, ENTRIES, Value};
use otlp::write;

/// A client property that a path reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Client {
    /// `otelcol.client.addr`
    Address,
    /// `otelcol.client.metadata["name"]`, with the name in lower case.
    Field(String),
    /// `otelcol.client.auth.attributes["name"]`
    Auth(String),
}

/// Client properties of one batch.
#[derive(Clone, Debug, Default)]
pub struct Told {
    address: String,
    /// `KeyValueList`s.
    fields: Vec<u8>,
    auth: Vec<u8>,
}

impl Told {
    /// Sets the client's address.
    pub fn set_address(&mut self, address: impl Into<String>) {
        self.address = address.into();
    }

    /// Adds a header field with its values. The name is in lower case.
    pub fn add_field<'v>(&mut self, name: &str, values: impl IntoIterator<Item = &'v str>) {
        let mut any = Vec::new();
        write::message(&mut any, 5, |out| {
            for value in values {
                write::message(out, 1, |out| write::bytes(out, 1, value.as_bytes()));
            }
        });
        value::entry(&mut self.fields, name.as_bytes(), &any);
    }

    /// Adds an attribute that the authenticator set.
    pub fn add_auth(&mut self, name: &str, text: &str) {
        let mut any = Vec::new();
        write::bytes(&mut any, 1, text.as_bytes());
        value::entry(&mut self.auth, name.as_bytes(), &any);
    }

    pub(crate) fn address(&self) -> Value<'_> {
        Value::Text(self.address.as_bytes().into())
    }

    pub(crate) fn fields(&self) -> Value<'_> {
        Value::Map((&self.fields).into(), ENTRIES)
    }

    pub(crate) fn auth(&self) -> Value<'_> {
        Value::Map((&self.auth).into(), ENTRIES)
    }
}
