//! How many client connections there may be: of the process, of a frontend, of a bind line. Workers reserve a place before they
//! accept, so that all together never have more.

use std::sync::atomic::{AtomicU32, Ordering};

use config::model::Config;

use crate::ids::BindId;

/// A number with a limit; 0 for none.
#[derive(Debug)]
struct Places {
    taken: AtomicU32,
    max: u32,
}

impl Places {
    fn new(max: Option<u32>) -> Places {
        Places {
            taken: AtomicU32::new(0),
            max: max.unwrap_or(0),
        }
    }

    fn take(&self) -> bool {
        let more = |taken: u32| (self.max == 0 || taken < self.max).then_some(taken + 1);
        self.taken
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, more)
            .is_ok()
    }

    fn give(&self) {
        self.taken.fetch_sub(1, Ordering::SeqCst);
    }

    fn is_full(&self) -> bool {
        self.max > 0 && self.taken.load(Ordering::SeqCst) >= self.max
    }
}

/// See the module.
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
    /// A frontend without a `maxconn` of its own has that of the process.
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

    fn of(&self, bind: BindId) -> [&Places; 3] {
        let frontend = &self.frontends[bind.frontend.place()];
        [&self.process, &frontend.places, &frontend.binds[bind.place]]
    }

    /// Takes a place on all levels, or on none.
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

    /// Gives a place back.
    pub fn give(&self, bind: BindId) {
        self.of(bind).iter().for_each(|places| places.give());
    }

    /// Client connections of the process.
    pub fn process(&self) -> u32 {
        self.process.taken.load(Ordering::Relaxed)
    }

    /// Whether a limit is reached.
    pub fn is_full(&self, bind: BindId) -> bool {
        self.of(bind).iter().any(|places| places.is_full())
    }

    /// Whether all places were given back.
    pub fn is_quiet(&self) -> bool {
        let is_quiet = |places: &Places| places.taken.load(Ordering::Relaxed) == 0;
        let frontend = |of: &Frontend| is_quiet(&of.places) && of.binds.iter().all(is_quiet);
        is_quiet(&self.process) && self.frontends.iter().all(frontend)
    }
}
