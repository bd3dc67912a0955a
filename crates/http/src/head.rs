//! The version-agnostic message head: a start line and a header block in one buffer with an index.

use crate::{Method, Name, Version};

/// The position of a field in a [`Head`]; stays valid while fields are only appended or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldId(pub u32);

/// A request's or a response's start line and fields. One byte buffer, one index; edits append to the buffer.
/// `clear` keeps the memory, so a reused head allocates nothing in the steady state.
#[derive(Clone, Debug, Default)]
pub struct Head {}

impl Head {
    pub fn clear(&mut self) {
        unimplemented!()
    }
    // ---- start line of a request
    pub fn method(&self) -> Method {
        unimplemented!()
    }
    pub fn method_bytes(&self) -> &[u8] {
        unimplemented!()
    }
    /// The request target as it was written (RFC 9112 §3.2): origin, absolute, authority or asterisk form.
    pub fn target(&self) -> &[u8] {
        unimplemented!()
    }
    /// Path with the query, without scheme and authority. For origin form the whole target.
    pub fn path_and_query(&self) -> &[u8] {
        unimplemented!()
    }
    pub fn path(&self) -> &[u8] {
        unimplemented!()
    }
    /// After the first `?`; none where there is none.
    pub fn query(&self) -> Option<&[u8]> {
        unimplemented!()
    }
    /// The authority of an absolute or authority form.
    pub fn authority(&self) -> Option<&[u8]> {
        unimplemented!()
    }
    pub fn set_method(&mut self, _method: &[u8]) {
        unimplemented!()
    }
    pub fn set_target(&mut self, _target: &[u8]) {
        unimplemented!()
    }
    // ---- start line of a response
    pub fn status(&self) -> u16 {
        unimplemented!()
    }
    pub fn reason(&self) -> &[u8] {
        unimplemented!()
    }
    pub fn set_status(&mut self, _status: u16, _reason: &[u8]) {
        unimplemented!()
    }
    // ---- both
    pub fn version(&self) -> Version {
        unimplemented!()
    }
    pub fn set_version(&mut self, _version: Version) {
        unimplemented!()
    }
    /// The live fields in order.
    pub fn fields(&self) -> impl Iterator<Item = (FieldId, Name, &[u8], &[u8])> {
        [].into_iter()
    }
    /// Number of live fields.
    pub fn field_count(&self) -> usize {
        unimplemented!()
    }
    /// The first live field of an interned name.
    pub fn get(&self, _name: Name) -> Option<&[u8]> {
        unimplemented!()
    }
    /// The live fields of a name given in any case.
    pub fn find<'a>(&'a self, _name: &'a [u8]) -> impl Iterator<Item = (FieldId, &'a [u8])> + 'a {
        [].into_iter()
    }
    pub fn append(&mut self, _name: &[u8], _value: &[u8]) {
        unimplemented!()
    }
    pub fn set_value(&mut self, _field: FieldId, _value: &[u8]) {
        unimplemented!()
    }
    pub fn remove(&mut self, _field: FieldId) {
        unimplemented!()
    }
    /// Removes every field of this name; how many there were.
    pub fn remove_all(&mut self, _name: &[u8]) -> usize {
        unimplemented!()
    }
    /// What `write_request`/`write_response` will take on the wire, for the `tune.maxrewrite` check.
    pub fn wire_bytes(&self) -> usize {
        unimplemented!()
    }
}
