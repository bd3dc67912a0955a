//! Limits on client connections: of the process, of a frontend, of a bind line. Workers reserve a
//! place before they accept, so that all workers together never exceed a limit.

use std::sync::atomic::{AtomicU32, Ordering};

use config::model::Config;

use super::succession::Succession;
use crate::ids::{BindId, ProxyId};

/// A count with a limit; 0 for none.
#[derive(Debug)]
struct Places {
    taken: AtomicU32,
    max: AtomicU32,
}

impl Places {
    fn new(max: Option<u32>) -> Places {
        Places {
            taken: AtomicU32::new(0),
            max: AtomicU32::new(max.unwrap_or(0)),
        }
    }

    /// Takes the places in use over; `keeps_max`: the limit too.
    fn succeed(&self, before: &Places, keeps_max: bool) {
        let taken = before.taken.load(Ordering::SeqCst);
        self.taken.store(taken, Ordering::SeqCst);
        if keeps_max {
            let max = before.max.load(Ordering::SeqCst);
            self.max.store(max, Ordering::SeqCst);
        }
    }

    fn take(&self) -> bool {
        let max = self.max.load(Ordering::SeqCst);
        let more = |taken: u32| (max == 0 || taken < max).then_some(taken + 1);
        self.taken
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, more)
            .is_ok()
    }

    fn give(&self) {
        self.taken.fetch_sub(1, Ordering::SeqCst);
    }

    fn is_full(&self) -> bool {
        let max = self.max.load(Ordering::SeqCst);
        max > 0 && self.taken.load(Ordering::SeqCst) >= max
    }
}

/// The places for client connections on all levels.
#[derive(Debug)]
pub(super) struct Admission {
    process: Places,
    frontends: Vec<Frontend>,
}

#[derive(Debug)]
struct Frontend {
    places: Places,
    binds: Vec<Places>,
}

impl Admission {
    /// A frontend without its own `maxconn` has that of the process.
    pub fn new(config: &Config) -> Admission {
        let frontends = config.proxies.iter().map(|proxy| Frontend {
            places: Places::new(proxy.maxconn),
            binds: proxy
                .binds
                .iter()
                .map(|bind| Places::new(bind.maxconn))
                .collect(),
        });
        Admission {
            process: Places::new(config.global.maxconn),
            frontends: frontends.collect(),
        }
    }

    /// Takes the places in use over, and the limits that were set at run time.
    pub fn succeed(&self, before: &Admission, both: &Succession<'_>) {
        let keeps = both.config.global.maxconn == both.before.global.maxconn;
        self.process.succeed(&before.process, keeps);
        for proxy in &both.proxies {
            let [now, then] = both.proxy(*proxy);
            let keeps = now.maxconn == then.maxconn && both.is_kept(*proxy);
            let frontend = &self.frontends[proxy.place()];
            let frontend_before = &before.frontends[proxy.place()];
            frontend.places.succeed(&frontend_before.places, keeps);
        }
        for bind in &both.binds {
            let [.., now] = self.of(*bind);
            let [.., then] = before.of(*bind);
            now.succeed(then, false);
        }
    }

    fn of(&self, bind: BindId) -> [&Places; 3] {
        let frontend = &self.frontends[bind.frontend.place()];
        [&self.process, &frontend.places, &frontend.binds[bind.place]]
    }

    /// Reserves a place on all levels, or on none.
    pub fn take(&self, bind: BindId) -> bool {
        let levels = self.of(bind);
        for (index, places) in levels.iter().enumerate() {
            if !places.take() {
                levels[..index].iter().for_each(|taken| taken.give());
                return false;
            }
        }
        true
    }

    /// Releases a place.
    pub fn give(&self, bind: BindId) {
        self.of(bind).iter().for_each(|places| places.give());
    }

    /// The number of client connections of the process.
    pub fn process(&self) -> u32 {
        self.process.taken.load(Ordering::Relaxed)
    }

    /// Whether the limit of the process is reached.
    pub fn is_process_full(&self) -> bool {
        self.process.is_full()
    }

    /// The limit of the process; 0 for none.
    pub fn process_max(&self) -> u32 {
        self.process.max.load(Ordering::Relaxed)
    }

    /// Changes the limit of the process; 0 for none.
    pub fn set_process_max(&self, max: u32) {
        self.process.max.store(max, Ordering::SeqCst);
    }

    /// The limit of a frontend; 0 for none.
    pub fn frontend_max(&self, frontend: ProxyId) -> u32 {
        let places = &self.frontends[frontend.place()].places;
        places.max.load(Ordering::Relaxed)
    }

    /// Changes the limit of a frontend; 0 for none.
    pub fn set_frontend_max(&self, frontend: ProxyId, max: u32) {
        let places = &self.frontends[frontend.place()].places;
        places.max.store(max, Ordering::SeqCst);
    }

    /// Whether a limit is reached.
    pub fn is_full(&self, bind: BindId) -> bool {
        self.of(bind).iter().any(|places| places.is_full())
    }

    /// Whether all places are released.
    pub fn is_quiet(&self) -> bool {
        let is_quiet = |places: &Places| places.taken.load(Ordering::Relaxed) == 0;
        let frontend = |of: &Frontend| is_quiet(&of.places) && of.binds.iter().all(is_quiet);
        is_quiet(&self.process) && self.frontends.iter().all(frontend)
    }
}
