//! What is known of the client that sent the data: the paths `otelcol.client`.

use super::value::{self, ENTRIES, Value};
use otlp::write;

/// What a path asks of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Client {
    /// `otelcol.client.addr`
    Address,
    /// `otelcol.client.metadata["name"]`, with the name in small letters.
    Field(String),
    /// `otelcol.client.auth.attributes["name"]`
    Auth(String),
}

/// What is known.
#[derive(Clone, Debug, Default)]
pub struct Told {
    address: String,
    /// `KeyValueList`s.
    fields: Vec<u8>,
    auth: Vec<u8>,
}

impl Told {
    /// The client's address is this.
    pub fn set_address(&mut self, address: impl Into<String>) {
        self.address = address.into();
    }

    /// A header field, by its name in small letters, with values.
    pub fn add_field<'v>(&mut self, name: &str, values: impl IntoIterator<Item = &'v str>) {
        let mut any = Vec::new();
        write::message(&mut any, 5, |out| {
            for value in values {
                write::message(out, 1, |out| write::bytes(out, 1, value.as_bytes()));
            }
        });
        value::entry(&mut self.fields, name.as_bytes(), &any);
    }

    /// What an authenticator found.
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
