//! Picks among many servers: which server is picked, and how many servers a pick looks at.

use std::cell::{Cell, RefCell};

use config::model::{Balance as Configured, Proxy};
use testing::Random;

use super::{Balance, Beginning, Candidates};
use crate::shared::{Releases, Turn};

/// More looks than this at a pick among [`MANY`] servers mean that it looks at all of them.
const LOOKS_MAX: usize = 40;
const MANY: usize = 1000;

/// Servers with their loads, and a worker that picks among them.
struct Play {
    balance: Box<dyn Balance>,
    weights: Vec<u32>,
    usable: Vec<bool>,
    /// By server: the most requests; 0 for no limit.
    limits: Vec<u32>,
    loads: Vec<Cell<u32>>,
    avoid: Option<usize>,
    releases: Releases,
    turn: Turn,
    random: RefCell<Random>,
    looks: Cell<usize>,
}

fn proxy(balance: Configured) -> Proxy {
    Proxy {
        balance,
        ..Proxy::default()
    }
}

fn worker(balance: Configured, weights: &[u32], usable: &[bool]) -> Box<dyn Balance> {
    super::new(&Beginning {
        proxy: &proxy(balance),
        weights,
        weight_units: 1,
        usable,
        ring_key: &|_| 0,
        worker: 0,
    })
}

impl Play {
    fn new(balance: Configured, weights: Vec<u32>) -> Play {
        let usable = vec![true; weights.len()];
        Play {
            balance: worker(balance, &weights, &usable),
            limits: vec![0; weights.len()],
            loads: vec![Cell::new(0); weights.len()],
            usable,
            weights,
            avoid: None,
            releases: Releases::default(),
            turn: Turn::default(),
            random: RefCell::new(Random::new(1)),
            looks: Cell::new(0),
        }
    }

    /// Picks a server and takes a slot there.
    fn pick(&mut self) -> Option<usize> {
        let mut balance = std::mem::replace(&mut self.balance, worker(Configured::First, &[], &[]));
        let picked = self.pick_by(&mut *balance);
        self.balance = balance;
        picked
    }

    /// The pick of another worker.
    fn pick_by(&mut self, balance: &mut dyn Balance) -> Option<usize> {
        self.looks.set(0);
        let look = |server: usize| {
            self.looks
                .set(self.looks.get() + usize::from(server < MANY))
        };
        let is_full = |server: usize| {
            self.limits[server] > 0 && self.loads[server].get() >= self.limits[server]
        };
        let may = |server: usize| {
            look(server);
            self.usable[server] && self.avoid != Some(server) && !is_full(server)
        };
        let load = |server: usize| {
            look(server);
            self.loads[server].get()
        };
        let picked = balance.pick(
            &Candidates {
                id: &|server| server as u32,
                weights: &self.weights,
                joined: &|server| server as u32,
                may: &may,
                stays_out: &|server| !self.usable[server] || is_full(server),
                load: &load,
                is_full: &|_| false,
                now_ns: 0,
                turn: &self.turn,
                releases: &self.releases,
            },
            None,
            &mut || self.random.borrow_mut().next(),
        );
        if let Some(server) = picked {
            self.loads[server].set(self.loads[server].get() + 1);
        }
        picked
    }

    fn release(&self, server: usize) {
        self.loads[server].set(self.loads[server].get() - 1);
        self.releases.record(server);
    }

    /// The lowest share of the load that a usable server has before a pick.
    fn least(&self) -> Option<u64> {
        let may = |server: &usize| {
            let (load, limit) = (self.loads[*server].get(), self.limits[*server]);
            self.usable[*server] && self.avoid != Some(*server) && (limit == 0 || load < limit)
        };
        let servers = (0..self.weights.len()).filter(may);
        servers.map(|server| self.share(server, 0)).min()
    }

    /// The share of a server without `own` of its requests.
    fn share(&self, server: usize, own: u32) -> u64 {
        let load = u64::from(self.loads[server].get() - own) + 1;
        load * u64::from(u32::MAX) / u64::from(self.weights[server])
    }

    /// Picks, and checks that the server had the lowest share.
    fn pick_least(&mut self) -> Option<usize> {
        let least = self.least();
        let picked = self.pick();
        assert_eq!(picked.map(|server| self.share(server, 1)), least);
        picked
    }
}

#[test]
fn leastconn_looks_at_few_of_many_servers_and_uses_equal_ones_in_turn() {
    let mut play = Play::new(Configured::LeastConn, vec![1; MANY]);
    assert_eq!(play.pick(), Some(0), "the first pick looks at all");
    for round in 0..3 {
        for server in usize::from(round == 0)..MANY {
            assert_eq!(play.pick_least(), Some(server));
            assert!(play.looks.get() <= LOOKS_MAX, "{}", play.looks.get());
        }
    }
    // One request at a time goes around, too.
    (0..MANY).for_each(|server| (0..3).for_each(|_| play.release(server)));
    let mut served = vec![0; MANY];
    for _ in 0..2 * MANY {
        let server = play.pick_least().unwrap();
        play.release(server);
        served[server] += 1;
    }
    assert_eq!(served, vec![2; MANY]);
}

#[test]
fn leastconn_follows_weights_releases_limits_and_other_workers() {
    let weights = (0..MANY).map(|server| 1 + server as u32 % 7).collect();
    let mut play = Play::new(Configured::LeastConn, weights);
    for server in (0..MANY).step_by(3) {
        play.limits[server] = 2;
    }
    play.usable[..100].fill(false);
    let mut other = worker(Configured::LeastConn, &play.weights, &play.usable);
    let mut looks = 0;
    let mut held = std::collections::VecDeque::new();
    for request in 0..20_000 {
        let picked = match request % 4 {
            0 => {
                let least = play.least();
                let picked = play.pick_by(&mut *other);
                assert_eq!(picked.map(|server| play.share(server, 1)), least);
                picked
            }
            1 => {
                play.avoid = held.back().copied();
                let picked = play.pick_least();
                play.avoid = None;
                picked
            }
            _ => play.pick_least(),
        };
        looks += play.looks.get();
        held.extend(picked);
        if held.len() > 4000 {
            let place = request * 7919 % held.len();
            play.release(held.swap_remove_back(place).unwrap());
        }
    }
    assert!(looks <= 20_000 * LOOKS_MAX, "{}", looks / 20_000);
}

#[test]
fn full_servers_are_looked_at_again_when_they_release() {
    let mut play = Play::new(Configured::LeastConn, vec![1; MANY]);
    play.limits.fill(1);
    (0..MANY).for_each(|server| assert_eq!(play.pick(), Some(server)));
    assert_eq!(play.pick(), None);
    assert_eq!(play.pick(), None);
    assert!(play.looks.get() <= LOOKS_MAX, "{}", play.looks.get());
    play.release(700);
    assert_eq!(play.pick(), Some(700));
    assert!(play.looks.get() <= LOOKS_MAX, "{}", play.looks.get());
    // More releases than a worker follows one by one.
    (0..MANY).for_each(|server| play.release(server));
    (0..MANY).for_each(|_| assert!(play.pick_least().is_some()));
    assert_eq!(play.pick(), None);
}

#[test]
fn random_looks_at_few_of_many_servers_and_follows_weights() {
    let weights: Vec<u32> = (0..MANY).map(|server| 1 + server as u32 % 4).collect();
    let total: u32 = weights.iter().sum();
    let mut play = Play::new(Configured::Random { draws: 1 }, weights);
    const EACH: u32 = 200;
    for _ in 0..total * EACH {
        play.pick().unwrap();
        assert!(play.looks.get() <= LOOKS_MAX, "{}", play.looks.get());
    }
    // Six standard deviations of each count.
    for (load, weight) in play.loads.iter().zip(&play.weights) {
        let expected = f64::from(weight * EACH);
        let apart = (f64::from(load.get()) - expected).abs();
        assert!(apart < 6.0 * expected.sqrt(), "{load:?} of {expected}");
    }
}

#[test]
fn the_least_loaded_of_some_draws_is_taken() {
    let mut play = Play::new(Configured::Random { draws: 2 }, vec![1; MANY]);
    (0..MANY * 20).for_each(|_| assert!(play.pick().is_some()));
    let most = play.loads.iter().map(Cell::get).max();
    // With two choices the most is close to the average; with one it would be 35 to 40.
    assert!(most <= Some(25), "{most:?}");
}

#[test]
fn random_finds_the_only_server_with_a_slot() {
    let mut play = Play::new(Configured::Random { draws: 2 }, vec![1; MANY]);
    play.usable[..500].fill(false);
    play.balance = worker(Configured::Random { draws: 2 }, &play.weights, &play.usable);
    play.limits.fill(1);
    (500..MANY).for_each(|_| assert!(play.pick().is_some()));
    assert!(play.loads[500..].iter().all(|load| load.get() == 1));
    assert_eq!(play.pick(), None);
    play.release(600);
    assert_eq!(play.pick(), Some(600));
}
