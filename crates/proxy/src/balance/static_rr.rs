//! `balance static-rr`: a fixed map of the servers, walked in turn.

use config::model::Proxy;

use super::{Balance, Candidates, weighted_map};

#[derive(Debug)]
pub(crate) struct StaticRr {
    map: Vec<usize>,
    next: usize,
}

impl StaticRr {
    pub fn new(proxy: &Proxy, worker: usize) -> Self {
        let map = weighted_map(proxy);
        StaticRr {
            next: worker % map.len().max(1),
            map,
        }
    }
}

impl Balance for StaticRr {
    fn pick(
        &mut self,
        candidates: &Candidates<'_>,
        _: Option<u32>,
        _: &mut dyn FnMut() -> u64,
    ) -> Option<usize> {
        let count = self.map.len();
        for step in 0..count {
            let place = (self.next + step) % count;
            if (candidates.may)(self.map[place]) {
                self.next = (place + 1) % count;
                return Some(self.map[place]);
            }
        }
        // Only servers outside the map are left (backups).
        (0..candidates.servers.len()).find(|server| (candidates.may)(*server))
    }
}
