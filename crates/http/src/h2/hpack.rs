//! Header compression (RFC 7541): the tables, integers and strings, a decoder and an encoder of
//! header blocks.
//!
//! The decoder writes each field into its [`Sink`]'s buffer as `name: value CRLF`, the form in
//! which a [`crate::Head`] keeps fields and an HTTP/1 writer sends them. The dynamic tables store
//! fields in the same form, so that a field found in a table costs one copy.

mod decode;
mod encode;
pub(crate) mod huffman;
mod integer;
mod statics;
pub(crate) mod table;

pub(super) use decode::Decoder;
pub(crate) use decode::{is_name, pseudo};
pub(super) use encode::Encoder;
pub(crate) use encode::{Policy, hash, policy};

use crate::{Method, Name};

/// The kind of a field in a header block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An ordinary field.
    #[default]
    Field,
    /// `:method`
    Method,
    /// `:scheme`
    Scheme,
    /// `:authority`
    Authority,
    /// `:path`
    Path,
    /// `:status`
    Status,
    /// `:protocol` (RFC 8441 §4)
    Protocol,
    /// Any other name that begins with a colon.
    UnknownPseudo,
}

/// A decoded field, in the sink's buffer as `name: value CRLF`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    /// Where the name begins; the field extends to the end of the buffer.
    pub at: usize,
    pub name_len: usize,
    pub value_len: usize,
    pub id: Name,
    pub kind: Kind,
    /// The name or value contains a forbidden byte (RFC 9113 §8.2.1).
    pub is_bad: bool,
}

/// The receiver of a block's fields.
pub(crate) trait Sink {
    /// The buffer; fields are appended to it.
    fn buf(&mut self) -> &mut Vec<u8>;
    /// No further field is needed: the block is decoded only for the state of the table.
    fn is_lost(&self) -> bool;
    /// Handles the field at the end of the buffer.
    fn field(&mut self, found: Found);
}

/// Encodes the fields of one head. HTTP/2 and HTTP/3 each have one.
pub(crate) trait FieldEncoder {
    fn method(&mut self, method: Method, text: &[u8], out: &mut Vec<u8>);
    fn scheme(&mut self, scheme: &[u8], out: &mut Vec<u8>);
    fn authority(&mut self, authority: &[u8], out: &mut Vec<u8>);
    fn path(&mut self, path: &[u8], out: &mut Vec<u8>);
    fn protocol(&mut self, protocol: &[u8], out: &mut Vec<u8>);
    fn status(&mut self, status: u16, out: &mut Vec<u8>);
    /// Encodes a field; `name` is in lower case.
    fn field(&mut self, id: Name, name: &[u8], value: &[u8], out: &mut Vec<u8>);
}

/// Why a block cannot be decoded. Every one is a connection error of type `COMPRESSION_ERROR` (RFC
/// 9113 §4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockError {
    /// The block ends within a field.
    Truncated,
    /// An integer above 2^28 or of too many bytes (RFC 7541 §5.1).
    BadInteger,
    /// A Huffman code that ends within a symbol, has wrong padding, or contains EOS (RFC 7541
    /// §5.2).
    BadHuffman,
    /// An index beyond the tables, or 0 (RFC 7541 §2.3.3).
    BadIndex,
    /// A size of the dynamic table above the limit, after a field, or missing (RFC 7541 §4.2,
    /// §6.3).
    BadTableSize,
}

impl BlockError {
    pub const fn message(self) -> &'static str {
        match self {
            BlockError::Truncated => "a header block that ends within a field",
            BlockError::BadInteger => "an integer of a header block is too large",
            BlockError::BadHuffman => "a malformed Huffman code",
            BlockError::BadIndex => "an index beyond the header tables",
            BlockError::BadTableSize => "a wrong dynamic table size update",
        }
    }
}

#[cfg(test)]
mod tests;
