//! Client metadata for OTTL statements and conditions: the paths under `otelcol.client`.

use ottl::{Client, Told};

use crate::config::components::shared::context::Context;
use crate::run::origin::{self, Origin};

/// The set of client properties that all statements and conditions of a processor read.
#[derive(Debug, Default)]
pub struct Clients(Vec<Client>);

impl Clients {
    /// Adds properties.
    pub fn add(&mut self, asked: &[Client]) {
        for client in asked {
            if !self.0.contains(client) {
                self.0.push(client.clone());
            }
        }
    }

    /// Collects the properties from the origin of a batch. Returns none if no property is read.
    #[must_use]
    pub fn told(&self, origin: Option<&Origin>) -> Option<Told> {
        if self.0.is_empty() {
            return None;
        }
        let mut told = Told::default();
        for client in &self.0 {
            match client {
                Client::Address => {
                    let address = origin::text(origin, &Context::Address);
                    told.set_address(address.unwrap_or_default());
                }
                Client::Field(name) => {
                    let values = origin.map_or(&[][..], |origin| origin.field(name));
                    let values = values.iter().map(|value| value.as_bytes());
                    let texts: Vec<_> = values.map(String::from_utf8_lossy).collect();
                    if !texts.is_empty() {
                        told.add_field(name, texts.iter().map(|text| &**text));
                    }
                }
                Client::Auth(name) => {
                    if let Some(text) = origin::text(origin, &Context::Auth(name.clone())) {
                        told.add_auth(name, &text);
                    }
                }
            }
        }
        Some(told)
    }
}
