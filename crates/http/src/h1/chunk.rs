//! Writing the chunked coding (RFC 9112 §7.1).

use super::write::write_fields;

/// Appends a chunk's size line for `len` > 0 bytes; the payload and then CRLF follow.
pub fn write_chunk_head(len: usize, out: &mut Vec<u8>) {
    debug_assert!(len > 0, "an empty chunk ends the body");
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let count = (usize::BITS - len.leading_zeros()).div_ceil(4).max(1);
    out.extend(
        (0..count)
            .rev()
            .map(|place| DIGITS[(len >> (place * 4)) & 15]),
    );
    out.extend_from_slice(b"\r\n");
}

/// Appends the last chunk, the trailers and the final empty line.
pub fn write_last_chunk(trailers: &crate::Head, out: &mut Vec<u8>) {
    out.extend_from_slice(b"0\r\n");
    write_fields(trailers, out);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_lines_are_hexadecimal() {
        for (len, line) in [
            (1, "1\r\n"),
            (15, "f\r\n"),
            (16, "10\r\n"),
            (0xabc0, "abc0\r\n"),
        ] {
            let mut out = Vec::new();
            write_chunk_head(len, &mut out);
            assert_eq!(out, line.as_bytes());
        }
    }

    #[test]
    fn the_last_chunk_has_the_trailers() {
        let mut trailers = crate::Head::default();
        let mut out = Vec::new();
        write_last_chunk(&trailers, &mut out);
        trailers.append(b"X-Sum", b"1");
        write_last_chunk(&trailers, &mut out);
        assert_eq!(out, b"0\r\n\r\n0\r\nx-sum: 1\r\n\r\n");
    }
}
