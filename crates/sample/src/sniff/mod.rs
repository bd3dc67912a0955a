//! What the first bytes of a connection say of the protocol in them, read without taking part in it: a TLS ClientHello,
//! an RDP connection request, a distcc job.
//!
//! Nothing is kept between calls and nothing is copied: each call looks at all the bytes that are there, once.

pub mod client_hello;
pub mod distcc;
pub mod rdp;

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sniffed<T> {
    /// This.
    Found(T),
    /// Nothing yet; more bytes may tell.
    More,
    /// Nothing, whatever follows.
    No,
}

impl<T> Sniffed<T> {
    /// What `next` makes of what was found.
    pub fn then<U>(self, next: impl FnOnce(T) -> Sniffed<U>) -> Sniffed<U> {
        match self {
            Sniffed::Found(found) => next(found),
            Sniffed::More => Sniffed::More,
            Sniffed::No => Sniffed::No,
        }
    }
}

impl<T> From<Option<T>> for Sniffed<T> {
    /// None is nothing, whatever follows.
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
