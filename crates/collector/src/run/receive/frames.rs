//! HTTP/2 as it passes: where frames begin, and what they are (RFC 9113 section 4.1).

/// What a client sends before frames (section 3.4).
const PREFACE_BYTES: usize = 24;
/// Length, type, flags and stream.
const HEAD_BYTES: usize = 9;

/// Types of frames.
pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const PING: u8 = 6;
/// A flag of [`PING`]: it is an answer.
pub(super) const ACK: u8 = 1;

/// Follows the frames of one direction.
#[derive(Debug)]
pub(super) struct Frames {
    head: [u8; HEAD_BYTES],
    head_len: usize,
    /// Bytes until the next head.
    left: usize,
}

impl Frames {
    /// What a client sends.
    pub(super) fn of_client() -> Frames {
        Frames {
            left: PREFACE_BYTES,
            ..Frames::of_server()
        }
    }

    /// What a server sends.
    pub(super) fn of_server() -> Frames {
        Frames {
            head: [0; HEAD_BYTES],
            head_len: 0,
            left: 0,
        }
    }

    /// Takes bytes that pass; `each` is told the type and the flags of each frame whose head is
    /// whole.
    pub(super) fn pass(&mut self, mut bytes: &[u8], mut each: impl FnMut(u8, u8)) {
        while !bytes.is_empty() {
            if self.left > 0 {
                let skipped = self.left.min(bytes.len());
                self.left -= skipped;
                bytes = &bytes[skipped..];
                continue;
            }
            let taken = (HEAD_BYTES - self.head_len).min(bytes.len());
            let (head, rest) = bytes.split_at(taken);
            self.head[self.head_len..self.head_len + taken].copy_from_slice(head);
            self.head_len += taken;
            bytes = rest;
            if self.head_len == HEAD_BYTES {
                let [a, b, c, kind, flags, ..] = self.head;
                self.left = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
                self.head_len = 0;
                each(kind, flags);
            }
        }
    }

    /// Whether the last frame is over.
    pub(super) fn is_between(&self) -> bool {
        self.left == 0 && self.head_len == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_seen_however_their_bytes_come() {
        let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        bytes.extend(b"\0\0\0\x04\0\0\0\0\0");
        bytes.extend(b"\0\0\x08\x06\0\0\0\0\0pingpong");
        bytes.extend(b"\0\x01\0\0\x01\0\0\0\x01");
        bytes.extend([7; 256]);
        bytes.extend(b"\0\0\x08\x06\x01\0\0\0\0pingpong");
        for step in [1, 2, 3, 7, bytes.len()] {
            let mut frames = Frames::of_client();
            let mut seen = Vec::new();
            for part in bytes.chunks(step) {
                frames.pass(part, |kind, flags| seen.push((kind, flags)));
            }
            assert_eq!(seen, [(4, 0), (PING, 0), (DATA, 1), (PING, ACK)]);
            assert!(frames.is_between());
            frames.pass(b"\0", |_, _| panic!("no frame"));
            assert!(!frames.is_between());
        }
    }
}
