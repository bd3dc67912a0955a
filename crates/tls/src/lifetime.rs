//! The resumption limit of sessions (`tune.ssl.lifetime`): tickets and stored sessions carry the
//! time of their creation.

use std::sync::Arc;

use rustls::pki_types::UnixTime;
use rustls::server::{ProducesTickets, StoresServerSessions};

/// A store of sessions or tickets that expire.
#[derive(Debug)]
pub(crate) struct Limited<S: ?Sized> {
    pub inner: Arc<S>,
    /// Seconds.
    pub lifetime_s: u64,
}

const TIME_BYTES: usize = size_of::<u64>();

impl<S: ?Sized> Limited<S> {
    fn with_time(value: &[u8]) -> Vec<u8> {
        let now = UnixTime::now().as_secs().to_be_bytes();
        [&now[..], value].concat()
    }

    /// The original content, unless it is too old.
    fn without_time(&self, value: &[u8]) -> Option<Vec<u8>> {
        let (made, value) = value.split_first_chunk::<TIME_BYTES>()?;
        let age = UnixTime::now()
            .as_secs()
            .saturating_sub(u64::from_be_bytes(*made));
        (age < self.lifetime_s).then(|| value.to_vec())
    }
}

impl StoresServerSessions for Limited<dyn StoresServerSessions> {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        self.inner.put(key, Self::with_time(&value))
    }

    fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.without_time(&self.inner.get(key)?)
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.without_time(&self.inner.take(key)?)
    }

    fn can_cache(&self) -> bool {
        self.inner.can_cache()
    }
}

impl ProducesTickets for Limited<dyn ProducesTickets> {
    fn enabled(&self) -> bool {
        self.inner.enabled()
    }

    fn lifetime(&self) -> u32 {
        let lifetime_s = u32::try_from(self.lifetime_s).unwrap_or(u32::MAX);
        self.inner.lifetime().min(lifetime_s)
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.inner.encrypt(&Self::with_time(plain))
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        self.without_time(&self.inner.decrypt(ticket)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::server::ServerSessionMemoryCache;

    #[test]
    fn what_is_too_old_is_none() {
        for (lifetime_s, expected) in [(60, Some(b"session".to_vec())), (0, None)] {
            let inner: Arc<dyn StoresServerSessions> = ServerSessionMemoryCache::new(8);
            let sessions = Limited { inner, lifetime_s };
            assert!(sessions.put(b"key".to_vec(), b"session".to_vec()));
            assert_eq!(sessions.get(b"key"), expected);
            assert_eq!(sessions.take(b"key"), expected);
            assert_eq!(sessions.take(b"key"), None);
        }
    }
}
