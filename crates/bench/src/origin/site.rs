//! The answers of an origin: a [`Site`], and the one for the benchmarks.

use std::borrow::Cow;

/// The body sizes of [`Bodies`]: path and bytes.
pub const SIZES: &[(&str, usize)] = &[
    ("/50", 50),
    ("/16k", 16 << 10),
    ("/64k", 64 << 10),
    ("/1m", 1 << 20),
];

/// Answers requests.
pub trait Site: Send + Sync + 'static {
    /// The complete answer, head and body, to a request with this head.
    fn answer(&self, head: &[u8]) -> Cow<'static, [u8]>;
}

/// Serves a prebuilt body with the size that the path names ([`SIZES`]); any other path is a 404.
pub struct Bodies {
    answers: Vec<(&'static [u8], &'static [u8])>,
}

impl Bodies {
    /// Builds every answer. They exist as long as the process.
    pub fn new() -> Self {
        let build = |&(path, bytes): &(&'static str, usize)| {
            let mut answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: {bytes}\r\n\r\n"
            )
            .into_bytes();
            answer.resize(answer.len() + bytes, b'x');
            (path.as_bytes(), &*answer.leak())
        };
        Self {
            answers: SIZES.iter().map(build).collect(),
        }
    }
}

impl Site for Bodies {
    fn answer(&self, head: &[u8]) -> Cow<'static, [u8]> {
        let path = head.split(|&byte| byte == b' ').nth(1).unwrap_or_default();
        let found = self.answers.iter().find(|(known, _)| *known == path);
        Cow::Borrowed(found.map_or(
            b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n",
            |(_, answer)| answer,
        ))
    }
}
