//! Switches and limits that commands change at run time: paused frontends, unpublished backends,
//! rates of the process.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use config::model::Config;

use net::WorkerId;

use super::succession::Succession;
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
    /// The first configuration that has the proxy.
    added_in: u32,
    /// The first configuration that lacks the proxy; none while the configuration has it.
    removed_in: Option<u32>,
}

/// The switches and limits.
#[derive(Debug)]
pub(super) struct Switches {
    proxies: Vec<ProxySwitches>,
    /// By worker: the numbers of the earlier configurations that it still uses.
    older: Vec<Mutex<Vec<u32>>>,
    connection_rate: AtomicU32,
    session_rate: AtomicU32,
    tls_session_rate: AtomicU32,
}

const OPEN: u8 = 0;
const PAUSED: u8 = 1;
const CLOSED: u8 = 2;

fn lock(generations: &Mutex<Vec<u32>>) -> MutexGuard<'_, Vec<u32>> {
    // A list is replaced as a whole, so it is valid after a panic.
    generations.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Switches {
    pub fn new(config: &Config, workers: usize, generation: u32) -> Switches {
        let global = &config.global;
        let proxies = config.proxies.iter().map(|proxy| ProxySwitches {
            state: AtomicU8::new(if proxy.disabled { CLOSED } else { OPEN }),
            is_unpublished: AtomicBool::new(proxy.unpublished),
            // A reserved place is not a backend before it has a name.
            is_deleted: AtomicBool::new(proxy.reserve_of.is_some()),
            added_in: generation,
            removed_in: None,
        });
        Switches {
            proxies: proxies.collect(),
            older: (0..workers).map(|_| Mutex::default()).collect(),
            connection_rate: AtomicU32::new(global.maxconnrate.unwrap_or(0)),
            session_rate: AtomicU32::new(global.maxsessrate.unwrap_or(0)),
            tls_session_rate: AtomicU32::new(global.tls.maxsslrate.unwrap_or(0)),
        }
    }

    /// Takes what was set at run time over, as far as the lines are the same.
    pub fn succeed(&mut self, before: &Switches, both: &Succession<'_>) {
        for proxy in &both.proxies {
            let [line, line_before] = both.proxy(*proxy);
            let then = before.of(*proxy);
            let now = &mut self.proxies[proxy.place()];
            now.added_in = then.added_in;
            if line.is_removed {
                let removed_in = then.removed_in.unwrap_or(both.generation);
                now.removed_in = Some(removed_in);
                now.is_deleted = then.is_deleted.load(Ordering::Acquire).into();
            }
            if !both.is_kept(*proxy) {
                continue;
            }
            if then.state.load(Ordering::Acquire) == PAUSED && !line.disabled {
                now.state = PAUSED.into();
            }
            if line.unpublished == line_before.unpublished {
                now.is_unpublished = then.is_unpublished.load(Ordering::Relaxed).into();
            }
        }
        for older in &self.older {
            // Each worker reports when it goes on, and nothing is released before.
            *lock(older) = (0..both.generation).collect();
        }
        let [now, then] = [both.config, both.before].map(|config| {
            let global = &config.global;
            [
                global.maxconnrate,
                global.maxsessrate,
                global.tls.maxsslrate,
            ]
        });
        let rates = [
            RateLimit::Connections,
            RateLimit::Sessions,
            RateLimit::TlsSessions,
        ];
        for (place, rate) in rates.into_iter().enumerate() {
            if now[place] == then[place] {
                let limit = before.cell(rate).load(Ordering::Relaxed);
                self.set_rate_limit(rate, limit);
            }
        }
    }

    /// A worker uses these earlier configurations.
    pub fn set_older(&self, worker: WorkerId, generations: Vec<u32>) {
        *lock(&self.older[worker.0 as usize]) = generations;
    }

    /// Whether the configuration lacks a proxy that an earlier one has.
    pub fn is_removed(&self, proxy: ProxyId) -> bool {
        self.of(proxy).removed_in.is_some()
    }

    /// Whether no worker uses a configuration any longer that has this removed proxy.
    pub fn is_released(&self, proxy: ProxyId) -> bool {
        let of = self.of(proxy);
        of.removed_in.is_some_and(|removed_in| {
            let has_it = |generation: &u32| (of.added_in..removed_in).contains(generation);
            !self
                .older
                .iter()
                .any(|older| lock(older).iter().any(has_it))
        })
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
