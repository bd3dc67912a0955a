//! Header compression (RFC 7541): the tables, integers and strings, a decoder and an encoder of header blocks.
//!
//! The decoder writes each field into its [`Sink`]'s buffer as `name: value CRLF`, the form in which a [`crate::Head`] keeps
//! fields and an HTTP/1 writer sends them. The dynamic tables store fields in the same form, so that a field found in a table costs one
//! copy.

mod decode;
mod encode;
pub(super) mod huffman;
mod integer;
mod statics;
mod table;

pub(super) use decode::Decoder;
pub(super) use encode::Encoder;

use crate::Name;

/// What a field of a header block is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// A field as every version of HTTP has it.
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
    /// A name that begins with a colon and is none of these.
    UnknownPseudo,
}

/// A decoded field, which stands in the buffer of the sink as `name: value CRLF`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    /// Where its name begins; it takes the rest of the buffer.
    pub at: usize,
    pub name_len: usize,
    pub value_len: usize,
    pub id: Name,
    pub kind: Kind,
    /// A byte of the name or of the value must not stand there (RFC 9113 §8.2.1).
    pub is_bad: bool,
}

/// What takes the fields of a block.
pub(super) trait Sink {
    /// The buffer that fields are written into, at its end.
    fn buf(&mut self) -> &mut Vec<u8>;
    /// No further field is wanted: the block is decoded for the state of the table only.
    fn is_lost(&self) -> bool;
    /// Takes the field at the end of the buffer.
    fn field(&mut self, found: Found);
}

/// Why a block cannot be decoded. Every one is a connection error of type `COMPRESSION_ERROR` (RFC 9113 §4.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockError {
    /// The block ends within a field.
    Truncated,
    /// An integer beyond 2^28 or of too many bytes (RFC 7541 §5.1).
    BadInteger,
    /// A Huffman code that ends within a symbol, has wrong padding, or contains EOS (RFC 7541 §5.2).
    BadHuffman,
    /// An index beyond the tables, or 0 (RFC 7541 §2.3.3).
    BadIndex,
    /// A size of the dynamic table beyond the limit, behind a field, or missing (RFC 7541 §4.2, §6.3).
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
