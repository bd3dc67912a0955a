//! The layout of a table's updates: what a definition message says (peers protocol 2.1, "Definition
//! message format").

use tables::{Data, Definition, KeyType, Shape};

use crate::reader::Reader;
use crate::{Malformed, varint};

/// A definition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The number that the sender gave to the table.
    pub id: u64,
    /// The table's name among peers.
    pub name: Vec<u8>,
    /// The type of the keys; none for an unknown type.
    pub key: Option<KeyType>,
    /// The size of the keys, for `string` with a NUL byte.
    pub key_bytes: u64,
    /// Milliseconds that an untouched entry stays; 0 without `expire`.
    pub expire_ms: u64,
    /// What updates hold, in order.
    pub columns: Vec<LayoutColumn>,
}

/// The values of one data type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayoutColumn {
    /// The data type.
    pub data: Data,
    /// The number of elements; 1 unless it is an array.
    pub elements: u64,
    /// The period of a rate, milliseconds; else 0.
    pub period_ms: u64,
}

impl LayoutColumn {
    /// The bit of its data type.
    fn bit(self) -> u64 {
        1 << self.data as u8
    }

    fn has_parameters(data: Data) -> bool {
        data.is_array() || data.shape() == Shape::Rate
    }
}

/// The types of keys on the wire.
const KEYS: [(u64, KeyType); 5] = [
    (2, KeyType::Integer),
    (4, KeyType::Ip),
    (5, KeyType::Ipv6),
    (6, KeyType::String),
    (7, KeyType::Binary),
];

impl Layout {
    /// The layout of a table of this process.
    #[must_use]
    pub fn of(definition: &Definition, id: u64) -> Layout {
        let name = definition.wire_name.as_ref().unwrap_or(&definition.name);
        let columns = Data::all().filter_map(|data| {
            let column = definition.column(data)?;
            Some(LayoutColumn {
                data,
                elements: column.elements.into(),
                period_ms: column.period_ms.into(),
            })
        });
        Layout {
            id,
            name: name.clone().into_bytes(),
            key: Some(definition.key),
            key_bytes: key_bytes(definition),
            expire_ms: definition.expire_ms.unwrap_or(0),
            columns: columns.collect(),
        }
    }

    /// Whether the keys are those of a table.
    #[must_use]
    pub fn suits(&self, definition: &Definition) -> bool {
        self.key == Some(definition.key) && self.key_bytes == key_bytes(definition)
    }

    /// The body of the message.
    #[must_use]
    pub fn body(&self) -> Vec<u8> {
        let mut out = Vec::new();
        varint::put(&mut out, self.id);
        varint::put(&mut out, self.name.len() as u64);
        out.extend_from_slice(&self.name);
        let known = KEYS.iter().find(|(_, key)| Some(*key) == self.key);
        varint::put(&mut out, known.map_or(0, |(number, _)| *number));
        varint::put(&mut out, self.key_bytes);
        let bits = self.columns.iter().map(|column| column.bit()).sum();
        varint::put(&mut out, bits);
        varint::put(&mut out, self.expire_ms);
        for column in &self.columns {
            if LayoutColumn::has_parameters(column.data) {
                varint::put(&mut out, column.data as u64);
            }
            if column.data.is_array() {
                varint::put(&mut out, column.elements);
            }
            if column.data.shape() == Shape::Rate {
                varint::put(&mut out, column.period_ms);
            }
        }
        out
    }

    /// Reads the body of a message. `columns` is none if the layout cannot be known: its updates
    /// are ignored.
    ///
    /// # Errors
    /// The body is malformed.
    pub fn parse(body: &[u8]) -> Result<(Layout, Known), Malformed> {
        let mut reader = Reader(body);
        let id = reader.varint()?;
        let name = reader.text()?.to_vec();
        if name.is_empty() {
            return Err(Malformed);
        }
        let key = reader.varint()?;
        let key = KEYS.iter().find(|(number, _)| *number == key);
        let key_bytes = reader.varint()?;
        let bits = reader.varint()?;
        // Versions before 2.1 end here, and know no arrays.
        let expire_ms = reader.varint().ok();
        let mut layout = Layout {
            id,
            name,
            key: key.map(|(_, key)| *key),
            key_bytes,
            expire_ms: expire_ms.unwrap_or(0),
            columns: Vec::new(),
        };
        for data in Data::all().filter(|data| bits & 1 << *data as u8 != 0) {
            let Some(column) = column(data, expire_ms.is_some(), &mut reader) else {
                return Ok((layout, Known::No));
            };
            layout.columns.push(column);
        }
        Ok((layout, Known::Yes))
    }
}

/// Whether the columns of a layout are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// They are.
    Yes,
    /// Their parameters are missing or wrong.
    No,
}

/// A column with its parameters; none if they are not as they must be.
fn column(data: Data, has_parameters: bool, reader: &mut Reader<'_>) -> Option<LayoutColumn> {
    let mut column = LayoutColumn {
        data,
        elements: 1,
        period_ms: 0,
    };
    if !has_parameters {
        return (!data.is_array()).then_some(column);
    }
    if LayoutColumn::has_parameters(data) && reader.varint() != Ok(data as u64) {
        return None;
    }
    if data.is_array() {
        column.elements = reader.varint().ok()?;
    }
    if data.shape() == Shape::Rate {
        column.period_ms = reader.varint().ok()?;
    }
    Some(column)
}

/// The size of a table's keys on the wire.
fn key_bytes(definition: &Definition) -> u64 {
    let bytes = u64::from(definition.key_bytes);
    match definition.key {
        KeyType::String => bytes + 1,
        KeyType::Ip | KeyType::Ipv6 | KeyType::Integer | KeyType::Binary => bytes,
    }
}
