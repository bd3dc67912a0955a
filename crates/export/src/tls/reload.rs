//! Values read from files and reread: certificates that change while a process runs.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::client::ResolvesClientCert;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{SignatureScheme, crypto::CryptoProvider};
use telemetry::settings::Pem;
use tokio::time::Instant;

use super::{certificates, place, private_key};
use crate::lock::lock;

type Load<T> = dyn Fn() -> Result<T, String> + Send + Sync;

/// A value that is reread on use after a time. If rereading fails, the previous value stays.
pub struct Reloading<T> {
    load: Box<Load<T>>,
    every: Option<Duration>,
    now: Mutex<(Instant, Arc<T>)>,
}

impl<T> Reloading<T> {
    /// Reads the value; `every`: the time after which it is reread.
    ///
    /// # Errors
    /// The first reading failed.
    pub fn new(
        every: Option<Duration>,
        load: impl Fn() -> Result<T, String> + Send + Sync + 'static,
    ) -> Result<Reloading<T>, String> {
        let first = Arc::new(load()?);
        Ok(Reloading {
            load: Box::new(load),
            every,
            now: Mutex::new((Instant::now(), first)),
        })
    }

    /// The current value.
    pub fn get(&self) -> Arc<T> {
        self.get_at(Instant::now())
    }

    fn get_at(&self, moment: Instant) -> Arc<T> {
        let mut now = lock(&self.now);
        let (read, value) = &mut *now;
        let age = moment.saturating_duration_since(*read);
        if self.every.is_some_and(|every| age >= every) {
            *read = moment;
            if let Ok(fresh) = (self.load)() {
                *value = Arc::new(fresh);
            }
        }
        Arc::clone(value)
    }
}

/// Our certificate and its key.
pub struct Own(Reloading<Arc<CertifiedKey>>);

impl Own {
    /// Reads them; `every`: the time after which they are reread.
    ///
    /// # Errors
    /// They cannot be read; the error names the source.
    pub fn new(
        (certificate, key): (Pem, Pem),
        provider: Arc<CryptoProvider>,
        every: Option<Duration>,
    ) -> Result<Own, String> {
        let load = move || {
            let chain = certificates(&certificate)?;
            let pair = CertifiedKey::from_der(chain, private_key(&key)?, &provider);
            pair.map(Arc::new)
                .map_err(|error| format!("{}: {error}", place(&certificate)))
        };
        Ok(Own(Reloading::new(every, load)?))
    }

    fn now(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.0.get())
    }
}

impl fmt::Debug for Own {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Own")
    }
}

impl ResolvesClientCert for Own {
    fn resolve(&self, _: &[&[u8]], schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        let own = self.now();
        own.key.choose_scheme(schemes).is_some().then_some(own)
    }

    fn has_certs(&self) -> bool {
        true
    }
}

impl ResolvesServerCert for Own {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.now())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    use super::*;

    #[test]
    fn it_is_read_again_when_it_is_old_and_kept_when_it_cannot_be() {
        let reads = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&reads);
        let load = move || match counted.fetch_add(1, Relaxed) {
            2 => Err("gone".to_owned()),
            number => Ok(number),
        };
        let every = Duration::from_secs(10);
        let reloading = Reloading::new(Some(every), load).unwrap();
        let begin = Instant::now();
        let after = |seconds| *reloading.get_at(begin + Duration::from_secs(seconds));
        assert_eq!((after(1), after(9)), (0, 0));
        assert_eq!((after(11), after(15)), (1, 1));
        assert_eq!((after(30), after(35)), (1, 1));
        assert_eq!(after(45), 3);
        assert_eq!(reads.load(Relaxed), 4);
        let never = Reloading::new(None, || Ok(7)).unwrap();
        assert_eq!(*never.get_at(begin + Duration::from_secs(1 << 30)), 7);
    }
}
