//! The definition of a table: its keys, its limits, and what its entries store.

use std::borrow::Cow;

use crate::data::{Argument, Data};
use crate::shared::{self, Share, SharedField};

/// The most elements of an array.
pub const ARRAY_MAX: u32 = 100;
/// Bytes kept of a key of type `string` or `binary` without `len`.
const KEY_BYTES: u32 = 32;

/// The type of a table's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyType {
    /// `ip`
    Ip,
    /// `ipv6`
    Ipv6,
    /// `integer`: 32 bits.
    Integer,
    /// `string`: the text up to its first NUL byte, truncated.
    String,
    /// `binary`: truncated, or padded with zeros.
    Binary,
}

impl KeyType {
    /// All.
    pub const ALL: [KeyType; 5] = [
        KeyType::Integer,
        KeyType::Ip,
        KeyType::Ipv6,
        KeyType::String,
        KeyType::Binary,
    ];

    /// The type with this name; `ipv4` is another name of `ip`.
    #[must_use]
    pub fn named(name: &str) -> Option<KeyType> {
        let name = if name == "ipv4" { "ip" } else { name };
        KeyType::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            KeyType::Ip => "ip",
            KeyType::Ipv6 => "ipv6",
            KeyType::Integer => "integer",
            KeyType::String => "string",
            KeyType::Binary => "binary",
        }
    }

    /// Whether a `len` may follow.
    #[must_use]
    pub fn takes_len(self) -> bool {
        matches!(self, KeyType::String | KeyType::Binary)
    }

    fn default_bytes(self) -> u32 {
        match self {
            KeyType::Ip | KeyType::Integer => 4,
            KeyType::Ipv6 => 16,
            // HAProxy's default includes the NUL byte.
            KeyType::String => KEY_BYTES - 1,
            KeyType::Binary => KEY_BYTES,
        }
    }
}

/// How servers are remembered (`srvkey`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ServerKey {
    /// By name.
    #[default]
    Name,
    /// By address and port.
    Addr,
}

/// Where an entry stores the values of a data type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// The first cell.
    pub(crate) at: u32,
    /// Number of elements; 1 unless it is an array.
    pub elements: u32,
    /// The period of a rate in milliseconds, else 0.
    pub period_ms: u32,
}

/// Why a data type cannot be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// The data type is stored already.
    Twice,
    /// An argument is missing.
    MissingArgument,
    /// There are too many arguments.
    ExtraArgument,
    /// The length of the array is not from 1 to [`ARRAY_MAX`].
    Length,
    /// The period is invalid.
    Period,
}

/// The definition of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// The table's name.
    pub name: String,
    /// The type of its keys.
    pub key: KeyType,
    /// Maximum size of a key; for `string`, without the NUL byte.
    pub key_bytes: u32,
    /// Maximum number of entries.
    pub size: u32,
    /// How long an untouched entry stays, milliseconds; none: until its room is needed.
    pub expire_ms: Option<u64>,
    /// A full table accepts no new entry.
    pub no_purge: bool,
    /// How servers are remembered.
    pub server_key: ServerKey,
    /// Bytes that a rate of bytes counts as one.
    pub bytes_factor: u32,
    /// The name of the section `peers` that the table is shared in.
    pub peers: Option<String>,
    /// The name by which peers know the table, where it is not [`Definition::name`] (manual §11.2:
    /// tables of sections `peers`).
    pub wire_name: Option<String>,
    /// `recv-only`: values that describe only the process that wrote them are learned from peers,
    /// too.
    pub receives_only: bool,
    /// `write-to`: the name of the table to which updates from peers are copied.
    pub write_to: Option<String>,
    columns: [Option<Column>; Data::COUNT],
    cells: u32,
    /// Where its counters are shared; none if they are not.
    share: Option<Box<Share>>,
    /// The values that are shared.
    shared_fields: Vec<SharedField>,
}

impl Definition {
    /// A table that stores only its keys.
    #[must_use]
    pub fn new(name: &str, key: KeyType, size: u32) -> Definition {
        Definition {
            name: name.to_owned(),
            key,
            key_bytes: key.default_bytes(),
            size,
            expire_ms: None,
            no_purge: false,
            server_key: ServerKey::default(),
            bytes_factor: 1,
            peers: None,
            wire_name: None,
            receives_only: false,
            write_to: None,
            columns: [None; Data::COUNT],
            cells: 0,
            share: None,
            shared_fields: Vec::new(),
        }
    }

    /// Sets the type of the keys, with its default length.
    pub fn set_key(&mut self, key: KeyType) {
        self.key = key;
        self.key_bytes = key.default_bytes();
    }

    /// Adds a data type. `arguments`: the text between its parentheses; `period_ms` parses periods.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn store(
        &mut self,
        data: Data,
        arguments: &[&str],
        period_ms: impl Fn(&str) -> Option<u32>,
    ) -> Result<(), StoreError> {
        if self.column(data).is_some() {
            return Err(StoreError::Twice);
        }
        let mut arguments = arguments.iter();
        let mut elements = 1;
        if data.is_array() {
            let length = arguments.next().ok_or(StoreError::MissingArgument)?;
            let digits = length.bytes().take_while(u8::is_ascii_digit).count();
            elements = length[..digits].parse().unwrap_or(0);
            if !(1..=ARRAY_MAX).contains(&elements) {
                return Err(StoreError::Length);
            }
        }
        let period_ms = match (data.argument(), arguments.next()) {
            (Argument::None, None) => 0,
            (Argument::None, Some(_)) => return Err(StoreError::ExtraArgument),
            (Argument::Period, None) => return Err(StoreError::MissingArgument),
            (Argument::Period, Some(text)) => period_ms(text).ok_or(StoreError::Period)?,
        };
        self.columns[data as usize] = Some(Column {
            at: self.cells,
            elements,
            period_ms,
        });
        self.cells += elements * data.shape().cells() as u32;
        Ok(())
    }

    /// Shares the counters of the data types that are stored now.
    pub fn set_share(&mut self, share: Share) {
        let (fields, cells) = shared::lay_out(self, self.cells as usize);
        self.share = Some(Box::new(share));
        self.shared_fields = fields;
        self.cells = cells as u32;
    }

    /// Where its counters are shared (`share`); none if they are not.
    #[must_use]
    pub fn share(&self) -> Option<&Share> {
        self.share.as_deref()
    }

    /// The values that are shared, in the order of listings.
    #[must_use]
    pub fn shared_fields(&self) -> &[SharedField] {
        &self.shared_fields
    }

    /// Adds what `stick` rules need to remember a server.
    pub fn store_server(&mut self) {
        for data in [Data::ServerId, Data::ServerKey] {
            // An error means that it is already stored.
            let _ = self.store(data, &[], |_| None);
        }
    }

    /// The position of a data type; none if it is not stored.
    #[must_use]
    #[inline]
    pub fn column(&self, data: Data) -> Option<Column> {
        self.columns[data as usize]
    }

    /// The number of cells per entry.
    pub(crate) fn cells(&self) -> usize {
        self.cells as usize
    }

    /// A key in the form that is compared and stored: truncated, and without the zeros that pad a
    /// key of type `binary`.
    #[must_use]
    pub fn comparable<'a>(&self, key: &'a [u8]) -> &'a [u8] {
        let key = &key[..key.len().min(self.key_bytes as usize)];
        match self.key {
            KeyType::Ip | KeyType::Ipv6 | KeyType::Integer => key,
            KeyType::String => {
                let nul = key.iter().position(|byte| *byte == 0);
                &key[..nul.unwrap_or(key.len())]
            }
            KeyType::Binary => {
                let zeros = key.iter().rev().take_while(|byte| **byte == 0).count();
                &key[..key.len() - zeros]
            }
        }
    }

    /// A stored key in the form that is shown: with all bytes for type `binary`.
    #[must_use]
    pub fn shown<'a>(&self, key: &'a [u8]) -> Cow<'a, [u8]> {
        match self.key {
            KeyType::Binary if key.len() < self.key_bytes as usize => {
                let mut filled = key.to_vec();
                filled.resize(self.key_bytes as usize, 0);
                Cow::Owned(filled)
            }
            _ => Cow::Borrowed(key),
        }
    }
}
