//! A life: one or two workers and their peers, one event after the other as the seed has it,
//! checked after each.

use std::sync::Arc;

use net::WorkerId;
use spangate_proxy::{Engine, Generation, HeldBytes, RuntimeConfig, Shared};

use super::client::Client;
use super::driver::SimDriver;
use super::filters::Exports;
use super::plan::{self, Mood};
use super::quic::Network;
use super::setups::{Setup, load_after, load_running};
use super::stage::Stage;
use super::tcp::TcpClient;
use super::udp::Udp;
use super::worker::{Event, Peer, Worker};
use testing::Random;

/// Steps after which a life is called endless.
const STEPS_MAX: usize = 100_000;
/// Virtual time after which one is called stuck: far beyond the sum of all timeouts of all
/// requests.
const TIME_MAX_MS: u64 = 3_600_000;

/// Timers that may be left at the end of a life: each runs out once.
const TIMERS_LEFT_MAX: usize = 20;

struct Life<'a> {
    workers: Vec<Worker>,
    runtime_config: Arc<RuntimeConfig>,
    shared: Arc<Shared>,
    /// Decides when the configuration is reloaded in place, and what changes in it; none where it
    /// stays. It draws its own numbers, so that other lives are the same with and without reloads.
    reloads: Option<Random>,
    exports: Exports,
    stage: Stage<'a>,
    /// In a configuration with QUIC.
    network: Option<Network>,
    events: Vec<Event>,
    drain_at: Option<usize>,
    /// Scratch buffer.
    held: Vec<HeldBytes>,
}

/// Runs the life of a seed in a configuration, which is reloaded in place now and then if `reloads`
/// says so.
///
/// # Errors
/// The first invariant that broke.
pub fn live(seed: u64, setup: &Setup, reloads: bool, verbose: bool) -> Result<(), String> {
    let mut random = Random::new(seed);
    let mood = Mood {
        calm: random.chance(60),
        stale: random.chance(25),
        drain: random.chance(15),
    };
    let mut life = Life::new(setup, mood, random);
    life.reloads = reloads.then(|| Random::new(!seed));
    for worker in &mut life.workers {
        worker.driver.verbose = verbose;
    }
    if let Some(network) = &mut life.network {
        network.verbose = verbose;
    }
    life.workers[0]
        .driver
        .say(format_args!("{}: {mood:?}", setup.name));
    for exchange in life.stage.plans.iter().flatten() {
        life.workers[0]
            .driver
            .say(format_args!("plan {exchange:?}"));
    }
    life.run()
}

impl<'a> Life<'a> {
    fn new(setup: &'a Setup, mood: Mood, mut random: Random) -> Self {
        let workers = random.pick(&[1, 1, 1, 2, 2, 4]);
        let (runtime_config, exports) = own_running(setup, &mut random);
        let shared = Arc::new(runtime_config.share(workers));
        let puts_off = random.chance(50);
        let panics = !mood.calm && random.chance(20);
        let room = random.pick(&[usize::MAX, 100_000, 4000, 500, 50]);
        let workers = (0..workers).map(|index| {
            let engine = Engine::new(runtime_config.clone(), shared.clone(), index, random.next());
            let mut driver = SimDriver::new(1 + usize::from(setup.h3_clients), setup.bufsize);
            driver.udp = Udp::new(index);
            driver.room = room;
            driver.puts_off = puts_off;
            driver.panics_in = panics.then(|| random.below(60) as u32);
            driver.name = ["", "b ", "c ", "d "][index];
            Worker::new(engine, driver)
        });
        let mut workers: Vec<Worker> = workers.collect();
        let count = 1 + random.below(4);
        let plans: Vec<_> = (0..count)
            .map(|client| {
                let mut plan = plan::exchanges(&mut random, client, mood);
                for exchange in &mut plan {
                    exchange.fit(setup);
                }
                plan
            })
            .collect();
        let mut over_quic = Vec::new();
        for client in (0..count).rev() {
            if setup.h3_clients && random.chance(75) {
                over_quic.push(Client::new(client, random.chance(50)));
                continue;
            }
            let peer = if setup.is_tcp {
                Peer::TcpClient(TcpClient::new(client))
            } else {
                Peer::Client(Client::new(client, random.chance(30)))
            };
            // Its connection is bound to that worker's socket.
            let at = random.below(workers.len());
            workers[at].coming.push(peer);
        }
        let drain_at = mood.drain.then(|| random.below(100));
        let network_seed = setup.is_quic().then(|| random.next());
        let stage = Stage::new(setup, mood, plans, random);
        let now_ms = workers[0].driver.now.ms();
        let network = network_seed.map(|seed| Network::new(seed, &stage, over_quic, now_ms));
        Life {
            workers,
            runtime_config,
            shared,
            reloads: None,
            exports,
            stage,
            network,
            events: Vec::new(),
            drain_at,
            held: Vec::new(),
        }
    }

    fn run(&mut self) -> Result<(), String> {
        for step in 0..STEPS_MAX {
            let at = self.stage.random.below(self.workers.len());
            self.workers[at].misfortune(&mut self.stage);
            if self.drain_at == Some(step) {
                self.stage.draining = true;
                for worker in &mut self.workers {
                    worker.start_draining(&mut self.stage);
                }
            }
            if self.stage.random.chance(1) {
                let changes = &mut self.workers[at];
                let woken = changes.change_server(&self.shared, &mut self.stage);
                self.wake(&woken);
            }
            if self.workers[at].is_in_round() && self.stage.random.chance(30) {
                self.end_round(at);
            }
            self.reload_now_and_then();
            let is_networks = self.network.is_some() && self.stage.random.chance(50);
            let has_turned = is_networks && self.network_turn()
                || self.turn(at)
                || (0..self.workers.len()).any(|other| self.turn(other))
                || self.network_turn();
            if !has_turned {
                if self.is_over() {
                    return self.last_checks();
                }
                self.pass_time()?;
            }
            self.check()?;
        }
        Err("endless".into())
    }

    /// All workers go on with the same proxies, and maybe others before, behind and between them.
    fn reload_now_and_then(&mut self) {
        let Some(random) = &mut self.reloads else {
            return;
        };
        if !random.chance(2) {
            return;
        }
        let mut text = self.stage.setup.text.clone();
        let number = random.below(4);
        if random.chance(50) {
            text.push_str(&format!("backend behind{number}\n server s 127.0.0.1:1\n"));
        }
        if random.chance(50) {
            text = format!("backend before{number}\n mode tcp\n server s 127.0.0.1:1\n{text}");
        }
        let before = Arc::clone(&self.runtime_config);
        let runtime_config = Arc::new(load_after(&text, &before, &self.shared));
        self.shared = Arc::new(runtime_config.share_after(&before, &self.shared));
        self.runtime_config = runtime_config;
        for worker in &mut self.workers {
            let next = Generation {
                runtime_config: Arc::clone(&self.runtime_config),
                shared: Arc::clone(&self.shared),
            };
            worker.renew(next, &mut self.stage);
        }
        for at in 0..self.workers.len() {
            self.wake_others(at);
        }
    }

    /// Something happens at a worker, if anything can.
    fn turn(&mut self, at: usize) -> bool {
        let Life {
            workers,
            stage,
            events,
            ..
        } = self;
        let worker = &mut workers[at];
        events.clear();
        worker.collect(events, stage);
        if events.is_empty() {
            return false;
        }
        let event = stage.random.pick(events);
        worker.happen(event, stage);
        self.wake_others(at);
        if self.stage.random.chance(40) {
            self.end_round(at);
            self.tick();
        }
        true
    }

    /// Something happens in the network, if anything can.
    fn network_turn(&mut self) -> bool {
        let Some(network) = &mut self.network else {
            return false;
        };
        let has_turned = network.turn(&mut self.workers, &mut self.stage);
        for at in 0..self.workers.len() {
            self.wake_others(at);
        }
        if has_turned && self.stage.random.chance(40) {
            let at = self.stage.random.below(self.workers.len());
            self.end_round(at);
        }
        has_turned
    }

    fn end_round(&mut self, at: usize) {
        self.workers[at].end_round(&mut self.stage);
        self.wake_others(at);
    }

    /// A worker asked for rounds of others: these follow at some moment. What it has sent leaves.
    fn wake_others(&mut self, at: usize) {
        if let Some(network) = &mut self.network {
            network.take(&mut self.workers[at]);
        }
        let woken = std::mem::take(&mut self.workers[at].driver.woken);
        self.wake(&woken);
    }

    fn wake(&mut self, woken: &[WorkerId]) {
        for worker in woken {
            self.workers[worker.0 as usize].wake();
        }
    }

    /// Whether clients and servers are done with each other, and no connection is on its way from
    /// one worker to another.
    fn is_over(&self) -> bool {
        let quiet = |worker: &Worker| {
            let nobody_comes = worker.coming.is_empty() || worker.driver.unlistened[0];
            let has_quic =
                worker.engine.quic_connections() > 0 || !worker.driver.udp.socks.is_empty();
            let has_tcp = !worker.driver.names.is_empty() || worker.peers_wake_ms().is_some();
            !has_quic && !has_tcp && nobody_comes
        };
        // The connections that are over are told of in a round.
        let is_settled =
            |network: &Network| network.is_quiet() && !self.workers.iter().any(Worker::is_in_round);
        self.network.as_ref().is_none_or(is_settled)
            && self.stage.moving.is_empty()
            && self.workers.iter().all(quiet)
    }

    /// A little time, never beyond a deadline: what a timeout cuts is cut at its moment.
    fn tick(&mut self) {
        if self.stage.random.chance(20) {
            let passed_ms = self.stage.random.next() % 4;
            let now_ms = self.now_ms();
            let all_ms = [self.deadline_ms(), self.network_wakes_ms()];
            let next_ms = all_ms.into_iter().flatten().min().unwrap_or(u64::MAX);
            self.advance_ms(passed_ms.min(next_ms.saturating_sub(now_ms)));
        }
    }

    /// Nothing can happen at this moment: on to the next one.
    fn pass_time(&mut self) -> Result<(), String> {
        let now_ms = self.now_ms();
        if let Some(at) = self.workers.iter().position(Worker::is_in_round) {
            self.end_round(at);
            return Ok(());
        }
        let streams: usize = self
            .workers
            .iter()
            .map(|worker| worker.engine.streams_in_use())
            .sum();
        let alone = |worker: &Worker| worker.coming.is_empty() && worker.clients() == 0;
        let no_clients = |network: &Network| !network.has_clients();
        let alone = self.workers.iter().all(alone) && self.network.as_ref().is_none_or(no_clients);
        let may_close = alone || self.stage.mood.stale || !self.stage.mood.calm;
        if streams == 0 && may_close && self.stage.random.chance(50) && self.close_idle_servers() {
            return Ok(());
        }
        self.check_listeners()?;
        let peers_ms = self.workers.iter().filter_map(Worker::peers_wake_ms).min();
        let network_ms = self.network_wakes_ms();
        let all_ms = [peers_ms, network_ms, self.deadline_ms()];
        let Some(next_ms) = all_ms.into_iter().flatten().min() else {
            if self.close_idle_servers() {
                return Ok(());
            }
            return Err(format!("stuck with {streams} streams"));
        };
        if next_ms > TIME_MAX_MS {
            return Err("it lives too long".into());
        }
        self.advance_ms(next_ms.saturating_sub(now_ms));
        for at in 0..self.workers.len() {
            // A worker without an event of its own sleeps on.
            if self.workers[at].has_round_due() {
                self.end_round(at);
            }
        }
        Ok(())
    }

    /// Servers close the connections that they keep idle; whether there was one.
    fn close_idle_servers(&mut self) -> bool {
        let now_ns = self.workers[0].driver.now.mono_ns;
        let closed = self.workers.iter_mut().map(Worker::close_idle_servers);
        let closed = closed.fold(false, |any, closed| any | closed);
        let network = self.network.as_mut();
        closed | network.is_some_and(|it| it.close_idle_servers(now_ns, &mut self.stage))
    }

    /// When something happens in the network by itself, monotonic milliseconds.
    fn network_wakes_ms(&mut self) -> Option<u64> {
        self.network.as_mut()?.wakes_ms(&self.workers)
    }

    fn now_ms(&self) -> u64 {
        self.workers[0].driver.now.ms()
    }

    fn deadline_ms(&mut self) -> Option<u64> {
        self.workers
            .iter_mut()
            .filter_map(Worker::deadline_ms)
            .min()
    }

    fn advance_ms(&mut self, ms: u64) {
        for worker in &mut self.workers {
            worker.driver.advance_ms(ms);
        }
    }

    fn check(&mut self) -> Result<(), String> {
        if let Some(fault) = self.stage.faults.first() {
            return Err(fault.clone());
        }
        let setup = self.stage.setup;
        // What is sealed at a time, with records that are larger than what is in them; a frame.
        let whole_max = match (setup.tls, setup.has_muxes()) {
            (true, _) => 80 << 10,
            (false, true) => 20 << 10,
            (false, false) => 0,
        };
        let backlog_max = 4 * setup.bufsize + whole_max;
        for worker in &self.workers {
            let driver = &worker.driver;
            if let Some(fault) = driver.faults.first() {
                return Err(fault.clone());
            }
            if driver.backlog_max > backlog_max {
                return Err(format!("a backlog of {} bytes", driver.backlog_max));
            }
            worker.engine.audit()?;
            let (engine, pipes) = (&worker.engine, &driver.pipes);
            setup.bounds().check(engine, pipes, &mut self.held)?;
        }
        for (index, max) in setup
            .maxconn
            .iter()
            .enumerate()
            // What a client gives up, its server over QUIC learns later.
            .filter(|(_, max)| **max > 0 && !setup.h3_servers)
        {
            let busy: usize = self.workers.iter().map(|worker| worker.busy(index)).sum();
            if busy > *max as usize {
                return Err(format!(
                    "server {index} has {busy} requests, maxconn is {max}"
                ));
            }
        }
        let clients: usize = self.workers.iter().map(Worker::clients).sum();
        match setup.clients_max {
            Some(max) if clients > max as usize => {
                Err(format!("{clients} clients, maxconn is {max}"))
            }
            _ => Ok(()),
        }
    }

    /// When all rounds are over, nobody is kept out without need.
    fn check_listeners(&self) -> Result<(), String> {
        if self.stage.setup.h3_clients {
            // Its clients over QUIC count too, and nobody here knows them.
            return Ok(());
        }
        let clients: usize = self.workers.iter().map(Worker::clients).sum();
        let room = self
            .stage
            .setup
            .clients_max
            .is_none_or(|max| clients < max as usize);
        let shut_out = |worker: &Worker| {
            let driver = &worker.driver;
            !worker.coming.is_empty() && !driver.accepting[0] && !driver.unlistened[0]
        };
        if room && self.workers.iter().any(shut_out) {
            Err("a listener stays closed".into())
        } else {
            Ok(())
        }
    }

    /// Whether no timer is left after at most [`TIMERS_LEFT_MAX`] deadlines: no timer starts again.
    fn timers_run_out(&mut self) -> bool {
        for _ in 0..TIMERS_LEFT_MAX {
            let Some(next_ms) = self.deadline_ms() else {
                return true;
            };
            self.advance_ms(next_ms.saturating_sub(self.now_ms()));
            (0..self.workers.len()).for_each(|at| self.end_round(at));
        }
        false
    }

    fn last_checks(&mut self) -> Result<(), String> {
        for worker in &mut self.workers {
            worker.end_round(&mut self.stage);
        }
        self.check()?;
        if self.network.is_some() && !self.timers_run_out() {
            return Err("timers are left".into());
        }
        for worker in &self.workers {
            if worker.engine.streams_in_use() != 0 {
                return Err(format!(
                    "{} streams are left",
                    worker.engine.streams_in_use()
                ));
            }
            if self.stage.draining && !worker.is_finished() {
                return Err("drained, and not finished".into());
            }
            if self.stage.draining && worker.driver.unlistened.contains(&false) {
                return Err("drained, and a listener is open".into());
            }
        }
        if !self.shared.is_quiet() {
            return Err(format!("a count is left: {:?}", self.shared));
        }
        for worker in &mut self.workers {
            worker.engine.finish(&mut worker.driver);
        }
        self.exports.check()?;
        let logs = self.workers.iter().flat_map(|worker| &worker.driver.logs);
        super::logs::check(logs, &self.stage)
    }
}

/// What a life runs: one that is traced has filters of its own.
fn own_running(setup: &Setup, random: &mut Random) -> (Arc<RuntimeConfig>, Exports) {
    if !setup.is_traced && !setup.takes_early_data {
        return (Arc::clone(&setup.runtime_config), Exports::default());
    }
    let mut runtime_config = load_running(&setup.text);
    let exports = Exports::connect(
        setup.name,
        &mut runtime_config,
        random.pick(&[1, 16, 10_000]),
    );
    (Arc::new(runtime_config), exports)
}
