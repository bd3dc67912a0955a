//! Detects protocols in the first bytes of a connection, without answering: a TLS ClientHello, an
//! RDP connection request, a distcc job.
//!
//! No state is kept between calls, and nothing is copied: each call reads all available bytes once.

pub mod client_hello;
pub mod distcc;
pub mod rdp;

/// The result of a parser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sniffed<T> {
    /// The value was found.
    Found(T),
    /// Not found yet; more bytes may decide.
    More,
    /// Not present, whatever follows.
    No,
}

impl<T> Sniffed<T> {
    /// Continues with `next` on the found value.
    pub fn then<U>(self, next: impl FnOnce(T) -> Sniffed<U>) -> Sniffed<U> {
        match self {
            Sniffed::Found(found) => next(found),
            Sniffed::More => Sniffed::More,
            Sniffed::No => Sniffed::No,
        }
    }
}

impl<T> From<Option<T>> for Sniffed<T> {
    /// None becomes [`Sniffed::No`].
    fn from(found: Option<T>) -> Self {
        found.map_or(Sniffed::No, Sniffed::Found)
    }
}

/// Two bytes, big endian.
fn u16_at(bytes: &[u8], at: usize) -> Option<usize> {
    let (pair, _) = bytes.get(at..)?.split_first_chunk::<2>()?;
    Some(usize::from(u16::from_be_bytes(*pair)))
}

/// Three bytes, big endian.
fn u24_at(bytes: &[u8], at: usize) -> Option<usize> {
    let &[high, middle, low] = bytes.get(at..)?.first_chunk::<3>()?;
    Some(usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low))
}
