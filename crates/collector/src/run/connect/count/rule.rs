//! A metric that counts: what it counts, and by which attributes.

use otlp::scan::{Any, Attributes, Keys};
use otlp::write;
use ottl::{Condition, Failure, Subject};

use crate::config::components::connectors::count::{Attribute, Metric};
use crate::run::process::client::Clients;
use crate::run::process::edit::encode;

/// A metric that counts.
#[derive(Debug)]
pub struct Rule {
    pub name: String,
    pub description: String,
    /// One must be true; none: everything is counted.
    conditions: Vec<Condition>,
    attributes: Vec<Attribute>,
}

/// Compiles conditions; it gathers what they look up.
#[derive(Default)]
pub struct Compiler {
    pub keys: Keys,
    pub clients: Clients,
}

impl Compiler {
    /// The rules of metrics.
    ///
    /// # Errors
    /// Which condition cannot be read, and why.
    pub fn rules(&mut self, metrics: &[Metric]) -> Result<Vec<Rule>, String> {
        metrics.iter().map(|metric| self.rule(metric)).collect()
    }

    fn rule(&mut self, metric: &Metric) -> Result<Rule, String> {
        let mut conditions = Vec::new();
        for group in metric.conditions.iter() {
            for text in &group.conditions {
                let condition = Condition::parse(text, group.context, &mut self.keys);
                let condition = condition.map_err(|error| format!("'{text}': {error}"))?;
                self.clients.add(condition.client());
                conditions.push(condition);
            }
        }
        Ok(Rule {
            name: metric.name.clone(),
            description: metric.description.clone(),
            conditions,
            attributes: metric.attributes.clone(),
        })
    }
}

/// A record, its scope and its resource, each with the field key of its attributes: an attribute is
/// that of the first message that has it.
pub struct Seen<'a>(pub [(&'a [u8], u32); 3]);

impl<'a> Seen<'a> {
    fn get(&self, key: &str) -> Option<Any<'a>> {
        let mut messages = self.0.iter();
        messages.find_map(|(message, field)| Attributes::new(message, *field).get(key.as_bytes()))
    }
}

impl Rule {
    /// Whether it counts only some records.
    pub fn has_conditions(&self) -> bool {
        !self.conditions.is_empty()
    }

    /// Whether any condition is true, or there is none.
    ///
    /// # Errors
    /// Why a condition cannot be evaluated.
    pub fn is_true(&self, subject: &Subject<'_, '_, '_>) -> Result<bool, Failure> {
        for condition in &self.conditions {
            if condition.is_true(subject)? {
                return Ok(true);
            }
        }
        Ok(self.conditions.is_empty())
    }

    /// Appends the attributes of a data point (`NumberDataPoint.attributes`); false if the record
    /// lacks one that has no default.
    pub fn attributes_of(&self, seen: &Seen<'_>, out: &mut Vec<u8>) -> bool {
        self.attributes.iter().all(|attribute| {
            let key = attribute.key.as_bytes();
            match (seen.get(&attribute.key), &attribute.default) {
                (Some(value), _) => write::key_value(out, 7, key, |out| scalar(value, out)),
                (None, Some(default)) => {
                    write::key_value(out, 7, key, |out| encode(default, out));
                }
                (None, None) => return false,
            }
            true
        })
    }
}

/// As in the Collector, what is neither a text nor a number becomes an empty text.
fn scalar(value: Any<'_>, out: &mut Vec<u8>) {
    match value {
        Any::Int(value) => write::uint(out, 3, value.cast_unsigned()),
        Any::Double(value) => write::double(out, 4, value),
        Any::Text(text) => write::bytes(out, 1, text),
        _ => write::bytes(out, 1, b""),
    }
}
