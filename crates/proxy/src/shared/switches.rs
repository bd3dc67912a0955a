//! Switches and limits that commands change at run time: paused frontends, unpublished backends,
//! rates of the process.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};

use config::model::Config;

use crate::ids::ProxyId;

/// Whether a frontend accepts connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrontendState {
    /// It accepts connections.
    Open,
    /// It accepts none for now.
    Paused,
    /// It never accepts any again.
    Closed,
}

/// A limited rate of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateLimit {
    /// Client connections per second (`maxconnrate`).
    Connections,
    /// Sessions per second (`maxsessrate`).
    Sessions,
    /// TLS connections of clients per second (`maxsslrate`).
    TlsSessions,
}

#[derive(Debug, Default)]
struct ProxySwitches {
    /// [`FrontendState`] as a number.
    state: AtomicU8,
    is_unpublished: AtomicBool,
    is_deleted: AtomicBool,
}

/// The switches and limits.
#[derive(Debug)]
pub(super) struct Switches {
    proxies: Vec<ProxySwitches>,
    connection_rate: AtomicU32,
    session_rate: AtomicU32,
    tls_session_rate: AtomicU32,
}

const OPEN: u8 = 0;
const PAUSED: u8 = 1;
const CLOSED: u8 = 2;

impl Switches {
    pub fn new(config: &Config) -> Switches {
        let global = &config.global;
        let proxies = config.proxies.iter().map(|proxy| ProxySwitches {
            state: AtomicU8::new(if proxy.disabled { CLOSED } else { OPEN }),
            is_unpublished: AtomicBool::new(proxy.unpublished),
            // A reserved place is not a backend before it has a name.
            is_deleted: AtomicBool::new(proxy.reserve_of.is_some()),
        });
        Switches {
            proxies: proxies.collect(),
            connection_rate: AtomicU32::new(global.maxconnrate.unwrap_or(0)),
            session_rate: AtomicU32::new(global.maxsessrate.unwrap_or(0)),
            tls_session_rate: AtomicU32::new(global.tls.maxsslrate.unwrap_or(0)),
        }
    }

    fn of(&self, proxy: ProxyId) -> &ProxySwitches {
        &self.proxies[proxy.place()]
    }

    pub fn frontend_state(&self, frontend: ProxyId) -> FrontendState {
        match self.of(frontend).state.load(Ordering::Acquire) {
            OPEN => FrontendState::Open,
            PAUSED => FrontendState::Paused,
            _ => FrontendState::Closed,
        }
    }

    pub fn set_frontend_state(&self, frontend: ProxyId, state: FrontendState) {
        let state = match state {
            FrontendState::Open => OPEN,
            FrontendState::Paused => PAUSED,
            FrontendState::Closed => CLOSED,
        };
        self.of(frontend).state.store(state, Ordering::Release);
    }

    /// Whether connections of a frontend wait in the kernel. Connections that wait when it closes
    /// are still accepted.
    pub fn is_paused(&self, frontend: ProxyId) -> bool {
        self.of(frontend).state.load(Ordering::Acquire) == PAUSED
    }

    #[inline]
    pub fn is_published(&self, backend: ProxyId) -> bool {
        !self.of(backend).is_unpublished.load(Ordering::Relaxed)
    }

    pub fn publish(&self, backend: ProxyId, published: bool) {
        let unpublished = &self.of(backend).is_unpublished;
        unpublished.store(!published, Ordering::Relaxed);
    }

    pub fn delete(&self, backend: ProxyId) {
        self.of(backend).is_deleted.store(true, Ordering::Release);
    }

    /// A reserved place becomes a backend.
    pub fn add(&self, backend: ProxyId) {
        self.of(backend).is_deleted.store(false, Ordering::Release);
    }

    pub fn is_deleted(&self, proxy: ProxyId) -> bool {
        self.of(proxy).is_deleted.load(Ordering::Acquire)
    }

    fn cell(&self, rate: RateLimit) -> &AtomicU32 {
        match rate {
            RateLimit::Connections => &self.connection_rate,
            RateLimit::Sessions => &self.session_rate,
            RateLimit::TlsSessions => &self.tls_session_rate,
        }
    }

    /// The limit of a rate per second; none for no limit.
    pub fn rate_limit(&self, rate: RateLimit) -> Option<u32> {
        let limit = self.cell(rate).load(Ordering::Relaxed);
        (limit > 0).then_some(limit)
    }

    /// Sets that limit; 0 for none.
    pub fn set_rate_limit(&self, rate: RateLimit, per_second: u32) {
        self.cell(rate).store(per_second, Ordering::Relaxed);
    }
}
