//! Identity of streams of metrics.

use otlp::scan::{Malformed, attribute};
use sha2::{Digest, Sha256};

use super::super::edit::{Fields, Value};

/// A stream, by a hash that senders cannot make equal for two streams.
pub type StreamId = [u8; 16];

/// The parts of an identity that were added so far.
#[derive(Clone, Debug, Default)]
pub struct Identity(Sha256);

impl Identity {
    /// Adds a part.
    pub fn add(&mut self, part: &[u8]) {
        self.number(part.len() as u64);
        self.0.update(part);
    }

    /// Adds a number.
    pub fn number(&mut self, number: u64) {
        self.0.update(number.to_le_bytes());
    }

    /// Adds the attributes of a message, which stand under a key, in any order.
    ///
    /// # Errors
    /// The message is malformed.
    pub fn attributes(&mut self, message: &[u8], key: u32) -> Result<(), Malformed> {
        let mut attributes = Vec::new();
        for field in Fields::new(message) {
            let field = field?;
            match field.value {
                Value::Bytes(message) if field.key == key => attributes.push(attribute(message)?),
                _ if field.key >> 3 == key >> 3 => return Err(Malformed::WireType),
                _ => {}
            }
        }
        attributes.sort_by_key(|(name, _)| *name);
        self.number(attributes.len() as u64);
        for (name, value) in attributes {
            self.add(name);
            self.add(value);
        }
        Ok(())
    }

    /// The identity of all that was added.
    pub fn id(self) -> StreamId {
        let digest: [u8; 32] = self.0.finalize().into();
        let mut id = StreamId::default();
        for (to, from) in id.iter_mut().zip(digest) {
            *to = from;
        }
        id
    }
}
