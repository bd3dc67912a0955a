//! Chunked coding on the way out.

/// Appends a chunk's size line for `len` > 0 bytes; the payload and then CRLF follow.
pub fn write_chunk_head(_len: usize, _out: &mut Vec<u8>) {
    unimplemented!()
}
/// Appends the last chunk, the trailers and the final empty line.
pub fn write_last_chunk(_trailers: &crate::Head, _out: &mut Vec<u8>) {
    unimplemented!()
}
